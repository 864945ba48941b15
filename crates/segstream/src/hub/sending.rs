//! What is done with streams of ours: segments out, verdicts back.
//!
//! Called by both interfaces. Invariant: a segment is taken whole or not at all; each one taken gets one verdict.

use super::{Hub, ended};
use crate::inbox::{Inbox, Sending};
use crate::verdicts::{Judged, Lookup};
use crate::{Bytes, ConnectionId, Contract, Error, OpenStreamError, SegmentNumber, StreamId, SubmitError, Timestamp, Tolerance, Verdict};
use std::task::Poll;

/// A tolerance of a segment's own.
pub(crate) type Own = Option<Tolerance>;

impl Hub {
    /// Opens a stream, unless as many are live as the peer allows.
    pub(crate) fn poll_open_stream(&mut self, now: Timestamp, id: ConnectionId, contract: &Contract) -> Poll<Result<StreamId, Error>> {
        match self.open_stream(now, id, contract.clone()) {
            Err(Error::OpenStream(OpenStreamError::TooManyStreams { .. })) => Poll::Pending,
            opened => Poll::Ready(opened),
        }
    }

    /// Opens a stream.
    pub(crate) fn open_stream(&mut self, now: Timestamp, id: ConnectionId, contract: Contract) -> Result<StreamId, Error> {
        let (connection, inbox) = self.parts(id)?;
        takes_segments(inbox)?;
        let stream = connection.open_stream(now, contract)?;
        inbox.on_opened(stream);
        Ok(stream)
    }

    /// What a stream does with a new segment when its send buffer is full.
    pub(crate) fn set_drop_oldest(&mut self, id: ConnectionId, stream: StreamId, drops_oldest: bool) -> Result<(), Error> {
        self.sending(id, stream)?;
        self.parts(id)?.0.set_drop_oldest(stream, drops_oldest);
        Ok(())
    }

