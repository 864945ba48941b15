//! Whether z-scores look standard normal: the judgement of many points against a closed form at once.
//!
//! Called by cross-checks. That each of 200 intervals covers its truth says less: it lets through intervals that are all too
//! wide, and small errors of one sign. [`super::z_score`] makes the scores.
//!
//! Invariant: every p-value is uniform over (0, 1) if the scores are independent and standard normal (the last two nearly so).
//!
//! Source: for the Kolmogorov-Smirnov p-value M. A. Stephens 1970.

use super::estimate::{StatisticsError, finite};
use super::interval::{normal_probability, normal_quantile};
use super::summary::Summary;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// The least number of scores.
pub const SCORES_MIN: usize = 20;

/// Four tests of a set of scores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Normality {
    /// How many scores.
    pub samples: u64,
    /// Their mean; 0 is wanted.
    pub mean: f64,
    /// The two-sided p-value of the mean: a bias of one sign.
    pub mean_p: f64,
    /// Their variance; 1 is wanted.
    pub variance: f64,
    /// The two-sided p-value of the variance: intervals too narrow (above 1) or too wide (below).
    pub variance_p: f64,
    /// Chi-square over bins of equal probability.
    pub chi_square: f64,
    /// How many bins.
    pub bins: u32,
    /// The p-value of chi-square: the shape.
    pub chi_square_p: f64,
    /// The largest distance between the distributions (Kolmogorov-Smirnov).
    pub distance: f64,
    /// Its p-value.
    pub distance_p: f64,
}

impl Normality {
    /// Tests independent scores.
    ///
    /// # Errors
    /// [`StatisticsError::TooFew`] below [`SCORES_MIN`] scores, [`StatisticsError::NotFinite`] for one that is no number.
    pub fn of(scores: &[f64]) -> Result<Self, StatisticsError> {
        finite(scores)?;
        let summary = Summary::of(scores);
        let (Some(mean), Some(variance), true) = (summary.mean(), summary.variance(), scores.len() >= SCORES_MIN) else {
            return Err(StatisticsError::TooFew { needed: SCORES_MIN, given: scores.len() });
        };
        let n = scores.len() as f64;
        let mean_p = 2.0 * normal_probability(-(mean * libm::sqrt(n)).abs());
        let spread = chi_squared(n - 1.0, (n - 1.0) * variance);
        let variance_p = (2.0 * spread.0.min(spread.1)).min(1.0);
        let (chi_square, bins) = chi_square(scores);
        let chi_square_p = chi_squared(f64::from(bins) - 1.0, chi_square).1;
        let distance = distance(scores);
        let distance_p = kolmogorov((libm::sqrt(n) + 0.12 + 0.11 / libm::sqrt(n)) * distance);
        Ok(Self { samples: summary.samples(), mean, mean_p, variance, variance_p, chi_square, bins, chi_square_p, distance, distance_p })
    }

    /// The least p-value of the four.
    pub fn least_p(&self) -> f64 {
        self.mean_p.min(self.variance_p).min(self.chi_square_p).min(self.distance_p)
    }

    /// Whether no test rejects, at `significance` for the four together (Bonferroni). A sound set of scores fails with at most
    /// that probability; with fixed seeds 0.01 is a good choice.
    pub fn looks_standard(&self, significance: f64) -> bool {
        self.least_p() >= significance / 4.0
    }
}

/// Probabilities of the chi-square distribution below and above `x`.
fn chi_squared(freedom: f64, x: f64) -> (f64, f64) {
    ChiSquared::new(freedom).map_or((f64::NAN, f64::NAN), |law| (law.cdf(x), law.sf(x)))
}

/// Chi-square over bins of equal probability, about ten scores each and 4 to 40 of them.
fn chi_square(scores: &[f64]) -> (f64, u32) {
    let bins = (scores.len() / 10).clamp(4, 40);
    let edges: Vec<f64> = (1..bins).map(|i| normal_quantile(i as f64 / bins as f64)).collect();
    let mut counts = vec![0u32; bins];
    for score in scores {
        counts[edges.partition_point(|edge| edge < score)] += 1;
    }
    let expected = scores.len() as f64 / bins as f64;
    let sum = counts.iter().map(|&count| (f64::from(count) - expected) * (f64::from(count) - expected) / expected).sum();
    (sum, bins as u32)
}

