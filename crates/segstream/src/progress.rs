//! Reading a stream unit by unit: which units have arrived and were not delivered to the application yet.
//!
//! Called by the endpoint state for streams that are read progressively.
//!
//! Invariant: every unit that arrives is delivered exactly once, before the verdict on its segment.

use crate::{Received, Run, SegmentNumber, StreamId, UnitIndex};
use core::ops::Range;
use segstream_blocks::ranges::RangeSet;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A run of units of one segment that have arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Units {
    /// The stream.
    pub stream: StreamId,
    /// The segment.
    pub segment: SegmentNumber,
    /// Which units.
    pub run: Run<UnitIndex>,
    /// Where the first of them starts in the segment, in bytes.
    pub offset: u64,
    /// Their bytes.
    pub bytes: Vec<u8>,
}

/// The next item of a stream that is read unit by unit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Units have arrived.
    Units(Units),
    /// A segment is judged, and all its units that arrived were delivered. This is the whole segment.
    Judged(Received),
}

#[derive(Debug, Default)]
struct Arrived {
    /// Units delivered or queued.
    heard: RangeSet,
    /// The queued ones.
    fresh: VecDeque<Run<UnitIndex>>,
}

impl Arrived {
    fn queue(&mut self, units: Run<UnitIndex>) {
        match self.fresh.back_mut() {
            Some(last) if last.end() == units.start() => *last = last.span(units),
            _ => self.fresh.push_back(units),
        }
    }
}

/// What has arrived on one stream and was not delivered yet.
#[derive(Debug, Default)]
pub(crate) struct Progressive {
    /// Segments that were not taken from the protocol yet.
    segments: BTreeMap<SegmentNumber, Arrived>,
    /// Those of them that have undelivered units.
    fresh: BTreeSet<SegmentNumber>,
    /// A judged segment, and its undelivered units.
    held: Option<(Received, VecDeque<Run<UnitIndex>>)>,
}

impl Progressive {
    /// A stream of which these units have arrived already.
    pub(crate) fn starting_with(there: Vec<(SegmentNumber, Run<UnitIndex>)>) -> Self {
        let mut progressive = Self::default();
        there.into_iter().for_each(|(segment, units)| progressive.on_units(segment, units));
        progressive
    }

    /// Units have arrived; some of them may be duplicates.
    pub(crate) fn on_units(&mut self, segment: SegmentNumber, units: Run<UnitIndex>) {
        let arrived = self.segments.entry(segment).or_default();
        let known = units.iter().any(|unit| arrived.heard.contains(unit.into()));
        if known {
            for unit in units.iter().filter_map(Run::single) {
                if arrived.heard.insert(range(unit)) > 0 {
                    arrived.queue(unit);
                }
            }
        } else {
            arrived.heard.insert(range(units));
            arrived.queue(units);
        }
        if !arrived.fresh.is_empty() {
            self.fresh.insert(segment);
        }
    }

    /// The next units to deliver of a segment that is not judged.
    pub(crate) fn take_new_units(&mut self) -> Option<(SegmentNumber, Run<UnitIndex>)> {
        let segment = *self.fresh.first()?;
        let arrived = self.segments.get_mut(&segment)?;
        let units = arrived.fresh.pop_front()?;
        if arrived.fresh.is_empty() {
            self.fresh.remove(&segment);
        }
        Some((segment, units))
    }

    /// A segment was judged: its undelivered units come next, then the segment.
    pub(crate) fn hold(&mut self, received: Received) {
        let arrived = self.forget(received.segment).unwrap_or_default();
        let mut pending = RangeSet::new();
        pending.insert(0..u64::from(received.units));
        for &hole in &received.holes {
            pending.remove(range(hole));
        }
        for told in arrived.heard.iter() {
            pending.remove(told);
        }
        for units in arrived.fresh {
            pending.insert(range(units));
        }
        let runs = pending.iter().filter_map(|run| Run::new(UnitIndex(run.start as u32), UnitIndex(run.end as u32))).collect();
        self.held = Some((received, runs));
    }

    /// The next item of the judged segment.
    pub(crate) fn take_from_judged(&mut self) -> Option<Progress> {
        let (received, pending) = self.held.as_mut()?;
        let Some(run) = pending.pop_front() else {
            return self.held.take().map(|(received, _)| Progress::Judged(received));
        };
        let units = units(received.stream, received.segment, run, received.unit_bytes, &received.bytes);
        Some(Progress::Units(units))
    }

