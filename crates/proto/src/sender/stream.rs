//! One outgoing stream: its contract, its queue of segments and its window (FC 3).
//!
//! Owned by the sending half. Invariant: segments start in order, one is open at a time, and no unit
//! beyond either edge of the window has ever left (while flow control is on).

mod invariants;

use super::StreamCounters;
use super::segment::SendSegment;
use super::tally::Standing;
use crate::layout::Layout;
use segstream_base::halves::{SubmitError, Verdict};
use segstream_base::tolerance::Tolerance;
use segstream_base::{Instant, SegmentNumber, ShipmentNumber};
use segstream_blocks::window::SendWindow;
use segstream_wire::Part;
use segstream_wire::contract::{Contract, check_tolerance};
use segstream_wire::report::RefuseReason;
use std::collections::VecDeque;

/// How many used segments keep their buffers for the next ones.
const SPARE_SEGMENTS: usize = 64;

/// One outgoing stream.
#[derive(Debug)]
pub(crate) struct SendStream {
    pub(crate) contract: Contract,
    promise: Tolerance,
    pub(crate) window: SendWindow,
    /// Whether the receiver has granted a window, which also confirms the stream.
    pub(crate) granted: bool,
    pub(crate) refused: Option<RefuseReason>,
    /// Units the receiver's buffer holds, as its first grant says.
    pub(crate) window_units: u64,
    segments: VecDeque<SendSegment>,
    spare: Vec<SendSegment>,
    /// The segment the application is still appending to, and its verdict should that come first.
    writer: Option<SegmentNumber>,
    writer_verdict: Verdict,
    /// The number of the segment at the front of the queue.
    pub(crate) base: SegmentNumber,
    /// The segment whose first pass is going on.
    pub(crate) current: SegmentNumber,
    /// Units started in all, as the receiver's unit edge counts them.
    pub(crate) units_started: u64,
    pub(crate) finished: bool,
    pub(crate) end_confirmed: bool,
    /// Units of segments without a verdict.
    buffered_units: u64,
    pub(crate) unsettled: u64,
    pub(crate) again_total: u32,
    pub(crate) counters: StreamCounters,
    /// No segment below this one has anything wanted again.
    again_from: SegmentNumber,
    /// The next segment whose lifetime has not run out.
    expire_from: SegmentNumber,
    /// A submission was refused; tell when the next may succeed.
    pub(crate) blocked: bool,
    /// When the send buffer is full, the oldest unsent segment is given up for a new one.
    pub(crate) drops_oldest: bool,
    /// Bytes it may still send before the next stream's turn.
    pub(crate) credit: u64,
    /// Where the next list of finished segments starts.
    pub(crate) listed_to: SegmentNumber,
    /// What the half's tally counts it as.
    pub(super) standing: Standing,
}

