//! Samples with known distributions, for the tests of this folder.
//!
//! Invariant: every sample comes from a named stream, so a test sees the same numbers each time.

use segstream_base::random::{Random, Seed};

/// The stream of one test.
pub(super) fn stream(name: &str) -> Random {
    Seed(20_260_101).stream(name)
}

/// One value of the standard normal distribution (Box and Muller).
pub(super) fn normal(random: &mut Random) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.unit()));
    radius * libm::cos(2.0 * std::f64::consts::PI * random.unit())
}

/// One value of the exponential distribution with mean 1.
pub(super) fn exponential(random: &mut Random) -> f64 {
    -libm::log(1.0 - random.unit())
}

/// `count` values of a series x' = phi x + noise around `mean`, begun in its steady state. The noise has variance 1.
pub(super) fn autoregressive(random: &mut Random, phi: f64, mean: f64, count: usize) -> Vec<f64> {
    let mut x = normal(random) / libm::sqrt(1.0 - phi * phi);
    (0..count)
        .map(|_| {
            x = phi * x + normal(random);
            mean + x
        })
        .collect()
}

/// Runs `trials` trials and checks that the share that covers the truth is `wanted` within four standard deviations of
/// its binomial distribution and `slack` besides.
pub(super) fn assert_coverage(trials: u32, wanted: f64, slack: f64, mut covers: impl FnMut() -> bool) {
    let covered = (0..trials).filter(|_| covers()).count();
    let share = covered as f64 / f64::from(trials);
    let bound = 4.0 * (wanted * (1.0 - wanted) / f64::from(trials)).sqrt() + slack;
    assert!((share - wanted).abs() <= bound, "covered {share}, wanted {wanted} ± {bound}");
}
