//! An open segment: its units are sent while the application still appends to it.
//!
//! Called by applications. Invariant: at most one segment of a stream is open.

use super::stream_sender::StreamGuard;
use crate::{Error, SegmentNumber, Verdict};
use std::sync::Arc;

/// An open segment. Dropping it without [`SegmentWriter::finish`] ends it at its present length.
#[derive(Debug)]
pub struct SegmentWriter {
    writing: Arc<StreamGuard>,
    segment: SegmentNumber,
    finished: bool,
}

impl SegmentWriter {
    /// Made in the same step in which the segment is opened, so that no segment stays open without a writer.
    pub(super) const fn new(writing: Arc<StreamGuard>, segment: SegmentNumber) -> Self {
        Self { writing, segment, finished: false }
    }

    /// The segment's number.
    pub const fn segment(&self) -> SegmentNumber {
        self.segment
    }

    /// Appends bytes; waits while the send buffer is full. Returns `Some(verdict)` if the segment was judged or abandoned in the
    /// meantime and the bytes were not accepted. Cancel safe: all of `bytes` are accepted or none.
    pub async fn append(&mut self, bytes: &[u8]) -> Result<Option<Verdict>, Error> {
        self.push(bytes, false).await
    }

    /// Ends the segment and returns its number. [`verdict`](super::StreamSender::verdict) waits for its verdict.
    pub async fn finish(mut self) -> Result<SegmentNumber, Error> {
        self.push(&[], true).await?;
        self.finished = true;
        Ok(self.segment)
    }

    async fn push(&self, bytes: &[u8], last: bool) -> Result<Option<Verdict>, Error> {
        let StreamGuard { held, stream, notify } = &*self.writing;
        held.handle.wait_for(notify, |state, now| state.endpoint_state.poll_append(now, (held.id, *stream), bytes, last)).await
    }
}

impl Drop for SegmentWriter {
    fn drop(&mut self) {
        if !self.finished {
            let StreamGuard { held, stream, .. } = &*self.writing;
            held.handle.change(|state, now| state.endpoint_state.end_segment(now, held.id, *stream));
        }
    }
}
