//! Reading a stream unit by unit: what of each segment has arrived and was not told yet.
//!
//! Called by the hub for streams that are read progressively.
//!
//! Invariant: every unit that arrives is told exactly once, before the verdict on its segment.

use crate::{Received, SegmentNumber, StreamId};
use segstream_blocks::ranges::RangeSet;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Units of one segment that have arrived, next to one another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Units {
    /// The stream.
    pub stream: StreamId,
    /// The segment.
    pub segment: SegmentNumber,
    /// The first of the units.
    pub first: u32,
    /// How many there are.
    pub count: u32,
    /// Where the first of them starts in the segment, in bytes.
    pub offset: u64,
    /// Their bytes.
    pub bytes: Vec<u8>,
}

/// What a stream read unit by unit gives next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Units have arrived.
    Units(Units),
    /// A segment is judged, and all its units that arrived have been told. Here it is as a whole.
    Judged(Received),
}

#[derive(Debug, Default)]
struct Arrived {
    /// Units told, or about to be.
    heard: RangeSet,
    /// Those about to be.
    fresh: VecDeque<(u32, u32)>,
}

impl Arrived {
    fn queue(&mut self, first: u32, count: u32) {
        match self.fresh.back_mut() {
            Some((start, length)) if *start + *length == first => *length += count,
            _ => self.fresh.push_back((first, count)),
        }
    }
}

/// What has arrived on one stream and was not told yet.
#[derive(Debug, Default)]
pub(crate) struct Progressive {
    /// Segments not taken from the protocol yet.
    segments: BTreeMap<SegmentNumber, Arrived>,
    /// Those of them that have fresh units.
    fresh: BTreeSet<SegmentNumber>,
    /// A judged segment, and its units not told yet.
    held: Option<(Received, VecDeque<(u32, u32)>)>,
}

impl Progressive {
    /// A stream of which these units are there already: (segment, first, count).
    pub(crate) fn starting_with(there: Vec<(SegmentNumber, u32, u32)>) -> Self {
        let mut progressive = Self::default();
        there.into_iter().for_each(|(segment, first, count)| progressive.on_units(segment, first, count));
        progressive
    }

    /// Units have arrived, some of them perhaps not for the first time.
    pub(crate) fn on_units(&mut self, segment: SegmentNumber, first: u32, count: u32) {
        let arrived = self.segments.entry(segment).or_default();
        let range = |first: u32, count: u32| u64::from(first)..u64::from(first) + u64::from(count);
        let known = (first..first + count).any(|unit| arrived.heard.contains(u64::from(unit)));
        if known {
            for unit in first..first + count {
                if arrived.heard.insert(range(unit, 1)) > 0 {
                    arrived.queue(unit, 1);
                }
            }
        } else {
            arrived.heard.insert(range(first, count));
            arrived.queue(first, count);
        }
        if !arrived.fresh.is_empty() {
            self.fresh.insert(segment);
        }
    }

    /// The next units to tell of a segment that is not judged: (segment, first, count).
    pub(crate) fn take_fresh(&mut self) -> Option<(SegmentNumber, u32, u32)> {
        let segment = *self.fresh.first()?;
        let arrived = self.segments.get_mut(&segment)?;
        let (first, count) = arrived.fresh.pop_front()?;
        if arrived.fresh.is_empty() {
            self.fresh.remove(&segment);
        }
        Some((segment, first, count))
    }

    /// A segment was judged: what was not told of it is told next, then it.
    pub(crate) fn hold(&mut self, received: Received) {
        let arrived = self.forget(received.segment).unwrap_or_default();
        let mut untold = RangeSet::new();
        untold.insert(0..u64::from(received.units));
        for &(start, end) in &received.holes {
            untold.remove(u64::from(start)..u64::from(end));
        }
        for range in arrived.heard.iter() {
            untold.remove(range);
        }
        for (first, count) in arrived.fresh {
            untold.insert(u64::from(first)..u64::from(first) + u64::from(count));
        }
        let runs = untold.iter().map(|run| (run.start as u32, (run.end - run.start) as u32)).collect();
        self.held = Some((received, runs));
    }

    /// The next thing to tell of a judged segment.
    pub(crate) fn take_held(&mut self) -> Option<Progress> {
        let (received, untold) = self.held.as_mut()?;
        let Some((first, count)) = untold.pop_front() else {
            return self.held.take().map(|(received, _)| Progress::Judged(received));
        };
        let units = units(received.stream, received.segment, (first, count), received.unit_bytes, &received.bytes);
        Some(Progress::Units(units))
    }

    /// Whether a judged segment waits to be told.
    pub(crate) const fn has_held(&self) -> bool {
        self.held.is_some()
    }

    /// The judged segment that is being told, whatever of it was not told yet.
    pub(crate) fn take_whole(&mut self) -> Option<Received> {
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

/// `count` units from `first` on of a segment of which `bytes` are there.
pub(crate) fn units(stream: StreamId, segment: SegmentNumber, (first, count): (u32, u32), unit_bytes: u32, bytes: &[u8]) -> Units {
    let offset = u64::from(first) * u64::from(unit_bytes);
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let end = start.saturating_add(count as usize * unit_bytes as usize).min(bytes.len());
    Units { stream, segment, first, count, offset, bytes: bytes[start..end].to_vec() }
}

/// Copies what fits of a segment; its length in bytes, and its description without them.
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

    fn received(segment: SegmentNumber, holes: Vec<(u32, u32)>) -> Received {
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
        progress.on_units(SegmentNumber(4), 0, 2);
        progress.on_units(SegmentNumber(4), 2, 1);
        progress.on_units(SegmentNumber(5), 0, 1);
        progress.on_units(SegmentNumber(4), 6, 1);
        assert_eq!(progress.take_fresh(), Some((SegmentNumber(4), 0, 3)));
        // One that is told already comes again with a new one; 7 to 9 came when nobody had asked yet.
        progress.on_units(SegmentNumber(4), 2, 1);
        progress.on_units(SegmentNumber(4), 5, 2);
        progress.hold(received(SegmentNumber(4), vec![(3, 5)]));
        let mut told = Vec::new();
        loop {
            match progress.take_held() {
                Some(Progress::Units(units)) => told.push((units.first, units.count, units.bytes.len())),
                Some(Progress::Judged(received)) => break assert_eq!(received.segment, SegmentNumber(4)),
                None => unreachable!("a held segment ends with its verdict"),
            }
        }
        assert_eq!(told, [(5, 5, 45)]);
        assert_eq!(progress.take_held(), None);
        assert_eq!(progress.take_fresh(), Some((SegmentNumber(5), 0, 1)));
        assert_eq!(progress.take_fresh(), None);
    }

    #[test]
    fn a_segment_taken_as_a_whole_is_told_no_further() {
        let mut progress = Progressive::default();
        progress.on_units(SegmentNumber(0), 0, 1);
        progress.on_taken(SegmentNumber(0));
        assert_eq!(progress.take_fresh(), None);
        progress.hold(received(SegmentNumber(1), vec![]));
        assert_eq!(progress.take_whole().map(|received| received.segment), Some(SegmentNumber(1)));
        assert_eq!(progress.take_held(), None);
    }
}
