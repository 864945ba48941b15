//! A number with its interval, and the confidence of intervals.
//!
//! Made by every other module of this folder, kept in results, drawn by the pictures.
//!
//! Invariant: a half-width is there only if the sample can support it; a missing one is `None`, never zero.

use serde::{Deserialize, Serialize};

/// Why a statistic could not be formed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum StatisticsError {
    /// There are no values, or not enough for the statistic.
    #[error("the statistic needs at least {needed} values and was given {given}; run more replications or a longer run")]
    TooFew {
        /// The least number of values.
        needed: usize,
        /// How many there were.
        given: usize,
    },
    /// A confidence outside of (0, 1).
    #[error("a confidence lies between 0 and 1 and {given} does not; give a share such as 0.95")]
    Confidence {
        /// What was given.
        given: f64,
    },
    /// Two samples that belong together have different lengths.
    #[error("paired samples have equal lengths, but one has {left} values and the other {right}; pair replications of the same seeds")]
    UnequalLengths {
        /// Values of the first.
        left: usize,
        /// Values of the second.
        right: usize,
    },
    /// The denominators of a ratio add up to nothing, with one replication left out or with none.
    #[error("the denominators of a ratio add up to {sum}; leave out the replications that measured nothing")]
    NoDenominator {
        /// Their sum.
        sum: f64,
    },
    /// A value is not a number or infinite.
    #[error("value number {index} is {value}, which is not a finite number; leave it out or find where it came from")]
    NotFinite {
        /// Its place, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
}

/// Passes values that are all finite.
pub(super) fn finite(values: &[f64]) -> Result<(), StatisticsError> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(StatisticsError::NotFinite { index, value: values[index] }),
        None => Ok(()),
    }
}

/// The probability with which an interval is to cover the truth. Default 0.95.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Confidence(f64);

impl Confidence {
    /// 95 %.
    pub const P95: Self = Self(0.95);

    /// A confidence of `share`, which lies between 0 and 1 and is neither.
    ///
    /// # Errors
    /// [`StatisticsError::Confidence`] for any other number.
    pub fn new(share: f64) -> Result<Self, StatisticsError> {
        if share > 0.0 && share < 1.0 { Ok(Self(share)) } else { Err(StatisticsError::Confidence { given: share }) }
    }

    /// The share of intervals that cover.
    pub fn share(self) -> f64 {
        self.0
    }

    /// The share of intervals that miss.
    pub fn miss(self) -> f64 {
        1.0 - self.0
    }

    /// The confidence of each of `points` intervals that makes all of them cover with this one (Bonferroni).
    pub fn shared(self, points: u32) -> Self {
        // Why: with very many points the share would round to 1, which is no confidence any more.
        Self((1.0 - self.miss() / f64::from(points.max(1))).min(1.0 - f64::EPSILON))
    }
}

impl Default for Confidence {
    fn default() -> Self {
        Self::P95
    }
}

impl TryFrom<f64> for Confidence {
    type Error = StatisticsError;

    fn try_from(share: f64) -> Result<Self, StatisticsError> {
        Self::new(share)
    }
}

impl From<Confidence> for f64 {
    fn from(confidence: Confidence) -> Self {
        confidence.0
    }
}

/// A mean with the half-width of its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The middle of the interval.
    pub mean: f64,
    /// Half the width of the interval; `None` where there is too little to say one (a single replication).
    pub half_width: Option<f64>,
    /// How many independent values it rests on: replications, or batches of one run.
    pub samples: u64,
}

impl Estimate {
    /// A single value, without an interval.
    pub fn single(value: f64) -> Self {
        Self { mean: value, half_width: None, samples: 1 }
    }

    /// The ends of the interval.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.half_width.map(|half| (self.mean - half, self.mean + half))
    }

    /// Whether the interval holds `truth`; `None` without an interval.
    pub fn covers(&self, truth: f64) -> Option<bool> {
        self.interval().map(|(low, high)| low <= truth && truth <= high)
    }

    /// The half-width over the size of the mean; `None` without an interval, infinite where only the mean is 0.
    pub fn relative_half_width(&self) -> Option<f64> {
        self.half_width.map(|half| if half == 0.0 { 0.0 } else { half / self.mean.abs() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_without_a_half_width_claims_nothing() {
        let single = Estimate::single(4.0);
        assert_eq!((single.interval(), single.covers(4.0), single.relative_half_width()), (None, None, None));
        let estimate = Estimate { mean: -4.0, half_width: Some(1.0), samples: 9 };
        assert_eq!(estimate.interval(), Some((-5.0, -3.0)));
        assert_eq!((estimate.covers(-5.0), estimate.covers(-5.1)), (Some(true), Some(false)));
        assert_eq!(estimate.relative_half_width(), Some(0.25));
        assert_eq!(Estimate { mean: 0.0, ..estimate }.relative_half_width(), Some(f64::INFINITY));
        assert_eq!(Estimate { half_width: Some(0.0), mean: 0.0, ..estimate }.relative_half_width(), Some(0.0));
    }

    #[test]
    fn a_confidence_is_a_share_also_when_it_is_read() {
        for wrong in [0.0, 1.0, -0.1, 95.0, f64::NAN] {
            assert!(Confidence::new(wrong).is_err());
        }
        assert!(serde_json::from_str::<Confidence>("95.0").is_err());
        assert_eq!(serde_json::from_str::<Confidence>("0.9").unwrap().share(), 0.9);
        assert!((Confidence::P95.shared(10).share() - 0.995).abs() < 1e-12);
        assert!(Confidence::new(Confidence::P95.shared(u32::MAX).share()).is_ok());
    }

    #[test]
    fn an_estimate_survives_writing_and_reading() {
        for estimate in [Estimate { mean: 0.1 + 0.2, half_width: Some(1e-9), samples: 10 }, Estimate::single(3.0)] {
            let text = serde_json::to_string(&estimate).unwrap();
            assert_eq!(serde_json::from_str::<Estimate>(&text).unwrap(), estimate);
        }
    }
}
