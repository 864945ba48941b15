//! One outgoing stream: its contract, its queue of segments and its window (FC 3).
//!
//! Owned by the sending half. Invariant: segments start in order, one is open at a time, and no unit
//! beyond either edge of the window has ever left (while flow control is on).

mod invariants;

use super::durability::Durable;
use super::segment::{SegmentTolerance, SendSegment};
use super::stream_counts::StreamFlags;
use super::{CodingTarget, StreamCounters};
use crate::layout::Layout;
use core::ops::Range;
use segstream_base::halves::{SubmitError, Verdict};
use segstream_base::tolerance::Tolerance;
use segstream_base::{Instant, Position, Run, SegmentNumber, ShipmentNumber};
use segstream_blocks::ranges::RangeSet;
use segstream_blocks::window::SendWindow;
use segstream_wire::Part;
use segstream_wire::contract::{Contract, check_tolerance};
use segstream_wire::report::RefuseReason;
use smallvec::SmallVec;
use std::collections::{BTreeSet, VecDeque};

/// How many finished segments keep their buffers for reuse.
const SPARE_SEGMENTS: usize = 64;

/// A source's time as it travels: in whole microseconds.
pub(crate) const fn whole_micros(source_time: Instant) -> Instant {
    Instant::from_nanos(source_time.as_nanos() / 1000 * 1000)
}

/// One outgoing stream.
#[derive(Debug)]
pub(crate) struct SendStream {
    pub(crate) contract: Contract,
    promise: Tolerance,
    pub(crate) window: SendWindow,
    /// Whether the receiver has granted a window, which also confirms the stream.
    pub(crate) granted: bool,
    pub(crate) refused: Option<RefuseReason>,
    /// The receive buffer in units, as the first grant says.
    pub(crate) window_units: u64,
    segments: VecDeque<SendSegment>,
    spare: Vec<SendSegment>,
    /// Segments from `base` on that have a verdict.
    settled: RangeSet,
    /// The open segment, and its verdict if that comes before its end.
    writer: Option<SegmentNumber>,
    writer_verdict: Verdict,
    /// The number of the segment at the front of the queue.
    pub(crate) base: SegmentNumber,
    /// The segment whose units are being sent for the first time.
    pub(crate) current: SegmentNumber,
    /// Units started in all, as the receiver's unit edge counts them.
    pub(crate) units_started: u64,
    pub(crate) finished: bool,
    pub(crate) end_confirmed: bool,
    /// What the receiver's application has in safety.
    pub(super) durable: Durable,
    /// Units of segments without a verdict.
    buffered_units: u64,
    pub(crate) unjudged: u64,
    pub(crate) retransmit_total: u32,
    /// Repair units that are to leave, and the segments that they are of, perhaps with some others.
    pub(crate) repair_total: u32,
    pub(super) repairing: BTreeSet<SegmentNumber>,
    pub(crate) counters: StreamCounters,
    /// The segments with pending retransmissions, and perhaps some without.
    retransmit: BTreeSet<SegmentNumber>,
    /// The next segment whose lifetime can expire.
    expire_from: SegmentNumber,
    /// A submission was refused; an event follows when the next one can succeed.
    pub(crate) blocked: bool,
    /// What is coded ahead.
    pub(super) coding_target: Option<CodingTarget>,
    /// Drop-oldest: a full send buffer drops the oldest unsent segment for a new one.
    pub(crate) drops_oldest: bool,
    /// The deficit of round robin: bytes it may still send before the next stream's turn.
    pub(crate) credit: u64,
    /// Where the next list of finished segments starts.
    pub(crate) listed_to: SegmentNumber,
    /// The flags under which the half counts it.
    pub(super) flags: StreamFlags,
}

/// What blocks the next first-time unit of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstTime {
    /// There is none, or the receiver has not granted a window yet.
    Nothing,
    /// Nothing but the pacer and the scheduler.
    Ready,
    /// The flow control window.
    Window,
}

