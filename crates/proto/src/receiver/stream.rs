//! One incoming stream: the segments in its window, and the order in which they are handed over (FC 3).
//!
//! Owned by the receiving half. Invariant: the units reserved for segments never exceed the window, or,
//! after a sender has gone beyond what was granted, twice the window; with flow control on, no segment
//! beyond the granted edge is kept; a segment leaves the queue only when it is judged, taken by the
//! application, and its verdict confirmed by the sender.

mod invariants;
#[cfg(test)]
pub(in crate::receiver) mod judged_segment;
mod release;

use super::durability::Durability;
use super::segment::{ALL_DUE, About, RecvSegment};
use super::window_limits::charge;
use crate::layout::Layout;
use core::ops::Range;
use segstream_base::halves::Verdict;
use segstream_base::tolerance::Tolerance;
use segstream_base::{Duration, Instant, Position, ReportNumber, SegmentNumber, UnitIndex};
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::ranges::RangeSet;
use segstream_blocks::window::ReceiveWindow;
use segstream_blocks::work::{self, Loop};
use segstream_wire::Class;
use segstream_wire::contract::{Contract, Order};
use std::collections::VecDeque;

/// How many windows of segments are kept until their verdicts are confirmed, and at least how many segments.
const KEPT_WINDOWS: u64 = 4;
const KEPT_SEGMENTS_MIN: u64 = 4096;

/// The first position of the first segment.
const START: (SegmentNumber, Position) = (SegmentNumber::FIRST, Position::FIRST);
/// The first unit of the first segment.
const FIRST_UNIT: (SegmentNumber, UnitIndex) = (SegmentNumber::FIRST, UnitIndex::FIRST);

/// One incoming stream.
#[derive(Debug)]
pub(crate) struct RecvStream {
    pub(crate) contract: Contract,
    promise: Tolerance,
    pub(crate) window: ReceiveWindow,
    reported: Reported,
    // Why boxed and absent: a part far ahead must not make state for all segments before it, of which nothing has come.
    segments: VecDeque<Option<Box<RecvSegment>>>,
    #[expect(clippy::vec_box, reason = "a box goes back into the queue as it is")]
    spare: Vec<Box<RecvSegment>>,
    /// The number of the segment at the front of the queue.
    pub(crate) base: SegmentNumber,
    /// The first position no first-time part has reached yet: (segment, position).
    pub(crate) high: (SegmentNumber, Position),
    /// Where the last first-time part began that did not continue at `high`: from there to `high`
    /// nothing is missing but what is lost already.
    pub(crate) run_start: (SegmentNumber, Position),
    /// Everything before this is due: (segment, position).
    pub(crate) frontier: (SegmentNumber, Position),
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
    /// How many segments may be in the queue: those of the window, and those that were taken and whose verdicts are not confirmed.
    pub(super) kept_max: u64,
    /// The receive buffer, where the window advertises more.
    buffer_units: Option<u64>,
    /// Segments with a verdict that the sender has not confirmed, and those in the queue whose verdict it has.
    pub(crate) unconfirmed: u64,
    confirmed: RangeSet,
    /// Segments whose tolerance is violated and that are not judged.
    pub(crate) in_repair: u64,
    /// Runs of holes of segments that were taken and whose verdicts are not confirmed.
    kept_runs: u64,
    /// Units reserved for segments that were taken and hold the window.
    held: u64,
    /// The sender is blocked by the window.
    pub(crate) sender_waits: bool,
    pub(crate) ended_told: bool,
    /// How far it is confirmed; `None` where the application confirms nothing.
    pub(super) durability: Option<Durability>,
    /// The event that announces the stream is pending.
    pub(super) unannounced: bool,
    /// It has ended, and nothing about it is unknown to the sender.
    retired: bool,
    /// Where the next report shipment's requests and verdicts start: (segment, position) and (segment, unit).
    pub(crate) request_from: (SegmentNumber, Position),
    pub(crate) verdict_from: (SegmentNumber, UnitIndex),
}

/// How far a sender was, and how far it may go, when a report left: in segments and in units.
#[derive(Clone, Copy, Debug, Default)]
struct Reported {
    at: Instant,
    reached: (u64, u64),
    edges: (u64, u64),
}

