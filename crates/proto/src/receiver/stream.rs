//! One incoming stream: the segments in its window, and the order in which they are handed over (FC 3).
//!
//! Owned by the receiving half. Invariant: the units reserved for segments never exceed the window, or,
//! after a sender has gone beyond what was granted, twice the window; with flow control on, no segment
//! beyond the granted edge is kept; a segment leaves the queue only when it is judged, taken by the
//! application, and its verdict confirmed by the sender.

mod invariants;

use super::segment::{ALL_DUE, RecvSegment};
use crate::layout::Layout;
use core::ops::Range;
use segstream_base::halves::Verdict;
use segstream_base::tolerance::Tolerance;
use segstream_base::{Duration, Instant, ReportNumber, SegmentNumber};
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::window::ReceiveWindow;
use segstream_wire::Class;
use segstream_wire::contract::{Contract, Order};
use segstream_wire::state::Finished;
use std::collections::VecDeque;

/// How many used segments keep their buffers for the next ones.
const SPARE_SEGMENTS: usize = 64;
/// How many windows of segments are kept until their verdicts are confirmed, and at least how many segments.
const KEPT_WINDOWS: u64 = 4;
const KEPT_SEGMENTS_MIN: u64 = 4096;

/// The first position of the first segment.
const START: (SegmentNumber, u32) = (SegmentNumber::FIRST, 0);

/// One incoming stream.
#[derive(Debug)]
pub(crate) struct RecvStream {
    pub(crate) contract: Contract,
    promise: Tolerance,
    pub(crate) window: ReceiveWindow,
    reported: Reported,
    segments: VecDeque<RecvSegment>,
    spare: Vec<RecvSegment>,
    /// The number of the segment at the front of the queue.
    pub(crate) base: SegmentNumber,
    /// The first position no first-time part has reached yet: (segment, position).
    pub(crate) high: (SegmentNumber, u32),
    /// Where the last first-time part began that did not continue at `high`: from there to `high`
    /// nothing is missing but what is lost already.
    pub(crate) run_start: (SegmentNumber, u32),
    /// Everything before this is due: (segment, position).
    pub(crate) frontier: (SegmentNumber, u32),
    /// How many segments there will be, once known.
    pub(crate) end: Option<SegmentNumber>,
    /// The next segment to hand over, when they go in order.
    deliver_next: SegmentNumber,
    /// No segment below this one is unreleased.
    lowest_unreleased: SegmentNumber,
    /// No segment below this one is without a verdict.
    lowest_unjudged: SegmentNumber,
    /// Segments judged and ready to be handed over, as accepted.
    ready: VecDeque<SegmentNumber>,
    reserved: u64,
    /// What is kept at most, when the window advertises more.
    buffer_units: Option<u64>,
    /// Segments with a verdict that the sender has not confirmed.
    pub(crate) unconfirmed: u64,
    /// Segments whose tolerance is violated and that are not judged.
    pub(crate) wanting: u64,
    /// The sender has data the window does not admit.
    pub(crate) sender_waits: bool,
    pub(crate) ended_told: bool,
    /// The application has not been told that the stream is there.
    pub(super) unannounced: bool,
    /// It has ended, and nothing about it is unknown to the sender.
    retired: bool,
    /// Where the next report shipment's requests and verdicts start: (segment, position) and (segment, unit).
    pub(crate) request_from: (SegmentNumber, u32),
    pub(crate) verdict_from: (SegmentNumber, u32),
}

/// How far a sender was, and how far it may go, when a report left: in segments and in units.
#[derive(Clone, Copy, Debug, Default)]
struct Reported {
    at: Instant,
    reached: (u64, u64),
    edges: (u64, u64),
}

/// What became of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It belongs to a segment that still takes units.
    Open,
    /// The segment is judged or gone; the part comes too late.
    Over,
    /// The buffer has no room for it.
    NoRoom,
    /// It lies beyond the window, or contradicts what is known.
    Refused,
}