impl SendStream {
    pub(crate) fn new(contract: Contract) -> Self {
        Self {
            promise: contract.tolerance,
            window_units: u64::from(contract.window_units),
            contract,
            window: SendWindow::new(0, 0),
            granted: false,
            refused: None,
            segments: VecDeque::new(),
            spare: Vec::new(),
            settled: RangeSet::new(),
            writer: None,
            writer_verdict: Verdict::Expired,
            base: SegmentNumber::FIRST,
            current: SegmentNumber::FIRST,
            units_started: 0,
            finished: false,
            end_confirmed: false,
            durable: Durable::default(),
            buffered_units: 0,
            unjudged: 0,
            retransmit_total: 0,
            repair_total: 0,
            repairing: BTreeSet::new(),
            counters: StreamCounters::default(),
            retransmit: BTreeSet::new(),
            expire_from: SegmentNumber::FIRST,
            blocked: false,
            coding_target: None,
            drops_oldest: false,
            credit: 0,
            listed_to: SegmentNumber::FIRST,
            flags: StreamFlags::default(),
        }
    }

    /// The number the next submitted segment will have.
    pub(crate) fn next_segment(&self) -> SegmentNumber {
        self.base + self.segments.len() as u64
    }

    pub(crate) fn get(&self, segment: SegmentNumber) -> Option<&SendSegment> {
        self.segments.get(segment.place_from(self.base)?)
    }

    pub(crate) fn get_mut(&mut self, segment: SegmentNumber) -> Option<&mut SendSegment> {
        self.segments.get_mut(segment.place_from(self.base)?)
    }

    /// Takes a whole segment (`bytes` given) or opens one.
    pub(crate) fn submit(
        &mut self,
        now: Instant,
        bytes: Option<u64>,
        source_time: Instant,
        own: Option<Tolerance>,
    ) -> Result<SegmentNumber, SubmitError> {
        if self.finished || self.refused.is_some() {
            return Err(SubmitError::Finished);
        }
        if self.writer.is_some() {
            return Err(SubmitError::SegmentOpen);
        }
        if own.is_some_and(|own| check_tolerance(own).is_err()) {
            return Err(SubmitError::BadTolerance);
        }
        let units = bytes.map_or(1, |bytes| self.contract.units_of(bytes));
        if units > self.window_units {
            return Err(SubmitError::TooLong { units, window: self.window_units });
        }
        self.admit(units)?;
        let promise = own.unwrap_or(self.promise);
        let layout = Layout::new(&self.contract, promise, bytes.is_none(), bytes);
        let tolerance = SegmentTolerance::new(promise, own, &layout);
        let mut segment = match self.spare.pop() {
            Some(mut used) => {
                used.renew(layout, tolerance);
                used
            }
            None => SendSegment::new(layout, tolerance),
        };
        segment.opened = bytes.is_none();
        segment.bytes = bytes.unwrap_or(0);
        segment.buffered = if bytes.is_some() { units } else { 0 };
        segment.source_time = whole_micros(source_time);
        segment.deadline = (!self.contract.lifetime.is_zero()).then(|| now + self.contract.lifetime.into());
        self.buffered_units += segment.buffered;
        let number = self.next_segment();
        self.segments.push_back(segment);
        self.unjudged += 1;
        self.writer = bytes.is_none().then_some(number);
        Ok(number)
    }

    /// At most two windows are buffered: one in flight, one not yet sent.
    fn admit(&mut self, units: u64) -> Result<(), SubmitError> {
        let too_many = self.unjudged >= 2 * u64::from(self.contract.window_segments);
        if too_many || self.buffered_units + units > 2 * self.window_units {
            self.blocked = true;
            return Err(SubmitError::Blocked);
        }
        Ok(())
    }

