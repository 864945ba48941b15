//! A segment that is written while it is sent.
//!
//! Called by applications. Invariant: at most one segment of a stream is open.

use super::stream_sender::Writing;
use crate::{Error, SegmentNumber, Verdict};
use std::sync::Arc;

/// An open segment. Dropped without [`SegmentWriter::finish`], it ends where it stands.
#[derive(Debug)]
pub struct SegmentWriter {
    writing: Arc<Writing>,
    segment: SegmentNumber,
    finished: bool,
}

impl SegmentWriter {
    /// Made in the same step in which the segment is opened, so that it is never left open.
    pub(super) const fn new(writing: Arc<Writing>, segment: SegmentNumber) -> Self {
        Self { writing, segment, finished: false }
    }

    /// The segment's number.
    pub const fn segment(&self) -> SegmentNumber {
        self.segment
    }

    /// Appends bytes; waits while the send buffer is full. `Some(verdict)` when the segment has been judged or given
    /// up meanwhile, and the bytes were not taken. Cancel safe: all of `bytes` are taken or none.
    pub async fn append(&mut self, bytes: &[u8]) -> Result<Option<Verdict>, Error> {
        self.push(bytes, false).await
    }

    /// Fixes the segment's length and gives its number. The verdict is asked for with
    /// [`verdict`](super::StreamSender::verdict).
    pub async fn finish(mut self) -> Result<SegmentNumber, Error> {
        self.push(&[], true).await?;
        self.finished = true;
        Ok(self.segment)
    }

    async fn push(&self, bytes: &[u8], last: bool) -> Result<Option<Verdict>, Error> {
        let Writing { held, stream, notify } = &*self.writing;
        held.handle.wait_for(notify, |state, now| state.hub.poll_append(now, (held.id, *stream), bytes, last)).await
    }
}

impl Drop for SegmentWriter {
    fn drop(&mut self) {
        if !self.finished {
            let Writing { held, stream, .. } = &*self.writing;
            held.handle.change(|state, now| state.hub.end_segment(now, held.id, *stream));
        }
    }
}
