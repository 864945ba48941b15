//! One outgoing segment: which of its units were sent, in which shipment, and which must be retransmitted.
//!
//! Owned by the stream's queue. Its parts decide:
//! - `sent_positions`: which positions have left, and in which shipment last;
//! - `retransmissions`: which are to be sent again (exact repair);
//! - `tolerance`: its tolerance, and what a shipment may carry of it;
//! - `hole_map`: what the receiver has told of its holes.
//!
//! Invariant: a position that is to be sent again was sent before.

mod hole_map;
mod retransmissions;
mod sent_positions;
mod tolerance;

use super::repair::SendCode;
use crate::layout::Layout;
use core::ops::Range;
use hole_map::HoleMap;
use retransmissions::Retransmissions;
use segstream_base::halves::Verdict;
use segstream_base::{Instant, Position, Run, SegmentNumber, ShipmentNumber, StreamId, UnitIndex};
use segstream_blocks::recount;
use segstream_wire::state::Finished;
use sent_positions::SentPositions;
pub(super) use sent_positions::is_lost;
pub(super) use tolerance::SegmentTolerance;

/// One outgoing segment.
#[derive(Debug)]
pub(crate) struct SendSegment {
    pub(crate) layout: Layout,
    pub(crate) tolerance: SegmentTolerance,
    pub(crate) opened: bool,
    /// Bytes handed over so far; the length once `layout.length` says so.
    pub(crate) bytes: u64,
    pub(crate) source_time: Instant,
    /// When the segment is given up.
    pub(crate) deadline: Option<Instant>,
    pub(crate) sent: SentPositions,
    /// Units counted against the window so far.
    pub(crate) counted: u32,
    /// Units of the send buffer that it occupies.
    pub(crate) buffered: u64,
    pub(crate) retransmissions: Retransmissions,
    pub(crate) skipped: bool,
    pub(crate) length_wanted: bool,
    pub(crate) verdict: Option<Verdict>,
    // Why boxed: few segments have holes, and those of most come at once.
    hole_map: Option<Box<HoleMap>>,
    /// What repair units of it have left.
    pub(crate) code: Option<Box<SendCode>>,
}

impl SendSegment {
    pub(crate) fn new(layout: Layout, tolerance: SegmentTolerance) -> Self {
        Self {
            layout,
            tolerance,
            opened: false,
            bytes: 0,
            source_time: Instant::ZERO,
            deadline: None,
            sent: SentPositions::default(),
            counted: 0,
            buffered: 0,
            retransmissions: Retransmissions::default(),
            skipped: false,
            length_wanted: false,
            verdict: None,
            hole_map: None,
            code: None,
        }
    }

    /// Resets a finished segment for reuse, keeping its buffers.
    pub(crate) fn renew(&mut self, layout: Layout, tolerance: SegmentTolerance) {
        let (sent, retransmissions) = (self.sent.renewed(), self.retransmissions.renewed());
        *self = Self { sent, retransmissions, ..Self::new(layout, tolerance) };
    }

    /// Units handed over so far, counting a short last one only when the segment is finished.
    pub(crate) fn units(&self) -> u32 {
        self.layout.units.unwrap_or_else(|| u32::try_from(self.bytes / u64::from(self.layout.unit_bytes)).unwrap_or(u32::MAX))
    }

    /// Positions below this one may leave now: all of a finished segment, whole units (and whole blocks when
    /// interleaved) of an open one.
    pub(crate) fn ready(&self) -> Position {
        Position(match (self.layout.units, self.layout.order.block) {
            (Some(units), _) => units,
            (None, 0) => self.units(),
            (None, block) => self.units() / block * block,
        })
    }

    /// Whether every unit has left once and none will be added.
    pub(crate) fn first_pass_over(&self) -> bool {
        self.layout.units == Some(self.sent.next.0)
    }

