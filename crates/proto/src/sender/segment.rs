//! One segment on its way out: which of its units have left, in which shipment, and which are wanted again.
//!
//! Owned by the stream's queue. Invariant: every position below `next` has left at least once and its
//! last shipment is on record; a position in `again` has left before.

use crate::layout::Layout;
use segstream_base::halves::Verdict;
use segstream_base::tolerance::Tolerance;
use segstream_base::{Instant, SegmentNumber, ShipmentNumber, StreamId};
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::ranges::RangeSet;
use segstream_blocks::recount;
use segstream_wire::state::Finished;
use smallvec::SmallVec;

/// One outgoing segment.
#[derive(Debug)]
pub(crate) struct SendSegment {
    pub(crate) layout: Layout,
    pub(crate) tolerance: Tolerance,
    /// The segment's own tolerance when it overrides the stream's.
    pub(crate) own: Option<Tolerance>,
    pub(crate) opened: bool,
    /// Bytes handed over so far; the length once `layout.length` says so.
    pub(crate) bytes: u64,
    pub(crate) source_time: Instant,
    /// When the segment is given up.
    pub(crate) deadline: Option<Instant>,
    /// The next position that has not left yet.
    pub(crate) next: u32,
    /// Units counted against the window so far.
    pub(crate) counted: u32,
    /// Units of the send buffer it takes.
    pub(crate) buffered: u64,
    /// Units of it that one shipment may carry.
    pub(crate) per_shipment: u32,
    /// The last shipment of each position below `next`, low 32 bits.
    ships: SmallVec<[u32; 2]>,
    again: Bitmap,
    pub(crate) again_count: u32,
    /// Whether any unit has been sent again.
    pub(crate) repaired: bool,
    /// The last shipment that carried a unit for the first time, and when it left.
    pub(crate) first_pass_last: Option<ShipmentNumber>,
    pub(crate) first_pass_ended: Instant,
    /// The last shipment that carried any unit.
    pub(crate) last_shipment: Option<ShipmentNumber>,
    pub(crate) skipped: bool,
    pub(crate) length_wanted: bool,
    pub(crate) verdict: Option<Verdict>,
    /// Holes told so far, in units, and of which units they have been told.
    holes: Vec<(u32, u32)>,
    told: RangeSet,
}

impl SendSegment {
    pub(crate) fn new(layout: Layout, tolerance: Tolerance) -> Self {
        Self {
            layout,
            tolerance,
            own: None,
            opened: false,
            bytes: 0,
            source_time: Instant::ZERO,
            deadline: None,
            next: 0,
            counted: 0,
            buffered: 0,
            per_shipment: 1,
            ships: SmallVec::new(),
            again: Bitmap::new(),
            again_count: 0,
            repaired: false,
            first_pass_last: None,
            first_pass_ended: Instant::ZERO,
            last_shipment: None,
            skipped: false,
            length_wanted: false,
            verdict: None,
            holes: Vec::new(),
            told: RangeSet::new(),
        }
    }

    /// Makes a used segment new again, keeping its buffers.
    pub(crate) fn renew(&mut self, layout: Layout, tolerance: Tolerance) {
        let (mut ships, mut again) = (core::mem::take(&mut self.ships), core::mem::take(&mut self.again));
        ships.clear();
        again.reset(0);
        *self = Self { ships, again, ..Self::new(layout, tolerance) };
    }

    /// Units handed over so far, counting a short last one only when the segment is finished.
    pub(crate) fn units(&self) -> u32 {
        self.layout.units.unwrap_or_else(|| u32::try_from(self.bytes / u64::from(self.layout.unit_bytes)).unwrap_or(u32::MAX))
    }

    /// Positions that may leave now: all of a finished segment, whole units (and whole blocks when
    /// interleaved) of an open one.
    pub(crate) fn ready(&self) -> u32 {
        match (self.layout.units, self.layout.order.block) {
            (Some(units), _) => units,
            (None, 0) => self.units(),
            (None, block) => self.units() / block * block,
        }
    }

    /// Whether every unit has left once and none will be added.
    pub(crate) fn first_pass_over(&self) -> bool {
        self.layout.units == Some(self.next)
    }

