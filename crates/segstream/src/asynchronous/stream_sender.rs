//! A stream of ours: segments out, verdicts back.
//!
//! Called by applications. Invariant: a segment is taken whole or not at all; each one taken gets one verdict.

use super::SegmentWriter;
use super::connection::Held;
use super::shared_state::SharedNotify;
use crate::inbox::News;
use crate::{Bytes, Error, Judged, SegmentNumber, StreamId, SubmitError, Timestamp, Tolerance};
use std::sync::Arc;
use std::task::Poll;

/// A stream of ours. Clones are the same stream, so that one task can send and another take the verdicts. When the
/// last one is dropped, the stream is finished; what was sent is still delivered.
#[derive(Clone, Debug)]
pub struct StreamSender {
    writing: Arc<Writing>,
}

/// Keeps a stream of ours open.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) held: Arc<Held>,
    pub(super) stream: StreamId,
    pub(super) notify: SharedNotify,
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.held.handle.change(|state, now| {
            // Why ignored: on a connection that has ended there is nothing to finish.
            let _ = state.hub.finish_stream(now, self.held.id, self.stream);
            state.drop_sending(self.held.id, self.stream);
        });
    }
}

impl StreamSender {
    pub(super) fn new(writing: Writing) -> Self {
        Self { writing: Arc::new(writing) }
    }

    /// The stream's number at both ends.
    pub fn stream(&self) -> StreamId {
        self.writing.stream
    }

    /// Sends a whole segment whose source time is now; waits while the send buffer is full. Cancel safe: a future
    /// that is dropped before it is done has sent nothing.
    pub async fn send(&self, bytes: Bytes) -> Result<SegmentNumber, Error> {
        let now = self.writing.held.handle.clock.now();
        self.send_at(bytes, now, None).await
    }

    /// Like [`StreamSender::send`] with a source time, and a tolerance (W, E, B) of its own if given.
    pub async fn send_at(&self, bytes: Bytes, source_time: Timestamp, tolerance: Option<Tolerance>) -> Result<SegmentNumber, Error> {
        let Writing { held, stream, notify } = &*self.writing;
        held.handle.wait_for(notify, |state, now| state.hub.poll_send(now, (held.id, *stream), bytes.clone(), source_time, tolerance)).await
    }

    /// Like [`StreamSender::send_at`] without waiting: [`SubmitError::Blocked`] when the send buffer is full.
    pub fn try_send(&self, bytes: Bytes, source_time: Timestamp, tolerance: Option<Tolerance>) -> Result<SegmentNumber, Error> {
        let Writing { held, stream, .. } = &*self.writing;
        match held.handle.change(|state, now| state.hub.poll_send(now, (held.id, *stream), bytes, source_time, tolerance)) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Err(SubmitError::Blocked.into()),
        }
    }

    /// Whether the stream gives up its oldest segment of which nothing has left yet when its send buffer is full and a new
    /// segment comes, instead of making the application wait. Default: it waits. For live media, where the newest segment is
    /// worth more than the oldest. The receiver is told as of a lifetime that has run out: such a segment is *expired* at both
    /// ends (or *within_tolerance* where everything may be missing), with all of its units as holes. Sending still waits while
    /// twice [`crate::Contract::window_segments`] have no verdict, and an open segment waits for room.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] when the connection is no more.
    pub fn set_drop_oldest(&self, drops_oldest: bool) -> Result<(), Error> {
        let Writing { held, stream, .. } = &*self.writing;
        held.handle.change(|state, _| state.hub.set_drop_oldest(held.id, *stream, drops_oldest))
    }

    /// Opens a segment whose length is not known yet. Its first units leave before its last exist. Only one segment
    /// of a stream can be open, and no other is sent meanwhile. Cancel safe.
    pub async fn open_segment(&self) -> Result<SegmentWriter, Error> {
        let now = self.writing.held.handle.clock.now();
        self.open_segment_at(now, None).await
    }

    /// Like [`StreamSender::open_segment`] with a source time, and a tolerance (W, E, B) of its own if given.
    pub async fn open_segment_at(&self, source_time: Timestamp, tolerance: Option<Tolerance>) -> Result<SegmentWriter, Error> {
        let Writing { held, stream, notify } = &*self.writing;
        let open = |segment| SegmentWriter::new(Arc::clone(&self.writing), segment);
        held.handle.wait_for(notify, |state, now| state.hub.poll_open(now, (held.id, *stream), source_time, tolerance)).await.map(open)
    }

    /// Waits for the verdict on a segment, which is handed out once. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] when the verdict was handed out already or the segment never was.
    pub async fn verdict(&self, segment: SegmentNumber) -> Result<Judged, Error> {
        let Writing { held, stream, notify } = &*self.writing;
        held.handle.wait_for(notify, |state, _| state.hub.poll_verdict(held.id, *stream, segment)).await
    }

    /// Waits for the next verdict, in the order in which they come. `None` when no more will come: the stream is
    /// finished or the connection closes, and every segment is judged. Cancel safe.
    ///
    /// Verdicts that nobody takes are kept for the last 65,536 segments.
    pub async fn next_verdict(&self) -> Option<Judged> {
        let Writing { held, stream, notify } = &*self.writing;
        // Why no error: the end of the connection gives every segment its verdict first.
        held.handle.wait_for(notify, |state, _| state.hub.poll_next_verdict(held.id, *stream)).await.ok().flatten()
    }

    /// No more segments will come. Verdicts still do.
    pub fn finish(&self) {
        let Writing { held, stream, .. } = &*self.writing;
        held.handle.change(|state, now| {
            // Why ignored: on a connection that has ended there is nothing to finish.
            let _ = state.hub.finish_stream(now, held.id, *stream);
            state.notify(held.id, News::Sending(*stream));
        });
    }
}
