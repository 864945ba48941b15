//! The operations on streams of ours: sending segments, and their verdicts.
//!
//! Called by both interfaces. Invariant: a segment is accepted whole or not at all; each accepted one gets one verdict.

use super::{BATCH_SEGMENTS_MAX, EndpointState, ended};
use crate::connection_state::{ConnectionState, Sending};
use crate::verdicts::{Judged, Lookup};
use crate::{Bytes, ConnectionId, Contract, Error, OpenStreamError, SegmentNumber, StreamId, SubmitError, Timestamp, Tolerance, Verdict};
use core::ops::Range;
use std::collections::VecDeque;
use std::task::Poll;

/// A tolerance of a segment's own.
pub(crate) type Own = Option<Tolerance>;

impl EndpointState {
    /// Opens a stream, unless as many are live as the peer allows.
    pub(crate) fn poll_open_stream(&mut self, now: Timestamp, id: ConnectionId, contract: &Contract) -> Poll<Result<StreamId, Error>> {
        match self.open_stream(now, id, contract.clone()) {
            Err(Error::OpenStream(OpenStreamError::TooManyStreams { .. })) => Poll::Pending,
            opened => Poll::Ready(opened),
        }
    }

    /// Opens a stream.
    pub(crate) fn open_stream(&mut self, now: Timestamp, id: ConnectionId, contract: Contract) -> Result<StreamId, Error> {
        let (connection, connection_state) = self.parts(id)?;
        takes_segments(connection_state)?;
        let stream = connection.open_stream(now, contract)?;
        // The protocol keeps a stream until the peer has confirmed all of it, where it confirms at all.
        connection_state.on_opened(stream, |kept| connection.durable(kept).is_some());
        Ok(stream)
    }

    /// What a stream does with a new segment when its send buffer is full.
    pub(crate) fn set_drop_oldest(&mut self, id: ConnectionId, stream: StreamId, drops_oldest: bool) -> Result<(), Error> {
        self.sending(id, stream)?;
        self.parts(id)?.0.set_drop_oldest(stream, drops_oldest);
        Ok(())
    }

    /// Accepts a whole segment, unless the send buffer is full.
    pub(crate) fn poll_send(
        &mut self,
        now: Timestamp,
        (id, stream): (ConnectionId, StreamId),
        bytes: Bytes,
        source_time: Timestamp,
        own: Own,
    ) -> Poll<Result<SegmentNumber, Error>> {
        let (connection, connection_state) = self.parts(id)?;
        let sent = connection.send(now, stream, bytes, source_time, own);
        accepted(connection_state, stream, sent)
    }