    /// Drops the oldest segment of which nothing has been sent, and frees its buffer at once. Its
    /// number; `None` without the policy drop-oldest, or where that would free nothing.
    ///
    /// Limit: a segment that was given up counts among those without a verdict until the receiver has confirmed it, so that what
    /// both ends keep of segments stays bounded.
    pub(crate) fn drop_oldest(&mut self) -> Option<SegmentNumber> {
        if !self.drops_oldest || self.unjudged >= 2 * u64::from(self.contract.window_segments) {
            return None;
        }
        let is_unsent = |segment: &SendSegment| segment.sent.next == Position::FIRST && !segment.skipped && !segment.judged();
        let mut numbers = self.current.max(self.base).up_to(self.next_segment());
        let number = numbers.find(|&number| self.writer != Some(number) && self.get(number).is_some_and(is_unsent))?;
        self.give_up(number);
        let freed = self.get_mut(number).map_or(0, |segment| core::mem::take(&mut segment.buffered));
        self.buffered_units -= freed;
        self.blocked = false;
        self.advance_expiry();
        Some(number)
    }

    /// Appends to the open segment. `Ok(Some(verdict))` when it has been judged or given up meanwhile;
    /// then, as after the last append, it is no longer open.
    pub(crate) fn append(&mut self, bytes: u64, last: bool) -> Result<Option<Verdict>, SubmitError> {
        let (window, unit) = (self.window_units, u64::from(self.contract.unit_bytes));
        let Some(number) = self.writer else { return Err(SubmitError::Finished) };
        let Some(open) = self.get(number) else {
            self.writer = None;
            return Ok(Some(self.writer_verdict));
        };
        if open.skipped || open.judged() {
            let verdict = open.verdict.unwrap_or(Verdict::Expired);
            self.writer = None;
            return Ok(Some(verdict));
        }
        let before = open.bytes.div_ceil(unit);
        let after = open.bytes.saturating_add(bytes).div_ceil(unit).max(u64::from(last));
        if after > window {
            return Err(SubmitError::TooLong { units: after, window });
        }
        self.admit(after - before)?;
        self.buffered_units += after - before;
        if let Some(open) = self.get_mut(number) {
            open.bytes += bytes;
            open.buffered += after - before;
            if last {
                open.set_length();
            }
        }
        if last {
            self.writer = None;
            self.advance_current();
        }
        Ok(None)
    }

    /// What blocks the next first-time unit.
    #[inline]
    pub(crate) fn first_time(&self) -> FirstTime {
        let Some(segment) = self.get(self.current) else { return FirstTime::Nothing };
        if !self.granted || segment.skipped || segment.sent.next >= segment.ready() {
            FirstTime::Nothing
        } else if self.admits(segment) {
            FirstTime::Ready
        } else {
            FirstTime::Window
        }
    }

    /// Whether a first-time unit may leave now. `flow` says whether the window counts.
    #[inline]
    pub(crate) fn first_time_ready(&self, flow: bool) -> bool {
        match self.first_time() {
            FirstTime::Nothing => false,
            FirstTime::Ready => true,
            FirstTime::Window => !flow,
        }
    }

    fn admits(&self, segment: &SendSegment) -> bool {
        let begun = segment.layout.units.map_or_else(|| segment.layout.counted(segment.sent.next + 1), u64::from);
        self.window.admits(self.current.0, self.units_started, begun - u64::from(segment.counted))
    }

    /// Whether the next new unit could fit `room` bytes, its header aside.
    #[inline]
    pub(crate) fn next_fits(&self, room: usize) -> bool {
        self.get(self.current).is_some_and(|segment| room > segment.layout.payload_bytes(segment.sent.next, 1) as usize)
    }

    /// Whether `part`, which has just left, is a first-time part of a whole segment that has more to come and
    /// had begun before: then the flags of the stream are unchanged.
    pub(crate) fn is_within_whole(&self, part: &Part) -> bool {
        let within = |segment: &SendSegment| !segment.opened && segment.sent.next.0 < segment.units();
        !part.retransmission && part.first > Position::FIRST && part.segment == self.current && self.get(self.current).is_some_and(within)
    }

