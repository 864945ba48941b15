//! One outgoing segment: which of its units were sent, in which shipment, and which must be retransmitted.
//!
//! Owned by the stream's queue. Invariant: every position below `next` was sent at least once and its last shipment is stored; a position
//! in `retransmit` was sent before.

use super::repair::SendCode;
use crate::layout::Layout;
use core::ops::Range;
use segstream_base::halves::Verdict;
use segstream_base::tolerance::Tolerance;
use segstream_base::{Instant, Position, Run, SegmentNumber, ShipmentNumber, StreamId, UnitIndex};
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::ranges::RangeSet;
use segstream_blocks::recount;
use segstream_blocks::work::{self, Loop};
use segstream_wire::state::Finished;
use smallvec::SmallVec;
use std::collections::BTreeMap;

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
    pub(crate) next: Position,
    /// Units counted against the window so far.
    pub(crate) counted: u32,
    /// Units of the send buffer that it occupies.
    pub(crate) buffered: u64,
    /// The most units of it that one shipment may carry.
    pub(crate) per_shipment: u32,
    /// The last shipment of each position below `next`, low 32 bits.
    ships: SmallVec<[u32; 2]>,
    retransmit: Bitmap<Position>,
    pub(crate) retransmit_count: u32,
    /// Whether any unit has been retransmitted.
    pub(crate) repaired: bool,
    /// The last shipment that carried a unit for the first time, and when it left.
    pub(crate) first_pass_last: Option<ShipmentNumber>,
    pub(crate) first_pass_ended: Instant,
    /// The last shipment that carried any unit.
    pub(crate) last_shipment: Option<ShipmentNumber>,
    pub(crate) skipped: bool,
    pub(crate) length_wanted: bool,
    pub(crate) verdict: Option<Verdict>,
    // Why boxed: few segments have holes, and those of most come at once.
    reported: Option<Box<Reported>>,
    // Why boxed: few segments are requested.
    examined: Option<Box<Examined>>,
    /// What repair units of it have left.
    pub(crate) code: Option<Box<SendCode>>,
}

/// The parts of the map of holes that have come.
#[derive(Debug, Default)]
struct Reported {
    /// The units that they cover.
    units: RangeSet,
    /// The holes of each part by its first hole. Why not one list: parts may come in any order, and sorting them all at the end takes long.
    holes: BTreeMap<UnitIndex, Vec<Run<UnitIndex>>>,
}

/// The positions that requests with one echo and reordering threshold have named. Why: which of them are lost follows from the two and
/// from what has left, so a position is examined once for each echo, however often a report names it.
#[derive(Debug)]
struct Examined {
    echo: ShipmentNumber,
    reorder: u32,
    /// Of these positions one run, since mostly there is one only, and the others.
    run: Range<u64>,
    more: RangeSet,
    /// Behind all of these positions.
    end: u64,
    /// Where the next request goes on, if it was too long for its turn.
    next: Position,
}

impl Examined {
    /// The first run of `range` that is not among the positions.
    fn first_gap(&self, range: Range<u64>) -> Option<Range<u64>> {
        if range.is_empty() {
            return None;
        }
        let start = if self.run.contains(&range.start) { self.run.end } else { range.start };
        let gap = self.more.first_gap(start..range.end)?;
        if gap.start >= self.run.end || gap.end <= self.run.start {
            return Some(gap);
        }
        if gap.start < self.run.start { Some(gap.start..self.run.start) } else { self.more.first_gap(self.run.end..range.end) }
    }

    /// Adds positions that are not among them.
    fn insert(&mut self, gap: Range<u64>) {
        self.end = self.end.max(gap.end);
        if self.run.is_empty() {
            self.run = gap;
        } else if gap.start == self.run.end {
            self.run.end = gap.end;
        } else if gap.end == self.run.start {
            self.run.start = gap.start;
        } else {
            self.more.insert(gap);
        }
    }

