//! Repair units that have arrived, and segments that they restore.
//!
//! Called by the half for every run of repair units, and by the owner of the payload, which decodes. A segment can be restored once the
//! repair units that are here are as many as the protected units that are missing. The owner is told, restores the bytes, and says so; only then the units are
//! present. So bytes flow from the store to the half here, and nowhere else.
//!
//! Invariant: repair units are no positions: they move no frontier and declare nothing lost. No more of them are kept than protected units
//! are missing. A unit is counted once, however it came.

use super::segment::RecvSegment;
use super::{PartOutcome, RecvHalf};
use crate::layout::Layout;
use segstream_base::{Instant, Position, Run, SegmentNumber, ShipmentNumber, StreamId, UnitIndex};
use segstream_blocks::fence::Fence;
use segstream_blocks::rare_queue::RareQueue;
use segstream_wire::Repair;
use segstream_wire::repair::{CODED_UNITS_MAX, PROTECTED_MAX, repair_unit_bytes, repair_units_max};
use smallvec::SmallVec;

/// The repair units of a segment that are here.
#[derive(Debug)]
pub(crate) struct RecvCode {
    pub(crate) fence: Fence,
    /// Protected units that are missing: counted once, and fewer as they arrive.
    pub(super) missing: u32,
    /// The numbers that are here, as bits.
    seen: [u64; SEEN_WORDS],
    /// The numbers again, and the shipments in which they came.
    held: SmallVec<[(u32, ShipmentNumber); 8]>,
}

/// Words of the numbers that a code can have.
const SEEN_WORDS: usize = repair_units_max(PROTECTED_MAX).div_ceil(64) as usize;

impl RecvCode {
    /// How many came in shipments up to `last`.
    pub(crate) fn held_up_to(&self, last: ShipmentNumber) -> u32 {
        self.held.iter().filter(|(_, shipment)| *shipment <= last).count() as u32
    }
}

/// A segment that can be restored.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    pub(crate) layout: Layout,
    pub(crate) fence: Fence,
    /// Protected units that are missing, in ascending order.
    pub(crate) missing: Vec<UnitIndex>,
}

/// Whether repair units are taken, and segments that they restore.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// Both ends can handle repair units.
    taken: bool,
    /// Segments that can be restored, and perhaps some that cannot any more.
    restorable: RareQueue<(StreamId, SegmentNumber)>,
}

impl RecvSegment {
    /// Takes repair units of a code over `fence`, which came in shipment `number`. How many are new and kept; `None` if they cannot belong
    /// to the segment.
    fn keep_repairs(&mut self, number: ShipmentNumber, repair: &Repair, fence: Fence) -> Option<u32> {
        let units = self.layout.units.filter(|units| *units <= CODED_UNITS_MAX)?;
        let protected = fence.count(units);
        let exists = protected > 0 && protected <= PROTECTED_MAX && repair.end() <= repair_units_max(protected);
        let is_whole = u64::from(repair.payload_bytes) == u64::from(repair.count) * u64::from(repair_unit_bytes(self.layout.unit_bytes));
        if !exists || !is_whole || self.code.as_ref().is_some_and(|code| code.fence != fence) {
            return None;
        }
        if self.code.is_none() {
            let missing = self.missing_of(fence);
            self.code = Some(Box::new(RecvCode { fence, missing, seen: [0; SEEN_WORDS], held: SmallVec::new() }));
        }
        let code = self.code.as_mut()?;
        let mut fresh = 0;
        for unit in repair.first..repair.end() {
            let (word, bit) = (code.seen.get_mut(unit as usize / 64)?, 1 << (unit % 64));
            if (code.held.len() as u32) < code.missing && *word & bit == 0 {
                *word |= bit;
                code.held.push((unit, number));
                fresh += 1;
            }
        }
        Some(fresh)
    }

    /// How many protected units are missing.
    fn missing_of(&self, fence: Fence) -> u32 {
        let units = self.extent();
        if fence.every == 1 { units - self.presence.got } else { self.protected_missing(fence, Position(units)).count() as u32 }
    }

    /// Protected units that are missing at positions below `end`, in sending order.
    fn protected_missing(&self, fence: Fence, end: Position) -> impl Iterator<Item = UnitIndex> {
        let known = Position(self.presence.positions.len());
        let here = self.presence.positions.zero_runs(Position::FIRST, end.min(known));
        let beyond = Run::new(end.min(known), end);
        here.chain(beyond).flat_map(|run| self.layout.units_at(run.start(), run.len())).filter(move |unit| fence.protects(*unit))
    }

