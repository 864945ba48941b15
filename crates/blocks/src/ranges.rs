//! Sets of numbers as sorted, disjoint ranges.
//!
//! Called by reports (which shipments, which segments) and by stores of what is still needed. Naming gaps by their ends is AA's gap-in and
//! gap-out (AA 2); differences instead of numbers are the ACK ranges of RFC 9000 19.3.1.
//!
//! Invariant: ranges are not empty, ascend, and neither overlap nor touch.
//!
//! Limit: a set takes 16 bytes a range, or some 20 where there are many.

mod kept;

use core::ops::Range;
use kept::Kept;

/// A set of numbers, kept as half-open ranges.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    ranges: Kept,
}

impl PartialEq for RangeSet {
    fn eq(&self, other: &Self) -> bool {
        self.ranges.len() == other.ranges.len() && self.ranges.iter().eq(other.ranges.iter())
    }
}

impl Eq for RangeSet {}

impl RangeSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { ranges: Kept::Row(Vec::new()) }
    }

    /// Adds every number of `range` and says how many were new. An empty or reversed range adds none.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.start >= range.end {
            return 0;
        }
        if self.last().is_none_or(|last| last.end < range.start) {
            self.ranges.push(range.start, range.end);
            return range.end - range.start;
        }
        // The ranges that overlap or touch the new one melt into it.
        let Range { mut start, mut end } = range;
        let mut known = 0;
        if let Some((before, end_before)) = self.ranges.last_up_to(start).filter(|before| before.1 >= start) {
            if end_before >= end {
                return 0;
            }
            known += end_before - before;
            start = before;
        }
        while let Some((next, end_next)) = self.ranges.first_behind(start).filter(|next| next.0 <= end) {
            known += end_next - next;
            end = end.max(end_next);
            self.ranges.take(next);
        }
        self.ranges.put(start, end);
        self.debug_assert_around(start);
        end - start - known
    }

    /// Takes every number of `range` out and says how many there were.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        if range.start >= range.end {
            return 0;
        }
        let mut gone = 0;
        let before = range.start.checked_sub(1).and_then(|before| self.ranges.last_up_to(before));
        if let Some((start, end)) = before.filter(|before| before.1 > range.start) {
            self.ranges.put(start, range.start);
            gone += end.min(range.end) - range.start;
            self.keep_rest(&range, end);
        }
        while let Some((start, end)) = self.ranges.first_in(range.clone()) {
            self.ranges.take(start);
            gone += end.min(range.end) - start;
            self.keep_rest(&range, end);
        }
        self.debug_assert_around(range.end);
        gone
    }

    /// A range that ended at `end` was taken out as far as it lies in `removed`.
    fn keep_rest(&mut self, removed: &Range<u64>, end: u64) {
        if end > removed.end {
            self.ranges.put(removed.end, end);
        }
    }

    /// Whether `number` is in the set.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        self.ranges.last_up_to(number).is_some_and(|(_, end)| end > number)
    }

    /// The ranges of numbers in `range` that are not in the set, in ascending order.
    pub fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let before = self.ranges.last_up_to(range.start);
        let mut start = before.map_or(range.start, |(_, end)| range.start.max(end));
        let mut held = self.ranges.behind(range.start);
        core::iter::from_fn(move || {
            while start < range.end {
                let next = held.next().filter(|(next, _)| *next < range.end);
                let gap = start..next.map_or(range.end, |(next, _)| next);
                start = next.map_or(range.end, |(_, end)| end);
                if gap.start < gap.end {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// The lowest of [`RangeSet::gaps`].
    pub fn first_gap(&self, range: Range<u64>) -> Option<Range<u64>> {
        let before = self.ranges.last_up_to(range.start);
        let start = before.map_or(range.start, |(_, end)| range.start.max(end));
        if start >= range.end {
            return None;
        }
        let next = self.ranges.first_behind(start).filter(|(next, _)| *next < range.end);
        Some(start..next.map_or(range.end, |(next, _)| next))
    }

    /// The ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(start, end)| start..end)
    }

    /// The ranges as differences, for small encodings: how many numbers lie between the end of the range
    /// before (0 at first) and this one, and how many numbers this one has.
    pub fn gaps_and_lengths(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut end = 0;
        self.iter().map(move |range| {
            let gap = range.start - end;
            end = range.end;
            (gap, range.end - range.start)
        })
    }

    /// The lowest range.
    #[inline]
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.first().map(|(start, end)| start..end)
    }

    /// The highest range.
    #[inline]
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.last().map(|(start, end)| start..end)
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.len() == 0
    }

    /// How many ranges hold the numbers.
    #[inline]
    pub fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// The ranges around `at` are not empty, ascend and do not touch; elsewhere nothing has changed.
    fn debug_assert_around(&self, at: u64) {
        if !cfg!(debug_assertions) {
            return;
        }
        let before = self.ranges.last_up_to(at);
        let after = self.ranges.first_behind(at);
        debug_assert!(before.into_iter().chain(after).all(|(start, end)| start < end), "an empty range around {at}");
        debug_assert!(before.zip(after).is_none_or(|(before, after)| before.1 < after.0), "ranges around {at} are not in order");
    }
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
    fn a_set_that_grows_beyond_a_row_and_shrinks_again_is_the_same_set() {
        let (mut set, mut model) = (RangeSet::new(), BTreeSet::new());
        // From the middle outwards, so that a row has to move: far above and back below what a row holds, twice.
        for round in 0..2 {
            for at in 0..200u64 {
                let start = if at % 2 == 0 { 1000 + 3 * at } else { 1000 - 3 * at };
                assert_eq!(set.insert(start..start + 2), 2, "round {round}");
                model.extend(start..start + 2);
                assert_eq!(set.range_count(), at as usize + 1);
            }
            assert!(matches!(set.ranges, Kept::Tree(_)));
            assert_eq!(set.iter().flatten().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
            assert_eq!(set.iter().next_back(), set.last());
            let copy: RangeSet = set.clone();
            for at in 0..200u64 {
                let start = if at % 2 == 0 { 1000 + 3 * at } else { 1000 - 3 * at };
                assert_eq!(set.remove(start..start + 2), 2);
                model.retain(|number| !(start..start + 2).contains(number));
                assert_eq!(set.iter().flatten().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                assert_ne!(set, copy);
            }
            assert!(matches!(&set.ranges, Kept::Row(row) if row.capacity() <= 8), "{:?}", set.ranges);
        }
        // A row and a tree with the same ranges are equal.
        let mut tree = RangeSet::new();
        (0..kept::ROW_MAX as u64 + 1).for_each(|at| _ = tree.insert(2 * at..2 * at + 1));
        assert_eq!(tree.remove(2 * kept::ROW_MAX as u64..u64::MAX), 1);
        let mut row = RangeSet::new();
        (0..kept::ROW_MAX as u64).for_each(|at| _ = row.insert(2 * at..2 * at + 1));
        assert!(matches!((&tree.ranges, &row.ranges), (Kept::Tree(_), Kept::Row(_))));
        assert_eq!(tree, row);
    }

    proptest! {
        #[test]
        fn sets_of_many_ranges_are_sets_too(steps in prop::collection::vec((any::<bool>(), 0u64..600, 0u64..3), 200..500)) {
            let (mut set, mut model) = (RangeSet::new(), BTreeSet::new());
            // Every other number first, so that there are more ranges than a row has.
            (0..300u64).for_each(|at| _ = (set.insert(2 * at..2 * at + 1), model.insert(2 * at)));
            for (insert, start, count) in steps {
                let range = start..start + count;
                if insert {
                    let new = range.clone().filter(|number| model.insert(*number)).count() as u64;
                    prop_assert_eq!(set.insert(range.clone()), new);
                } else {
                    let gone = range.clone().filter(|number| model.remove(number)).count() as u64;
                    prop_assert_eq!(set.remove(range.clone()), gone);
                }
                let missing: Vec<u64> = (start..start + 40).filter(|number| !model.contains(number)).collect();
                prop_assert_eq!(set.gaps(start..start + 40).flatten().collect::<Vec<_>>(), missing);
            }
            prop_assert_eq!(set.iter().flatten().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
        }

        #[test]
        fn a_range_set_is_a_set(steps in prop::collection::vec((any::<bool>(), 0u64..80, 0u64..25), 1..50)) {
            let mut set = RangeSet::new();
            let mut model = BTreeSet::new();
            for (insert, start, count) in steps {
                let range = start..start + count;
                let missing: Vec<u64> = range.clone().filter(|number| !model.contains(number)).collect();
                prop_assert_eq!(set.gaps(range.clone()).flatten().collect::<Vec<_>>(), missing);
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