impl RecvStream {
    /// A stream of which `buffer_units` are kept at most; the window, if that is `None`.
    pub(crate) fn new(contract: Contract, buffer_units: Option<u64>) -> Self {
        Self {
            promise: contract.tolerance,
            window: ReceiveWindow::new(contract.window_segments, u64::from(contract.window_units)),
            contract,
            reported: Reported::default(),
            segments: VecDeque::new(),
            spare: Vec::new(),
            base: SegmentNumber::FIRST,
            high: START,
            run_start: START,
            frontier: START,
            end: None,
            deliver_next: SegmentNumber::FIRST,
            lowest_unreleased: SegmentNumber::FIRST,
            lowest_unjudged: SegmentNumber::FIRST,
            ready: VecDeque::new(),
            reserved: 0,
            buffer_units,
            unconfirmed: 0,
            wanting: 0,
            sender_waits: false,
            ended_told: false,
            unannounced: false,
            retired: false,
            request_from: START,
            verdict_from: START,
        }
    }

    pub(crate) fn next_segment(&self) -> SegmentNumber {
        self.base + self.segments.len() as u64
    }

    pub(crate) fn get(&self, segment: SegmentNumber) -> Option<&RecvSegment> {
        self.segments.get(segment.place_from(self.base)?)
    }

    pub(crate) fn get_mut(&mut self, segment: SegmentNumber) -> Option<&mut RecvSegment> {
        self.segments.get_mut(segment.place_from(self.base)?)
    }

    /// The edges to grant.
    pub(crate) fn edges(&self) -> (u64, u64) {
        let (segments, units) = match self.contract.order {
            Order::InOrder => self.window.edges(),
            Order::AsAccepted => self.window.edges_from(self.lowest_unreleased.0),
        };
        // Why: a sender that never confirms a verdict must not make us keep all of them.
        let kept = (KEPT_WINDOWS * u64::from(self.contract.window_segments)).max(KEPT_SEGMENTS_MIN);
        (segments.min(self.base.0 + kept), units)
    }

    /// How far the sender has come, as far as is known here: segments it has begun, and their units.
    fn reached(&self) -> (u64, u64) {
        (self.high.0.0 + u64::from(self.high.1 > 0), self.window.released().1 + self.reserved)
    }

    /// A report with the present edges begins.
    pub(crate) fn on_report(&mut self, now: Instant) {
        if self.window.freed_since_report() != (0, 0) {
            self.sender_waits = false;
        }
        self.window.mark_reported();
        self.reported = Reported { at: now, reached: self.reached(), edges: self.edges() };
        self.request_from = self.request_from.max((self.base, 0));
        self.verdict_from = self.verdict_from.max((self.base, 0));
    }

    /// Whether the present report has not told all that is wanted or judged.
    pub(crate) fn has_more_to_report(&self) -> bool {
        let end = self.next_segment();
        self.wanting > 0 && self.request_from.0 < end || self.unconfirmed > 0 && self.verdict_from.0 < end
    }

    /// A report ends: the next one starts from the oldest segment again, unless this one did not come to its end.
    pub(crate) fn on_report_end(&mut self) {
        let end = self.next_segment();
        if self.wanting == 0 || self.request_from.0 >= end {
            self.request_from = START;
        }
        if self.unconfirmed == 0 || self.verdict_from.0 >= end {
            self.verdict_from = START;
        }
    }

    /// Whether a sender that goes on as it did since the last report comes within `lead` to an edge that this told.
    pub(crate) fn is_near_edge(&self, now: Instant, lead: Duration) -> bool {
        let Reported { at, reached, edges } = self.reported;
        let elapsed = u128::from(now.since(at).as_nanos());
        let nears = |before: u64, here: u64, edge: u64| {
            let left = u128::from(edge.saturating_sub(here)) * elapsed;
            left <= u128::from(here.saturating_sub(before)) * u128::from(lead.as_nanos())
        };
        let here = self.reached();
        nears(reached.0, here.0, edges.0) || nears(reached.1, here.1, edges.1)
    }

    /// Makes sure that `segment` and all before it are in the queue.
    pub(crate) fn reach(&mut self, segment: SegmentNumber) {
        while self.next_segment() <= segment {
            let layout = Layout::new(&self.contract, self.promise, true, None);
            let number = self.next_segment();
            let mut fresh = match self.spare.pop() {
                Some(mut used) => {
                    used.renew(layout, self.promise);
                    used
                }
                None => RecvSegment::new(layout, self.promise),
            };
            if number < self.frontier.0 {
                fresh.due = ALL_DUE;
            } else if number == self.frontier.0 {
                fresh.due = self.frontier.1;
            }
            self.segments.push_back(fresh);
        }
    }

