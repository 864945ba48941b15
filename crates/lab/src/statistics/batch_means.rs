//! The mean of one long run by batch means: neighbouring values depend on each other, means of long batches hardly do.
//!
//! Called by the runner for runs of 10^7 packets that are not repeated, and by observers that feed [`Batches`] as they go.
//!
//! Batches are merged in pairs until the lag-1 autocorrelation of their means passes von Neumann's test or fewer than
//! twice [`BATCHES_MIN`] remain. The result says which of the two it was.
//!
//! Invariant: memory does not grow with the run ([`Batches`] keeps fewer than [`BATCHES_MAX`] sums), and the result
//! depends on the values and their order alone.
//!
//! Limit: a test that passes is no proof. With few batches only strong correlation is found, so an interval that rests on
//! fewer than about 30 batches of a slowly varying run is a little too narrow.
//!
//! Source: J. von Neumann 1941; G. S. Fishman, "Grouping observations in digital simulation", 1978.

use super::estimate::{Confidence, Estimate, StatisticsError, finite};
use super::interval::{normal_quantile, t_interval};
use serde::{Deserialize, Serialize};

/// The least number of batches an interval is taken from.
pub const BATCHES_MIN: usize = 20;

/// The most batches that are kept; a power of two.
pub const BATCHES_MAX: usize = 1024;

/// The one-sided significance of the test. Why 0.1: letting correlated batches pass costs coverage, merging too much
/// costs a slightly wider interval alone, so the test errs towards merging.
const SIGNIFICANCE: f64 = 0.1;

/// The mean of one run with the interval of its batches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchMeans {
    /// The mean; its samples are the batches.
    pub estimate: Estimate,
    /// Values of one batch.
    pub batch: u64,
    /// The lag-1 autocorrelation of the batch means.
    pub lag1: f64,
    /// Whether that passed as none. Where not, the run was too short and the interval is too narrow: say so.
    pub passed: bool,
}

/// Collects the values of a run into batches as they come. Batches double their length whenever [`BATCHES_MAX`] are full.
#[derive(Clone, Debug, PartialEq)]
pub struct Batches {
    sums: Vec<f64>,
    length: u64,
    open_sum: f64,
    open: u64,
    wrong: Option<(u64, f64)>,
    samples: u64,
}

impl Default for Batches {
    fn default() -> Self {
        Self { sums: Vec::with_capacity(BATCHES_MAX), length: 1, open_sum: 0.0, open: 0, wrong: None, samples: 0 }
    }
}

impl Batches {
    /// Nothing collected yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next value of the run. One that is not finite is left out and reported by [`Self::estimate`].
    pub fn record(&mut self, value: f64) {
        if !value.is_finite() {
            self.wrong.get_or_insert((self.samples, value));
            return;
        }
        self.samples += 1;
        self.open_sum += value;
        self.open += 1;
        if self.open < self.length {
            return;
        }
        self.sums.push(self.open_sum);
        (self.open_sum, self.open) = (0.0, 0);
        if self.sums.len() == BATCHES_MAX {
            self.sums = self.sums.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
            self.length *= 2;
        }
    }

    /// How many values were taken in.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The mean of the run. Values behind the last full batch do not count, at most one batch.
    ///
    /// # Errors
    /// [`StatisticsError::TooFew`] below [`BATCHES_MIN`] full batches, [`StatisticsError::NotFinite`] after a value that was none.
    pub fn estimate(&self, confidence: Confidence) -> Result<BatchMeans, StatisticsError> {
        if let Some((index, value)) = self.wrong {
            return Err(StatisticsError::NotFinite { index: index as usize, value });
        }
        if self.sums.len() < BATCHES_MIN {
            return Err(StatisticsError::TooFew { needed: BATCHES_MIN * self.length as usize, given: self.samples as usize });
        }
        let mut means: Vec<f64> = self.sums.iter().map(|sum| sum / self.length as f64).collect();
        let mut batch = self.length;
        loop {
            let (lag1, passed) = von_neumann(&means);
            if passed || means.len() < 2 * BATCHES_MIN {
                return Ok(BatchMeans { estimate: t_interval(&means, confidence)?, batch, lag1, passed });
            }
            // Why the first of an odd number goes: what is left of the warm-up lies there.
            let odd = means.len() % 2;
            means = means[odd..].chunks_exact(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
            batch *= 2;
        }
    }
}

/// The mean of the values of one run, in their order.
///
/// # Errors
/// As [`Batches::estimate`].
pub fn batch_means(values: &[f64], confidence: Confidence) -> Result<BatchMeans, StatisticsError> {
    finite(values)?;
    let mut batches = Batches::new();
    values.iter().for_each(|&value| batches.record(value));
    batches.estimate(confidence)
}

/// The lag-1 autocorrelation, and whether von Neumann's test finds no positive one.
///
/// C = r1 + ((x_1 - m)^2 + (x_k - m)^2) / (2 S) is normal with mean 0 and variance (k - 2) / (k^2 - 1) for independent
/// normal values. Values that do not vary pass.
fn von_neumann(means: &[f64]) -> (f64, bool) {
    let k = means.len() as f64;
    let mean = means.iter().sum::<f64>() / k;
    let distances: Vec<f64> = means.iter().map(|x| x - mean).collect();
    let squares: f64 = distances.iter().map(|d| d * d).sum();
    if squares == 0.0 {
        return (0.0, true);
    }
    let lag1 = distances.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / squares;
    let ends = distances.first().zip(distances.last()).map_or(0.0, |(first, last)| first * first + last * last);
    let statistic = lag1 + ends / (2.0 * squares);
    let deviation = libm::sqrt((k - 2.0) / (k * k - 1.0));
    (lag1, statistic <= normal_quantile(1.0 - SIGNIFICANCE) * deviation)
}

#[cfg(test)]
mod tests {
    use super::super::drawn::{assert_coverage, autoregressive, normal, stream};
    use super::*;

