//! One incoming stream: the segments in its window, and the order in which they are handed over (FC 3).
//!
//! - `segment_queue`: the segments, and those that have left and are used again;
//! - `room`: the window, and what of it is reserved;
//! - `progress`: how far first transmissions have come, and up to where units are due;
//! - `delivery_order`: which segment is handed over next;
//! - `release`: how segments leave; `ending`: how the stream ends;
//! - `reported`: what reports have told, and where the next one goes on;
//! - `invariants`: what debug builds check.
//!
//! Owned by the receiving half. Invariant: the units reserved for segments never exceed the window, or,
//! after a sender has gone beyond what was granted, twice the window; with flow control on, no segment
//! beyond the granted edge is kept; a segment leaves the queue only when it is judged, taken by the
//! application, and its verdict confirmed by the sender.

mod delivery_order;
mod ending;
mod invariants;
#[cfg(test)]
pub(in crate::receiver) mod judged_segment;
mod progress;
mod release;
mod reported;
mod room;
mod segment_queue;

use super::durability::Durability;
use super::segment::{ALL_DUE, About, RecvSegment};
use super::window_limits::charge;
use crate::layout::Layout;
use core::ops::Range;
use delivery_order::DeliveryOrder;
use ending::StreamEnd;
use progress::Progress;
use release::StreamVerdicts;
use reported::{ReportCursor, Reported};
use room::StreamRoom;
use segment_queue::SegmentQueue;
use segstream_base::halves::Verdict;
use segstream_base::{Instant, Position, ReportNumber, SegmentNumber, UnitIndex};
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::window::ReceiveWindow;
use segstream_blocks::work::{self, Loop};
use segstream_wire::Class;
use segstream_wire::contract::{Contract, Order};

/// How many windows of segments are kept until their verdicts are confirmed, and at least how many segments.
const KEPT_WINDOWS: u64 = 4;
const KEPT_SEGMENTS_MIN: u64 = 4096;