    /// Whether all of it is counted against the window, so that its length may be told.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        self.layout.units == Some(self.counted)
    }

    /// Whether its verdict and all its holes are known.
    pub(crate) fn judged(&self) -> bool {
        self.verdict.is_some()
    }

    /// Counts what begins with the next `count` positions against the window: an open segment block by block, or
    /// unit by unit in order, and all (the rest) of a segment at once when its length is known: just as the
    /// receiver makes room. Returns how many units that are.
    #[inline]
    pub(crate) fn count_begun(&mut self, count: u32) -> u32 {
        let begun = match self.layout.units {
            Some(units) => units,
            None => u32::try_from(self.layout.counted(self.sent.next + count)).unwrap_or(u32::MAX),
        };
        let fresh = begun - self.counted;
        self.counted = begun;
        fresh
    }

    /// Notes that positions `first..first + count` leave in shipment `number`.
    pub(crate) fn on_sent(&mut self, now: Instant, first: Position, count: u32, number: ShipmentNumber) {
        if first == self.sent.next {
            self.sent.on_first_time(now, count, number);
        } else {
            self.sent.on_again(first, count, number);
            self.retransmissions.on_sent(first, count);
        }
        self.sent.last_shipment = Some(number);
    }

    /// Of `positions`, which the receiver requests with this echo and reordering threshold, those that have left and are lost are queued; says
    /// how many. At most `left` are examined in this turn.
    pub(crate) fn request(&mut self, positions: Run<Position>, echo: ShipmentNumber, reorder: u32, left: &mut u32) -> u32 {
        let Some(sent) = Run::new(positions.start(), positions.end().min(self.sent.next)).filter(|_| !self.skipped) else { return 0 };
        self.retransmissions.request(&self.sent, sent, (echo, reorder), left)
    }

    /// The first run of at most `most` positions with a pending retransmission.
    pub(crate) fn retransmission_run(&self, most: u32) -> Option<Run<Position>> {
        self.retransmissions.positions.one_runs(Position::FIRST, self.sent.next).next()?.at_most(most)
    }

    /// Abandons the segment: nothing more of it is sent, and an open one ends at its present length.
    /// Returns how many retransmissions were pending.
    pub(crate) fn skip(&mut self) -> u32 {
        self.skipped = true;
        if self.layout.length.is_none() {
            self.set_length();
        }
        self.retransmissions.cancel()
    }

    /// Fixes the length at what has been handed over.
    pub(crate) fn set_length(&mut self) {
        let units = self.bytes.div_ceil(u64::from(self.layout.unit_bytes)).max(1);
        self.layout.length = Some(self.bytes);
        self.layout.units = Some(u32::try_from(units).unwrap_or(u32::MAX));
        self.tolerance.fit(&self.layout);
    }

    /// Takes a part of the map of holes: those among the units `told` of `units`. Returns the whole map
    /// once all of it has come, in whatever order. A map of more units than the segment has is a peer's mistake.
    pub(crate) fn on_holes(&mut self, units: u32, told: &Range<UnitIndex>, holes: &[Run<UnitIndex>]) -> Option<Vec<Run<UnitIndex>>> {
        if units > self.units() {
            return None;
        }
        let map = self.hole_map.get_or_insert_default();
        map.insert(told, holes);
        if !map.is_whole(units) {
            return None;
        }
        Some(self.hole_map.take()?.into_holes())
    }

    /// The last shipment of every sent position is stored, and only sent positions are queued for retransmission.
    pub(super) fn debug_assert_counts(&self) {
        let Self { sent, retransmissions: Retransmissions { positions, count, .. }, .. } = self;
        debug_assert_eq!(sent.ships.len(), sent.next.0 as usize, "a position has no shipment");
        debug_assert!(sent.next.0 <= self.units(), "more has left than there is");
        if !recount::is_due(positions.len() as usize / 64) {
            return;
        }
        debug_assert_eq!(positions.count_ones_in(Position::FIRST, sent.next), *count, "requests are miscounted");
        debug_assert_eq!(positions.count_ones(), *count, "what has not left is queued for retransmission");
    }

    /// What a FINISHED or SKIP frame says of it.
    pub(crate) fn statement(&self, stream: StreamId, segment: SegmentNumber) -> Finished {
        Finished {
            stream,
            segment,
            opened: self.opened,
            length: self.bytes,
            source_time: self.source_time,
            tolerance: self.tolerance.own,
            last_shipment: if self.skipped { self.sent.last_shipment } else { self.sent.first_pass_last },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_wire::Contract;

    fn positions(start: u32, end: u32) -> Run<Position> {
        Run::new(Position(start), Position(end)).unwrap()
    }

    fn segment(length: u64) -> SendSegment {
        let contract = Contract { unit_bytes: 10, ..Contract::default() };
        let promise = contract.tolerance;
        let layout = Layout::new(&contract, promise, false, Some(length));
        SendSegment::new(layout, SegmentTolerance::new(promise, None, &layout))
    }

    fn sent(units: u32) -> SendSegment {
        let length = u64::from(units) * 10;
        let mut segment = segment(length);
        segment.bytes = length;
        for position in 0..units {
            segment.on_sent(Instant::ZERO, Position(position), 1, ShipmentNumber(100 + u64::from(position)));
        }
        segment
    }

    #[test]
    fn a_unit_is_queued_again_only_when_its_last_shipment_is_lost_by_the_echo() {
        let mut segment = sent(8);
        // Position 3 left in shipment 103; with R = 3 it is lost once 107 has arrived.
        assert_eq!(segment.request(positions(3, 4), ShipmentNumber(106), 3, &mut 100), 0);
        assert_eq!(segment.request(positions(3, 4), ShipmentNumber(107), 3, &mut 100), 1);
        assert_eq!(segment.request(positions(3, 4), ShipmentNumber(107), 3, &mut 100), 0, "queued once");
        assert_eq!(segment.retransmission_run(9), Some(positions(3, 4)));
        segment.on_sent(Instant::ZERO, Position(3), 1, ShipmentNumber(200));
        assert_eq!((segment.retransmissions.count, segment.retransmission_run(9)), (0, None));
        assert_eq!(segment.request(positions(3, 4), ShipmentNumber(203), 3, &mut 100), 0, "its new shipment may still be on its way");
        assert_eq!(segment.request(positions(3, 4), ShipmentNumber(204), 3, &mut 100), 1);
    }

    #[test]
    fn what_has_never_left_is_never_sent_again() {
        let mut segment = sent(4);
        assert_eq!(segment.request(positions(0, u32::MAX), ShipmentNumber(1000), 0, &mut 100), 4);
        assert_eq!(segment.retransmissions.cancel(), 4);
        assert_eq!(segment.retransmission_run(9), None);
    }

    #[test]
    fn a_request_that_is_too_long_for_a_turn_goes_on_in_the_next_one() {
        let mut segment = sent(8);
        let ask = |segment: &mut SendSegment, echo| segment.request(positions(0, 8), ShipmentNumber(echo), 3, &mut 3);
        assert_eq!((ask(&mut segment, 1000), ask(&mut segment, 1000)), (3, 3));
        assert_eq!(ask(&mut segment, 1001), 2, "a newer report goes on behind what was queued");
        assert_eq!((segment.retransmissions.count, segment.retransmission_run(9)), (8, Some(positions(0, 8))));
    }

    #[test]
    fn a_lost_shipment_number_is_found_across_the_wrap() {
        let mut segment = segment(10);
        segment.on_sent(Instant::ZERO, Position(0), 1, ShipmentNumber(0xffff_ffff));
        assert_eq!(segment.request(positions(0, 1), ShipmentNumber(0x1_0000_0002), 3, &mut 100), 0);
        assert_eq!(segment.request(positions(0, 1), ShipmentNumber(0x1_0000_0003), 3, &mut 100), 1);
    }
}