    /// Accepts whole segments from the front of `segments`, one at least: as many as the send buffer has room for, no more than
    /// [`BATCH_SEGMENTS_MAX`]. Their numbers follow each other. What is not accepted stays.
    pub(crate) fn poll_send_many(
        &mut self,
        now: Timestamp,
        (id, stream): (ConnectionId, StreamId),
        segments: &mut VecDeque<Bytes>,
    ) -> Poll<Result<Range<SegmentNumber>, Error>> {
        let (connection, connection_state) = self.parts(id)?;
        let mut numbers = SegmentNumber(0)..SegmentNumber(0);
        for _ in 0..BATCH_SEGMENTS_MAX {
            let Some(bytes) = segments.front() else { break };
            let sent = connection.send(now, stream, bytes.clone(), now, None);
            match accepted(connection_state, stream, sent) {
                Poll::Ready(Ok(segment)) => {
                    let first = if numbers.is_empty() { segment } else { numbers.start };
                    numbers = first..segment.next();
                    segments.pop_front();
                }
                // Why not lost: the next call finds the same segment in front, and the same error.
                _ if !numbers.is_empty() => break,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(numbers))
    }

    /// Opens a segment, unless the send buffer is full.
    pub(crate) fn poll_open(
        &mut self,
        now: Timestamp,
        (id, stream): (ConnectionId, StreamId),
        source_time: Timestamp,
        own: Own,
    ) -> Poll<Result<SegmentNumber, Error>> {
        let (connection, connection_state) = self.parts(id)?;
        let opened = connection.open_segment(now, stream, source_time, own);
        accepted(connection_state, stream, opened)
    }

    /// Appends to the open segment, unless the send buffer is full.
    pub(crate) fn poll_append(
        &mut self,
        now: Timestamp,
        (id, stream): (ConnectionId, StreamId),
        bytes: &[u8],
        last: bool,
    ) -> Poll<Result<Option<Verdict>, Error>> {
        let (connection, connection_state) = self.parts(id)?;
        match connection.append(now, stream, bytes, last) {
            Err(SubmitError::Blocked) if connection_state.closed.is_none() => Poll::Pending,
            // Only a segment that was left open and is resumed by its number can be another one, or none.
            Err(SubmitError::Finished) if takes_segments(connection_state).is_ok() && connection_state.sending.contains_key(&stream) => {
                Poll::Ready(Err(Error::Unknown("open segment")))
            }
            Err(error) => Poll::Ready(Err(refusal(connection_state, stream, error))),
            Ok(verdict) => Poll::Ready(Ok(verdict)),
        }
    }

    /// Ends the open segment at its present length: at once, or when the send buffer has room again.
    pub(crate) fn end_segment(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) {
        let pending = self.poll_append(now, (id, stream), &[], true).is_pending();
        if let Some(sending) = self.states.get_mut(&id).and_then(|connection_state| connection_state.sending.get_mut(&stream)) {
            sending.end_pending = pending;
        }
    }

    /// There is room again: ends a segment whose end could not be submitted before.
    pub(super) fn end_pending(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> bool {
        let sending = self.states.get(&id).and_then(|connection_state| connection_state.sending.get(&stream));
        let owed = sending.is_some_and(|sending| sending.end_pending);
        if owed {
            self.end_segment(now, id, stream);
        }
        owed
    }

    /// Finishes the stream: no more segments will be sent on it.
    pub(crate) fn finish_stream(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> Result<(), Error> {
        let (connection, connection_state) = self.parts(id)?;
        let Some(sending) = connection_state.sending.get_mut(&stream) else { return Err(Error::Unknown("stream")) };
        sending.finished = true;
        connection.finish_stream(now, stream);
        Ok(())
    }

    /// The verdict on a segment; it is returned once.
    pub(crate) fn poll_verdict(&mut self, id: ConnectionId, stream: StreamId, segment: SegmentNumber) -> Poll<Result<Judged, Error>> {
        let sending = self.sending(id, stream)?;
        match (sending.verdicts.take(segment), sending.refused) {
            (Lookup::Judged(judged), _) => Poll::Ready(Ok(judged)),
            (Lookup::Gone, _) => Poll::Ready(Err(Error::Unknown("segment"))),
            (Lookup::Expected, Some(reason)) => Poll::Ready(Err(Error::Refused { stream, reason })),
            (Lookup::Expected, None) => Poll::Pending,
        }
    }

    /// The next verdict of a stream; `None` when no more will come.
    pub(crate) fn poll_next_verdict(&mut self, id: ConnectionId, stream: StreamId) -> Poll<Result<Option<Judged>, Error>> {
        let (_, connection_state) = self.parts(id)?;
        let over = connection_state.closed.is_some() || connection_state.closing || connection_state.peer_closing;
        if connection_state.has_removed(stream) {
            return Poll::Ready(Ok(None));
        }
        let Some(sending) = connection_state.sending.get_mut(&stream) else { return Poll::Ready(Err(Error::Unknown("stream"))) };
        if let Some(judged) = sending.verdicts.take_next() {
            return Poll::Ready(Ok(Some(judged)));
        }
        if let (Some(reason), None) = (sending.refused, connection_state.closed.as_ref()) {
            return Poll::Ready(Err(Error::Refused { stream, reason }));
        }
        let no_more = (sending.finished || over) && !sending.verdicts.has_pending();
        if no_more { Poll::Ready(Ok(None)) } else { Poll::Pending }
    }

    fn sending(&mut self, id: ConnectionId, stream: StreamId) -> Result<&mut Sending, Error> {
        let (_, connection_state) = self.parts(id)?;
        let unknown = if connection_state.has_removed(stream) { "segment" } else { "stream" };
        connection_state.sending.get_mut(&stream).ok_or(Error::Unknown(unknown))
    }
}

/// What there is without waiting: [`SubmitError::Blocked`] if the send buffer has no room.
pub(crate) fn or_blocked<T>(polled: Poll<Result<T, Error>>) -> Result<T, Error> {
    match polled {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(SubmitError::Blocked.into()),
    }
}

fn accepted(
    connection_state: &mut ConnectionState,
    stream: StreamId,
    taken: Result<SegmentNumber, SubmitError>,
) -> Poll<Result<SegmentNumber, Error>> {
    match taken {
        Ok(segment) => {
            if let Some(sending) = connection_state.sending.get_mut(&stream) {
                sending.verdicts.expect();
            }
            Poll::Ready(Ok(segment))
        }
        Err(SubmitError::Blocked) if connection_state.closed.is_none() => Poll::Pending,
        Err(error) => Poll::Ready(Err(refusal(connection_state, stream, error))),
    }
}

/// Returns the cause of an error instead of its consequence.
fn refusal(connection_state: &ConnectionState, stream: StreamId, error: SubmitError) -> Error {
    if connection_state.closed.is_some() {
        return ended(connection_state);
    }
    let Some(sending) = connection_state.sending.get(&stream) else {
        return if connection_state.has_removed(stream) { error.into() } else { Error::Unknown("stream") };
    };
    match sending.refused {
        Some(reason) => Error::Refused { stream, reason },
        None if error == SubmitError::Finished && !sending.finished => Error::Closing { remote: connection_state.remote },
        None => error.into(),
    }
}

fn takes_segments(connection_state: &ConnectionState) -> Result<(), Error> {
    if connection_state.closed.is_some() {
        return Err(ended(connection_state));
    }
    if connection_state.closing || connection_state.peer_closing {
        return Err(Error::Closing { remote: connection_state.remote });
    }
    Ok(())
}