    #[test]
    fn independent_values_need_no_long_batches() {
        let mut random = stream("batch independent");
        let passed = (0..200)
            .filter(|_| {
                let values: Vec<f64> = (0..500).map(|_| normal(&mut random)).collect();
                batch_means(&values, Confidence::P95).unwrap().batch == 1
            })
            .count();
        // The test has a significance of 0.1: 180 ± 4 standard deviations of 4.2.
        assert!((163..=197).contains(&passed), "{passed}");
    }

    #[test]
    fn batches_of_a_correlated_run_grow_until_they_are_nearly_independent() {
        let values = autoregressive(&mut stream("batch growth"), 0.9, 5.0, 100_000);
        let found = batch_means(&values, Confidence::P95).unwrap();
        // The correlation of the series reaches over some 20 values, (1 + phi) / (1 - phi).
        assert!(found.passed && found.batch >= 64, "{found:?}");
        let naive = t_interval(&values, Confidence::P95).unwrap().half_width.unwrap();
        // Truth: the variance of the mean is 19 times that of independent values.
        let factor = found.estimate.half_width.unwrap() / naive;
        assert!((factor / 19.0f64.sqrt() - 1.0).abs() < 0.5, "{factor}");
    }

    #[test]
    fn the_interval_of_an_autoregressive_run_covers_where_the_naive_one_fails() {
        let mut random = stream("batch coverage");
        let mut naive = 0;
        // The slack of two points is for what correlation the test may let pass.
        assert_coverage(500, 0.95, 0.02, || {
            let values = autoregressive(&mut random, 0.9, 5.0, 20_000);
            naive += u32::from(t_interval(&values, Confidence::P95).unwrap().covers(5.0).unwrap());
            batch_means(&values, Confidence::P95).unwrap().estimate.covers(5.0).unwrap()
        });
        assert!(naive < 250, "{naive} of 500");
    }

    #[test]
    fn a_run_too_short_for_its_correlation_says_so() {
        let values = autoregressive(&mut stream("batch short"), 0.999, 0.0, 2000);
        let found = batch_means(&values, Confidence::P95).unwrap();
        assert!(!found.passed && found.estimate.samples < 2 * BATCHES_MIN as u64 && found.lag1 > 0.3, "{found:?}");
        assert!(matches!(batch_means(&values[..19], Confidence::P95), Err(StatisticsError::TooFew { needed: 20, given: 19 })));
    }

    #[test]
    fn a_collector_keeps_bounded_memory_and_the_mean_of_the_run() {
        let mut batches = Batches::new();
        (0..1_000_000u32).for_each(|i| batches.record(f64::from(i % 10)));
        assert!(batches.sums.len() < BATCHES_MAX && batches.samples() == 1_000_000);
        let found = batches.estimate(Confidence::P95).unwrap();
        assert!((found.estimate.mean - 4.5).abs() < 1e-2, "{found:?}");
        batches.record(f64::NAN);
        assert_eq!(batches.samples(), 1_000_000);
        assert!(matches!(batches.estimate(Confidence::P95), Err(StatisticsError::NotFinite { index: 1_000_000, .. })));
    }

    #[test]
    fn a_run_that_never_varies_has_an_interval_without_width() {
        let found = batch_means(&[2.0; 100], Confidence::P95).unwrap();
        assert_eq!((found.estimate.mean, found.estimate.half_width, found.passed), (2.0, Some(0.0), true));
    }
}