    /// Takes note of what a part or a statement says of a segment as a whole, and reserves room for
    /// `extent` positions of it.
    pub(crate) fn admit(&mut self, number: SegmentNumber, about: &About, extent: u32, class: Class) -> Admission {
        if number < self.base {
            return Admission::Over;
        }
        if !self.may_reach(number, class) {
            return Admission::Refused;
        }
        if self.next_segment() <= number {
            self.reach(number);
        }
        if self.get(number).is_some_and(|segment| !segment.judged() && segment.has_room_for(about.length, extent)) {
            return Admission::Open;
        }
        // Why: if flow control was off a moment ago, newer segments may have taken the room of the one the
        // application waits for, and would keep it out for ever.
        let awaited = class.flow_control() && number == self.lowest_unreleased;
        let room = if awaited { self.window.size().1 } else { self.free_units().saturating_sub(self.kept_for_awaited()) };
        let (contract, promise) = (&self.contract, self.promise);
        let Some(segment) = self.segments.get_mut((number - self.base) as usize) else { return Admission::Refused };
        if segment.judged() {
            return Admission::Over;
        }
        if segment.layout.length.is_some() && about.length.is_some() && segment.layout.length != about.length {
            return Admission::Refused;
        }
        let length = about.length.or(segment.layout.length);
        let units = length.map(|bytes| contract.units_of(bytes));
        let needed = units.unwrap_or_else(|| segment.layout.counted(extent)).max(u64::from(extent)).max(u64::from(segment.reserved));
        let wrong = units.is_some_and(|units| u64::from(extent.max(segment.present_end())) > units);
        let missing_length = length.is_none() && !about.opened;
        if wrong || missing_length {
            return Admission::Refused;
        }
        if needed - u64::from(segment.reserved) > room {
            return Admission::NoRoom;
        }
        let fresh = needed - u64::from(segment.reserved);
        segment.reserved = needed as u32;
        if !segment.known || segment.layout.length.is_none() && length.is_some() {
            segment.know(contract, promise, about, length);
        }
        self.reserved += fresh;
        Admission::Open
    }

    /// Whether `number` lies within what the stream can have.
    fn may_reach(&self, number: SegmentNumber, class: Class) -> bool {
        let span = KEPT_WINDOWS * u64::from(self.contract.window_segments);
        let within = if class.flow_control() { number.0 < self.edges().0 } else { number < self.base + span };
        within && self.end.is_none_or(|end| number < end)
    }

    /// Takes note of a segment of which nothing is kept, and which so needs no room. False when something is
    /// known of it already, or it cannot exist.
    pub(crate) fn admit_empty(&mut self, number: SegmentNumber, about: &About, class: Class) -> bool {
        if number < self.base || !self.may_reach(number, class) {
            return false;
        }
        self.reach(number);
        let (contract, promise) = (&self.contract, self.promise);
        let Some(segment) = self.segments.get_mut((number - self.base) as usize) else { return false };
        if segment.judged() || segment.known {
            return false;
        }
        segment.learn(contract, promise, about, about.length);
        true
    }

    /// Units of the buffer that are not reserved.
    pub(crate) fn free_units(&self) -> u64 {
        let buffer = self.buffer_units.unwrap_or(u64::MAX).min(self.window.size().1);
        buffer.saturating_sub(self.reserved)
    }

    /// Units that are reserved.
    pub(crate) const fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Units of a buffer smaller than the window that only the oldest segment may take, as long as it has
    /// none: newer ones would keep it out otherwise. Its length is taken for that of the longest kept.
    fn kept_for_awaited(&self) -> u64 {
        let placed = self.get(self.lowest_unreleased).is_some_and(|segment| segment.reserved > 0);
        if self.buffer_units.is_none() || placed {
            return 0;
        }
        self.segments.iter().map(|segment| u64::from(segment.reserved)).max().unwrap_or(0)
    }

