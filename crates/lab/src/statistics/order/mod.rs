//! Order statistics: intervals for quantiles without any assumption on the distribution.
//!
//! Called by the studies for percentiles over replications, and by observers for the largest delays of a run.
//! `ranks` holds the binomial ranks, `largest` the largest values of a run and what their maximum says.
//!
//! The number of values below the q-quantile is binomial with n and q, whatever the distribution. So two values of the
//! sorted sample enclose the quantile with a probability that the binomial distribution gives.
//!
//! Invariant: an end that the sample cannot support is `None`: the interval is open there.
//!
//! Limit: the values have to be independent. Delays of neighbouring segments are not; take one value from each replication, or
//! read the interval as one for a smaller sample. Ties make an interval wider, never too narrow.
//!
//! Source: H. A. David and H. N. Nagaraja, "Order Statistics", 3rd edition, 7.1.

mod largest;
mod ranks;

pub use largest::{Largest, Maximum, median_of_maxima};

use super::estimate::{Confidence, StatisticsError, finite};
use ranks::Counts;
use serde::{Deserialize, Serialize};

/// Why an order statistic could not be formed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum OrderError {
    /// The sample is unfit.
    #[error(transparent)]
    Sample(#[from] StatisticsError),
    /// A quantile outside of (0, 1).
    #[error("a quantile lies between 0 and 1 and {given} does not; give a share such as 0.99")]
    Quantile {
        /// What was given.
        given: f64,
    },
    /// Two maxima are of different numbers of values.
    #[error(
        "a maximum over {left} values cannot be compared with one over {right}: the more values, the larger it is; run both for the same number of segments"
    )]
    UnequalSamples {
        /// Values behind the first.
        left: u64,
        /// Values behind the other.
        right: u64,
    },
}

/// A quantile with its order-statistic interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// Which one, between 0 and 1.
    pub quantile: f64,
    /// The value of rank ceil(n q).
    pub value: f64,
    /// The lower end; `None` where the sample has no value low enough.
    pub lower: Option<f64>,
    /// The upper end; `None` where the sample has no value high enough.
    pub upper: Option<f64>,
    /// The probability with which the interval covers; at least what was asked, as ranks are whole.
    pub coverage: f64,
    /// How many values.
    pub samples: u64,
}

/// The `q`-quantile of independent values with its interval.
///
/// Ranks are chosen so that either side misses with at most half of what `confidence` allows.
///
/// # Errors
/// [`OrderError::Quantile`] for a `q` outside of (0, 1), [`OrderError::Sample`] without values or for one that is not finite.
pub fn quantile(values: &[f64], q: f64, confidence: Confidence) -> Result<Quantile, OrderError> {
    finite(values)?;
    if !(q > 0.0 && q < 1.0) {
        return Err(OrderError::Quantile { given: q });
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let samples = sorted.len() as u64;
    let rank = libm::ceil(q * sorted.len() as f64).max(1.0) as usize;
    let Some(&value) = sorted.get(rank - 1) else {
        return Err(StatisticsError::TooFew { needed: 1, given: 0 }.into());
    };
    let below = Counts::new(samples, q);
    let miss = confidence.miss() / 2.0;
    let (low, high) = (below.rank_below(miss), below.rank_above(miss));
    let end = |rank: Option<u64>| rank.and_then(|rank| sorted.get(rank as usize - 1)).copied();
    // The interval covers when `low` values or more, and fewer than `high`, lie below the quantile.
    let missed_low = low.map_or(0.0, |rank| below.at_most(rank - 1));
    let missed_high = high.map_or(0.0, |rank| below.at_least(rank));
    Ok(Quantile { quantile: q, value, lower: end(low), upper: end(high), coverage: 1.0 - missed_low - missed_high, samples })
}

/// The median of independent values with its interval; see [`quantile`].
///
/// # Errors
/// As [`quantile`].
pub fn median(values: &[f64], confidence: Confidence) -> Result<Quantile, OrderError> {
    quantile(values, 0.5, confidence)
}

#[cfg(test)]
mod tests {
    use super::super::drawn::{assert_coverage, exponential, stream};
    use super::*;

    #[test]
    fn the_median_of_ten_lies_between_the_second_and_the_ninth() {
        // The classic table: ranks 2 and 9 cover the median of ten values with probability 0.9785.
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let median = median(&values, Confidence::P95).unwrap();
        assert_eq!((median.value, median.lower, median.upper), (5.0, Some(2.0), Some(9.0)));
        assert!((median.coverage - 0.978_515_625).abs() < 1e-12);
        // Five values have no two ends at 95 %.
        let few = quantile(&values[..5], 0.5, Confidence::P95).unwrap();
        assert_eq!((few.lower, few.upper), (None, None));
        assert!((few.coverage - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_high_quantile_of_few_values_is_open_above() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let high = quantile(&values, 0.99, Confidence::P95).unwrap();
        assert_eq!((high.value, high.upper), (99.0, None));
        assert!(high.lower.is_some_and(|lower| lower < 99.0));
    }

    #[test]
    fn the_interval_covers_the_quantile_at_least_as_often_as_it_says() {
        let mut random = stream("quantile");
        for (samples, q) in [(30, 0.5), (200, 0.9), (1000, 0.99)] {
            let truth = -libm::log(1.0 - q);
            let mut draw = || (0..samples).map(|_| exponential(&mut random)).collect::<Vec<f64>>();
            let wanted = quantile(&draw(), q, Confidence::P95).unwrap().coverage;
            assert!((0.95..0.99).contains(&wanted), "{wanted}");
            assert_coverage(1000, wanted, 0.0, || {
                let found = quantile(&draw(), q, Confidence::P95).unwrap();
                found.lower.is_none_or(|low| low <= truth) && found.upper.is_none_or(|high| truth <= high)
            });
        }
    }

    #[test]
    fn a_quantile_that_cannot_be_said_is_refused() {
        for q in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(matches!(quantile(&[1.0], q, Confidence::P95), Err(OrderError::Quantile { .. })));
        }
        assert!(matches!(median(&[], Confidence::P95), Err(OrderError::Sample(StatisticsError::TooFew { .. }))));
        assert!(median(&[f64::INFINITY], Confidence::P95).is_err());
    }
}
