//! Mean, variance and extremes without keeping the values (Welford; Chan, Golub and LeVeque for merging).
//!
//! Called by observers of a run, one summary each, and by the runner, which merges them.
//!
//! Invariant: merging is exact in count and extremes, and right to rounding in mean and variance. Rounding depends on
//! the order: the runner merges in the order of replication numbers ([`Summary::in_order`]), never in the order in
//! which threads finish, so results have the same bytes on any number of threads.

use super::estimate::{Confidence, Estimate};
use super::interval;
use serde::{Deserialize, Serialize};

/// A running summary of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    samples: u64,
    mean: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
    least: f64,
    largest: f64,
}

impl Summary {
    /// The summary of these values.
    pub fn of(values: &[f64]) -> Self {
        let mut summary = Self::default();
        values.iter().for_each(|&value| summary.record(value));
        summary
    }

    /// Takes in one value. A value that is not finite makes the mean not finite, so that it is seen.
    pub fn record(&mut self, value: f64) {
        self.samples += 1;
        let distance = value - self.mean;
        self.mean += distance / self.samples as f64;
        self.squares += distance * (value - self.mean);
        if self.samples == 1 {
            (self.least, self.largest) = (value, value);
        } else {
            (self.least, self.largest) = (self.least.min(value), self.largest.max(value));
        }
    }

    /// Takes in all values of another summary, as if recorded behind those of this one.
    pub fn merge(&mut self, other: &Self) {
        if other.samples == 0 {
            return;
        }
        if self.samples == 0 {
            *self = *other;
            return;
        }
        let (here, there) = (self.samples as f64, other.samples as f64);
        let distance = other.mean - self.mean;
        self.samples += other.samples;
        self.mean += distance * there / (here + there);
        self.squares += other.squares + distance * distance * here * there / (here + there);
        (self.least, self.largest) = (self.least.min(other.least), self.largest.max(other.largest));
    }

    /// All summaries merged from first to last. Give them in the order of replication numbers.
    pub fn in_order<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        parts.into_iter().fold(Self::default(), |mut all, part| {
            all.merge(part);
            all
        })
    }

    /// How many values.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.mean)
    }

    /// The unbiased variance; `None` below two values.
    pub fn variance(&self) -> Option<f64> {
        (self.samples > 1).then(|| self.squares / (self.samples - 1) as f64)
    }

    /// The standard deviation; `None` below two values.
    pub fn deviation(&self) -> Option<f64> {
        self.variance().map(libm::sqrt)
    }

    /// The least value; `None` without values.
    pub fn least(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.least)
    }

    /// The largest value; `None` without values.
    pub fn largest(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.largest)
    }

    /// The mean with its t-interval; `None` without values. Only for values that are independent, such as replications.
    pub fn estimate(&self, confidence: Confidence) -> Option<Estimate> {
        let half_width = self.variance().map(|variance| {
            let samples = self.samples as f64;
            interval::t_quantile(samples - 1.0, confidence) * libm::sqrt(variance / samples)
        });
        self.mean().map(|mean| Estimate { mean, half_width, samples: self.samples })
    }
}

#[cfg(test)]
mod tests {
    use super::super::drawn::{normal, stream};
    use super::*;

    #[test]
    fn a_summary_knows_the_moments_of_a_known_sample() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((summary.samples(), summary.least(), summary.largest()), (8, Some(2.0), Some(9.0)));
        assert!((summary.mean().unwrap() - 5.0).abs() < 1e-15);
        assert!((summary.variance().unwrap() - 32.0 / 7.0).abs() < 1e-14);
        let empty = Summary::default();
        assert_eq!((empty.mean(), empty.variance(), empty.least(), empty.estimate(Confidence::P95)), (None, None, None, None));
        assert_eq!(Summary::of(&[3.0]).variance(), None);
    }

    #[test]
    fn a_large_offset_does_not_eat_the_variance() {
        let values: Vec<f64> = [4.0, 7.0, 13.0, 16.0].iter().map(|x| x + 1e9).collect();
        assert!((Summary::of(&values).variance().unwrap() - 30.0).abs() < 1e-6);
    }

    #[test]
    fn merged_parts_equal_the_whole() {
        let mut random = stream("summary");
        let values: Vec<f64> = (0..1000).map(|_| 50.0 + normal(&mut random)).collect();
        let whole = Summary::of(&values);
        let parts: Vec<Summary> = [&values[..1], &values[1..1], &values[1..700], &values[700..]].map(Summary::of).to_vec();
        let merged = Summary::in_order(&parts);
        assert_eq!((merged.samples(), merged.least(), merged.largest()), (whole.samples(), whole.least(), whole.largest()));
        assert!((merged.mean().unwrap() - whole.mean().unwrap()).abs() < 1e-12);
        assert!((merged.variance().unwrap() / whole.variance().unwrap() - 1.0).abs() < 1e-12);
        // Merged in the same order, the bytes are the same.
        assert_eq!(Summary::in_order(&parts), merged);
    }
}
