//! Events of the receiving half that its owner has not asked for yet.
//!
//! Noted where they happen; taken by the connection, or by the adapter of halves, after each input.
//!
//! Invariant: each is told once, and queues tell in the order in which things happened.

use super::RecvHalf;
use segstream_base::{SegmentNumber, StreamId};
use segstream_blocks::rare_queue::RareQueue;

/// What the owner of the half is to be told.
#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    /// Streams the application has not been told of yet.
    pub(super) opened: RareQueue<StreamId>,
    /// Segments whose bytes are no longer wanted, though the application has not taken them.
    pub(super) dropped: RareQueue<(StreamId, SegmentNumber)>,
    /// A verdict has been given since deliveries were last drained.
    pub(super) deliverable: bool,
    /// Whether streams have been opened or retired since that was last asked.
    pub(super) streams_changed: bool,
}

impl RecvHalf {
    /// The next stream the peer has opened.
    pub fn poll_opened(&mut self) -> Option<StreamId> {
        self.events.opened.pop_front()
    }

    /// The next segment (stream and number) that had to make room: its bytes can be freed at once. It is still
    /// delivered, as expired, with everything missing. Only without flow control.
    pub fn poll_dropped(&mut self) -> Option<(StreamId, SegmentNumber)> {
        self.events.dropped.pop_front()
    }

    /// Whether verdicts have been given since this was last asked.
    pub fn take_deliverable(&mut self) -> bool {
        core::mem::take(&mut self.events.deliverable)
    }

    /// The windows of all streams together, in bytes, if streams have been opened or retired since this was last asked.
    pub(crate) fn take_window_change(&mut self) -> Option<u64> {
        core::mem::take(&mut self.events.streams_changed).then(|| self.window_bytes())
    }
}