    /// Whether a judged segment waits to be delivered.
    pub(crate) const fn has_judged(&self) -> bool {
        self.held.is_some()
    }

    /// The judged segment as a whole, even if units of it were not delivered yet.
    pub(crate) fn take_judged(&mut self) -> Option<Received> {
        self.held.take().map(|(received, _)| received)
    }

    /// A segment was taken as a whole.
    pub(crate) fn on_taken(&mut self, segment: SegmentNumber) {
        self.forget(segment);
    }

    fn forget(&mut self, segment: SegmentNumber) -> Option<Arrived> {
        self.fresh.remove(&segment);
        self.segments.remove(&segment)
    }
}

/// The units `run` as a set of numbers has them.
fn range(run: Run<UnitIndex>) -> Range<u64> {
    run.start().into()..run.end().into()
}

/// The units `run` of a segment with these `bytes`.
pub(crate) fn units(stream: StreamId, segment: SegmentNumber, run: Run<UnitIndex>, unit_bytes: u32, bytes: &[u8]) -> Units {
    let offset = u64::from(run.start()) * u64::from(unit_bytes);
    let there = run.byte_range(unit_bytes, bytes.len() as u64);
    Units { stream, segment, run, offset, bytes: bytes[there.start as usize..there.end as usize].to_vec() }
}

/// Copies what fits of a segment; its length in bytes, and its description without them.
///
/// Limit: this is one copy more than a segment needs that is taken as [`crate::Bytes`]. Its units cannot be put together in the
/// caller's buffer instead: they arrive before the call, in any order and among those of later segments, the buffer is borrowed for the
/// call only, and the endpoint may be driven by another thread meanwhile.
pub(crate) fn copy_into(buffer: &mut [u8], mut received: Received) -> (usize, Received) {
    let bytes = core::mem::take(&mut received.bytes);
    let fits = bytes.len().min(buffer.len());
    buffer[..fits].copy_from_slice(&bytes[..fits]);
    (bytes.len(), received)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Timestamp, Verdict};

    fn run(first: u32, count: u32) -> Run<UnitIndex> {
        Run::new(UnitIndex(first), UnitIndex(first + count)).unwrap()
    }

    fn received(segment: SegmentNumber, holes: Vec<Run<UnitIndex>>) -> Received {
        Received {
            stream: StreamId(0),
            segment,
            verdict: Verdict::WithinTolerance,
            bytes: (0..95).collect(),
            units: 10,
            unit_bytes: 10,
            holes,
            source_time: Timestamp::ZERO,
            first_arrival: None,
            judged_at: Timestamp::ZERO,
        }
    }

    #[test]
    fn every_unit_that_arrived_is_told_once_before_the_verdict() {
        let mut progress = Progressive::default();
        progress.on_units(SegmentNumber(4), run(0, 2));
        progress.on_units(SegmentNumber(4), run(2, 1));
        progress.on_units(SegmentNumber(5), run(0, 1));
        progress.on_units(SegmentNumber(4), run(6, 1));
        assert_eq!(progress.take_new_units(), Some((SegmentNumber(4), run(0, 3))));
        // One that is told already comes again with a new one; 7 to 9 came when nobody had asked yet.
        progress.on_units(SegmentNumber(4), run(2, 1));
        progress.on_units(SegmentNumber(4), run(5, 2));
        progress.hold(received(SegmentNumber(4), vec![run(3, 2)]));
        let mut told = Vec::new();
        loop {
            match progress.take_from_judged() {
                Some(Progress::Units(units)) => told.push((units.run, units.bytes.len())),
                Some(Progress::Judged(received)) => break assert_eq!(received.segment, SegmentNumber(4)),
                None => unreachable!("a held segment ends with its verdict"),
            }
        }
        assert_eq!(told, [(run(5, 5), 45)]);
        assert_eq!(progress.take_from_judged(), None);
        assert_eq!(progress.take_new_units(), Some((SegmentNumber(5), run(0, 1))));
        assert_eq!(progress.take_new_units(), None);
    }

    #[test]
    fn a_segment_taken_as_a_whole_is_told_no_further() {
        let mut progress = Progressive::default();
        progress.on_units(SegmentNumber(0), run(0, 1));
        progress.on_taken(SegmentNumber(0));
        assert_eq!(progress.take_new_units(), None);
        progress.hold(received(SegmentNumber(1), vec![]));
        assert_eq!(progress.take_judged().map(|received| received.segment), Some(SegmentNumber(1)));
        assert_eq!(progress.take_from_judged(), None);
    }
}