/// What the next first-time unit of a stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstTime {
    /// There is none, or the receiver has not granted a window yet.
    Nothing,
    /// Only for its turn.
    Ready,
    /// For the window.
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
            writer: None,
            writer_verdict: Verdict::Expired,
            base: SegmentNumber::FIRST,
            current: SegmentNumber::FIRST,
            units_started: 0,
            finished: false,
            end_confirmed: false,
            buffered_units: 0,
            unsettled: 0,
            again_total: 0,
            counters: StreamCounters::default(),
            again_from: SegmentNumber::FIRST,
            expire_from: SegmentNumber::FIRST,
            blocked: false,
            drops_oldest: false,
            credit: 0,
            listed_to: SegmentNumber::FIRST,
            standing: Standing::default(),
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
        let mut segment = match self.spare.pop() {
            Some(mut used) => {
                used.renew(layout, promise);
                used
            }
            None => SendSegment::new(layout, promise),
        };
        segment.tolerance = promise.clipped_to(layout.units.unwrap_or(u32::MAX));
        segment.set_per_shipment();
        segment.own = own;
        segment.opened = bytes.is_none();
        segment.bytes = bytes.unwrap_or(0);
        segment.buffered = if bytes.is_some() { units } else { 0 };
        // Source times travel in whole microseconds.
        segment.source_time = Instant::from_nanos(source_time.as_nanos() / 1000 * 1000);
        segment.deadline = (!self.contract.lifetime.is_zero()).then(|| now + self.contract.lifetime);
        self.buffered_units += segment.buffered;
        let number = self.next_segment();
        self.segments.push_back(segment);
        self.unsettled += 1;
        self.writer = bytes.is_none().then_some(number);
        Ok(number)
    }

    /// At most two windows are kept: one on its way, one waiting.
    fn admit(&mut self, units: u64) -> Result<(), SubmitError> {
        let too_many = self.unsettled >= 2 * u64::from(self.contract.window_segments);
        if too_many || self.buffered_units + units > 2 * self.window_units {
            self.blocked = true;
            return Err(SubmitError::Blocked);
        }
        Ok(())
    }

    /// Gives up the oldest segment of which nothing has left, and frees its room at once: nothing of it is needed any more. Its
    /// number; `None` where the policy is another one, or where that would make no room.
    ///
    /// Limit: a segment that was given up counts among those without a verdict until the receiver has confirmed it, so that what
    /// both ends keep of segments stays bounded.
    pub(crate) fn drop_oldest(&mut self) -> Option<SegmentNumber> {
        if !self.drops_oldest || self.unsettled >= 2 * u64::from(self.contract.window_segments) {
            return None;
        }
        let is_unsent = |segment: &SendSegment| segment.next == 0 && !segment.skipped && !segment.settled();
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
        if open.skipped || open.settled() {
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

    /// What the next first-time unit waits for.
    #[inline]
    pub(crate) fn first_time(&self) -> FirstTime {
        let Some(segment) = self.get(self.current) else { return FirstTime::Nothing };
        if !self.granted || segment.skipped || segment.next >= segment.ready() {
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
        let begun = segment.layout.units.map_or_else(|| segment.layout.counted(segment.next + 1), u64::from);
        self.window.admits(self.current.0, self.units_started, begun - u64::from(segment.counted))
    }

    /// Whether the next new unit could fit `room` bytes, its header aside.
    #[inline]
    pub(crate) fn next_fits(&self, room: usize) -> bool {
        self.get(self.current).is_some_and(|segment| room > segment.layout.payload_bytes(segment.next, 1) as usize)
    }

    /// Whether `part`, which has just left, is a first-time part of a whole segment that has more to come and
    /// had begun before: then the stream stands as it stood.
    pub(crate) fn is_within_whole(&self, part: &Part) -> bool {
        let within = |segment: &SendSegment| !segment.opened && segment.next < segment.units();
        !part.again && part.first > 0 && part.segment == self.current && self.get(self.current).is_some_and(within)
    }

    /// Notes that `count` positions of the present segment leave for the first time in shipment `number`, and
    /// moves on when they were its last.
    #[inline]
    pub(crate) fn on_first_time(&mut self, now: Instant, count: u32, number: ShipmentNumber) {
        let current = self.current;
        let Some(segment) = self.get_mut(current) else { return };
        let begun = segment.count_begun(count);
        segment.on_sent(now, segment.next, count, number);
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
        u32::try_from(u64::from(segment.counted - segment.next) + room / block * block).unwrap_or(u32::MAX)
    }

    /// Moves on to the next segment that still has first-time units.
    pub(crate) fn advance_current(&mut self) {
        while let Some(segment) = self.get_mut(self.current)
            && (segment.skipped || segment.settled() || segment.first_pass_over())
        {
            if !segment.settled() {
                // Invariant: both ends count a segment's units once; the receiver counts the whole length of
                // one that was given up. Counted here, in order, they cannot close the window for those before.
                let rest = segment.units() - segment.counted;
                segment.counted += rest;
                self.units_started += u64::from(rest);
            }
            self.current += 1;
        }
    }

    /// Queues again what is wanted of `segment` and lost.
    pub(crate) fn request(&mut self, segment: SegmentNumber, start: u32, end: u32, echo: ShipmentNumber, reorder: u32) {
        let Some(wanted) = self.get_mut(segment) else { return };
        if wanted.settled() {
            return;
        }
        let queued = wanted.request(start, end, echo, reorder);
        if queued > 0 {
            self.again_total += queued;
            self.again_from = self.again_from.min(segment);
        }
    }

    /// The oldest segment with something wanted again.
    pub(crate) fn oldest_again(&mut self) -> Option<SegmentNumber> {
        if self.again_total == 0 {
            return None;
        }
        self.again_from = self.again_from.max(self.base);
        while self.get(self.again_from).is_some_and(|segment| segment.again_count == 0) {
            self.again_from += 1;
        }
        self.get(self.again_from).map(|_| self.again_from)
    }

    /// When the next lifetime runs out.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        if self.contract.lifetime.is_zero() {
            return None;
        }
        self.get(self.expire_from.max(self.base))?.deadline
    }

    /// Moves on to the next segment that can still run out.
    fn advance_expiry(&mut self) {
        self.expire_from = self.expire_from.max(self.base);
        while self.get(self.expire_from).is_some_and(|segment| segment.settled() || segment.skipped) {
            self.expire_from += 1;
        }
    }

    /// Gives up the segment whose lifetime ran out first.
    pub(crate) fn expire_one(&mut self) {
        self.give_up(self.expire_from.max(self.base));
        self.advance_expiry();
    }

    /// The receiver has granted its first window: what can never fit it is given up. Returns whether anything
    /// was.
    pub(crate) fn fit_window(&mut self, units: u64) -> bool {
        self.granted = true;
        self.window_units = self.window_units.min(units.max(1));
        let window = self.window_units;
        let long = |segment: &SendSegment| segment.buffered > window && !segment.skipped && !segment.settled();
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
        self.again_total -= dropped;
        self.advance_current();
    }

    /// Takes a verdict on a segment that had `units` at the receiver (`None`: all of them). Returns whether
    /// it was new.
    pub(crate) fn settle(&mut self, number: SegmentNumber, verdict: Verdict, units: Option<u32>) -> bool {
        let Some(segment) = self.get_mut(number).filter(|segment| !segment.settled()) else { return false };
        segment.verdict = Some(verdict);
        if segment.layout.length.is_none() {
            segment.set_length();
        }
        let dropped = segment.drop_requests();
        let (counted, buffered) = (u64::from(segment.counted), segment.buffered);
        let released = units.unwrap_or(segment.units());
        segment.counted = released;
        // Invariant: both ends count a segment alike, also one that was judged before all of it had left.
        self.units_started = (self.units_started + u64::from(released)).saturating_sub(counted);
        if self.writer == Some(number) {
            self.writer_verdict = verdict;
        }
        self.again_total -= dropped;
        self.unsettled -= 1;
        self.buffered_units -= buffered;
        self.advance_current();
        while self.segments.front().is_some_and(SendSegment::settled) {
            let used = self.segments.pop_front();
            self.base += 1;
            if self.spare.len() < SPARE_SEGMENTS {
                self.spare.extend(used);
            }
        }
        self.current = self.current.max(self.base);
        self.advance_expiry();
        true
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
    /// are repeated too, but do not set the pace.
    pub(crate) fn has_unconfirmed(&self) -> bool {
        let ending = self.finished && !self.end_confirmed;
        !self.granted || ending || self.segments.front().is_some_and(|oldest| oldest.skipped)
    }

    /// Whether nothing is left to do: all segments are judged and the end is known to the receiver.
    pub(crate) fn is_over(&self) -> bool {
        self.refused.is_some() || (self.finished && self.end_confirmed && self.unsettled == 0)
    }
}