    /// Another echo or reordering threshold: nothing is examined by it.
    fn restart(&mut self, echo: ShipmentNumber, reorder: u32) {
        (self.echo, self.reorder) = (echo, reorder);
        (self.run, self.end) = (0..0, 0);
        self.more.clear();
    }
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
            next: Position::FIRST,
            counted: 0,
            buffered: 0,
            per_shipment: 1,
            ships: SmallVec::new(),
            retransmit: Bitmap::new(),
            retransmit_count: 0,
            repaired: false,
            first_pass_last: None,
            first_pass_ended: Instant::ZERO,
            last_shipment: None,
            skipped: false,
            length_wanted: false,
            verdict: None,
            reported: None,
            examined: None,
            code: None,
        }
    }

    /// Resets a finished segment for reuse, keeping its buffers.
    pub(crate) fn renew(&mut self, layout: Layout, tolerance: Tolerance) {
        let (mut ships, mut retransmit) = (core::mem::take(&mut self.ships), core::mem::take(&mut self.retransmit));
        ships.clear();
        retransmit.reset(0);
        *self = Self { ships, retransmit, ..Self::new(layout, tolerance) };
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
        self.layout.units == Some(self.next.0)
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
            None => u32::try_from(self.layout.counted(self.next + count)).unwrap_or(u32::MAX),
        };
        let fresh = begun - self.counted;
        self.counted = begun;
        fresh
    }

    /// Notes that positions `first..first + count` leave in shipment `number`.
    pub(crate) fn on_sent(&mut self, now: Instant, first: Position, count: u32, number: ShipmentNumber) {
        if first == self.next {
            self.next += count;
            if count == 1 {
                self.ships.push(number.0 as u32);
            } else {
                self.ships.resize(self.next.0 as usize, number.0 as u32);
            }
            // Why each time: an open segment may turn out later to have ended here.
            self.first_pass_last = Some(number);
            self.first_pass_ended = now;
        } else {
            for ship in self.ships.iter_mut().skip(first.0 as usize).take(count as usize) {
                *ship = number.0 as u32;
            }
            self.retransmit_count -= self.retransmit.clear_range(first, count);
            self.repaired = true;
        }
        self.last_shipment = Some(number);
    }

    /// Exact repair: of `positions`, which the receiver requests, those are queued whose last shipment is lost, judged with its own
    /// echo and reordering threshold. At most `left` are examined in this turn; the receiver repeats what it misses, and the next request
    /// goes on there.
    pub(crate) fn request(&mut self, positions: Run<Position>, echo: ShipmentNumber, reorder: u32, left: &mut u32) -> u32 {
        let Some(sent) = Run::new(positions.start(), positions.end().min(self.next)).filter(|_| !self.skipped) else { return 0 };
        self.retransmit.grow(self.next.0);
        let fresh = || Box::new(Examined { echo, reorder, run: 0..0, more: RangeSet::new(), end: 0, next: Position::FIRST });
        let mut examined = self.examined.take().unwrap_or_else(fresh);
        if (examined.echo, examined.reorder) != (echo, reorder) {
            examined.restart(echo, reorder);
        }
        let (start, end) = (u64::from(sent.start()), u64::from(sent.end()));
        let next = u64::from(examined.next);
        let mut queued = 0;
        // A report names what is missing in ascending order, so mostly all of it lies behind what was named before.
        if start >= examined.end.max(next) {
            queued = self.examine(&mut examined, start..end, left);
        } else {
            let middle = next.clamp(start, end);
            for mut named in [middle..end, start..middle] {
                while *left > 0
                    && let Some(gap) = examined.first_gap(named.clone())
                {
                    named.start = gap.end;
                    queued += self.examine(&mut examined, gap, left);
                }
            }
        }
        self.examined = Some(examined);
        self.retransmit_count += queued;
        queued
    }

    /// Queues those of `gap`, which has left and was not examined yet, that are lost; says how many. At most `left` are examined.
    #[inline]
    fn examine(&mut self, examined: &mut Examined, gap: Range<u64>, left: &mut u32) -> u32 {
        let until = gap.end.min(gap.start + u64::from(*left));
        if until == gap.start {
            return 0;
        }
        *left -= (until - gap.start) as u32;
        work::note(Loop::Requested, (until - gap.start) as usize);
        let mut queued = 0;
        for position in (gap.start as u32..until as u32).map(Position) {
            queued += u32::from(is_lost(self.ships[position.0 as usize], examined.echo, examined.reorder) && self.retransmit.set(position));
        }
        examined.insert(gap.start..until);
        examined.next = if *left == 0 { Position(until as u32) } else { Position::FIRST };
        queued
    }

    /// Whether the last shipment of `position`, which has left, is lost by the echo and the reordering threshold.
    pub(crate) fn is_lost(&self, position: Position, echo: ShipmentNumber, reorder: u32) -> bool {
        self.ships.get(position.0 as usize).is_some_and(|&ship| is_lost(ship, echo, reorder))
    }

    /// The first run of at most `most` positions with a pending retransmission.
    pub(crate) fn retransmission_run(&self, most: u32) -> Option<Run<Position>> {
        self.retransmit.one_runs(Position::FIRST, self.next).next()?.at_most(most)
    }

    /// Abandons the segment: nothing more of it is sent, and an open one ends at its present length.
    /// Returns how many retransmissions were pending.
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

    /// Takes a part of the map of holes: those among the units `told` of `units`. Returns the whole map
    /// once all of it has come, in whatever order. A map of more units than the segment has is a peer's mistake.
    pub(crate) fn on_holes(&mut self, units: u32, told: &Range<UnitIndex>, holes: &[Run<UnitIndex>]) -> Option<Vec<Run<UnitIndex>>> {
        if units > self.units() {
            return None;
        }
        let reported = self.reported.get_or_insert_default();
        // A hole is never cut: it lies in one part of the map, and parts may overlap.
        let mut fresh = holes.iter().copied().filter(|hole| !reported.units.contains(hole.start().into())).peekable();
        while let Some(first) = fresh.peek().map(|hole| hole.start()) {
            // Why parts of their own: other parts may lie between.
            let behind = reported.holes.range(first..).next().map_or(UnitIndex(u32::MAX), |(&next, _)| next);
            reported.holes.insert(first, core::iter::from_fn(|| fresh.next_if(|hole| hole.start() < behind)).collect());
        }
        reported.units.insert(told.start.into()..told.end.into());
        let whole = units == 0 || reported.units.first().is_some_and(|reported| reported == (0..u64::from(units)));
        if !whole {
            return None;
        }
        let mut holes: Vec<_> = self.reported.take()?.holes.into_values().flatten().collect();
        debug_assert!(holes.is_sorted(), "parts of a map of holes overlap");
        // Parts of the map that contradict each other may contain holes that overlap.
        holes.dedup_by(|hole, before| {
            let overlap = hole.start() < before.end();
            if overlap {
                *before = before.span(*hole);
            }
            overlap
        });
        Some(holes)
    }

    /// Cancels pending retransmissions; returns how many there were.
    pub(crate) fn drop_requests(&mut self) -> u32 {
        self.examined = None;
        let count = core::mem::take(&mut self.retransmit_count);
        if count > 0 {
            self.retransmit.reset(0);
        }
        count
    }

    /// The last shipment of every sent position is stored, and only sent positions are queued for retransmission.
    pub(super) fn debug_assert_counts(&self) {
        debug_assert_eq!(self.ships.len(), self.next.0 as usize, "a position has no shipment");
        debug_assert!(self.next.0 <= self.units(), "more has left than there is");
        if !recount::is_due(self.retransmit.len() as usize / 64) {
            return;
        }
        debug_assert_eq!(self.retransmit.count_ones_in(Position::FIRST, self.next), self.retransmit_count, "requests are miscounted");
        debug_assert_eq!(self.retransmit.count_ones(), self.retransmit_count, "what has not left is queued for retransmission");
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

/// Whether a shipment, of which the low 32 bits are known, is lost by the echo and the reordering threshold (spec 7.3).
pub(super) const fn is_lost(ship: u32, echo: ShipmentNumber, reorder: u32) -> bool {
    // Limit: fewer than 2^31 shipments may be in flight.
    (echo.0 as u32).wrapping_sub(ship) as i32 as i64 > reorder as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_wire::Contract;

    fn positions(start: u32, end: u32) -> Run<Position> {
        Run::new(Position(start), Position(end)).unwrap()
    }

    fn sent(units: u32) -> SendSegment {
        let contract = Contract { unit_bytes: 10, ..Contract::default() };
        let promise = contract.tolerance;
        let length = u64::from(units) * 10;
        let mut segment = SendSegment::new(Layout::new(&contract, promise, false, Some(length)), promise);
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
        assert_eq!((segment.retransmit_count, segment.retransmission_run(9)), (0, None));
        assert_eq!(segment.request(positions(3, 4), ShipmentNumber(203), 3, &mut 100), 0, "its new shipment may still be on its way");
        assert_eq!(segment.request(positions(3, 4), ShipmentNumber(204), 3, &mut 100), 1);
    }

    #[test]
    fn what_has_never_left_is_never_sent_again() {
        let mut segment = sent(4);
        assert_eq!(segment.request(positions(0, u32::MAX), ShipmentNumber(1000), 0, &mut 100), 4);
        assert_eq!(segment.drop_requests(), 4);
        assert_eq!(segment.retransmission_run(9), None);
    }

    #[test]
    fn a_request_that_is_too_long_for_a_turn_goes_on_in_the_next_one() {
        let mut segment = sent(8);
        let ask = |segment: &mut SendSegment, echo| segment.request(positions(0, 8), ShipmentNumber(echo), 3, &mut 3);
        assert_eq!((ask(&mut segment, 1000), ask(&mut segment, 1000)), (3, 3));
        assert_eq!(ask(&mut segment, 1001), 2, "a newer report goes on behind what was queued");
        assert_eq!((segment.retransmit_count, segment.retransmission_run(9)), (8, Some(positions(0, 8))));
    }

    #[test]
    fn a_lost_shipment_number_is_found_across_the_wrap() {
        let contract = Contract { unit_bytes: 10, ..Contract::default() };
        let promise = contract.tolerance;
        let mut segment = SendSegment::new(Layout::new(&contract, promise, false, Some(10)), promise);
        segment.on_sent(Instant::ZERO, Position(0), 1, ShipmentNumber(0xffff_ffff));
        assert_eq!(segment.request(positions(0, 1), ShipmentNumber(0x1_0000_0002), 3, &mut 100), 0);
        assert_eq!(segment.request(positions(0, 1), ShipmentNumber(0x1_0000_0003), 3, &mut 100), 1);
    }
}
