//! How far an incoming stream has come in sending order: up to where first transmissions have reached, and up to where units are due
//! (EC 4.2 made exact).
//!
//! Owned by the stream. First-time parts move `high`; the frontier follows, at once where nothing is missing before a part, otherwise once
//! the shipments before it have passed.
//!
//! Invariant: none of the three ever retreats; from `run_start` to `high` nothing is missing but what is lost already.

use crate::receiver::segment::ALL_DUE;
use segstream_base::{Position, SegmentNumber};

/// The first position of the first segment.
pub(super) const START: (SegmentNumber, Position) = (SegmentNumber::FIRST, Position::FIRST);

/// How far a stream has come: each a segment and a position in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// The first position no first-time part has reached yet.
    high: (SegmentNumber, Position),
    /// Where the last first-time part began that did not continue at `high`: from there to `high`
    /// nothing is missing but what is lost already.
    run_start: (SegmentNumber, Position),
    /// Everything before this is due.
    pub(crate) frontier: (SegmentNumber, Position),
}

impl Progress {
    /// Nothing has arrived.
    pub(super) const fn new() -> Self {
        Self { high: START, run_start: START, frontier: START }
    }

    /// A first-time part from `start` to `end` has arrived. Whether the frontier goes on with it: nothing before it is missing that is not
    /// known already.
    #[inline]
    pub(in crate::receiver) fn on_first_time(&mut self, start: (SegmentNumber, Position), end: (SegmentNumber, Position)) -> bool {
        let in_step = start >= self.high && self.frontier == start;
        if start > self.high {
            self.run_start = start;
        }
        if start >= self.high {
            self.high = end;
        }
        in_step
    }

    /// Whether first transmissions and the frontier have both come to `start`, and no further.
    #[inline]
    pub(in crate::receiver) fn is_at(&self, start: (SegmentNumber, Position)) -> bool {
        self.high == start && self.frontier == start
    }

    /// From where both have come to they go on to `end`.
    #[inline]
    pub(in crate::receiver) fn step(&mut self, end: (SegmentNumber, Position)) {
        debug_assert!(self.high == self.frontier && self.high < end, "the frontier goes on alone");
        (self.high, self.frontier) = (end, end);
    }

    /// Whether the part at `start`, the last that has arrived, began a run beyond the frontier: what is missing before it is due once its
    /// shipment has been passed.
    #[inline]
    pub(in crate::receiver) fn begins_run(&self, start: (SegmentNumber, Position)) -> bool {
        start > self.frontier && start == self.run_start
    }

    /// Whether a first-time part at `start` would go on where the others end, and nothing from there on is due.
    #[inline]
    pub(in crate::receiver) fn goes_on_at(&self, start: (SegmentNumber, Position)) -> bool {
        start == self.high && self.high >= self.frontier
    }

    /// Where the frontier comes to when everything before `to` has been passed.
    pub(super) fn frontier_from(&self, to: (SegmentNumber, Position)) -> (SegmentNumber, Position) {
        // Why: behind the last gap everything up to `high` has arrived, so the frontier may join it.
        if to >= self.run_start { to.max(self.high) } else { to }
    }

    /// Up to where `segment` is due.
    pub(super) fn due_of(&self, segment: SegmentNumber) -> Position {
        match segment.cmp(&self.frontier.0) {
            core::cmp::Ordering::Less => ALL_DUE,
            core::cmp::Ordering::Equal => self.frontier.1,
            core::cmp::Ordering::Greater => Position::FIRST,
        }
    }

    /// How many segments the sender has begun, as far as is known here.
    pub(super) fn segments_begun(&self) -> u64 {
        self.high.0.0 + u64::from(self.high.1 > Position::FIRST)
    }

    /// Segments before `base` have left the queue.
    pub(super) fn on_left(&mut self, base: SegmentNumber) {
        self.high = self.high.max((base, Position::FIRST));
        self.frontier = self.frontier.max((base, Position::FIRST));
    }

    /// No segment has left the queue that is not due.
    pub(super) fn debug_assert_reached(&self, base: SegmentNumber) {
        debug_assert!(base <= self.high.0.min(self.frontier.0), "a segment has left that is not due");
    }
}
