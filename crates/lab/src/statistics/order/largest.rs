//! The largest values of a run, and what the maximum of n values says.
//!
//! Called by observers, one keeper each, and by the studies that draw the largest delay (EC Figures 11 and 12, FC Figure 19).
//!
//! Invariant: maxima over different numbers of values are never compared; the more values, the larger the maximum.

use super::{Counts, OrderError, Quantile};
use crate::statistics::estimate::{Confidence, StatisticsError};
use serde::{Deserialize, Serialize};

/// Keeps the `K` largest of the values of a run, and how many there were. Mergeable in any order with the same result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Largest<const K: usize = 16> {
    /// Invariant: from the largest down, at most K.
    values: Vec<f64>,
    samples: u64,
}

impl<const K: usize> Largest<K> {
    /// Nothing kept yet.
    pub fn new() -> Self {
        Self { values: Vec::with_capacity(K), samples: 0 }
    }

    /// Takes in one value. NaN is not counted.
    pub fn record(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        self.samples += 1;
        self.keep(value);
    }

    fn keep(&mut self, value: f64) {
        if self.values.len() >= K && self.values.last().is_none_or(|&least| value <= least) {
            return;
        }
        let place = self.values.partition_point(|&kept| kept >= value);
        self.values.insert(place, value);
        self.values.truncate(K);
    }

    /// Takes in all values of another keeper.
    pub fn merge(&mut self, other: &Self) {
        self.samples += other.samples;
        other.values.iter().for_each(|&value| self.keep(value));
    }

    /// The largest values, from the largest down.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// How many values there were.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The maximum and what it says; `None` without values.
    pub fn maximum(&self, confidence: Confidence) -> Option<Maximum> {
        Maximum::new(&self.values, self.samples, confidence)
    }
}

/// The maximum over n values, and the quantiles it bounds.
///
/// A maximum estimates no property of the distribution by itself: it grows with n. Two statements hold:
///
/// - *One-sided.* At the confidence asked (1 - a), at most the share `share_above` = 1 - a^(1/n), near ln(1/a) / n, of all values
///   is larger than `value`: at 95 % the share 3.0 / n (the "rule of three").
/// - *Interval.* `lower` to `value` holds the quantile 1 - c/n with c = n (1 - (a/2)^(1/n)), near ln(2/a): at 95 % c = 3.69.
///   Why this c: it is the largest quantile for which the maximum is still an upper end with a miss of a/2, so
///   the interval says all the sample can about the tail. Its lower end is the 9th largest value at 95 %.
///
/// Nothing is said about values beyond: another run of n values exceeds this maximum with probability 1/2.
///
/// Limit: both hold for independent values, see [the module](super). For dependent ones use [`median_of_maxima`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Maximum {
    /// The largest value: the upper end of the interval.
    pub value: f64,
    /// n: how many values it is the largest of.
    pub samples: u64,
    /// The quantile 1 - c/n that the interval holds.
    pub quantile: f64,
    /// The lower end of the interval; `None` where it lies below the values kept, or where n is too small for one.
    pub lower: Option<f64>,
    /// The share of all values above `value`, at most, at the confidence asked.
    pub share_above: f64,
}

impl Maximum {
    /// Of the largest of `samples` values, from the largest down.
    fn new(largest: &[f64], samples: u64, confidence: Confidence) -> Option<Self> {
        let value = *largest.first()?;
        let (n, miss) = (samples as f64, confidence.miss());
        let share = -libm::expm1(libm::log(miss / 2.0) / n);
        let above = Counts::new(samples, share);
        // The lower end misses when as many values as its rank lie above the quantile.
        let lower = above.rank_above(miss / 2.0).and_then(|rank| largest.get(rank as usize - 1)).copied();
        Some(Self { value, samples, quantile: 1.0 - share, lower, share_above: -libm::expm1(libm::log(miss) / n) })
    }

    /// This maximum minus another over the same number of values.
    ///
    /// # Errors
    /// [`OrderError::UnequalSamples`] for maxima over different numbers of values.
    pub fn minus(&self, other: &Self) -> Result<f64, OrderError> {
        if self.samples != other.samples {
            return Err(OrderError::UnequalSamples { left: self.samples, right: other.samples });
        }
        Ok(self.value - other.value)
    }
}

/// The median of the maxima of replications, with its interval of binomial ranks.
///
/// This is the number to draw for a largest delay: it needs independent replications alone, not independent delays.
/// All maxima have to be over the same number of values. Two ends at 95 % need six replications.
///
/// # Errors
/// [`OrderError::UnequalSamples`] for maxima over different numbers of values, [`OrderError::Sample`] without any.
pub fn median_of_maxima(maxima: &[Maximum], confidence: Confidence) -> Result<Quantile, OrderError> {
    let Some(first) = maxima.first() else {
        return Err(StatisticsError::TooFew { needed: 1, given: 0 }.into());
    };
    let values: Result<Vec<f64>, OrderError> = maxima.iter().map(|maximum| maximum.minus(first).map(|_| maximum.value)).collect();
    super::median(&values?, confidence)
}