    /// Notes that `count` positions of the present segment leave for the first time in shipment `number`, and
    /// moves on when they were its last.
    #[inline]
    pub(crate) fn on_first_time(&mut self, now: Instant, count: u32, number: ShipmentNumber) {
        let current = self.current;
        let Some(segment) = self.get_mut(current) else { return };
        let begun = segment.count_begun(count);
        segment.on_sent(now, segment.sent.next, count, number);
        let over = segment.first_pass_over();
        self.units_started += u64::from(begun);
        self.counters.units_sent += u64::from(count);
        debug_assert!(self.current == current && self.granted, "a unit leaves before its stream has a window");
        if over {
            self.advance_current();
        }
    }

    /// Further positions the window admits of the open segment that is being sent: the rest of a block that is
    /// counted, and whole blocks.
    pub(crate) fn open_room(&self, segment: &SendSegment) -> u32 {
        let (room, block) = (self.window.units().saturating_sub(self.units_started), u64::from(segment.layout.order.block.max(1)));
        u32::try_from(u64::from(segment.counted - segment.sent.next.0) + room / block * block).unwrap_or(u32::MAX)
    }

    /// Advances to the next segment that still has first-time units.
    pub(crate) fn advance_current(&mut self) {
        while let Some(segment) = self.get_mut(self.current)
            && (segment.skipped || segment.judged() || segment.first_pass_over())
        {
            if !segment.judged() {
                // Invariant: both ends count a segment's units once; the receiver counts the whole length of
                // one that was given up. Counted here, in order, they cannot close the window for those before.
                let rest = segment.units() - segment.counted;
                segment.counted += rest;
                self.units_started += u64::from(rest);
            }
            self.current += 1;
        }
    }

    /// Queues the requested units of `segment` that are lost for retransmission.
    pub(crate) fn request(
        &mut self,
        segment: SegmentNumber,
        runs: impl IntoIterator<Item = Run<Position>>,
        (echo, reorder): (ShipmentNumber, u32),
        positions_left: &mut u32,
    ) {
        let Some(requested) = self.get_mut(segment) else { return };
        if requested.judged() {
            return;
        }
        let queued: u32 = runs.into_iter().map(|positions| requested.request(positions, echo, reorder, positions_left)).sum();
        if queued > 0 {
            self.retransmit_total += queued;
            self.retransmit.insert(segment);
        }
    }

    /// So many pending retransmissions of `segment` are cancelled: all that there were.
    fn on_requests_dropped(&mut self, segment: SegmentNumber, dropped: u32) {
        if dropped > 0 {
            self.retransmit_total -= dropped;
            self.retransmit.remove(&segment);
        }
    }

    /// The oldest segment with pending retransmissions.
    pub(crate) fn oldest_retransmission(&mut self) -> Option<SegmentNumber> {
        while let Some(&oldest) = self.retransmit.first() {
            if self.get(oldest).is_some_and(|segment| segment.retransmissions.count > 0) {
                return Some(oldest);
            }
            self.retransmit.pop_first();
        }
        None
    }

