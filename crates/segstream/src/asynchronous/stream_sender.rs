//! A stream of ours: sends segments and returns their verdicts.
//!
//! Called by applications. Invariant: a segment is accepted whole or not at all; each accepted one gets one verdict.

use super::SegmentWriter;
use super::connection::ConnectionGuard;
use super::shared_state::{SharedNotify, SharedState};
use crate::connection_state::EventScope;
use crate::endpoint_state::or_blocked;
use crate::{Bytes, Durable, Error, Judged, SegmentNumber, StreamId, Timestamp, Tolerance};
use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;

/// A stream of ours. Clones are the same stream, so that one task can send and another read the verdicts. When the last clone is
/// dropped, the stream is finished; segments that were sent are still delivered.
#[derive(Clone, Debug)]
pub struct StreamSender {
    writing: Arc<StreamGuard>,
}

/// Keeps a stream of ours open.
#[derive(Debug)]
pub(super) struct StreamGuard {
    pub(super) held: Arc<ConnectionGuard>,
    pub(super) stream: StreamId,
    pub(super) notify: SharedNotify,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.held.handle.change(|state, now| {
            // Why the result is ignored: on a connection that has ended there is nothing to finish.
            let _ = state.endpoint_state.finish_stream(now, self.held.id, self.stream);
            state.drop_sending(self.held.id, self.stream);
        });
    }
}

impl StreamSender {
    pub(super) fn new(writing: StreamGuard) -> Self {
        Self { writing: Arc::new(writing) }
    }

    /// The stream's number at both ends.
    pub fn stream(&self) -> StreamId {
        self.writing.stream
    }

    /// Sends a whole segment with the present source time; waits while the send buffer is full. Cancel safe: a future that is dropped
    /// before it completes has sent nothing.
    pub async fn send(&self, bytes: Bytes) -> Result<SegmentNumber, Error> {
        let now = self.writing.held.handle.clock.now();
        self.send_at(bytes, now, None).await
    }

    /// Like [`StreamSender::send`] with a source time, and a tolerance (W, E, B) for this segment if given.
    pub async fn send_at(&self, bytes: Bytes, source_time: Timestamp, tolerance: Option<Tolerance>) -> Result<SegmentNumber, Error> {
        let StreamGuard { held, stream, notify } = &*self.writing;
        held.handle
            .wait_for(notify, |state, now| state.endpoint_state.poll_send(now, (held.id, *stream), bytes.clone(), source_time, tolerance))
            .await
    }

    /// Like [`StreamSender::send_at`] without waiting: [`SubmitError::Blocked`](crate::SubmitError::Blocked) when the send buffer is full.
    pub fn try_send(&self, bytes: Bytes, source_time: Timestamp, tolerance: Option<Tolerance>) -> Result<SegmentNumber, Error> {
        let StreamGuard { held, stream, .. } = &*self.writing;
        let send = |state: &mut SharedState, now| state.endpoint_state.poll_send(now, (held.id, *stream), bytes, source_time, tolerance);
        or_blocked(held.handle.change(send))
    }

    /// Sends segments from the front of `segments` with the present source time: as many as the send buffer has room for, no more than
    /// 1024. Waits until there is room for one. The segments that were sent are taken out of the queue, and their numbers returned, which
    /// follow each other; of an empty queue nothing is sent. For many short segments: the endpoint is locked and its task woken once for all of
    /// them, and they share datagrams. Cancel safe: what is still in the queue was not sent.
    ///
    /// ```no_run
    /// # use segstream::{Bytes, Error, StreamSender};
    /// # async fn example(sender: StreamSender, records: Vec<Bytes>) -> Result<(), Error> {
    /// let mut waiting = std::collections::VecDeque::from(records);
    /// while !waiting.is_empty() {
    ///     sender.send_many(&mut waiting).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the first of the queue is refused, which stays in it. A segment behind others that can be sent is refused by the next call.
    pub async fn send_many(&self, segments: &mut VecDeque<Bytes>) -> Result<Range<SegmentNumber>, Error> {
        let StreamGuard { held, stream, notify } = &*self.writing;
        held.handle.wait_for(notify, |state, now| state.endpoint_state.poll_send_many(now, (held.id, *stream), segments)).await
    }

