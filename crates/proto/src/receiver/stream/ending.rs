//! How an incoming stream ends: its last segment is known, everything is judged, handed over and confirmed, and it retires.
//!
//! Called by the half; [`crate::receiver::retirement`] draws what follows.
//!
//! Invariant: a stream is retired once, when nothing about it is unknown to the application or to the sender.

use super::RecvStream;
use segstream_base::SegmentNumber;

/// Where a stream ends, and what of that has been told.
#[derive(Debug, Default)]
pub(crate) struct StreamEnd {
    /// How many segments there will be, once known.
    pub(crate) at: Option<SegmentNumber>,
    /// The application has been told that it has ended.
    pub(in crate::receiver) told: bool,
    /// The event that announces the stream is pending.
    pub(in crate::receiver) unannounced: bool,
    /// It has ended, and nothing about it is unknown to the sender.
    retired: bool,
}

impl RecvStream {
    /// The end is known, and everything before it judged.
    pub(crate) fn all_judged(&self) -> bool {
        self.end.at.is_some_and(|end| self.delivery.lowest_unjudged >= end)
    }

    /// Whether everything has been judged and handed over, and the end is known.
    pub(crate) fn is_drained(&self) -> bool {
        self.end.at.is_some_and(|end| self.delivery.is_drained(end))
    }

    /// Whether it has ended and is not retired yet: every segment has left the queue, the application knows, and has confirmed all that it
    /// will.
    pub(in crate::receiver) fn has_ended(&self) -> bool {
        let StreamEnd { at, told, unannounced, retired } = self.end;
        let ended = !retired && !unannounced && told && at.is_some_and(|end| self.segments.base >= end);
        ended && self.durability.as_ref().is_none_or(|durability| durability.is_over(at))
    }

    /// It is retired: its buffers are free.
    pub(in crate::receiver) fn on_retired(&mut self) {
        debug_assert!(self.is_over() && self.room.reserved == 0);
        self.end.retired = true;
        self.segments.free();
        self.delivery.free();
    }

    pub(in crate::receiver) const fn is_retired(&self) -> bool {
        self.end.retired
    }

    /// Whether no statement about it is outstanding either.
    pub(crate) fn is_over(&self) -> bool {
        self.all_judged() && self.verdicts.unconfirmed == 0
    }
}
