//! One outgoing stream: its contract, its queue of segments and its window (FC 3).
//!
//! Owned by the sending half. Its parts decide:
//! - `segment_queue`: its segments by number, and which of them have a verdict;
//! - `window`: what the receiver has granted, and what of it is used;
//! - `send_buffer`: what the application has submitted and has no verdict on;
//! - `pending_units`: what is to leave again, or as repair units;
//! - `end`: how it ends;
//! - `invariants`: what debug builds check.
//!
//! Invariant: segments start in order, one is open at a time, and no unit beyond either edge of the window has ever left (while flow
//! control is on).

mod end;
mod invariants;
mod pending_units;
mod segment_queue;
mod send_buffer;
mod window;

use super::durability::Durable;
use super::segment::{SegmentTolerance, SendSegment};
use super::stream_counts::StreamFlags;
use super::{CodingTarget, StreamCounters};
use crate::layout::Layout;
use end::StreamEnd;
use pending_units::PendingUnits;
use segment_queue::SegmentQueue;
use segstream_base::halves::{SubmitError, Verdict};
use segstream_base::tolerance::Tolerance;
use segstream_base::{Instant, Position, Run, SegmentNumber, ShipmentNumber};
use segstream_wire::Part;
use segstream_wire::contract::{Contract, check_tolerance};
use send_buffer::SendBuffer;
use window::StreamWindow;

/// A source's time as it travels: in whole microseconds.
pub(crate) const fn whole_micros(source_time: Instant) -> Instant {
    Instant::from_nanos(source_time.as_nanos() / 1000 * 1000)
}

/// One outgoing stream.
#[derive(Debug)]
pub(crate) struct SendStream {
    pub(crate) contract: Contract,
    pub(crate) window: StreamWindow,
    pub(crate) end: StreamEnd,
    pub(crate) segments: SegmentQueue,
    pub(crate) buffer: SendBuffer,
    writer: Writer,
    /// The segment whose units are being sent for the first time.
    pub(crate) current: SegmentNumber,
    /// Units that are to be sent again.
    pub(crate) retransmissions: PendingUnits,
    /// Repair units that are to leave.
    pub(crate) repairs: PendingUnits,
    /// What the receiver's application has in safety.
    pub(super) durable: Durable,
    /// What is coded ahead.
    pub(super) coding_target: Option<CodingTarget>,
    pub(crate) counters: StreamCounters,
    /// The deficit of round robin: bytes it may still send before the next stream's turn.
    pub(crate) credit: u64,
    /// Where the next list of finished segments starts.
    pub(crate) listed_to: SegmentNumber,
    /// The flags under which the half counts it.
    pub(super) flags: StreamFlags,
}