    /// Moves the frontier. Returns the segments whose due positions may have changed, and how many units
    /// are newly held lost.
    pub(crate) fn advance_frontier(&mut self, to: (SegmentNumber, u32)) -> Option<(Range<SegmentNumber>, u32)> {
        // Why: behind the last gap everything up to `high` has arrived, so the frontier may join it.
        let (segment, position) = if to >= self.run_start { to.max(self.high) } else { to };
        if (segment, position) <= self.frontier {
            return None;
        }
        let from = self.frontier.0.max(self.base);
        self.frontier = (segment, position);
        if position > 0 {
            self.reach(segment);
        } else if let Some(last) = segment.previous() {
            self.reach(last);
        }
        let mut lost = 0;
        for number in from.up_to(segment) {
            lost += self.get_mut(number).map_or(0, |passed| passed.advance_due(ALL_DUE));
        }
        if position > 0
            && let Some(current) = self.get_mut(segment)
        {
            lost += current.advance_due(position);
        }
        Some((from..segment.next(), lost))
    }

    /// Moves the frontier over a part of `number` that has just arrived at it, to `to`. Nothing becomes lost by
    /// that; returns whether the segment is due for a verdict all the same.
    #[inline]
    pub(crate) fn step_frontier(&mut self, number: SegmentNumber, to: (SegmentNumber, u32)) -> bool {
        self.frontier = to;
        let Some(segment) = self.get_mut(number) else { return false };
        segment.due = if to.0 > number { ALL_DUE } else { to.1 };
        segment.needs_judging()
    }

    /// Notes a verdict. Returns whether anything of the segment was wanted; `None` when it was judged.
    pub(crate) fn on_judged(
        &mut self,
        now: Instant,
        number: SegmentNumber,
        verdict: Verdict,
        next_report: ReportNumber,
        scratch: &mut Bitmap,
    ) -> Option<bool> {
        let segment = self.get_mut(number).filter(|segment| !segment.judged())?;
        let wanted = segment.violated;
        segment.judge(now, verdict, next_report, scratch);
        self.wanting -= u64::from(wanted);
        self.unconfirmed += 1;
        while self.get(self.lowest_unjudged).is_some_and(RecvSegment::judged) {
            self.lowest_unjudged += 1;
        }
        if self.contract.order == Order::AsAccepted {
            self.ready.push_back(number);
        }
        Some(wanted)
    }

    /// The next segment to hand to the application.
    pub(crate) fn next_delivery(&mut self) -> Option<SegmentNumber> {
        match self.contract.order {
            Order::AsAccepted => self.ready.pop_front(),
            Order::InOrder => {
                let number = self.deliver_next;
                self.get(number).filter(|segment| segment.judged())?;
                self.deliver_next += 1;
                Some(number)
            }
        }
    }

    /// Whether a segment can be handed over.
    pub(crate) fn has_delivery(&self) -> bool {
        match self.contract.order {
            Order::AsAccepted => !self.ready.is_empty(),
            Order::InOrder => self.get(self.deliver_next).is_some_and(RecvSegment::judged),
        }
    }

    /// The application has taken the segment: its units are free for new ones.
    pub(crate) fn release(&mut self, number: SegmentNumber) {
        let Some(segment) = self.get_mut(number).filter(|segment| segment.judged() && !segment.released) else { return };
        segment.released = true;
        let (units, reserved) = (u64::from(segment.extent()), u64::from(segment.reserved));
        segment.reserved = 0;
        self.reserved -= reserved;
        self.window.release(units);
        while self.get(self.lowest_unreleased).is_some_and(|segment| segment.released) {
            self.lowest_unreleased += 1;
        }
        self.retire();
    }

    /// Notes that the sender has confirmed the verdicts of `from..to` carried by `report`.
    pub(crate) fn confirm(&mut self, from: SegmentNumber, to: SegmentNumber, report: ReportNumber) {
        for number in from.max(self.base).up_to(to) {
            let Some(segment) = self.get_mut(number) else { break };
            let whole = segment.holes_confirmed >= segment.extent() || segment.holes.is_empty();
            if segment.judged() && whole && !segment.confirmed && segment.first_report <= report {
                segment.confirmed = true;
                self.unconfirmed -= 1;
            }
        }
        self.retire();
    }

    fn retire(&mut self) {
        while self.segments.front().is_some_and(|segment| segment.released && segment.confirmed) {
            let used = self.segments.pop_front();
            self.base += 1;
            if self.spare.len() < SPARE_SEGMENTS {
                self.spare.extend(used);
            }
        }
        self.lowest_unreleased = self.lowest_unreleased.max(self.base);
        self.lowest_unjudged = self.lowest_unjudged.max(self.base);
        self.high = self.high.max((self.base, 0));
        self.frontier = self.frontier.max((self.base, 0));
    }

