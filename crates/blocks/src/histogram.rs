//! A histogram of whole numbers whose bounds its owner chooses.
//!
//! Used by the loss detector for the lengths of runs, and by the protocol's halves for times of segments.
//!
//! Invariant: recording compares a value with [`BUCKETS`] bounds and allocates once; a histogram in which nothing was recorded takes two words.

/// How many buckets there are: one for each bound, for values up to it, and one for all above the last.
pub const BUCKETS: usize = 14;

/// The upper bounds of the buckets but the last, ascending.
pub type Bounds = [u64; BUCKETS - 1];

/// Bounds for times of segments, in nanoseconds: from 0.1 ms to 5 s.
pub const TIME_BOUNDS_NANOS: Bounds = [
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
];

/// Counts of values by buckets, and the sum of the values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    // Why boxed: most connections that wait have none.
    counts: Option<Box<[u64; BUCKETS]>>,
    sum: u64,
}

impl Histogram {
    /// Adds a value; `bounds` are the same in each call.
    #[inline]
    pub fn record(&mut self, bounds: &Bounds, value: u64) {
        let counts = self.counts.get_or_insert_default();
        // Why no search: so many comparisons without a branch cost less than one branch that is predicted wrongly. Most values are small.
        let bucket = if value <= bounds[0] { 0 } else { bounds.iter().map(|bound| usize::from(*bound < value)).sum::<usize>() };
        if let Some(count) = counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(value);
    }

    /// How many values fell into each bucket.
    pub fn counts(&self) -> [u64; BUCKETS] {
        self.counts.as_deref().copied().unwrap_or_default()
    }

    /// The sum of all values; saturates.
    pub const fn sum(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_up_to_its_bound_and_what_is_above_the_last_is_counted_too() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.counts(), histogram.sum()), ([0; BUCKETS], 0));
        for value in [0, 100_000, 100_001, 5_000_000_000, 5_000_000_001, u64::MAX] {
            histogram.record(&TIME_BOUNDS_NANOS, value);
        }
        let mut expected = [0; BUCKETS];
        (expected[0], expected[1], expected[12], expected[13]) = (2, 1, 1, 2);
        assert_eq!((histogram.counts(), histogram.sum()), (expected, u64::MAX));
        assert!(TIME_BOUNDS_NANOS.is_sorted());
    }
}