/// Where the application appends.
#[derive(Debug)]
struct Writer {
    /// The open segment.
    segment: Option<SegmentNumber>,
    /// Its verdict, if that comes before its end.
    verdict: Verdict,
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
            window: StreamWindow::new(u64::from(contract.window_units)),
            contract,
            end: StreamEnd::default(),
            segments: SegmentQueue::default(),
            buffer: SendBuffer::default(),
            writer: Writer { segment: None, verdict: Verdict::Expired },
            current: SegmentNumber::FIRST,
            retransmissions: PendingUnits::default(),
            repairs: PendingUnits::default(),
            durable: Durable::default(),
            coding_target: None,
            counters: StreamCounters::default(),
            credit: 0,
            listed_to: SegmentNumber::FIRST,
            flags: StreamFlags::default(),
        }
    }

    /// Takes a whole segment (`bytes` given) or opens one.
    pub(crate) fn submit(
        &mut self,
        now: Instant,
        bytes: Option<u64>,
        source_time: Instant,
        own: Option<Tolerance>,
    ) -> Result<SegmentNumber, SubmitError> {
        if self.end.is_set() {
            return Err(SubmitError::Finished);
        }
        if self.writer.segment.is_some() {
            return Err(SubmitError::SegmentOpen);
        }
        if own.is_some_and(|own| check_tolerance(own).is_err()) {
            return Err(SubmitError::BadTolerance);
        }
        let units = bytes.map_or(1, |bytes| self.contract.units_of(bytes));
        let window = self.window.size;
        if units > window {
            return Err(SubmitError::TooLong { units, window });
        }
        self.buffer.admit(units, &self.contract, window)?;
        let promise = own.unwrap_or(self.contract.tolerance);
        let layout = Layout::new(&self.contract, promise, bytes.is_none(), bytes);
        let tolerance = SegmentTolerance::new(promise, own, &layout);
        let number = self.segments.next_number();
        let segment = self.segments.push(layout, tolerance);
        segment.opened = bytes.is_none();
        segment.bytes = bytes.unwrap_or(0);
        segment.buffered = if bytes.is_some() { units } else { 0 };
        segment.source_time = whole_micros(source_time);
        segment.deadline = (!self.contract.lifetime.is_zero()).then(|| now + self.contract.lifetime.into());
        self.buffer.units += segment.buffered;
        self.buffer.unjudged += 1;
        self.writer.segment = bytes.is_none().then_some(number);
        Ok(number)
    }

    /// Drops the oldest segment of which nothing has been sent, and frees its buffer at once. Its
    /// number; `None` without the policy drop-oldest, or where that would free nothing.
    ///
    /// Limit: a segment that was given up counts among those without a verdict until the receiver has confirmed it, so that what
    /// both ends keep of segments stays bounded.
    pub(crate) fn drop_oldest(&mut self) -> Option<SegmentNumber> {
        if !self.buffer.drops_oldest || self.buffer.is_full_of_segments(&self.contract) {
            return None;
        }
        let is_unsent = |segment: &SendSegment| segment.sent.next == Position::FIRST && !segment.skipped && !segment.judged();
        let mut numbers = self.current.max(self.segments.base).up_to(self.segments.next_number());
        let number = numbers.find(|&number| self.writer.segment != Some(number) && self.segments.get(number).is_some_and(is_unsent))?;
        self.give_up(number);
        let freed = self.segments.get_mut(number).map_or(0, |segment| core::mem::take(&mut segment.buffered));
        self.buffer.units -= freed;
        self.buffer.blocked = false;
        self.segments.advance_expiry();
        Some(number)
    }

    /// Appends to the open segment. `Ok(Some(verdict))` when it has been judged or given up meanwhile;
    /// then, as after the last append, it is no longer open.
    pub(crate) fn append(&mut self, bytes: u64, last: bool) -> Result<Option<Verdict>, SubmitError> {
        let (window, unit) = (self.window.size, u64::from(self.contract.unit_bytes));
        let Some(number) = self.writer.segment else { return Err(SubmitError::Finished) };
        let Some(open) = self.segments.get(number) else {
            self.writer.segment = None;
            return Ok(Some(self.writer.verdict));
        };
        if open.skipped || open.judged() {
            let verdict = open.verdict.unwrap_or(Verdict::Expired);
            self.writer.segment = None;
            return Ok(Some(verdict));
        }
        let before = open.bytes.div_ceil(unit);
        let after = open.bytes.saturating_add(bytes).div_ceil(unit).max(u64::from(last));
        if after > window {
            return Err(SubmitError::TooLong { units: after, window });
        }
        self.buffer.admit(after - before, &self.contract, window)?;
        self.buffer.units += after - before;
        if let Some(open) = self.segments.get_mut(number) {
            open.bytes += bytes;
            open.buffered += after - before;
            if last {
                open.set_length();
            }
        }
        if last {
            self.writer.segment = None;
            self.advance_current();
        }
        Ok(None)
    }

    /// What blocks the next first-time unit.
    #[inline]
    pub(crate) fn first_time(&self) -> FirstTime {
        let Some(segment) = self.segments.get(self.current) else { return FirstTime::Nothing };
        if !self.window.granted || segment.skipped || segment.sent.next >= segment.ready() {
            FirstTime::Nothing
        } else if self.window.admits(self.current, segment) {
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

    /// How many new units of the present segment may leave. `flow` says whether the window counts.
    pub(crate) fn new_units_ready(&self, flow: bool) -> u32 {
        if !self.first_time_ready(flow) {
            return 0;
        }
        self.segments.get(self.current).map_or(0, |segment| segment.ready().since(segment.sent.next))
    }

    /// Whether the next new unit could fit `room` bytes, its header aside.
    #[inline]
    pub(crate) fn next_fits(&self, room: usize) -> bool {
        self.segments.get(self.current).is_some_and(|segment| room > segment.layout.payload_bytes(segment.sent.next, 1) as usize)
    }

    /// Whether `part`, which has just left, is a first-time part of a whole segment that has more to come and
    /// had begun before: then the flags of the stream are unchanged.
    pub(crate) fn is_within_whole(&self, part: &Part) -> bool {
        let within = |segment: &SendSegment| !segment.opened && segment.sent.next.0 < segment.units();
        let is_current = !part.retransmission && part.first > Position::FIRST && part.segment == self.current;
        is_current && self.segments.get(self.current).is_some_and(within)
    }

    /// Notes that `count` positions of the present segment leave for the first time in shipment `number`, and
    /// moves on when they were its last.
    #[inline]
    pub(crate) fn on_first_time(&mut self, now: Instant, count: u32, number: ShipmentNumber) {
        let current = self.current;
        let Some(segment) = self.segments.get_mut(current) else { return };
        let begun = segment.count_begun(count);
        segment.on_sent(now, segment.sent.next, count, number);
        let over = segment.first_pass_over();
        self.window.units_started += u64::from(begun);
        self.counters.units_sent += u64::from(count);
        debug_assert!(self.current == current && self.window.granted, "a unit leaves before its stream has a window");
        if over {
            self.advance_current();
        }
    }

    /// Advances to the next segment that still has first-time units.
    pub(crate) fn advance_current(&mut self) {
        while let Some(segment) = self.segments.get_mut(self.current)
            && (segment.skipped || segment.judged() || segment.first_pass_over())
        {
            if !segment.judged() {
                // Invariant: both ends count a segment's units once; the receiver counts the whole length of
                // one that was given up. Counted here, in order, they cannot close the window for those before.
                let rest = segment.units() - segment.counted;
                segment.counted += rest;
                self.window.units_started += u64::from(rest);
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
        let Some(requested) = self.segments.get_mut(segment) else { return };
        if requested.judged() {
            return;
        }
        let queued: u32 = runs.into_iter().map(|positions| requested.request(positions, echo, reorder, positions_left)).sum();
        self.retransmissions.add(segment, queued);
    }

    /// The oldest segment with pending retransmissions.
    pub(crate) fn oldest_retransmission(&mut self) -> Option<SegmentNumber> {
        let has_pending = |number| self.segments.get(number).is_some_and(|segment| segment.retransmissions.count > 0);
        self.retransmissions.oldest(has_pending)
    }

    /// When the next lifetime expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        if self.contract.lifetime.is_zero() {
            return None;
        }
        self.segments.get(self.segments.next_expiring())?.deadline
    }

    /// Abandons the segment whose lifetime expired first.
    pub(crate) fn expire_one(&mut self) {
        self.give_up(self.segments.next_expiring());
        self.segments.advance_expiry();
    }

    /// The receiver has granted its first window: abandons segments that can never fit it. Returns whether there were
    /// any.
    pub(crate) fn fit_window(&mut self, units: u64) -> bool {
        self.window.on_first_grant(units);
        let window = self.window.size;
        let long = |segment: &SendSegment| segment.buffered > window && !segment.skipped && !segment.judged();
        let all = self.segments.base.up_to(self.segments.next_number());
        let long: Vec<SegmentNumber> = all.filter(|&number| self.segments.get(number).is_some_and(long)).collect();
        for &number in &long {
            self.give_up(number);
        }
        self.segments.advance_expiry();
        !long.is_empty()
    }

    fn give_up(&mut self, number: SegmentNumber) {
        let Some(segment) = self.segments.get_mut(number) else { return };
        let (dropped, repairs) = (segment.skip(), segment.drop_repairs());
        self.repairs.cancel(number, repairs);
        self.retransmissions.cancel(number, dropped);
        self.advance_current();
    }

    /// Takes a verdict on a segment that had `units` at the receiver (`None`: all of them). Returns the
    /// source's time if it was new.
    pub(crate) fn settle(&mut self, number: SegmentNumber, verdict: Verdict, units: Option<u32>) -> Option<Instant> {
        let segment = self.segments.get_mut(number).filter(|segment| !segment.judged())?;
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
        self.window.units_started = (self.window.units_started + u64::from(released)).saturating_sub(counted);
        if self.writer.segment == Some(number) {
            self.writer.verdict = verdict;
        }
        self.retransmissions.cancel(number, dropped);
        self.repairs.cancel(number, repairs);
        self.segments.on_settled(number);
        self.buffer.unjudged -= 1;
        self.buffer.units -= buffered;
        self.advance_current();
        self.segments.release_judged();
        self.current = self.current.max(self.segments.base);
        self.segments.advance_expiry();
        Some(source_time)
    }

    /// Whether a segment is open.
    pub(crate) const fn is_being_written(&self) -> bool {
        self.writer.segment.is_some()
    }

    /// Whether the receiver has not confirmed the stream, its end, or the SKIP of its oldest segment. Later SKIPs
    /// are repeated too, but do not shorten the period of states.
    pub(crate) fn has_unconfirmed(&self) -> bool {
        let skipped = |oldest: &SendSegment| oldest.skipped;
        !self.window.granted || self.end.is_unconfirmed() || self.segments.queue.front().is_some_and(skipped)
    }

    /// Whether nothing is left to do: all segments are judged and the end is known to the receiver.
    pub(crate) fn is_over(&self) -> bool {
        self.end.refused.is_some() || (self.end.finished && self.end.confirmed && self.buffer.unjudged == 0)
    }
}
