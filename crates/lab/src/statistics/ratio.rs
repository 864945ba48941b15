//! The ratio of two sums, such as throughput = packets over time, by the jackknife.
//!
//! Called by the runner, with one pair for each replication or for each batch of one run.
//!
//! Invariant: the estimate converges to the ratio of the means. The mean of the ratios does not: it weighs a short
//! replication like a long one.
//!
//! Source: M. H. Quenouille 1956, J. W. Tukey 1958.

use super::estimate::{Confidence, Estimate, StatisticsError, finite};
use super::interval::t_interval;

/// The ratio of the sum of `numerators` to the sum of `denominators` with its jackknife interval.
///
/// With R_i the ratio without pair i, the pseudo-values n R - (n - 1) R_i are nearly independent values with the ratio as
/// mean: their mean is the estimate (its bias falls as 1/n^2) and their t-interval the interval. A single pair gives the
/// plain ratio without an interval.
///
/// # Errors
/// [`StatisticsError`]: no pairs, unequal lengths, a value that is not finite, denominators that add up to 0.
pub fn ratio(numerators: &[f64], denominators: &[f64], confidence: Confidence) -> Result<Estimate, StatisticsError> {
    if numerators.len() != denominators.len() {
        return Err(StatisticsError::UnequalLengths { left: numerators.len(), right: denominators.len() });
    }
    finite(numerators)?;
    finite(denominators)?;
    let (above, below): (f64, f64) = (numerators.iter().sum(), denominators.iter().sum());
    let samples = numerators.len() as f64;
    match numerators.len() {
        0 => return Err(StatisticsError::TooFew { needed: 1, given: 0 }),
        1 => return Ok(Estimate::single(divide(above, below)?)),
        _ => {}
    }
    let all = divide(above, below)?;
    let mut pseudo = Vec::with_capacity(numerators.len());
    for (numerator, denominator) in numerators.iter().zip(denominators) {
        let without = divide(above - numerator, below - denominator)?;
        pseudo.push(samples * all - (samples - 1.0) * without);
    }
    t_interval(&pseudo, confidence)
}

fn divide(above: f64, below: f64) -> Result<f64, StatisticsError> {
    if below == 0.0 { Err(StatisticsError::NoDenominator { sum: below }) } else { Ok(above / below) }
}

#[cfg(test)]
mod tests {
    use super::super::drawn::{assert_coverage, exponential, normal, stream};
    use super::*;

    #[test]
    fn with_equal_denominators_the_ratio_is_a_plain_mean() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let ratio = ratio(&values, &[2.0; 5], Confidence::P95).unwrap();
        let mean = t_interval(&values.map(|x| x / 2.0), Confidence::P95).unwrap();
        assert!((ratio.mean - mean.mean).abs() < 1e-12);
        assert!((ratio.half_width.unwrap() - mean.half_width.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn a_ratio_without_noise_is_exact() {
        let times = [1.0, 5.0, 2.5, 9.0];
        let estimate = ratio(&times.map(|time| 3.0 * time), &times, Confidence::P95).unwrap();
        assert!((estimate.mean - 3.0).abs() < 1e-12 && estimate.half_width.unwrap() < 1e-12);
    }

    #[test]
    fn the_jackknife_covers_a_known_ratio_where_the_mean_of_ratios_misses_it() {
        // A fixed number of packets in a random time with mean 1.1: the ratio of the means is 1 / 1.1.
        let mut random = stream("jackknife");
        let truth = 1.0 / 1.1;
        let mut covered_by_mean = 0;
        // Limit: thirty skewed times lose up to two points of coverage.
        assert_coverage(1000, 0.95, 0.02, || {
            let times: Vec<f64> = (0..30).map(|_| 0.1 + exponential(&mut random)).collect();
            let ratios: Vec<f64> = times.iter().map(|time| 1.0 / time).collect();
            covered_by_mean += u32::from(t_interval(&ratios, Confidence::P95).unwrap().covers(truth).unwrap());
            ratio(&vec![1.0; 30], &times, Confidence::P95).unwrap().covers(truth).unwrap()
        });
        assert!(covered_by_mean < 500, "{covered_by_mean}");
    }

    #[test]
    fn correlation_between_packets_and_time_narrows_the_interval() {
        let mut random = stream("jackknife correlated");
        assert_coverage(1000, 0.95, 0.01, || {
            let times: Vec<f64> = (0..20).map(|_| 10.0 + normal(&mut random)).collect();
            let packets: Vec<f64> = times.iter().map(|time| 2.0 * time + 0.1 * normal(&mut random)).collect();
            let estimate = ratio(&packets, &times, Confidence::P95).unwrap();
            assert!(estimate.half_width.unwrap() < 0.02, "{estimate:?}");
            estimate.covers(2.0).unwrap()
        });
    }

    #[test]
    fn a_ratio_that_cannot_be_formed_says_why() {
        assert_eq!(ratio(&[], &[], Confidence::P95), Err(StatisticsError::TooFew { needed: 1, given: 0 }));
        assert_eq!(ratio(&[1.0], &[], Confidence::P95), Err(StatisticsError::UnequalLengths { left: 1, right: 0 }));
        // Without the second replication nothing is left to divide by.
        assert_eq!(ratio(&[1.0, 1.0], &[0.0, 3.0], Confidence::P95), Err(StatisticsError::NoDenominator { sum: 0.0 }));
        assert_eq!(ratio(&[6.0], &[3.0], Confidence::P95), Ok(Estimate::single(2.0)));
    }
}