    /// Takes a whole segment, unless the send buffer is full.
    pub(crate) fn poll_send(
        &mut self,
        now: Timestamp,
        (id, stream): (ConnectionId, StreamId),
        bytes: Bytes,
        source_time: Timestamp,
        own: Own,
    ) -> Poll<Result<SegmentNumber, Error>> {
        let (connection, inbox) = match self.parts(id) {
            Ok(parts) => parts,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let sent = connection.send(now, stream, bytes, source_time, own);
        accepted(inbox, stream, sent)
    }

    /// Opens a segment, unless the send buffer is full.
    pub(crate) fn poll_open(
        &mut self,
        now: Timestamp,
        (id, stream): (ConnectionId, StreamId),
        source_time: Timestamp,
        own: Own,
    ) -> Poll<Result<SegmentNumber, Error>> {
        let (connection, inbox) = match self.parts(id) {
            Ok(parts) => parts,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let opened = connection.open_segment(now, stream, source_time, own);
        accepted(inbox, stream, opened)
    }

    /// Appends to the open segment, unless the send buffer is full.
    pub(crate) fn poll_append(
        &mut self,
        now: Timestamp,
        (id, stream): (ConnectionId, StreamId),
        bytes: &[u8],
        last: bool,
    ) -> Poll<Result<Option<Verdict>, Error>> {
        let (connection, inbox) = match self.parts(id) {
            Ok(parts) => parts,
            Err(error) => return Poll::Ready(Err(error)),
        };
        match connection.append(now, stream, bytes, last) {
            Err(SubmitError::Blocked) if inbox.closed.is_none() => Poll::Pending,
            Err(error) => Poll::Ready(Err(refusal(inbox, stream, error))),
            Ok(verdict) => Poll::Ready(Ok(verdict)),
        }
    }

    /// The open segment ends where it stands: at once, or when the send buffer has room again.
    pub(crate) fn end_segment(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) {
        let pending = self.poll_append(now, (id, stream), &[], true).is_pending();
        if let Some(sending) = self.inboxes.get_mut(&id).and_then(|inbox| inbox.sending.get_mut(&stream)) {
            sending.end_owed = pending;
        }
    }

    /// There is room again: the end of a segment that could not be noted before.
    pub(super) fn end_owed(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> bool {
        let sending = self.inboxes.get(&id).and_then(|inbox| inbox.sending.get(&stream));
        let owed = sending.is_some_and(|sending| sending.end_owed);
        if owed {
            self.end_segment(now, id, stream);
        }
        owed
    }

    /// No more segments will come on `stream`.
    pub(crate) fn finish_stream(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> Result<(), Error> {
        let (connection, inbox) = self.parts(id)?;
        let Some(sending) = inbox.sending.get_mut(&stream) else { return Err(Error::Unknown("stream")) };
        sending.finished = true;
        connection.finish_stream(now, stream);
        Ok(())
    }

    /// The verdict on a segment, once.
    pub(crate) fn poll_verdict(&mut self, id: ConnectionId, stream: StreamId, segment: SegmentNumber) -> Poll<Result<Judged, Error>> {
        let sending = match self.sending(id, stream) {
            Ok(sending) => sending,
            Err(error) => return Poll::Ready(Err(error)),
        };
        match (sending.verdicts.take(segment), sending.refused) {
            (Lookup::Judged(judged), _) => Poll::Ready(Ok(judged)),
            (Lookup::Gone, _) => Poll::Ready(Err(Error::Unknown("segment"))),
            (Lookup::Expected, Some(reason)) => Poll::Ready(Err(Error::Refused { stream, reason })),
            (Lookup::Expected, None) => Poll::Pending,
        }
    }

    /// The next verdict of a stream; `None` when no more will come.
    pub(crate) fn poll_next_verdict(&mut self, id: ConnectionId, stream: StreamId) -> Poll<Result<Option<Judged>, Error>> {
        let (_, inbox) = match self.parts(id) {
            Ok(parts) => parts,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let over = inbox.closed.is_some() || inbox.closing || inbox.peer_closing;
        if inbox.has_forgotten(stream) {
            return Poll::Ready(Ok(None));
        }
        let Some(sending) = inbox.sending.get_mut(&stream) else { return Poll::Ready(Err(Error::Unknown("stream"))) };
        if let Some(judged) = sending.verdicts.take_next() {
            return Poll::Ready(Ok(Some(judged)));
        }
        if let (Some(reason), None) = (sending.refused, inbox.closed.as_ref()) {
            return Poll::Ready(Err(Error::Refused { stream, reason }));
        }
        let no_more = (sending.finished || over) && !sending.verdicts.has_expected();
        if no_more { Poll::Ready(Ok(None)) } else { Poll::Pending }
    }

    fn sending(&mut self, id: ConnectionId, stream: StreamId) -> Result<&mut Sending, Error> {
        let (_, inbox) = self.parts(id)?;
        let unknown = if inbox.has_forgotten(stream) { "segment" } else { "stream" };
        inbox.sending.get_mut(&stream).ok_or(Error::Unknown(unknown))
    }
}

fn accepted(inbox: &mut Inbox, stream: StreamId, taken: Result<SegmentNumber, SubmitError>) -> Poll<Result<SegmentNumber, Error>> {
    match taken {
        Ok(segment) => {
            if let Some(sending) = inbox.sending.get_mut(&stream) {
                sending.verdicts.expect();
            }
            Poll::Ready(Ok(segment))
        }
        Err(SubmitError::Blocked) if inbox.closed.is_none() => Poll::Pending,
        Err(error) => Poll::Ready(Err(refusal(inbox, stream, error))),
    }
}

/// Says the cause instead of its consequence.
fn refusal(inbox: &Inbox, stream: StreamId, error: SubmitError) -> Error {
    if inbox.closed.is_some() {
        return ended(inbox);
    }
    let Some(sending) = inbox.sending.get(&stream) else {
        return if inbox.has_forgotten(stream) { error.into() } else { Error::Unknown("stream") };
    };
    match sending.refused {
        Some(reason) => Error::Refused { stream, reason },
        None if error == SubmitError::Finished && !sending.finished => Error::Closing { remote: inbox.remote },
        None => error.into(),
    }
}

fn takes_segments(inbox: &Inbox) -> Result<(), Error> {
    if inbox.closed.is_some() {
        return Err(ended(inbox));
    }
    if inbox.closing || inbox.peer_closing {
        return Err(Error::Closing { remote: inbox.remote });
    }
    Ok(())
}