    /// Like [`StreamSender::send_many`] without waiting: [`SubmitError::Blocked`](crate::SubmitError::Blocked) when the send buffer has no room for the first.
    pub fn try_send_many(&self, segments: &mut VecDeque<Bytes>) -> Result<Range<SegmentNumber>, Error> {
        let StreamGuard { held, stream, .. } = &*self.writing;
        let batch = |state: &mut SharedState, now| state.endpoint_state.poll_send_many(now, (held.id, *stream), segments);
        or_blocked(held.handle.change(batch))
    }

    /// Sets drop-oldest: when the send buffer is full, a new segment does not wait but replaces the oldest segment of which nothing has
    /// been sent yet. Off by default. For live media, where the newest segment is worth more than the oldest. A dropped segment is
    /// *expired* at both ends (or *within_tolerance* if everything may be missing), with all of its units as holes. Sending still
    /// waits while twice [`crate::Contract::window_segments`] have no verdict, and an open segment waits for room.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the connection was removed.
    pub fn set_drop_oldest(&self, drops_oldest: bool) -> Result<(), Error> {
        let StreamGuard { held, stream, .. } = &*self.writing;
        held.handle.change(|state, _| state.endpoint_state.set_drop_oldest(held.id, *stream, drops_oldest))
    }

    /// Opens a segment whose length is not known yet. Its first units leave before its last ones exist. Only one segment of a stream can
    /// be open, and no other segment is sent in the meantime. Cancel safe.
    pub async fn open_segment(&self) -> Result<SegmentWriter, Error> {
        let now = self.writing.held.handle.clock.now();
        self.open_segment_at(now, None).await
    }

    /// Like [`StreamSender::open_segment`] with a source time, and a tolerance (W, E, B) for this segment if given.
    pub async fn open_segment_at(&self, source_time: Timestamp, tolerance: Option<Tolerance>) -> Result<SegmentWriter, Error> {
        let StreamGuard { held, stream, notify } = &*self.writing;
        let open = |segment| SegmentWriter::new(Arc::clone(&self.writing), segment);
        held.handle
            .wait_for(notify, |state, now| state.endpoint_state.poll_open(now, (held.id, *stream), source_time, tolerance))
            .await
            .map(open)
    }

    /// Waits for the verdict on a segment. Each verdict is returned once. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the verdict was returned before or there is no such segment.
    pub async fn verdict(&self, segment: SegmentNumber) -> Result<Judged, Error> {
        let StreamGuard { held, stream, notify } = &*self.writing;
        held.handle.wait_for(notify, |state, _| state.endpoint_state.poll_verdict(held.id, *stream, segment)).await
    }

    /// Waits for the next verdict, in order of arrival. `None` if no more will come: the stream is finished or the connection closes,
    /// and every segment is judged. Cancel safe.
    ///
    /// The last 65,536 unread verdicts are kept.
    pub async fn next_verdict(&self) -> Option<Judged> {
        let StreamGuard { held, stream, notify } = &*self.writing;
        // Why no error: when the connection ends, every segment gets a verdict first.
        held.handle.wait_for(notify, |state, _| state.endpoint_state.poll_next_verdict(held.id, *stream)).await.ok().flatten()
    }

    /// What the peer's application has confirmed so far, as [`crate::blocking::Connection::durable`].
    ///
    /// # Errors
    ///
    /// [`Error::NotConfirming`] if the peer confirms nothing.
    pub fn durable(&self) -> Result<Durable, Error> {
        let StreamGuard { held, stream, .. } = &*self.writing;
        held.handle.change(|state, _| state.endpoint_state.durable(held.id, *stream))
    }

    /// Waits until the peer's application has confirmed all segments below `segments`, or has said that it will confirm no more: then
    /// [`Durable::last`] is set, and [`Durable::segments`] may be less. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the connection ended first, [`Error::NotConfirming`] if the peer confirms nothing.
    pub async fn confirmed(&self, segments: SegmentNumber) -> Result<Durable, Error> {
        let StreamGuard { held, stream, notify } = &*self.writing;
        held.handle.wait_for(notify, |state, _| state.endpoint_state.poll_durable(held.id, *stream, segments)).await
    }

    /// Finishes the stream: no more segments will be sent. Verdicts still arrive.
    pub fn finish(&self) {
        let StreamGuard { held, stream, .. } = &*self.writing;
        held.handle.change(|state, now| {
            // Why the result is ignored: on a connection that has ended there is nothing to finish.
            let _ = state.endpoint_state.finish_stream(now, held.id, *stream);
            state.notify(held.id, EventScope::Sending(*stream));
        });
    }
}