    /// When the next lifetime expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        if self.contract.lifetime.is_zero() {
            return None;
        }
        self.get(self.expire_from.max(self.base))?.deadline
    }

    /// Advances to the next segment whose lifetime can still expire.
    fn advance_expiry(&mut self) {
        self.expire_from = self.expire_from.max(self.base);
        while self.get(self.expire_from).is_some_and(|segment| segment.judged() || segment.skipped) {
            self.expire_from += 1;
        }
    }

    /// Abandons the segment whose lifetime expired first.
    pub(crate) fn expire_one(&mut self) {
        self.give_up(self.expire_from.max(self.base));
        self.advance_expiry();
    }

    /// The receiver has granted its first window: abandons segments that can never fit it. Returns whether there were
    /// any.
    pub(crate) fn fit_window(&mut self, units: u64) -> bool {
        self.granted = true;
        self.window_units = self.window_units.min(units.max(1));
        let window = self.window_units;
        let long = |segment: &SendSegment| segment.buffered > window && !segment.skipped && !segment.judged();
        let long: Vec<SegmentNumber> = self.base.up_to(self.next_segment()).filter(|&number| self.get(number).is_some_and(long)).collect();
        for &number in &long {
            self.give_up(number);
        }
        self.advance_expiry();
        !long.is_empty()
    }

    fn give_up(&mut self, number: SegmentNumber) {
        let Some(segment) = self.get_mut(number) else { return };
        let dropped = segment.skip();
        self.repair_total -= self.get_mut(number).map_or(0, SendSegment::drop_repairs);
        self.on_requests_dropped(number, dropped);
        self.advance_current();
    }

    /// Takes a verdict on a segment that had `units` at the receiver (`None`: all of them). Returns the
    /// source's time if it was new.
    pub(crate) fn settle(&mut self, number: SegmentNumber, verdict: Verdict, units: Option<u32>) -> Option<Instant> {
        let segment = self.get_mut(number).filter(|segment| !segment.judged())?;
        segment.verdict = Some(verdict);
        let source_time = segment.source_time;
        if segment.layout.length.is_none() {
            segment.set_length();
        }
        let (dropped, repairs) = (segment.retransmissions.cancel(), segment.drop_repairs());
        let (counted, buffered) = (u64::from(segment.counted), segment.buffered);
        let released = units.unwrap_or(segment.units());
        segment.counted = released;
        // Invariant: both ends count a segment alike, also one that was judged before all of it had left.
        self.units_started = (self.units_started + u64::from(released)).saturating_sub(counted);
        if self.writer == Some(number) {
            self.writer_verdict = verdict;
        }
        self.on_requests_dropped(number, dropped);
        self.repair_total -= repairs;
        // Why not the oldest: it leaves at once, and mostly there is no other.
        if number > self.base {
            self.settled.insert(number.0..number.0 + 1);
        }
        self.unjudged -= 1;
        self.buffered_units -= buffered;
        self.advance_current();
        while self.segments.front().is_some_and(SendSegment::judged) {
            let used = self.segments.pop_front();
            self.base += 1;
            if self.spare.len() < SPARE_SEGMENTS {
                self.spare.extend(used);
            }
        }
        if !self.settled.is_empty() {
            self.settled.remove(0..self.base.0);
        }
        self.current = self.current.max(self.base);
        self.advance_expiry();
        Some(source_time)
    }

    /// The segments of `range` without a verdict, as runs.
    pub(crate) fn unsettled(&self, range: Range<SegmentNumber>) -> SmallVec<[Range<SegmentNumber>; 2]> {
        if self.settled.is_empty() {
            return core::iter::once(range).filter(|range| !range.is_empty()).collect();
        }
        let gaps = self.settled.gaps(range.start.0..range.end.0);
        gaps.map(|gap| SegmentNumber(gap.start)..SegmentNumber(gap.end)).collect()
    }

    /// The first run of `told` without a verdict; an empty one at its end if there is none.
    pub(crate) fn first_unsettled(&self, told: Range<u64>) -> Range<SegmentNumber> {
        let start = told.start.max(self.base.0);
        let gap = self.settled.first_gap(start..told.end).unwrap_or(told.end..told.end);
        SegmentNumber(gap.start)..SegmentNumber(gap.end)
    }

    /// Whether a segment is open.
    pub(crate) const fn is_being_written(&self) -> bool {
        self.writer.is_some()
    }

    /// Units of segments without a verdict.
    pub(crate) const fn buffered_units(&self) -> u64 {
        self.buffered_units
    }

    /// Whether the receiver has not confirmed the stream, its end, or the SKIP of its oldest segment. Later SKIPs
    /// are repeated too, but do not shorten the period of states.
    pub(crate) fn has_unconfirmed(&self) -> bool {
        let ending = self.finished && !self.end_confirmed;
        !self.granted || ending || self.segments.front().is_some_and(|oldest| oldest.skipped)
    }

    /// Whether nothing is left to do: all segments are judged and the end is known to the receiver.
    pub(crate) fn is_over(&self) -> bool {
        self.refused.is_some() || (self.finished && self.end_confirmed && self.unjudged == 0)
    }
}
