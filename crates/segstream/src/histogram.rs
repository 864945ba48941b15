//! A distribution as counts by buckets, among the statistics.
//!
//! Read by the application, written as JSON by `--stats`, published as a metric by `metrics`.
//!
//! Invariant: counts and sum never decrease; a value counts in the first bucket whose bound is not below it.

use segstream_blocks::Histogram as Counts;
use segstream_blocks::histogram::{BUCKETS, Bounds, TIME_BOUNDS_NANOS};
use segstream_blocks::loss_detector::RUN_BOUNDS;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// How values are distributed: how many there were, their sum, and how many fell into each bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Histogram {
    bounds: &'static Bounds,
    counts: [u64; BUCKETS],
    sum: u64,
    /// What one of the unit counts in the numbers above.
    unit: f64,
}

impl Histogram {
    /// Times in nanoseconds, told in milliseconds.
    pub(crate) fn of_times(counts: &Counts) -> Self {
        Self { bounds: &TIME_BOUNDS_NANOS, counts: counts.counts(), sum: counts.sum(), unit: 1e6 }
    }

    /// Lengths of runs.
    pub(crate) fn of_runs(counts: &Counts) -> Self {
        Self { bounds: &RUN_BOUNDS, counts: counts.counts(), sum: counts.sum(), unit: 1.0 }
    }

    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all values.
    pub fn sum(&self) -> f64 {
        self.sum as f64 / self.unit
    }

    /// Every bucket: its upper bound, which is `None` for the last, and how many values fell into it.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<f64>, u64)> + '_ {
        let bounds = self.bounds.iter().map(|bound| Some(*bound as f64 / self.unit)).chain([None]);
        bounds.zip(self.counts)
    }

    /// What has come since `before`, an earlier state of this histogram.
    #[cfg(feature = "metrics")]
    pub(crate) fn since(&self, before: &Self) -> Self {
        let counts = core::array::from_fn(|place| self.counts[place].saturating_sub(before.counts[place]));
        Self { counts, sum: self.sum.saturating_sub(before.sum), ..*self }
    }

    /// Values and how often each, with the counts and the sum of this histogram, for `bounds` in the unit of a metric of which one of ours
    /// has `scale`.
    ///
    /// Why: the crate `metrics` takes values and no counts. In each bucket but the last the value lies as far above the lower bound,
    /// in proportion, so that the sum is right; values above the last bound take what is left of it.
    #[cfg(feature = "metrics")]
    pub(crate) fn values<'a>(&'a self, bounds: &'a [f64], scale: f64) -> impl Iterator<Item = (f64, usize)> + 'a {
        let lower = |place: usize| place.checked_sub(1).and_then(|before| bounds.get(before)).copied().unwrap_or(0.0);
        let sum = self.sum() * scale;
        let (mut least, mut room) = (0.0, 0.0);
        for (place, count) in self.counts.iter().enumerate() {
            least += *count as f64 * lower(place);
            room += bounds.get(place).map_or(0.0, |upper| *count as f64 * (upper - lower(place)));
        }
        // Why not 0: the lower bound itself counts in the bucket below.
        let part = if room > 0.0 { ((sum - least) / room).clamp(1e-9, 1.0) } else { 1.0 };
        let above = self.counts[BUCKETS - 1].max(1) as f64;
        let rest = (sum - least - part * room).max(0.0) / above;
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(move |(place, count)| {
            let value = match bounds.get(place) {
                Some(upper) => (lower(place) + part * (upper - lower(place))).min(*upper),
                None => lower(place) * (1.0 + 1e-9) + rest,
            };
            (value, *count as usize)
        })
    }
}

/// One without values, of times.
impl Default for Histogram {
    fn default() -> Self {
        Self::of_times(&Counts::default())
    }
}

/// `count`, `sum`, and `buckets` as pairs of bound and number; those without values are left out, and the last has the bound null.
impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut told = serializer.serialize_struct("Histogram", 3)?;
        told.serialize_field("count", &self.count())?;
        told.serialize_field("sum", &self.sum())?;
        let buckets: Vec<(Option<f64>, u64)> = self.buckets().filter(|(_, count)| *count > 0).collect();
        told.serialize_field("buckets", &buckets)?;
        told.end()
    }
}

#[cfg(all(test, feature = "metrics"))]
mod tests {
    use super::*;
    use crate::vocabulary::{RUN_BUCKETS, SECONDS_BUCKETS};

    fn times(values: &[u64]) -> Histogram {
        let mut counts = Counts::default();
        values.iter().for_each(|value| counts.record(&TIME_BOUNDS_NANOS, *value));
        Histogram::of_times(&counts)
    }

    /// The histogram that a recorder makes of values: the count of each bucket, and the sum.
    fn recorded(values: impl Iterator<Item = (f64, usize)>, bounds: &[f64]) -> ([u64; BUCKETS], f64) {
        let (mut counts, mut sum) = ([0; BUCKETS], 0.0);
        for (value, count) in values {
            counts[bounds.partition_point(|bound| *bound < value)] += count as u64;
            sum += value * count as f64;
        }
        (counts, sum)
    }

    #[test]
    fn the_values_that_are_published_have_the_counts_and_the_sum_of_what_was_recorded() {
        let cases: [&[u64]; 6] = [
            &[],
            &[1],
            &[100_000, 300_000, 5_000_000_000],
            &[100_001, 300_001, 1_000_001],
            &[7_000_000_000, 9_000_000_000],
            &[250_000, 41_000_000, 42_000_000, 60_000_000_000, 5_000_000_001],
        ];
        for case in cases {
            let histogram = times(case);
            let (counts, sum) = recorded(histogram.values(SECONDS_BUCKETS, 1e-3), SECONDS_BUCKETS);
            assert_eq!(counts, histogram.counts, "{case:?}");
            let exact = case.iter().sum::<u64>() as f64 / 1e9;
            // The least part of a bucket, and of what lies above the last bound.
            assert!((sum - exact).abs() <= 1e-7 * exact.max(1.0), "{case:?}: {sum} instead of {exact}");
        }
    }

    #[test]
    fn the_buckets_of_a_metric_are_those_that_are_counted() {
        let told =
            |histogram: Histogram, scale: f64| histogram.buckets().filter_map(|(bound, _)| Some(bound? / scale)).collect::<Vec<f64>>();
        assert_eq!(told(times(&[]), 1e3), SECONDS_BUCKETS);
        assert_eq!(told(Histogram::of_runs(&Counts::default()), 1.0), RUN_BUCKETS);
    }

    #[test]
    fn growth_is_what_came_since() {
        let (before, after) = (times(&[200_000]), times(&[200_000, 200_000, 9_000_000_000]));
        assert_eq!(after.since(&before), times(&[200_000, 9_000_000_000]));
        assert_eq!((after.count(), after.since(&before).sum()), (3, 9_000.2));
    }
}
