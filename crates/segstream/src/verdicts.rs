//! The verdicts of one stream of ours, until the application asks for them.
//!
//! The way of a verdict, with everything that stores it. A run of equal verdicts is one event all the way:
//!
//! ```text
//!  report ─► sending half ─► connection ─────────► here ─► application
//!            judged once     its payload is        by number, in the order
//!                            forgotten; its turn   of verdicts, or as an event
//!                            is the endpoint's
//! ```
//!
//! Called by the connection state. Each verdict is returned once, by number or in order of arrival.
//!
//! Invariant: every call takes amortized constant time, except for segments with holes. The memory is bounded by the segments in flight
//! and [`VERDICTS_MAX`].

use crate::{Run, SegmentNumber, StreamId, UnitIndex, Verdict};
use core::fmt;
use core::ops::Range;
use std::collections::{BTreeMap, VecDeque};

/// The maximum number of unread verdicts; beyond it the oldest are dropped.
const VERDICTS_MAX: usize = 65_536;

/// A verdict on a segment of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judged {
    /// The stream.
    pub stream: StreamId,
    /// The segment.
    pub segment: SegmentNumber,
    /// The verdict; *unknown* when the connection ended first.
    pub verdict: Verdict,
    /// The holes: runs of the units that are missing, in ascending order.
    pub holes: Vec<Run<UnitIndex>>,
}

impl Judged {
    /// How many units are missing.
    pub fn missing(&self) -> u32 {
        self.holes.iter().map(|hole| hole.len()).sum()
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {}: {}", self.segment, self.verdict)?;
        match self.missing() {
            0 => Ok(()),
            1 => f.write_str(", 1 unit missing"),
            count => write!(f, ", {count} units missing"),
        }
    }
}

/// Why holes are stored elsewhere: few verdicts have any, and with room for them each verdict would take forty times the memory.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Expected,
    Judged(Verdict),
    Taken,
}

/// The result of looking for the verdict on one segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The verdict.
    Judged(Judged),
    /// The segment is not judged yet.
    Expected,
    /// The verdict was returned before or was dropped, or there is no such segment.
    Gone,
}

/// The verdicts of one stream.
#[derive(Debug)]
pub(crate) struct Verdicts {
    stream: StreamId,
    /// The segment of the first slot.
    base: SegmentNumber,
    slots: VecDeque<Slot>,
    /// The holes of judged segments that have some.
    holes: BTreeMap<SegmentNumber, Vec<Run<UnitIndex>>>,
    /// Judged segments in the order of their verdicts, as half-open runs; some may have been taken already.
    order: VecDeque<(SegmentNumber, SegmentNumber)>,
    expected: usize,
}

impl Verdicts {
    pub(crate) const fn new(stream: StreamId) -> Self {
        Self { stream, base: SegmentNumber::FIRST, slots: VecDeque::new(), holes: BTreeMap::new(), order: VecDeque::new(), expected: 0 }
    }

    /// The next segment was accepted for sending.
    pub(crate) fn expect(&mut self) {
        self.slots.push_back(Slot::Expected);
        self.expected += 1;
    }

    /// Whether any segment has no verdict yet.
    pub(crate) const fn has_pending(&self) -> bool {
        self.expected > 0
    }