    /// How many protected units are declared lost.
    pub(crate) fn protected_lost(&self, fence: Fence) -> u32 {
        if fence.every == 1 { self.presence.lost } else { self.protected_missing(fence, self.due_extent()).count() as u32 }
    }

    /// Whether the repair units that are here restore all protected units.
    fn is_restorable(&self) -> bool {
        let Some(code) = self.code.as_ref().filter(|_| !self.is_closed()) else { return false };
        code.missing > 0 && code.held.len() as u32 >= code.missing
    }
}

impl RecvHalf {
    /// Both ends can handle repair units: from now on they are taken.
    pub fn set_coding(&mut self) {
        self.repairs.taken = true;
        self.reports.composition.tell_losses();
    }

    /// Whether they are taken.
    pub(crate) const fn takes_repairs(&self) -> bool {
        self.repairs.taken
    }

    /// Takes repair units that arrived in shipment `number`.
    pub fn on_repair(&mut self, now: Instant, number: ShipmentNumber, repair: &Repair) -> PartOutcome {
        let Some(stream) = self.streams.get_mut(repair.stream).filter(|_| self.repairs.taken) else { return PartOutcome::Refused };
        let important = stream.contract.importance;
        // A segment of which nothing else is known cannot be restored by repair units alone: its length is told by its parts.
        let Some(segment) = stream.segments.get_mut(repair.segment).filter(|segment| !segment.is_closed()) else {
            return PartOutcome::Stale;
        };
        let fence = Fence { important: important.min(segment.extent()), every: repair.every };
        let Some(fresh) = segment.keep_repairs(number, repair, fence) else {
            self.counters.parts_refused += 1;
            return PartOutcome::Refused;
        };
        self.reports.schedule.on_data();
        self.counters.repair_units_received += u64::from(fresh);
        if fresh > 0 {
            segment.first_arrival.get_or_insert(now);
            self.note_restorable(repair.stream, repair.segment);
        }
        if fresh > 0 { PartOutcome::Fresh } else { PartOutcome::Stale }
    }

    /// Something of a segment has arrived: perhaps it can be restored now.
    pub(super) fn note_restorable(&mut self, id: StreamId, number: SegmentNumber) {
        if self.streams.get(id).and_then(|stream| stream.segments.get(number)).is_some_and(RecvSegment::is_restorable) {
            self.repairs.restorable.push_back((id, number));
        }
    }

    /// The next segment that repair units restore; its owner does so, and then calls [`RecvHalf::on_restored`].
    #[inline]
    pub(crate) fn poll_restorable(&mut self) -> Option<(StreamId, SegmentNumber, Recovery)> {
        // Why: that is asked with every shipment, and mostly there is nothing.
        if self.repairs.restorable.is_empty() { None } else { self.next_restorable() }
    }

    fn next_restorable(&mut self) -> Option<(StreamId, SegmentNumber, Recovery)> {
        loop {
            let (id, number) = self.repairs.restorable.pop_front()?;
            let Some(segment) = self.streams.get(id).and_then(|stream| stream.segments.get(number)) else { continue };
            let Some(code) = segment.code.as_ref().filter(|_| segment.is_restorable()) else { continue };
            let mut missing: Vec<UnitIndex> = segment.protected_missing(code.fence, Position(segment.extent())).collect();
            missing.sort_unstable();
            debug_assert_eq!(missing.len() as u32, code.missing, "the count of missing protected units");
            return Some((id, number, Recovery { layout: segment.layout, fence: code.fence, missing }));
        }
    }

