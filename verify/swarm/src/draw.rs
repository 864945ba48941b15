//! Choices made by a random stream: one of a few, a number of a span, a size of any magnitude.
//!
//! Called by everything that makes a plan. Invariant: a choice draws a fixed number of random numbers, so that adding
//! a value to a list shifts no later choice.

use segstream_base::Duration;
use segstream_base::random::Random;

/// One of `these`, each as likely as the others. There must be one.
pub(crate) fn one_of<T: Clone>(random: &mut Random, these: &[T]) -> T {
    these[random.below(these.len() as u64) as usize].clone()
}

/// A whole number from `least` to `most`, both included.
pub(crate) fn between(random: &mut Random, least: u64, most: u64) -> u64 {
    least + random.below(most.saturating_sub(least) + 1)
}

/// A span from `least` to `most`, as likely between 1 and 10 ms as between 10 and 100.
pub(crate) fn span(random: &mut Random, least: Duration, most: Duration) -> Duration {
    let octaves = (u64::BITS - (most.as_nanos() / least.as_nanos().max(1)).leading_zeros()).max(1);
    let (octave, within) = (random.below(u64::from(octaves)), random.unit());
    let start = least.as_nanos() << octave;
    Duration::from_nanos((start as f64 * (1.0 + within)) as u64).min(most)
}

/// A span in milliseconds, as [`span`] draws it.
pub(crate) fn millis(random: &mut Random, least: u64, most: u64) -> Duration {
    span(random, Duration::from_millis(least), Duration::from_millis(most))
}
