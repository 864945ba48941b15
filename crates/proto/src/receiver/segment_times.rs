//! How long the segments of a peer took, as histograms.
//!
//! Filled where a segment is judged, whether or not the application takes it; read for statistics.
//!
//! Invariant: a segment that has expired is in none: it was never accepted, so it has no delay.

use segstream_base::halves::Verdict;
use segstream_base::{Duration, Instant};
use segstream_blocks::histogram::{Histogram, TIME_BOUNDS_NANOS};

/// Times of the segments that were accepted, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct SegmentTimes {
    /// From the arrival of the first unit or repair unit to the verdict: what repair costs.
    pub assembly: Histogram,
    /// From the source's time to the verdict, less the least such time of the connection so far.
    pub delay_over_least: Histogram,
    /// The least time from source to verdict. Why signed: the two clocks differ by anything.
    least: Option<i128>,
}

impl SegmentTimes {
    /// A segment was judged at `now`. Returns its delay over the least.
    pub(super) fn on_judged(
        &mut self,
        now: Instant,
        verdict: Verdict,
        first_arrival: Option<Instant>,
        source_time: Instant,
    ) -> Option<Duration> {
        if !verdict.is_met() {
            return None;
        }
        if let Some(first) = first_arrival {
            self.assembly.record(&TIME_BOUNDS_NANOS, now.since(first).as_nanos());
        }
        let delay = i128::from(now.as_nanos()) - i128::from(source_time.as_nanos());
        let least = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least);
        let over_least = u64::try_from(delay - least).unwrap_or(u64::MAX);
        self.delay_over_least.record(&TIME_BOUNDS_NANOS, over_least);
        Some(Duration::from_nanos(over_least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_of_the_two_clocks_count_and_what_expired_has_no_delay() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut times = SegmentTimes::default();
        // The clock of the source is far ahead.
        for (now, source) in [(50, 9_000), (60, 9_008), (95, 9_020)] {
            times.on_judged(at(now), Verdict::Complete, Some(at(now - 5)), at(source));
        }
        times.on_judged(at(5_000), Verdict::Expired, Some(at(1)), at(0));
        times.on_judged(at(96), Verdict::WithinTolerance, None, at(9_046));
        assert_eq!((times.assembly.counts().iter().sum::<u64>(), times.assembly.sum()), (3, 15_000_000));
        // 2 ms more than the least and 25 ms; the first and the last are the least.
        assert_eq!((times.delay_over_least.counts().iter().sum::<u64>(), times.delay_over_least.sum()), (4, 27_000_000));
    }
}