    /// A segment was restored: its protected units are present, those at the positions that are returned now for the first time.
    pub(crate) fn on_restored(&mut self, now: Instant, id: StreamId, number: SegmentNumber) -> SmallVec<[Run<Position>; 4]> {
        let mut restored = SmallVec::new();
        let Some(segment) = self.streams.get_mut(id).and_then(|stream| stream.segments.get_mut(number)) else { return restored };
        let Some(code) = segment.code.take().filter(|_| !segment.is_closed()) else { return restored };
        // What was asked for then cannot have come yet.
        let asked_since = segment.violated_at.map(|violated_at| now.since(violated_at));
        let end = Position(segment.extent());
        segment.presence.positions.grow(end.0);
        for run in segment.presence.positions.zero_runs(Position::FIRST, end) {
            match code.fence.every {
                1 => restored.push(run),
                _ => restored.extend(
                    segment
                        .layout
                        .units_at(run.start(), run.len())
                        .zip(run)
                        .filter_map(|(unit, position)| if code.fence.protects(unit) { Run::single(position) } else { None }),
                ),
            }
        }
        // Those below the frontier that were beyond what had room count as lost by now.
        let mut count = 0;
        for run in &restored {
            count += segment.mark(run.start(), run.len());
        }
        self.counters.units_restored += u64::from(count);
        self.counters.segments_restored += u64::from(count > 0);
        let ahead = asked_since.is_none_or(|since| self.reports.schedule.round_trip().is_some_and(|round_trip| since < round_trip));
        self.counters.round_trips_saved += u64::from(count > 0 && ahead);
        self.reevaluate(now, id, number);
        restored
    }

    /// A segment could not be restored, which no honest sender causes: its repair units are forgotten.
    pub(crate) fn on_not_restored(&mut self, id: StreamId, number: SegmentNumber) {
        if let Some(segment) = self.streams.get_mut(id).and_then(|stream| stream.segments.get_mut(number)) {
            segment.code = None;
        }
        self.counters.parts_refused += 1;
    }

    /// Restores all segments that can be, where no bytes are kept.
    #[inline]
    pub(crate) fn restore_synthetic(&mut self, now: Instant) {
        while let Some((id, number, _)) = self.poll_restorable() {
            self.on_restored(now, id, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_wire::Contract;

    /// A segment of 20 units of 10 bytes, of which those at the first positions are missing.
    fn segment(missing: u32) -> RecvSegment {
        let contract = Contract { unit_bytes: 10, ..Contract::default() };
        let promise = contract.tolerance;
        let mut segment = RecvSegment::new(Layout::new(&contract, promise, false, Some(195)), promise);
        segment.mark(Position(missing), 20 - missing);
        segment
    }

    fn repair(first: u32, count: u32) -> Repair {
        Repair { every: 1, first, count, payload_bytes: count * 10, ..Repair::default() }
    }

    #[test]
    fn a_repair_unit_that_comes_twice_counts_once() {
        let mut segment = segment(2);
        assert_eq!(segment.keep_repairs(ShipmentNumber(7), &repair(3, 1), Fence::ALL), Some(1));
        assert_eq!(segment.keep_repairs(ShipmentNumber(9), &repair(3, 1), Fence::ALL), Some(0));
        assert!(!segment.is_restorable(), "two units are missing, and one repair unit is here");
        assert_eq!(segment.keep_repairs(ShipmentNumber(9), &repair(2, 2), Fence::ALL), Some(1));
        assert!(segment.is_restorable());
        let code = segment.code.as_ref().unwrap();
        assert_eq!([6, 7, 9].map(|last| code.held_up_to(ShipmentNumber(last))), [0, 1, 2]);
    }

    #[test]
    fn no_more_are_kept_than_units_are_missing() {
        let mut segment = segment(3);
        assert_eq!(segment.keep_repairs(ShipmentNumber(7), &repair(0, 9), Fence::ALL), Some(3));
        assert_eq!(segment.keep_repairs(ShipmentNumber(8), &repair(9, 1), Fence::ALL), Some(0));
    }

    #[test]
    fn repair_units_that_no_code_of_the_segment_has_are_refused() {
        let take = |repair: &Repair, fence| segment(9).keep_repairs(ShipmentNumber(7), repair, fence);
        // Twenty protected units have sixteen repair units; every third of twenty, six, has eight.
        assert_eq!(
            (take(&repair(15, 1), Fence::ALL), take(&repair(15, 2), Fence::ALL), take(&repair(16, 1), Fence::ALL)),
            (Some(1), None, None)
        );
        let third = Fence { important: 0, every: 3 };
        assert_eq!((take(&repair(7, 1), third), take(&repair(8, 1), third)), (Some(1), None));
        assert_eq!(take(&Repair { payload_bytes: 9, ..repair(0, 1) }, Fence::ALL), None, "another size");
        assert_eq!(take(&repair(0, 1), Fence { important: 0, every: 0 }), None, "nothing is protected");
        let mut segment = segment(9);
        segment.keep_repairs(ShipmentNumber(7), &repair(0, 1), Fence::ALL);
        assert_eq!(segment.keep_repairs(ShipmentNumber(7), &repair(1, 1), third), None, "another fence");
    }
}
