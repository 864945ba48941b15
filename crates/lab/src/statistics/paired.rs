//! One scheme against another under the same losses (common random numbers).
//!
//! Called by the studies for every comparison of two curves, with replications paired by their seeds.
//!
//! Invariant: the interval is that of the differences. Whether two separate intervals overlap decides nothing.
//!
//! Source: the variance of a difference is Var a + Var b - 2 Cov(a, b); common numbers make the covariance positive.

use super::estimate::{Confidence, Estimate, StatisticsError};
use super::interval::t_interval;
use super::summary::Summary;
use serde::{Deserialize, Serialize};

/// A paired comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// The mean of first minus second with its t-interval.
    pub difference: Estimate,
    /// By what factor pairing has reduced the variance of the difference: (Var a + Var b) / Var (a - b).
    /// 1 for independent runs, below 1 where pairing does harm; `None` below two pairs or where nothing varies.
    pub variance_reduction: Option<f64>,
}

impl Paired {
    /// Compares values of equal replication numbers and seeds.
    ///
    /// # Errors
    /// [`StatisticsError`]: no pairs, unequal lengths, a value that is not finite.
    pub fn new(first: &[f64], second: &[f64], confidence: Confidence) -> Result<Self, StatisticsError> {
        if first.len() != second.len() {
            return Err(StatisticsError::UnequalLengths { left: first.len(), right: second.len() });
        }
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
        let difference = t_interval(&differences, confidence)?;
        let variance = |values: &[f64]| Summary::of(values).variance();
        let variance_reduction = match (variance(first), variance(second), variance(&differences)) {
            (Some(a), Some(b), Some(paired)) if a + b > 0.0 && paired > 0.0 => Some((a + b) / paired),
            _ => None,
        };
        Ok(Self { difference, variance_reduction })
    }

    /// Whether the first is larger (`Some(true)`), smaller (`Some(false)`) or not told apart (`None`).
    pub fn first_is_larger(&self) -> Option<bool> {
        let (low, high) = self.difference.interval()?;
        if low > 0.0 {
            Some(true)
        } else if high < 0.0 {
            Some(false)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::drawn::{normal, stream};
    use super::*;

    #[test]
    fn pairing_finds_a_difference_that_separate_intervals_hide() {
        let mut random = stream("paired");
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            let common = 5.0 * normal(&mut random);
            first.push(100.5 + common + 0.1 * normal(&mut random));
            second.push(100.0 + common + 0.1 * normal(&mut random));
        }
        let paired = Paired::new(&first, &second, Confidence::P95).unwrap();
        assert_eq!(paired.first_is_larger(), Some(true));
        assert_eq!(paired.difference.covers(0.5), Some(true));
        assert!(paired.variance_reduction.unwrap() > 100.0);
        let alone = t_interval(&first, Confidence::P95).unwrap();
        assert_eq!(alone.covers(100.0), Some(true));
        let turned = Paired::new(&second, &first, Confidence::P95).unwrap();
        assert_eq!(turned.first_is_larger(), Some(false));
    }

    #[test]
    fn independent_runs_gain_nothing_from_pairing() {
        let mut random = stream("unpaired");
        let mut draw = || (0..2000).map(|_| normal(&mut random)).collect::<Vec<f64>>();
        let paired = Paired::new(&draw(), &draw(), Confidence::new(0.999).unwrap()).unwrap();
        assert!((paired.variance_reduction.unwrap() - 1.0).abs() < 0.15);
        assert_eq!(paired.first_is_larger(), None);
    }

    #[test]
    fn what_does_not_vary_has_no_factor() {
        let paired = Paired::new(&[2.0, 3.0], &[1.0, 2.0], Confidence::P95).unwrap();
        assert_eq!((paired.difference.mean, paired.difference.half_width, paired.variance_reduction), (1.0, Some(0.0), None));
        assert!(Paired::new(&[1.0], &[1.0, 2.0], Confidence::P95).is_err());
    }
}
