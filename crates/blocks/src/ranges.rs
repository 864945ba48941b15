//! Sets of numbers as sorted, disjoint ranges, and the holes of a segment as ranges.
//!
//! Called by reports (which shipments, which segments), by stores of what is still needed, and by the
//! verdict that names a segment's holes. Naming gaps by their ends is AA's gap-in and
//! gap-out (AA 2); differences instead of numbers are the ACK ranges of RFC 9000 19.3.1.
//!
//! Invariant: ranges are not empty, ascend, and neither overlap nor touch.
//!
//! Limit: a set takes 16 bytes a range, and inserting in the middle moves what follows. Whoever inserts
//! what a peer chose bounds [`RangeSet::range_count`].

use crate::bitmap::Bitmap;
use core::ops::Range;

/// A set of numbers, kept as half-open ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: Vec<Range<u64>>,
}

impl RangeSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// Adds every number of `range` and says how many were new. An empty or reversed range adds none.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.start >= range.end {
            return 0;
        }
        // Why: numbers mostly come at the end, so the last range is tried before any search.
        if let Some(last) = self.ranges.last_mut()
            && last.end == range.start
        {
            last.end = range.end;
            self.debug_assert_around(self.ranges.len() - 1);
            return range.end - range.start;
        }
        // The ranges that overlap or touch the new one melt into it.
        let low = self.ranges.partition_point(|old| old.end < range.start);
        let high = low + self.ranges[low..].partition_point(|old| old.start <= range.end);
        let (mut start, mut end, mut known) = (range.start, range.end, 0);
        for old in &self.ranges[low..high] {
            start = start.min(old.start);
            end = end.max(old.end);
            known += old.end - old.start;
        }
        self.replace(low, high, start..end);
        self.debug_assert_around(low);
        end - start - known
    }

    /// Takes every number of `range` out and says how many there were.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        if range.start >= range.end {
            return 0;
        }
        let low = self.ranges.partition_point(|old| old.end <= range.start);
        let high = low + self.ranges[low..].partition_point(|old| old.start < range.end);
        if low == high {
            return 0;
        }
        let before = self.ranges[low].start..range.start;
        let after = range.end..self.ranges[high - 1].end;
        let held: u64 = self.ranges[low..high].iter().map(|old| old.end - old.start).sum();
        let left = [before, after].into_iter().filter(|rest| rest.start < rest.end);
        let kept: u64 = left.clone().map(|rest| rest.end - rest.start).sum();
        self.ranges.splice(low..high, left);
        self.debug_assert_around(low);
        held - kept
    }

    /// Whether `number` is in the set.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.end <= number);
        self.ranges.get(at).is_some_and(|range| range.start <= number)
    }

    /// The ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + '_ {
        self.ranges.iter().cloned()
    }

    /// The ranges as differences, for small encodings: how many numbers lie between the end of the range
    /// before (0 at first) and this one, and how many numbers this one has.
    pub fn gaps_and_lengths(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut end = 0;
        self.ranges.iter().map(move |range| {
            let gap = range.start - end;
            end = range.end;
            (gap, range.end - range.start)
        })
    }

    /// The lowest range.
    #[inline]
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.first().cloned()
    }

    /// The highest range.
    #[inline]
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.last().cloned()
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many ranges hold the numbers.
    #[inline]
    pub const fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// Takes everything out; the capacity is kept.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// The ranges around place `at` are not empty, ascend and do not touch; elsewhere nothing has changed.
    fn debug_assert_around(&self, at: usize) {
        let around = &self.ranges[at.saturating_sub(1)..self.ranges.len().min(at + 3)];
        debug_assert!(around.iter().all(|range| range.start < range.end), "an empty range in {around:?}");
        debug_assert!(around.windows(2).all(|pair| pair[0].end < pair[1].start), "{around:?} is not in order");
    }

    /// Puts `range` in the place of the ranges `low..high`, without allocation when there are any.
    fn replace(&mut self, low: usize, high: usize, range: Range<u64>) {
        if low == high {
            self.ranges.insert(low, range);
        } else {
            self.ranges[low] = range;
            self.ranges.drain(low + 1..high);
        }
    }
}

/// The holes of a segment: the runs of units that `present` lacks, in ascending order.
pub fn holes_of(present: &Bitmap) -> Vec<Range<u32>> {
    present.zero_runs(0, present.len()).map(|(start, count)| start..start + count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn ranges(set: &RangeSet) -> Vec<(u64, u64)> {
        set.iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn touching_ranges_melt_and_a_hole_splits() {
        let mut set = RangeSet::new();
        assert_eq!(set.insert(10..20), 10);
        assert_eq!(set.insert(30..40), 10);
        assert_eq!(set.insert(20..30), 10);
        assert_eq!(ranges(&set), [(10, 40)]);
        assert_eq!(set.remove(15..16), 1);
        assert_eq!(ranges(&set), [(10, 15), (16, 40)]);
        assert_eq!(set.gaps_and_lengths().collect::<Vec<_>>(), [(10, 5), (1, 24)]);
        assert_eq!((set.first(), set.last(), set.range_count(), set.is_empty()), (Some(10..15), Some(16..40), 2, false));
        assert_eq!(set.insert(0..u64::MAX), u64::MAX - 29);
        assert_eq!((set.len(), set.range_count()), (u64::MAX, 1));
        set.clear();
        assert!(set.is_empty() && !set.contains(0));
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges)]
    fn empty_and_reversed_ranges_change_nothing() {
        let mut set = RangeSet::new();
        assert_eq!((set.insert(5..5), set.insert(9..3), set.remove(9..3)), (0, 0, 0));
        assert!(set.is_empty() && set.first().is_none() && set.last().is_none());
    }

    #[test]
    fn the_holes_of_a_segment_are_what_is_not_present() {
        let mut present = Bitmap::new();
        present.reset(100);
        present.set_range(0, 90);
        present.clear(3);
        assert_eq!(holes_of(&present), [3..4, 90..100]);
    }

    proptest! {
        #[test]
        fn a_range_set_is_a_set(steps in prop::collection::vec((any::<bool>(), 0u64..80, 0u64..25), 1..50)) {
            let mut set = RangeSet::new();
            let mut model = BTreeSet::new();
            for (insert, start, count) in steps {
                let range = start..start + count;
                if insert {
                    let new = range.clone().filter(|number| model.insert(*number)).count() as u64;
                    prop_assert_eq!(set.insert(range), new);
                } else {
                    let gone = range.clone().filter(|number| model.remove(number)).count() as u64;
                    prop_assert_eq!(set.remove(range), gone);
                }
                prop_assert_eq!(set.iter().flatten().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                prop_assert!(set.iter().all(|range| range.start < range.end), "a range is empty");
                prop_assert!(set.iter().zip(set.iter().skip(1)).all(|(a, b)| a.end < b.start), "ranges touch");
                prop_assert_eq!(set.len(), model.len() as u64);
            }
            for number in 0..120 {
                prop_assert_eq!(set.contains(number), model.contains(&number));
            }
            let mut at = 0;
            for ((gap, count), range) in set.gaps_and_lengths().zip(set.iter()) {
                prop_assert_eq!((at + gap, at + gap + count), (range.start, range.end));
                at = range.end;
            }
        }
    }
}