    /// Whether all of it is counted against the window, so that its length may be told.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        self.layout.units == Some(self.counted)
    }

    /// Whether its verdict and all its holes are known.
    pub(crate) fn settled(&self) -> bool {
        self.verdict.is_some()
    }

    /// Counts what begins with the next `count` positions against the window: an open segment block by block, or
    /// unit by unit in order, and all (the rest) of a segment at once when its length is known: just as the
    /// receiver makes room. Returns how many units that are.
    #[inline]
    pub(crate) fn count_begun(&mut self, count: u32) -> u32 {
        let begun = match self.layout.units {
            Some(units) => units,
            None => u32::try_from(self.layout.counted(self.next + count)).unwrap_or(u32::MAX),
        };
        let fresh = begun - self.counted;
        self.counted = begun;
        fresh
    }

    /// Notes that positions `first..first + count` leave in shipment `number`.
    pub(crate) fn on_sent(&mut self, now: Instant, first: u32, count: u32, number: ShipmentNumber) {
        if first == self.next {
            self.next += count;
            if count == 1 {
                self.ships.push(number.0 as u32);
            } else {
                self.ships.resize(self.next as usize, number.0 as u32);
            }
            // Why each time: an open segment may turn out later to have ended here.
            self.first_pass_last = Some(number);
            self.first_pass_ended = now;
        } else {
            for ship in self.ships.iter_mut().skip(first as usize).take(count as usize) {
                *ship = number.0 as u32;
            }
            self.again_count -= self.again.clear_range(first, count);
            self.repaired = true;
        }
        self.last_shipment = Some(number);
    }

    /// Exact repair: of the positions `start..end`, which the receiver wants, those are queued whose
    /// last shipment is lost, judged with its own echo and re-sequencing distance.
    pub(crate) fn request(&mut self, start: u32, end: u32, echo: ShipmentNumber, reorder: u32) -> u32 {
        let end = end.min(self.next);
        if start >= end || self.skipped {
            return 0;
        }
        self.again.grow(self.next);
        let mut queued = 0;
        for position in start..end {
            // Limit: fewer than 2^31 shipments may be in flight.
            let behind = (echo.0 as u32).wrapping_sub(self.ships[position as usize]) as i32;
            if i64::from(behind) > i64::from(reorder) && self.again.set(position) {
                queued += 1;
            }
        }
        self.again_count += queued;
        queued
    }

    /// The first run of at most `most` positions that are wanted again.
    pub(crate) fn again_run(&self, most: u32) -> Option<(u32, u32)> {
        let first = self.again.next_one(0, self.next)?;
        let end = self.again.next_zero(first, self.next).unwrap_or(self.next);
        Some((first, (end - first).min(most)))
    }

    /// Gives the segment up: nothing more of it leaves, and an open one ends at its present length.
    /// Returns how many positions were wanted again.
    pub(crate) fn skip(&mut self) -> u32 {
        self.skipped = true;
        if self.layout.length.is_none() {
            self.set_length();
        }
        self.drop_requests()
    }

    /// Fixes the length at what has been handed over.
    pub(crate) fn set_length(&mut self) {
        let units = self.bytes.div_ceil(u64::from(self.layout.unit_bytes)).max(1);
        self.layout.length = Some(self.bytes);
        self.layout.units = Some(u32::try_from(units).unwrap_or(u32::MAX));
        self.tolerance = self.tolerance.clipped_to(self.units());
        self.set_per_shipment();
    }

    /// Takes a part of the map of holes: those among the units `from..to` of `units`. Returns the whole map
    /// once all of it has come, in whatever order. A map of more units than the segment has is a peer's mistake.
    pub(crate) fn on_holes(&mut self, units: u32, (from, to): (u32, u32), holes: &[(u32, u32)]) -> Option<Vec<(u32, u32)>> {
        if units > self.units() {
            return None;
        }
        // A hole is never cut: it lies in one part of the map, and parts may overlap.
        self.holes.extend(holes.iter().filter(|hole| !self.told.contains(u64::from(hole.0))));
        self.told.insert(u64::from(from)..u64::from(to));
        let whole = units == 0 || self.told.first().is_some_and(|told| told == (0..u64::from(units)));
        if !whole {
            return None;
        }
        self.holes.sort_unstable();
        // Parts that contradict each other may have told of holes that overlap.
        self.holes.dedup_by(|hole, before| {
            let overlap = hole.0 < before.1;
            before.1 = if overlap { before.1.max(hole.1) } else { before.1 };
            overlap
        });
        Some(core::mem::take(&mut self.holes))
    }

    /// Forgets what is wanted again; returns how many positions that were.
    pub(crate) fn drop_requests(&mut self) -> u32 {
        let count = core::mem::take(&mut self.again_count);
        if count > 0 {
            self.again.reset(0);
        }
        count
    }

    /// Every position that has left has its shipment on record, and what is wanted again has left.
    pub(super) fn debug_assert_counts(&self) {
        debug_assert_eq!(self.ships.len(), self.next as usize, "a position has no shipment");
        debug_assert!(self.next <= self.units(), "more has left than there is");
        if !recount::is_due(self.again.len() as usize / 64) {
            return;
        }
        debug_assert_eq!(self.again.count_ones_in(0, self.next), self.again_count, "requests are miscounted");
        debug_assert_eq!(self.again.count_ones(), self.again_count, "what has not left is wanted again");
    }

    /// What a FINISHED or SKIP frame says of it.
    pub(crate) fn statement(&self, stream: StreamId, segment: SegmentNumber) -> Finished {
        Finished {
            stream,
            segment,
            opened: self.opened,
            length: self.bytes,
            source_time: self.source_time,
            tolerance: self.own,
            last_shipment: if self.skipped { self.last_shipment } else { self.first_pass_last },
        }
    }

    /// Fixes how many units one shipment may carry: under a partial tolerance a lost datagram must not break
    /// the promise by itself.
    pub(crate) fn set_per_shipment(&mut self) {
        self.per_shipment = if self.tolerance.is_partial() {
            self.layout.order.burst_tolerated(self.tolerance, self.layout.units.unwrap_or(u32::MAX)).max(1)
        } else {
            u32::MAX
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_wire::Contract;

    fn sent(units: u32) -> SendSegment {
        let contract = Contract { unit_bytes: 10, ..Contract::default() };
        let promise = contract.tolerance;
        let length = u64::from(units) * 10;
        let mut segment = SendSegment::new(Layout::new(&contract, promise, false, Some(length)), promise);
        segment.bytes = length;
        for position in 0..units {
            segment.on_sent(Instant::ZERO, position, 1, ShipmentNumber(100 + u64::from(position)));
        }
        segment
    }

    #[test]
    fn a_unit_is_queued_again_only_when_its_last_shipment_is_lost_by_the_echo() {
        let mut segment = sent(8);
        // Position 3 left in shipment 103; with R = 3 it is lost once 107 has arrived.
        assert_eq!(segment.request(3, 4, ShipmentNumber(106), 3), 0);
        assert_eq!(segment.request(3, 4, ShipmentNumber(107), 3), 1);
        assert_eq!(segment.request(3, 4, ShipmentNumber(107), 3), 0, "queued once");
        assert_eq!(segment.again_run(9), Some((3, 1)));
        segment.on_sent(Instant::ZERO, 3, 1, ShipmentNumber(200));
        assert_eq!((segment.again_count, segment.again_run(9)), (0, None));
        assert_eq!(segment.request(3, 4, ShipmentNumber(203), 3), 0, "its new shipment may still be on its way");
        assert_eq!(segment.request(3, 4, ShipmentNumber(204), 3), 1);
    }

    #[test]
    fn what_has_never_left_is_never_sent_again() {
        let mut segment = sent(4);
        assert_eq!(segment.request(0, u32::MAX, ShipmentNumber(1000), 0), 4);
        assert_eq!(segment.drop_requests(), 4);
        assert_eq!(segment.again_run(9), None);
    }

    #[test]
    fn a_lost_shipment_number_is_found_across_the_wrap() {
        let contract = Contract { unit_bytes: 10, ..Contract::default() };
        let promise = contract.tolerance;
        let mut segment = SendSegment::new(Layout::new(&contract, promise, false, Some(10)), promise);
        segment.on_sent(Instant::ZERO, 0, 1, ShipmentNumber(0xffff_ffff));
        assert_eq!(segment.request(0, 1, ShipmentNumber(0x1_0000_0002), 3), 0);
        assert_eq!(segment.request(0, 1, ShipmentNumber(0x1_0000_0003), 3), 1);
    }
}