/// One incoming stream.
#[derive(Debug)]
pub(crate) struct RecvStream {
    pub(crate) contract: Contract,
    pub(crate) segments: SegmentQueue,
    pub(crate) room: StreamRoom,
    pub(crate) progress: Progress,
    delivery: DeliveryOrder,
    pub(crate) verdicts: StreamVerdicts,
    /// Segments whose tolerance is violated and that are not judged.
    pub(crate) in_repair: u64,
    reported: Reported,
    pub(crate) cursor: ReportCursor,
    /// The sender is blocked by the window.
    pub(crate) sender_waits: bool,
    pub(crate) end: StreamEnd,
    /// How far it is confirmed; `None` where the application confirms nothing.
    pub(super) durability: Option<Durability>,
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
        charge(&self.contract, self.segments.kept_max)
    }

    /// The most payload that it keeps, in bytes.
    pub(super) fn window_bytes(&self) -> u64 {
        u64::from(self.contract.window_units) * u64::from(self.contract.unit_bytes)
    }

    /// A stream that keeps `kept_max` segments, with a receive buffer of `buffer_units`; of the window, if that is `None`.
    pub(crate) fn new(contract: Contract, kept_max: u64, buffer_units: Option<u64>) -> Self {
        let window = ReceiveWindow::new(contract.window_segments, u64::from(contract.window_units));
        Self {
            segments: SegmentQueue::new(kept_max),
            room: StreamRoom::new(window, buffer_units),
            progress: Progress::new(),
            delivery: DeliveryOrder::new(contract.order),
            contract,
            verdicts: StreamVerdicts::default(),
            in_repair: 0,
            reported: Reported::default(),
            cursor: ReportCursor::new(),
            sender_waits: false,
            end: StreamEnd::default(),
            durability: None,
        }
    }

    /// The edges to grant.
    pub(crate) fn edges(&self) -> (u64, u64) {
        let (segments, units) = match self.contract.order {
            Order::InOrder => self.room.window.edges(),
            Order::AsAccepted => self.room.window.edges_from(self.delivery.lowest_unreleased.0),
        };
        // Why: a sender that never confirms a verdict must not make us keep all of them.
        (segments.min(self.segments.base.0 + self.segments.kept_max), units)
    }

    /// A segment in the queue; it begins if it has not.
    pub(crate) fn begin(&mut self, number: SegmentNumber) -> Option<&mut RecvSegment> {
        let (contract, promise) = (&self.contract, self.contract.tolerance);
        let due = self.progress.due_of(number);
        self.segments.begin(number, promise, || Layout::new(contract, promise, true, None), due)
    }

    /// Takes note of what a part or a statement says of a segment as a whole, and reserves room for
    /// its positions below `end`. This turn may still make `places_left` places in the queue.
    #[inline]
    pub(crate) fn admit(&mut self, number: SegmentNumber, about: &About, end: Position, class: Class, places_left: &mut u64) -> Admission {
        if self.segments.get(number).is_some_and(|segment| segment.has_room_for(about.length, end)) {
            return Admission::Open;
        }
        self.admit_news(number, about, end, class, places_left)
    }

    /// The same, of what says something new.
    fn admit_news(&mut self, number: SegmentNumber, about: &About, end: Position, class: Class, places_left: &mut u64) -> Admission {
        if number < self.segments.base {
            return Admission::Over;
        }
        if !self.may_reach(number, class) {
            return Admission::Refused;
        }
        if self.segments.next_number() <= number && !self.segments.reach_within(number, places_left) {
            return Admission::Refused;
        }
        self.begin(number);
        // Why: if flow control was off a moment ago, newer segments may have taken the room of the one the
        // application waits for, and would block it for ever.
        let awaited = class.flow_control() && number == self.delivery.lowest_unreleased;
        let room = if awaited {
            // What it has already is a part of that.
            self.room.for_awaited(self.segments.get(number).map_or(0, |segment| u64::from(segment.room.reserved)))
        } else {
            self.room.free_units().saturating_sub(self.kept_for_awaited())
        };
        let contract = &self.contract;
        let Some(segment) = self.segments.get_mut(number) else { return Admission::Refused };
        if segment.is_closed() {
            return Admission::Over;
        }
        if segment.layout.length.is_some() && about.length.is_some() && segment.layout.length != about.length {
            return Admission::Refused;
        }
        let length = about.length.or(segment.layout.length);
        let units = length.map(|bytes| contract.units_of(bytes));
        let reserved = u64::from(segment.room.reserved);
        let needed = units.unwrap_or_else(|| segment.layout.counted(end)).max(end.into()).max(reserved);
        let wrong = units.is_some_and(|units| u64::from(end.max(segment.present_end())) > units);
        let missing_length = length.is_none() && !about.opened;
        if wrong || missing_length {
            return Admission::Refused;
        }
        let fresh = needed - reserved;
        if fresh > room {
            return Admission::NoRoom;
        }
        segment.room.reserved = needed as u32;
        if !segment.known || segment.layout.length.is_none() && length.is_some() {
            segment.know(contract, about, length);
        }
        self.room.reserved += fresh;
        Admission::Open
    }

    /// Whether `number` lies within what the stream can have.
    fn may_reach(&self, number: SegmentNumber, class: Class) -> bool {
        let span = self.segments.kept_max.min(KEPT_WINDOWS * u64::from(self.contract.window_segments));
        let within = if class.flow_control() { number.0 < self.edges().0 } else { number < self.segments.base + span };
        within && self.end.at.is_none_or(|end| number < end)
    }

    /// Takes note of a segment of which nothing is kept, and which so needs no room. False when something is
    /// known of it already, or it cannot exist.
    pub(crate) fn admit_empty(&mut self, number: SegmentNumber, about: &About, class: Class, places_left: &mut u64) -> bool {
        if number < self.segments.base || !self.may_reach(number, class) || !self.segments.reach_within(number, places_left) {
            return false;
        }
        self.begin(number);
        let contract = &self.contract;
        let Some(segment) = self.segments.get_mut(number).filter(|segment| !segment.is_closed() && !segment.known) else { return false };
        segment.learn(contract, about, about.length);
        true
    }

    /// The memory that its segments take, in bytes, without payload. Looks at every segment.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.segments.kept_bytes() + self.delivery.kept_bytes() + self.verdicts.kept_bytes()
    }

    /// Units of a buffer smaller than the window that only the oldest segment may take, as long as it has
    /// none: newer ones would keep it out otherwise. Its length is taken for that of the longest kept.
    fn kept_for_awaited(&self) -> u64 {
        let placed = self.segments.get(self.delivery.lowest_unreleased).is_some_and(|segment| segment.room.reserved > 0);
        if self.room.buffer_units.is_none() || placed {
            return 0;
        }
        work::note(Loop::Segments, self.segments.len());
        self.segments.iter().map(|segment| u64::from(segment.room.reserved)).max().unwrap_or(0)
    }

    /// Moves the frontier, over `most` segments at most. Returns the segments whose due positions may have changed, how many units are newly
    /// declared lost, and whether it has come to where it should.
    pub(crate) fn advance_frontier(&mut self, to: (SegmentNumber, Position), most: u64) -> Option<(Range<SegmentNumber>, u32, bool)> {
        let to = self.progress.frontier_from(to);
        if to <= self.progress.frontier {
            return None;
        }
        let from = self.progress.frontier.0.max(self.segments.base);
        let (segment, position) = to.min((from.saturating_add(most), Position::FIRST));
        if (segment, position) <= self.progress.frontier {
            return Some((from..from, 0, false));
        }
        self.progress.frontier = (segment, position);
        if position > Position::FIRST {
            self.segments.reach(segment);
        } else if let Some(last) = segment.previous() {
            self.segments.reach(last);
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
        self.progress.frontier = to;
        let Some(segment) = self.segments.get_mut(number) else { return false };
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
        let segment = self.segments.get_mut(number).filter(|segment| !segment.judged())?;
        let in_repair = segment.violated_at.is_some();
        segment.judge(now, verdict, next_report, scratch);
        self.in_repair -= u64::from(in_repair);
        self.verdicts.unconfirmed += 1;
        self.delivery.on_judged(number, &self.segments);
        Some(in_repair)
    }

    /// The next segment to hand to the application.
    pub(crate) fn next_delivery(&mut self) -> Option<SegmentNumber> {
        self.delivery.next(&self.segments)
    }

    /// Whether a segment can be handed over.
    pub(crate) fn has_delivery(&self) -> bool {
        self.delivery.has_next(&self.segments)
    }

    /// The oldest segment that is not judged, if any has begun.
    pub(crate) fn oldest_open(&self) -> Option<SegmentNumber> {
        let oldest = self.delivery.lowest_unjudged;
        (oldest < self.segments.next_number()).then_some(oldest)
    }

    /// Evicts what has arrived of a segment; returns how many units that frees.
    pub(crate) fn evict(&mut self, number: SegmentNumber) -> u64 {
        let Some(segment) = self.segments.get_mut(number) else { return 0 };
        let freed = u64::from(segment.room.reserved);
        segment.evict();
        self.room.reserved -= freed;
        freed
    }

    /// Without error control nothing is requested of a segment; returns whether it was in repair.
    pub(crate) fn clear_request(&mut self, number: SegmentNumber) -> bool {
        let segment = self.segments.get_mut(number).filter(|segment| !segment.judged());
        let was_in_repair = segment.is_some_and(|segment| segment.violated_at.take().is_some());
        self.in_repair -= u64::from(was_in_repair);
        was_in_repair
    }

    /// Up to where the application has taken it: every segment below this one.
    pub(super) const fn taken(&self) -> SegmentNumber {
        self.delivery.lowest_unreleased
    }
}
