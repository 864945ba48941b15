//! What reports have told of an incoming stream, and where the next one goes on.
//!
//! Called by the half when a report begins and ends, and by the composition, which moves the cursors.
//!
//! Invariant: a report begins with the oldest segment, unless the one before it was cut short.

use super::RecvStream;
use super::progress::START;
use segstream_base::{Duration, Instant, Position, SegmentNumber, UnitIndex};

/// The first unit of the first segment.
const FIRST_UNIT: (SegmentNumber, UnitIndex) = (SegmentNumber::FIRST, UnitIndex::FIRST);

/// How far a sender was, and how far it may go, when a report left: in segments and in units.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    at: Instant,
    reached: (u64, u64),
    edges: (u64, u64),
}

/// Where the next report shipment's requests and verdicts start: (segment, position) and (segment, unit).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportCursor {
    pub(crate) request_from: (SegmentNumber, Position),
    pub(crate) verdict_from: (SegmentNumber, UnitIndex),
}

impl ReportCursor {
    /// At the oldest segment.
    pub(super) const fn new() -> Self {
        Self { request_from: START, verdict_from: FIRST_UNIT }
    }
}

impl RecvStream {
    /// A report that carries the present window edges begins.
    pub(crate) fn on_report(&mut self, now: Instant) {
        let window = &mut self.room.window;
        if window.freed_since_report() != (0, 0) {
            self.sender_waits = false;
        }
        window.mark_reported();
        self.reported = Reported { at: now, reached: self.reached(), edges: self.edges() };
        let (cursor, base) = (&mut self.cursor, self.segments.base);
        cursor.request_from = cursor.request_from.max((base, Position::FIRST));
        cursor.verdict_from = cursor.verdict_from.max((base, UnitIndex::FIRST));
    }

    /// Whether the present report has left out requests or verdicts.
    pub(crate) fn has_more_to_report(&self) -> bool {
        let (ReportCursor { request_from, verdict_from }, end) = (self.cursor, self.segments.next_number());
        self.in_repair > 0 && request_from.0 < end || self.verdicts.unconfirmed > 0 && verdict_from.0 < end
    }

    /// A report ends: the next one starts from the oldest segment, unless this one was cut short.
    pub(crate) fn on_report_end(&mut self) {
        let (cursor, end) = (&mut self.cursor, self.segments.next_number());
        if self.in_repair == 0 || cursor.request_from.0 >= end {
            cursor.request_from = START;
        }
        if self.verdicts.unconfirmed == 0 || cursor.verdict_from.0 >= end {
            cursor.verdict_from = FIRST_UNIT;
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

    /// How far the sender has come, as far as is known here: segments it has begun, and their units.
    fn reached(&self) -> (u64, u64) {
        (self.progress.segments_begun(), self.room.window.released().1 + self.room.reserved)
    }
}