/// The result of receiving a part.
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
    /// How many segments a stream with such a window keeps where there is room for them: four windows.
    pub(super) fn kept_wanted(window_segments: u64) -> u64 {
        (KEPT_WINDOWS * window_segments).max(KEPT_SEGMENTS_MIN)
    }

    /// What it is charged with, in bytes.
    pub(super) fn charge(&self) -> u64 {
        charge(&self.contract, self.kept_max)
    }

    /// The most payload that it keeps, in bytes.
    pub(super) fn window_bytes(&self) -> u64 {
        u64::from(self.contract.window_units) * u64::from(self.contract.unit_bytes)
    }

    /// A stream that keeps `kept_max` segments, with a receive buffer of `buffer_units`; of the window, if that is `None`.
    pub(crate) fn new(contract: Contract, kept_max: u64, buffer_units: Option<u64>) -> Self {
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
            kept_max,
            buffer_units,
            unconfirmed: 0,
            confirmed: RangeSet::new(),
            in_repair: 0,
            kept_runs: 0,
            held: 0,
            sender_waits: false,
            ended_told: false,
            durability: None,
            unannounced: false,
            retired: false,
            request_from: START,
            verdict_from: FIRST_UNIT,
        }
    }

    pub(crate) fn next_segment(&self) -> SegmentNumber {
        self.base + self.segments.len() as u64
    }

    /// A segment that has begun.
    #[inline]
    pub(crate) fn get(&self, segment: SegmentNumber) -> Option<&RecvSegment> {
        self.segments.get(segment.place_from(self.base)?)?.as_deref()
    }

    /// A segment that has begun.
    #[inline]
    pub(crate) fn get_mut(&mut self, segment: SegmentNumber) -> Option<&mut RecvSegment> {
        self.segments.get_mut(segment.place_from(self.base)?)?.as_deref_mut()
    }

    /// The edges to grant.
    pub(crate) fn edges(&self) -> (u64, u64) {
        let (segments, units) = match self.contract.order {
            Order::InOrder => self.window.edges(),
            Order::AsAccepted => self.window.edges_from(self.lowest_unreleased.0),
        };
        // Why: a sender that never confirms a verdict must not make us keep all of them.
        (segments.min(self.base.0 + self.kept_max), units)
    }

    /// How far the sender has come, as far as is known here: segments it has begun, and their units.
    fn reached(&self) -> (u64, u64) {
        (self.high.0.0 + u64::from(self.high.1 > Position::FIRST), self.window.released().1 + self.reserved)
    }

    /// A report that carries the present window edges begins.
    pub(crate) fn on_report(&mut self, now: Instant) {
        if self.window.freed_since_report() != (0, 0) {
            self.sender_waits = false;
        }
        self.window.mark_reported();
        self.reported = Reported { at: now, reached: self.reached(), edges: self.edges() };
        self.request_from = self.request_from.max((self.base, Position::FIRST));
        self.verdict_from = self.verdict_from.max((self.base, UnitIndex::FIRST));
    }

    /// Whether the present report has left out requests or verdicts.
    pub(crate) fn has_more_to_report(&self) -> bool {
        let end = self.next_segment();
        self.in_repair > 0 && self.request_from.0 < end || self.unconfirmed > 0 && self.verdict_from.0 < end
    }

    /// A report ends: the next one starts from the oldest segment, unless this one was cut short.
    pub(crate) fn on_report_end(&mut self) {
        let end = self.next_segment();
        if self.in_repair == 0 || self.request_from.0 >= end {
            self.request_from = START;
        }
        if self.unconfirmed == 0 || self.verdict_from.0 >= end {
            self.verdict_from = FIRST_UNIT;
        }
    }

    /// Whether a sender that continues at its rate since the last report reaches an advertised edge within `lead`.
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

    /// Makes sure that `segment` and all before it have a place in the queue.
    fn reach(&mut self, segment: SegmentNumber) {
        if let Some(more) = segment.next().place_from(self.next_segment()).filter(|more| *more > 0) {
            // As with words of a bitmap, a place is a word.
            work::note(Loop::Words, more);
            self.segments.resize_with(self.segments.len() + more, || None);
        }
    }

    /// The same, as far as `left` places go, which are taken from them. Whether they sufficed; if not, the next turn goes on there.
    fn reach_within(&mut self, segment: SegmentNumber, left: &mut u64) -> bool {
        let places = (segment + 1).since(self.next_segment());
        let more = places.min(*left);
        *left -= more;
        if let Some(last) = (self.next_segment() + more).previous().filter(|_| more > 0) {
            self.reach(last);
        }
        more == places
    }

    /// A segment in the queue; it begins if it has not.
    pub(crate) fn begin(&mut self, number: SegmentNumber) -> Option<&mut RecvSegment> {
        let place = self.segments.get_mut(number.place_from(self.base)?)?;
        if place.is_none() {
            work::note(Loop::Segments, 1);
            let layout = Layout::new(&self.contract, self.promise, true, None);
            let mut fresh = match self.spare.pop() {
                Some(mut used) => {
                    used.renew(layout, self.promise);
                    used
                }
                None => Box::new(RecvSegment::new(layout, self.promise)),
            };
            if number < self.frontier.0 {
                fresh.presence.due = ALL_DUE;
            } else if number == self.frontier.0 {
                fresh.presence.due = self.frontier.1;
            }
            *place = Some(fresh);
        }
        place.as_deref_mut()
    }

    /// Takes note of what a part or a statement says of a segment as a whole, and reserves room for
    /// its positions below `end`. This turn may still make `places_left` places in the queue.
    #[inline]
    pub(crate) fn admit(&mut self, number: SegmentNumber, about: &About, end: Position, class: Class, places_left: &mut u64) -> Admission {
        if self.get(number).is_some_and(|segment| segment.has_room_for(about.length, end) && !segment.is_closed()) {
            return Admission::Open;
        }
        self.admit_news(number, about, end, class, places_left)
    }

    /// The same, of what says something new.
    fn admit_news(&mut self, number: SegmentNumber, about: &About, end: Position, class: Class, places_left: &mut u64) -> Admission {
        if number < self.base {
            return Admission::Over;
        }
        if !self.may_reach(number, class) {
            return Admission::Refused;
        }
        if self.next_segment() <= number && !self.reach_within(number, places_left) {
            return Admission::Refused;
        }
        self.begin(number);
        // Why: if flow control was off a moment ago, newer segments may have taken the room of the one the
        // application waits for, and would block it for ever.
        let awaited = class.flow_control() && number == self.lowest_unreleased;
        let room = if awaited {
            // What it has already is a part of that.
            let own = self.get(number).map_or(0, |segment| u64::from(segment.room.reserved));
            self.window.size().1.saturating_sub(self.held + own)
        } else {
            self.free_units().saturating_sub(self.kept_for_awaited())
        };
        let contract = &self.contract;
        let Some(Some(segment)) = self.segments.get_mut((number - self.base) as usize) else { return Admission::Refused };
        if segment.is_closed() {
            return Admission::Over;
        }
        if segment.layout.length.is_some() && about.length.is_some() && segment.layout.length != about.length {
            return Admission::Refused;
        }
        let length = about.length.or(segment.layout.length);
        let units = length.map(|bytes| contract.units_of(bytes));
        let needed = units.unwrap_or_else(|| segment.layout.counted(end)).max(end.into()).max(segment.room.reserved.into());
        let wrong = units.is_some_and(|units| u64::from(end.max(segment.present_end())) > units);
        let missing_length = length.is_none() && !about.opened;
        if wrong || missing_length {
            return Admission::Refused;
        }
        if needed - u64::from(segment.room.reserved) > room {
            return Admission::NoRoom;
        }
        let fresh = needed - u64::from(segment.room.reserved);
        segment.room.reserved = needed as u32;
        if !segment.known || segment.layout.length.is_none() && length.is_some() {
            segment.know(contract, about, length);
        }
        self.reserved += fresh;
        Admission::Open
    }

    /// Whether `number` lies within what the stream can have.
    fn may_reach(&self, number: SegmentNumber, class: Class) -> bool {
        let span = self.kept_max.min(KEPT_WINDOWS * u64::from(self.contract.window_segments));
        let within = if class.flow_control() { number.0 < self.edges().0 } else { number < self.base + span };
        within && self.end.is_none_or(|end| number < end)
    }

    /// Takes note of a segment of which nothing is kept, and which so needs no room. False when something is
    /// known of it already, or it cannot exist.
    pub(crate) fn admit_empty(&mut self, number: SegmentNumber, about: &About, class: Class, places_left: &mut u64) -> bool {
        if number < self.base || !self.may_reach(number, class) || !self.reach_within(number, places_left) {
            return false;
        }
        self.begin(number);
        let contract = &self.contract;
        let Some(Some(segment)) = self.segments.get_mut((number - self.base) as usize) else { return false };
        if segment.is_closed() || segment.known {
            return false;
        }
        segment.learn(contract, about, about.length);
        true
    }

    /// Units of the buffer that are not reserved.
    pub(crate) fn free_units(&self) -> u64 {
        let buffer = self.buffer_units.unwrap_or(u64::MAX).min(self.window.size().1);
        buffer.saturating_sub(self.reserved)
    }

    /// The memory that its segments take, in bytes, without payload. Looks at every segment.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let places = (self.segments.capacity() * size_of::<Option<Box<RecvSegment>>>()) as u64;
        let segments = self.segments.iter().flatten().chain(&self.spare);
        let sets = self.ready.capacity() * size_of::<SegmentNumber>() + 4 * size_of::<u64>() * self.confirmed.range_count();
        places + sets as u64 + segments.map(|segment| size_of::<RecvSegment>() as u64 + segment.heap_bytes()).sum::<u64>()
    }

    /// Units of a buffer smaller than the window that only the oldest segment may take, as long as it has
    /// none: newer ones would keep it out otherwise. Its length is taken for that of the longest kept.
    fn kept_for_awaited(&self) -> u64 {
        let placed = self.get(self.lowest_unreleased).is_some_and(|segment| segment.room.reserved > 0);
        if self.buffer_units.is_none() || placed {
            return 0;
        }
        work::note(Loop::Segments, self.segments.len());
        self.segments.iter().flatten().map(|segment| u64::from(segment.room.reserved)).max().unwrap_or(0)
    }

    /// Moves the frontier, over `most` segments at most. Returns the segments whose due positions may have changed, how many units are newly
    /// declared lost, and whether it has come to where it should.
    pub(crate) fn advance_frontier(&mut self, to: (SegmentNumber, Position), most: u64) -> Option<(Range<SegmentNumber>, u32, bool)> {
        // Why: behind the last gap everything up to `high` has arrived, so the frontier may join it.
        let to = if to >= self.run_start { to.max(self.high) } else { to };
        if to <= self.frontier {
            return None;
        }
        let from = self.frontier.0.max(self.base);
        let (segment, position) = to.min((from.saturating_add(most), Position::FIRST));
        if (segment, position) <= self.frontier {
            return Some((from..from, 0, false));
        }
        self.frontier = (segment, position);
        if position > Position::FIRST {
            self.reach(segment);
        } else if let Some(last) = segment.previous() {
            self.reach(last);
        }
        let mut lost = 0;
        work::note(Loop::Segments, segment.since(from) as usize);
        for number in from.up_to(segment) {
            lost += self.begin(number).map_or(0, |passed| passed.advance_due(ALL_DUE));
        }
        if position > Position::FIRST
            && let Some(current) = self.begin(segment)
        {
            lost += current.advance_due(position);
        }
        Some((from..segment.next(), lost, (segment, position) == to))
    }

    /// Moves the frontier over a part of `number` that has just arrived at it, to `to`. Nothing becomes lost by
    /// that; returns whether the segment is due for a verdict all the same.
    #[inline]
    pub(crate) fn step_frontier(&mut self, number: SegmentNumber, to: (SegmentNumber, Position)) -> bool {
        self.frontier = to;
        let Some(segment) = self.get_mut(number) else { return false };
        segment.presence.due = if to.0 > number { ALL_DUE } else { to.1 };
        segment.needs_judging()
    }

    /// Notes a verdict. Returns whether the segment was in repair; `None` when it was judged.
    pub(crate) fn on_judged(
        &mut self,
        now: Instant,
        number: SegmentNumber,
        verdict: Verdict,
        next_report: ReportNumber,
        scratch: &mut Bitmap<UnitIndex>,
    ) -> Option<bool> {
        let segment = self.get_mut(number).filter(|segment| !segment.judged())?;
        let in_repair = segment.violated_at.is_some();
        segment.judge(now, verdict, next_report, scratch);
        self.in_repair -= u64::from(in_repair);
        self.unconfirmed += 1;
        while self.get(self.lowest_unjudged).is_some_and(RecvSegment::judged) {
            self.lowest_unjudged += 1;
        }
        if self.contract.order == Order::AsAccepted {
            self.ready.push_back(number);
        }
        Some(in_repair)
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

    /// The oldest segment that is not judged, if any has begun.
    pub(crate) fn oldest_open(&self) -> Option<SegmentNumber> {
        (self.lowest_unjudged < self.next_segment()).then_some(self.lowest_unjudged)
    }

    /// Evicts what has arrived of a segment; returns how many units that frees.
    pub(crate) fn evict(&mut self, number: SegmentNumber) -> u64 {
        let Some(segment) = self.get_mut(number) else { return 0 };
        let freed = u64::from(segment.room.reserved);
        segment.evict();
        self.reserved -= freed;
        freed
    }

    /// Without error control nothing is requested of a segment; returns whether it was in repair.
    pub(crate) fn clear_request(&mut self, number: SegmentNumber) -> bool {
        let was_in_repair = self.get_mut(number).is_some_and(|segment| !segment.judged() && segment.violated_at.take().is_some());
        self.in_repair -= u64::from(was_in_repair);
        was_in_repair
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

    /// Up to where the application has taken it: every segment below this one.
    pub(super) const fn taken(&self) -> SegmentNumber {
        self.lowest_unreleased
    }

    /// Whether it has ended and is not retired yet: every segment has left the queue, the application knows, and has confirmed all that it
    /// will.
    pub(super) fn has_ended(&self) -> bool {
        let ended = !self.retired && !self.unannounced && self.ended_told && self.end.is_some_and(|end| self.base >= end);
        ended && self.durability.as_ref().is_none_or(|durability| durability.is_over(self.end))
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

    /// Whether no statement about it is outstanding either.
    pub(crate) fn is_over(&self) -> bool {
        self.all_judged() && self.unconfirmed == 0
    }
}