#[cfg(test)]
mod tests {
    use super::super::super::drawn::{assert_coverage, exponential, stream};
    use super::*;

    #[test]
    fn the_keeper_holds_the_largest_values_whatever_the_order() {
        let mut random = stream("largest");
        let values: Vec<f64> = (0..5000).map(|_| random.below(1000) as f64).collect();
        let mut sorted = values.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let keep = |values: &[f64]| {
            let mut largest = Largest::<16>::new();
            values.iter().for_each(|&value| largest.record(value));
            largest
        };
        let whole = keep(&values);
        assert_eq!((whole.values(), whole.samples()), (&sorted[..16], 5000));
        let (left, right) = (keep(&values[..4990]), keep(&values[4990..]));
        let (mut one, mut two) = (left.clone(), right.clone());
        one.merge(&right);
        two.merge(&left);
        assert_eq!(one, whole);
        assert_eq!(two, whole);
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<Largest>(&text).unwrap(), whole);
        let mut unharmed = whole.clone();
        unharmed.record(f64::NAN);
        assert_eq!(unharmed, whole);
    }

    #[test]
    fn at_95_percent_the_interval_runs_from_the_ninth_largest_and_three_in_n_may_lie_above() {
        let mut largest = Largest::<16>::new();
        (1..=100_000).for_each(|value| largest.record(f64::from(value)));
        let maximum = largest.maximum(Confidence::P95).unwrap();
        assert_eq!((maximum.value, maximum.lower, maximum.samples), (100_000.0, Some(99_992.0), 100_000));
        assert!((maximum.share_above * 1e5 - 2.9957).abs() < 1e-3);
        assert!(((1.0 - maximum.quantile) * 1e5 - 3.6889).abs() < 1e-3);
        // A keeper of fewer values has no lower end to give.
        let mut few = Largest::<4>::new();
        (1..=1000).for_each(|value| few.record(f64::from(value)));
        assert_eq!(few.maximum(Confidence::P95).unwrap().lower, None);
        assert_eq!(Largest::<16>::new().maximum(Confidence::P95), None);
        let mut single = Largest::<16>::new();
        single.record(5.0);
        let maximum = single.maximum(Confidence::P95).unwrap();
        assert!((maximum.share_above - 0.95).abs() < 1e-12 && maximum.lower.is_none());
    }

    #[test]
    fn the_interval_and_the_one_sided_statement_cover_as_often_as_they_say() {
        let mut random = stream("maximum");
        let mut one_sided = 0;
        // P(1 to 8 values above the quantile), for a Poisson count with mean 3.689: 0.975 - P(9 or more).
        let mean = libm::log(40.0);
        let mut term = 1.0 / 40.0;
        let share: f64 = (1..=8)
            .map(|count| {
                term *= mean / f64::from(count);
                term
            })
            .sum();
        assert!(share >= 0.95);
        assert_coverage(1000, share, 0.005, || {
            let mut largest = Largest::<16>::new();
            (0..1000).for_each(|_| largest.record(exponential(&mut random)));
            let maximum = largest.maximum(Confidence::P95).unwrap();
            one_sided += u32::from(libm::exp(-maximum.value) <= maximum.share_above);
            let truth = -libm::log(1.0 - maximum.quantile);
            maximum.lower.unwrap() <= truth && truth <= maximum.value
        });
        // 950 ± 4 standard deviations of 6.9.
        assert!((922..=978).contains(&one_sided), "{one_sided}");
    }

    #[test]
    fn maxima_over_different_numbers_of_values_are_not_compared() {
        let of = |values: u64, largest: f64| Maximum::new(&[largest], values, Confidence::P95).unwrap();
        assert_eq!(of(100, 5.0).minus(&of(100, 3.0)), Ok(2.0));
        assert_eq!(of(100, 5.0).minus(&of(200, 5.0)), Err(OrderError::UnequalSamples { left: 100, right: 200 }));
        let unequal = [of(100, 5.0), of(100, 4.0), of(99, 3.0)];
        assert_eq!(median_of_maxima(&unequal, Confidence::P95), Err(OrderError::UnequalSamples { left: 99, right: 100 }));
        let equal: Vec<Maximum> = (1..=10).map(|value| of(100, f64::from(value))).collect();
        let median = median_of_maxima(&equal, Confidence::P95).unwrap();
        assert_eq!((median.value, median.lower, median.upper, median.samples), (5.0, Some(2.0), Some(9.0), 10));
        assert!(median_of_maxima(&[], Confidence::P95).is_err());
    }
}