/// The largest distance of the empirical distribution from the normal one.
fn distance(scores: &[f64]) -> f64 {
    let mut sorted = scores.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len() as f64;
    sorted.iter().enumerate().fold(0.0, |largest: f64, (index, &score)| {
        let probability = normal_probability(score);
        largest.max(probability - index as f64 / n).max((index as f64 + 1.0) / n - probability)
    })
}

/// The tail of Kolmogorov's distribution, 2 SUM over j >= 1 of (-1)^(j-1) exp(-2 j^2 x^2).
fn kolmogorov(x: f64) -> f64 {
    // Below 0.2 the tail is 1 to twelve digits and the sum converges slowly.
    if x < 0.2 {
        return 1.0;
    }
    let sum: f64 = (1..=100)
        .map(|j| {
            let sign = if j % 2 == 1 { 1.0 } else { -1.0 };
            sign * libm::exp(-2.0 * f64::from(j * j) * x * x)
        })
        .sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::super::drawn::{exponential, normal, stream};
    use super::super::z_score;
    use super::*;

    fn scores(name: &str, shape: impl Fn(f64) -> f64) -> Normality {
        let mut random = stream(name);
        let scores: Vec<f64> = (0..200).map(|_| shape(normal(&mut random))).collect();
        Normality::of(&scores).unwrap()
    }

    #[test]
    fn standard_normal_scores_pass_and_fail_no_more_often_than_said() {
        assert!(scores("normality", |z| z).looks_standard(0.01));
        let mut random = stream("normality many");
        let failed = (0..1000)
            .filter(|_| {
                let scores: Vec<f64> = (0..200).map(|_| normal(&mut random)).collect();
                !Normality::of(&scores).unwrap().looks_standard(0.05)
            })
            .count();
        // At most 50 are expected by Bonferroni, fewer as the four tests overlap; 78 is four deviations above.
        assert!((10..=78).contains(&failed), "{failed}");
    }

    #[test]
    fn a_shift_is_found_by_the_mean() {
        let shifted = scores("shifted", |z| z + 0.4);
        assert!(!shifted.looks_standard(0.01) && shifted.mean_p < 1e-4, "{shifted:?}");
    }

    #[test]
    fn scores_too_wide_or_too_narrow_are_found_by_the_variance() {
        let wide = scores("wide", |z| 1.4 * z);
        assert!(!wide.looks_standard(0.01) && wide.variance_p < 1e-4, "{wide:?}");
        let narrow = scores("narrow", |z| 0.7 * z);
        assert!(!narrow.looks_standard(0.01) && narrow.variance_p < 1e-4, "{narrow:?}");
    }

    #[test]
    fn a_wrong_shape_with_right_mean_and_variance_is_found_by_the_other_two() {
        let mut random = stream("shape");
        let skewed: Vec<f64> = (0..500).map(|_| exponential(&mut random) - 1.0).collect();
        let found = Normality::of(&skewed).unwrap();
        assert!(found.chi_square_p < 1e-6 && found.distance_p < 1e-3, "{found:?}");
        let signs: Vec<f64> = (0..200).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert!(!Normality::of(&signs).unwrap().looks_standard(0.01));
    }

    #[test]
    fn z_scores_of_replications_are_standard_normal_against_the_truth_and_not_beside_it() {
        let mut random = stream("z scores");
        let (mut right, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            let values: Vec<f64> = (0..5).map(|_| 7.0 + 3.0 * normal(&mut random)).collect();
            right.push(z_score(&values, 7.0).unwrap());
            beside.push(z_score(&values, 6.5).unwrap());
        }
        assert!(Normality::of(&right).unwrap().looks_standard(0.01));
        assert!(!Normality::of(&beside).unwrap().looks_standard(0.01));
    }

    #[test]
    fn the_p_values_are_those_of_the_tables() {
        // Kolmogorov's 5 % point is 1.3581, the 1 % point 1.6276; chi-square with 9 degrees has 16.919.
        assert!((kolmogorov(1.3581) - 0.05).abs() < 1e-5);
        assert!((kolmogorov(1.6276) - 0.01).abs() < 1e-5);
        assert!((kolmogorov(0.2 + 1e-9) - 1.0).abs() < 1e-9);
        assert!((chi_squared(9.0, 16.919).1 - 0.05).abs() < 1e-5);
        assert!(Normality::of(&[0.0; 19]).is_err());
        assert!(Normality::of(&[f64::NAN; 30]).is_err());
    }
}