    /// Whether any verdict is unread.
    pub(crate) fn has_unread(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Stores a verdict on a segment, or on a run of segments without holes.
    pub(crate) fn record(&mut self, segments: Range<SegmentNumber>, verdict: Verdict, holes: Vec<Run<UnitIndex>>) {
        let first = segments.start;
        for segment in segments.start.up_to(segments.end) {
            let Some(slot @ Slot::Expected) = self.slot(segment) else { continue };
            *slot = Slot::Judged(verdict);
            self.expected -= 1;
            match self.order.back_mut() {
                Some((_, end)) if *end == segment => *end += 1,
                _ => self.order.push_back((segment, segment + 1)),
            }
        }
        if !holes.is_empty() && self.is_judged(first) {
            self.holes.insert(first, holes);
        }
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        while self.slots.len() > VERDICTS_MAX && !matches!(self.slots.front(), Some(Slot::Expected)) {
            self.holes.remove(&self.base);
            self.drop_first();
        }
        if self.order.len() > 2 * self.slots.len() + 64 {
            let mut order = core::mem::take(&mut self.order);
            order.retain(|&(first, end)| first.max(self.base).up_to(end).any(|segment| self.is_judged(segment)));
            self.order = order;
        }
    }

    fn drop_first(&mut self) {
        self.slots.pop_front();
        self.base += 1;
    }

    /// Takes the verdict on `segment`.
    pub(crate) fn take(&mut self, segment: SegmentNumber) -> Lookup {
        match self.slot(segment) {
            Some(Slot::Expected) => Lookup::Expected,
            Some(slot @ &mut Slot::Judged(verdict)) => {
                *slot = Slot::Taken;
                while matches!(self.slots.front(), Some(Slot::Taken)) {
                    self.drop_first();
                }
                let holes = self.holes.remove(&segment).unwrap_or_default();
                Lookup::Judged(Judged { stream: self.stream, segment, verdict, holes })
            }
            _ => Lookup::Gone,
        }
    }

    /// Takes the oldest unread verdict.
    pub(crate) fn take_next(&mut self) -> Option<Judged> {
        loop {
            let (first, end) = self.order.pop_front()?;
            // Why: a run may begin below the oldest stored verdict.
            let segment = first.max(self.base);
            if segment + 1 < end {
                self.order.push_front((segment + 1, end));
            }
            if segment < end
                && let Lookup::Judged(judged) = self.take(segment)
            {
                return Some(judged);
            }
        }
    }

    /// Takes the oldest unread verdict with its run of segments.
    pub(crate) fn take_run(&mut self) -> Option<(Range<SegmentNumber>, Judged)> {
        let judged = self.take_next()?;
        let mut run = judged.segment..judged.segment + 1;
        while judged.holes.is_empty()
            && self.order.front().is_some_and(|&(first, end)| first.max(self.base) == run.end && run.end < end)
            && !self.holes.contains_key(&run.end)
            && matches!(self.slot(run.end), Some(&mut Slot::Judged(verdict)) if verdict == judged.verdict)
        {
            self.take_next();
            run.end += 1;
        }
        Some((run, judged))
    }

    fn is_judged(&self, segment: SegmentNumber) -> bool {
        segment.place_from(self.base).and_then(|index| self.slots.get(index)).is_some_and(|slot| matches!(slot, Slot::Judged(..)))
    }

    fn slot(&mut self, segment: SegmentNumber) -> Option<&mut Slot> {
        self.slots.get_mut(segment.place_from(self.base)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hole(start: u32, end: u32) -> Run<UnitIndex> {
        Run::new(UnitIndex(start), UnitIndex(end)).unwrap()
    }

    fn numbers(verdicts: &mut Verdicts) -> Vec<u64> {
        core::iter::from_fn(|| verdicts.take_next()).map(|judged| judged.segment.0).collect()
    }

    #[test]
    fn a_verdict_is_handed_out_once_by_number_or_in_the_order_it_came() {
        let mut verdicts = Verdicts::new(StreamId(3));
        (0..4).for_each(|_| verdicts.expect());
        assert_eq!(verdicts.take(SegmentNumber(0)), Lookup::Expected);
        for segment in [2, 0, 3] {
            verdicts.record(SegmentNumber(segment)..SegmentNumber(segment + 1), Verdict::Complete, vec![]);
        }
        assert!(
            matches!(verdicts.take(SegmentNumber(0)), Lookup::Judged(judged) if judged.segment == SegmentNumber(0) && judged.stream == StreamId(3))
        );
        assert_eq!(verdicts.take(SegmentNumber(0)), Lookup::Gone);
        assert_eq!(verdicts.take(SegmentNumber(4)), Lookup::Gone);
        assert_eq!(numbers(&mut verdicts), [2, 3]);
        assert!(verdicts.has_pending());
        verdicts.record(SegmentNumber(1)..SegmentNumber(2), Verdict::Expired, vec![hole(0, 2)]);
        verdicts.record(SegmentNumber(1)..SegmentNumber(2), Verdict::Complete, vec![]);
        assert_eq!(verdicts.take_next().map(|judged| (judged.verdict, judged.missing())), Some((Verdict::Expired, 2)));
        assert!(!verdicts.has_pending());
    }

    #[test]
    fn a_run_ends_with_its_verdict_at_a_hole_and_where_one_was_taken() {
        let mut verdicts = Verdicts::new(StreamId(0));
        (0..12).for_each(|_| verdicts.expect());
        verdicts.record(SegmentNumber(0)..SegmentNumber(5), Verdict::Complete, vec![]);
        verdicts.record(SegmentNumber(5)..SegmentNumber(6), Verdict::WithinTolerance, vec![hole(0, 1)]);
        verdicts.record(SegmentNumber(6)..SegmentNumber(7), Verdict::WithinTolerance, vec![hole(3, 5)]);
        verdicts.record(SegmentNumber(8)..SegmentNumber(12), Verdict::Unknown, vec![]);
        verdicts.record(SegmentNumber(7)..SegmentNumber(8), Verdict::Unknown, vec![]);
        verdicts.take(SegmentNumber(2));
        let runs: Vec<(u64, u64, u32)> =
            core::iter::from_fn(|| verdicts.take_run()).map(|(run, judged)| (run.start.0, run.end.0, judged.missing())).collect();
        assert_eq!(runs, [(0, 2, 0), (3, 5, 0), (5, 6, 1), (6, 7, 2), (8, 12, 0), (7, 8, 0)]);
        assert!(verdicts.slots.is_empty() && !verdicts.has_pending());
    }

    #[test]
    fn verdicts_nobody_asks_for_are_bounded() {
        let mut verdicts = Verdicts::new(StreamId(0));
        for segment in 0..3 * VERDICTS_MAX as u64 {
            verdicts.expect();
            verdicts.record(SegmentNumber(segment)..SegmentNumber(segment + 1), Verdict::Complete, vec![]);
        }
        assert_eq!(verdicts.slots.len(), VERDICTS_MAX);
        assert!(verdicts.order.len() <= 2 * VERDICTS_MAX + 64);
        assert_eq!(verdicts.take(SegmentNumber(0)), Lookup::Gone);
        assert_eq!(numbers(&mut verdicts).len(), VERDICTS_MAX);
    }

    #[test]
    fn verdicts_that_came_out_of_turn_are_bounded_too_and_keep_their_order_and_holes() {
        let mut verdicts = Verdicts::new(StreamId(0));
        for pair in 0..2 * VERDICTS_MAX as u64 {
            (0..2).for_each(|_| verdicts.expect());
            for segment in [2 * pair + 1, 2 * pair] {
                verdicts.record(
                    SegmentNumber(segment)..SegmentNumber(segment + 1),
                    Verdict::WithinTolerance,
                    vec![hole(0, 1 + segment as u32 % 7)],
                );
            }
        }
        assert_eq!((verdicts.slots.len(), verdicts.holes.len()), (VERDICTS_MAX, VERDICTS_MAX));
        assert!(verdicts.order.len() <= 2 * VERDICTS_MAX + 64);
        let judged: Vec<(u64, u32)> =
            core::iter::from_fn(|| verdicts.take_next()).map(|judged| (judged.segment.0, judged.missing())).collect();
        let kept = (3 * VERDICTS_MAX as u64 / 2..2 * VERDICTS_MAX as u64).flat_map(|pair| [2 * pair + 1, 2 * pair]);
        assert_eq!(judged, kept.map(|segment| (segment, 1 + segment as u32 % 7)).collect::<Vec<_>>());
        assert!(verdicts.holes.is_empty() && verdicts.order.is_empty());
    }

    #[test]
    fn verdicts_taken_by_number_leave_nothing_behind() {
        let mut verdicts = Verdicts::new(StreamId(0));
        for segment in 0..10_000 {
            verdicts.expect();
            verdicts.record(SegmentNumber(segment)..SegmentNumber(segment + 1), Verdict::Complete, vec![]);
            assert!(matches!(verdicts.take(SegmentNumber(segment)), Lookup::Judged(_)));
        }
        assert!(verdicts.slots.is_empty());
        assert!(verdicts.order.len() <= 65);
    }
}