    /// The oldest segment that is not judged, if any has begun.
    pub(crate) fn oldest_open(&self) -> Option<SegmentNumber> {
        (self.lowest_unjudged < self.next_segment()).then_some(self.lowest_unjudged)
    }

    /// Forgets what has arrived of a segment; returns how many units that frees.
    pub(crate) fn forget(&mut self, number: SegmentNumber) -> u64 {
        let Some(segment) = self.get_mut(number) else { return 0 };
        let freed = u64::from(segment.reserved);
        segment.forget();
        self.reserved -= freed;
        freed
    }

    /// Without error control nothing is wanted; returns in how many segments something was.
    pub(crate) fn want_nothing(&mut self) -> u64 {
        for segment in self.segments.iter_mut().filter(|segment| !segment.judged()) {
            segment.violated = false;
        }
        core::mem::take(&mut self.wanting)
    }

    /// The end is known, and everything before it judged.
    pub(crate) fn all_judged(&self) -> bool {
        self.end.is_some_and(|end| self.lowest_unjudged >= end)
    }

    /// Whether everything has been judged and handed over, and the end is known.
    pub(crate) fn is_drained(&self) -> bool {
        self.end.is_some_and(|end| match self.contract.order {
            Order::InOrder => self.deliver_next >= end,
            Order::AsAccepted => self.ready.is_empty() && self.lowest_unjudged >= end,
        })
    }

    /// Whether it has ended and is not retired yet: every segment has left the queue, and the application knows.
    pub(super) fn has_ended(&self) -> bool {
        !self.retired && !self.unannounced && self.ended_told && self.end.is_some_and(|end| self.base >= end)
    }

    /// It is retired: its buffers are free.
    pub(super) fn on_retired(&mut self) {
        debug_assert!(self.is_over() && self.segments.is_empty() && self.reserved == 0);
        self.retired = true;
        self.segments = VecDeque::new();
        self.spare = Vec::new();
        self.ready = VecDeque::new();
    }

    pub(super) const fn is_retired(&self) -> bool {
        self.retired
    }

    /// Whether nothing is left to say about it either.
    pub(crate) fn is_over(&self) -> bool {
        self.all_judged() && self.unconfirmed == 0
    }
}

/// What a part or a statement says of its segment as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) opened: bool,
    pub(crate) length: Option<u64>,
    pub(crate) own: Option<Tolerance>,
    pub(crate) source_time: Instant,
}

impl About {
    /// What a statement of the sender says.
    pub(crate) const fn of(finished: &Finished) -> Self {
        Self { opened: finished.opened, length: Some(finished.length), own: finished.tolerance, source_time: finished.source_time }
    }
}

impl RecvSegment {
    /// The common case: nothing new is said of it as a whole, and its room is there.
    #[inline]
    pub(super) fn has_room_for(&self, length: Option<u64>, extent: u32) -> bool {
        self.known
            && length.is_some()
            && length == self.layout.length
            && self.layout.units == Some(self.reserved)
            && extent <= self.reserved
    }

    /// One more than the highest position present.
    fn present_end(&self) -> u32 {
        if self.layout.units.is_some() { 0 } else { self.present.len() }
    }

    /// Learns what the segment is.
    fn learn(&mut self, contract: &Contract, promise: Tolerance, about: &About, length: Option<u64>) {
        let promise = about.own.unwrap_or(promise);
        self.known = true;
        self.opened = about.opened;
        self.own = about.own;
        self.source_time = about.source_time;
        self.layout = Layout::new(contract, promise, about.opened, length);
        self.tolerance = promise.clipped_to(self.layout.units.unwrap_or(u32::MAX));
    }

    /// Learns what the segment is, with room for it; positions that become known below the frontier are lost
    /// at once.
    fn know(&mut self, contract: &Contract, promise: Tolerance, about: &About, length: Option<u64>) {
        self.learn(contract, promise, about, length);
        if let Some(units) = self.layout.units {
            // Why: `grow` compares with the extent before, which the new layout has already changed.
            let before = self.due.min(self.present.len());
            self.present.grow(units);
            let asked = self.violated && self.due == ALL_DUE;
            self.hold_lost(self.due.min(units).saturating_sub(before));
            // Why: a violated segment of unknown length was asked for to its end, whatever that would be.
            self.changed &= !asked;
            self.debug_assert_counts();
        }
    }
}
