//! Student's t-interval over independent replications, and the z-score of a result against a known truth.
//!
//! Called by the runner for every point with replications, and by the other modules of this folder.
//!
//! Invariant: the values are independent; within one run they are not, and `batch_means` is the place to go.
//! Source: the replication/deletion method; W. S. Gosset, "The probable error of a mean", 1908.

use super::estimate::{Confidence, Estimate, StatisticsError, finite};
use super::summary::Summary;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The mean of independent values with its t-interval; without half-width for a single value.
///
/// # Errors
/// [`StatisticsError::TooFew`] without values, [`StatisticsError::NotFinite`] for a value that is no number.
pub fn t_interval(values: &[f64], confidence: Confidence) -> Result<Estimate, StatisticsError> {
    finite(values)?;
    Summary::of(values).estimate(confidence).ok_or(StatisticsError::TooFew { needed: 1, given: 0 })
}

/// The z-score of a sample against a known mean: standard normal if the values are normal and `truth` is their mean.
///
/// The t-statistic of n values has heavier tails than a normal one, so it is carried over by its probability:
/// z = Phi^-1(T(t)). Many of these scores, from many points, are what [`super::normality`] judges.
/// Limited to ±38, where the probability has no smaller double.
///
/// # Errors
/// [`StatisticsError::TooFew`] below two values, [`StatisticsError::NotFinite`] for a value that is no number.
pub fn z_score(values: &[f64], truth: f64) -> Result<f64, StatisticsError> {
    finite(values)?;
    let summary = Summary::of(values);
    let (Some(mean), Some(variance)) = (summary.mean(), summary.variance()) else {
        return Err(StatisticsError::TooFew { needed: 2, given: values.len() });
    };
    if mean == truth {
        return Ok(0.0);
    }
    let samples = summary.samples() as f64;
    // Why: the lower tail keeps its digits where the upper one rounds to 1.
    let tail = -((mean - truth).abs() / libm::sqrt(variance / samples));
    Ok(normal_of_t(tail, samples - 1.0).max(-38.0).abs().copysign(mean - truth))
}

/// The quantile of Student's t with `freedom` >= 1 degrees that bounds a two-sided interval.
pub(super) fn t_quantile(freedom: f64, confidence: Confidence) -> f64 {
    let probability = 1.0 - confidence.miss() / 2.0;
    if freedom > 200.0 {
        // Why: the library loses digits as the degrees grow (four are left at 10^6); the expansion around the normal
        // quantile gains them, to 1e-8 from here on at 95 %. Source: Abramowitz and Stegun 26.7.5.
        let z = normal_quantile(probability);
        let (z2, v) = (z * z, freedom);
        let first = z * (z2 + 1.0) / 4.0;
        let second = z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
        let third = z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
        return z + (first + (second + third / v) / v) / v;
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(probability))
}

/// The standard normal quantile at the probability of a negative t-statistic.
fn normal_of_t(tail: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |t| normal_quantile(t.cdf(tail)))
}

/// The quantile of the standard normal distribution at a probability.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    if probability.is_nan() {
        return f64::NAN;
    }
    Normal::standard().inverse_cdf(probability.clamp(0.0, 1.0))
}

/// The probability of the standard normal distribution below `x`.
pub(super) fn normal_probability(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

/// The values of replications as mean and 95 % interval; a single one has no interval, none has no value.
pub fn over_replications(values: &[f64]) -> Estimate {
    t_interval(values, Confidence::P95).unwrap_or(Estimate::single(values.first().copied().unwrap_or(f64::NAN)))
}

#[cfg(test)]
mod tests {
    use super::super::drawn::{assert_coverage, exponential, normal, stream};
    use super::*;

    #[test]
    fn the_quantiles_are_those_of_the_tables() {
        for (freedom, wanted) in [
            (1.0, 12.706_204_736),
            (2.0, 4.302_652_730),
            (9.0, 2.262_157_163),
            (30.0, 2.042_272_456),
            (199.0, 1.971_956_544),
            (201.0, 1.971_836_507),
            (1e6, 1.959_966_357),
        ] {
            let found = t_quantile(freedom, Confidence::P95);
            assert!((found - wanted).abs() < 1e-6, "{freedom}: {found}");
        }
        assert!((t_quantile(9.0, Confidence::new(0.99).unwrap()) - 3.249_835_542).abs() < 1e-6);
        assert!((normal_quantile(0.975) - 1.959_963_985).abs() < 1e-8);
    }

    #[test]
    fn a_known_sample_has_its_known_interval() {
        let estimate = t_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], Confidence::P95).unwrap();
        assert_eq!((estimate.mean, estimate.samples), (3.0, 5));
        // 2.776445 * sqrt(2.5 / 5)
        assert!((estimate.half_width.unwrap() - 1.963_243).abs() < 1e-6);
        assert_eq!(t_interval(&[7.0], Confidence::P95).unwrap(), Estimate::single(7.0));
        assert!(t_interval(&[], Confidence::P95).is_err());
        assert!(matches!(t_interval(&[1.0, f64::NAN], Confidence::P95), Err(StatisticsError::NotFinite { index: 1, .. })));
    }

    #[test]
    fn the_interval_covers_the_mean_of_normal_values_as_often_as_it_says() {
        let mut random = stream("t normal");
        for (samples, share) in [(2, 0.95), (10, 0.95), (10, 0.8)] {
            let confidence = Confidence::new(share).unwrap();
            assert_coverage(1000, share, 0.0, || {
                let values: Vec<f64> = (0..samples).map(|_| 3.0 + 2.0 * normal(&mut random)).collect();
                t_interval(&values, confidence).unwrap().covers(3.0).unwrap()
            });
        }
    }

    #[test]
    fn the_interval_covers_the_mean_of_a_hundred_exponential_values() {
        let mut random = stream("t exponential");
        // Limit: skewed values lose up to a point of coverage at n = 100 (known: about 0.942).
        assert_coverage(1000, 0.95, 0.01, || {
            let values: Vec<f64> = (0..100).map(|_| exponential(&mut random)).collect();
            t_interval(&values, Confidence::P95).unwrap().covers(1.0).unwrap()
        });
    }

    #[test]
    fn a_z_score_has_the_probability_of_its_t_statistic() {
        // For two values t has one degree of freedom (Cauchy): values 0 and 2 against 0 give t = 1, probability 0.75.
        assert!((z_score(&[0.0, 2.0], 0.0).unwrap() - 0.674_489_750).abs() < 1e-6);
        assert!((z_score(&[0.0, 2.0], 2.0).unwrap() + 0.674_489_750).abs() < 1e-6);
        assert_eq!(z_score(&[5.0, 5.0], 5.0).unwrap(), 0.0);
        assert_eq!(z_score(&[5.0, 5.0, 5.0], 4.0).unwrap(), 38.0);
        assert!(z_score(&[5.0], 4.0).is_err());
        for tail in [-0.5, -2.0, -4.0] {
            for freedom in [1e4, 1e6] {
                // To first order z = t (1 - (t^2 + 1) / (4 v)).
                let wanted = tail * (1.0 - (tail * tail + 1.0) / (4.0 * freedom));
                let found = normal_of_t(tail, freedom);
                assert!((found - wanted).abs() < 1e-5, "{tail} {freedom}: {found} for {wanted}");
            }
        }
    }
}
