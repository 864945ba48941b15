//! The operations on streams of the peer: receiving segments, whole or unit by unit.
//!
//! Called by both interfaces. Invariant: a segment is returned once; taking it opens the window.

use super::{BATCH_SEGMENTS_MAX, EndpointState, ended};
use crate::connection_state::ConnectionState;
use crate::progress::{Progress, Progressive, units};
use crate::{ConnectionId, Contract, Error, Received, StreamId, Timestamp};
use std::task::Poll;

impl EndpointState {
    /// The next stream that the peer has opened; `None` if the connection was closed gracefully.
    pub(crate) fn poll_accept_stream(&mut self, id: ConnectionId) -> Poll<Result<Option<StreamId>, Error>> {
        let (_, connection_state) = self.parts(id)?;
        match connection_state.opened.pop_front() {
            Some(stream) => Poll::Ready(Ok(Some(stream))),
            None => end_of_connection(connection_state),
        }
    }

    /// The next judged segment, if one is there.
    pub(crate) fn try_recv(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> Option<Received> {
        let received = self.take_judged(now, id, stream);
        #[cfg(feature = "metrics")]
        if let (Some(publisher), Some(received)) = (&mut self.publisher, &received) {
            publisher.on_received(id, received);
        }
        received
    }

    fn take_judged(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> Option<Received> {
        let (connection, connection_state) = self.parts(id).ok()?;
        let Some(progress) = connection_state.receiving.get_mut(&stream).and_then(|receiving| receiving.progress.as_mut()) else {
            return connection.recv(now, stream);
        };
        if let Some(received) = progress.take_judged() {
            return Some(received);
        }
        let received = connection.recv(now, stream)?;
        progress.on_taken(received.segment);
        Some(received)
    }

    /// Whether the connection wants to send a report because the application has taken segments.
    pub(crate) fn wants_report(&self, now: Timestamp, id: ConnectionId) -> bool {
        self.protocol.connection(id).is_some_and(|connection| connection.wants_report(now))
    }

    /// The next judged segment; `None` when the stream has ended.
    pub(crate) fn poll_recv(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> Poll<Result<Option<Received>, Error>> {
        match self.try_recv(now, id, stream) {
            Some(received) => Poll::Ready(Ok(Some(received))),
            None => self.end_of_stream(id, stream),
        }
    }

    /// Appends the judged segments that are there to `into`, one at least, no more than `most` or
    /// [`BATCH_SEGMENTS_MAX`]; how many. 0 when the stream has ended.
    pub(crate) fn poll_recv_many(
        &mut self,
        now: Timestamp,
        (id, stream): (ConnectionId, StreamId),
        into: &mut Vec<Received>,
        most: usize,
    ) -> Poll<Result<usize, Error>> {
        let before = into.len();
        into.extend(core::iter::from_fn(|| self.try_recv(now, id, stream)).take(most.min(BATCH_SEGMENTS_MAX)));
        match into.len() - before {
            0 if most > 0 => self.end_of_stream::<()>(id, stream).map_ok(|_| 0),
            count => Poll::Ready(Ok(count)),
        }
    }

    /// The next units or judged segment. From now on the stream is read unit by unit. `None` if the stream has ended.
    pub(crate) fn poll_progress(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> Poll<Result<Option<Progress>, Error>> {
        match self.try_progress(now, id, stream)? {
            Some(progress) => Poll::Ready(Ok(Some(progress))),
            None => self.end_of_stream(id, stream),
        }
    }

    /// The next units or judged segment, if there are any.
    pub(crate) fn try_progress(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> Result<Option<Progress>, Error> {
        let (connection, connection_state) = self.parts(id)?;
        let receiving = connection_state.receiving.entry(stream).or_default();
        let progress =
            receiving.progress.get_or_insert_with(|| Box::new(Progressive::starting_with(connection.read_progressively(stream))));
        if let Some(told) = progress.take_from_judged() {
            return Ok(Some(told));
        }
        // Why first: for a slow reader, judged segments keep the window closed.
        if let Some(received) = connection.recv(now, stream) {
            progress.hold(received);
            return Ok(progress.take_from_judged());
        }
        let Some((segment, run)) = progress.take_new_units() else { return Ok(None) };
        let unit_bytes = connection.receiving_contract(stream).map_or(1, |contract| contract.unit_bytes);
        let bytes = connection.peek(stream, segment);
        Ok(Some(Progress::Units(units(stream, segment, run, unit_bytes, bytes))))
    }

    /// The contract of a stream of the peer.
    pub(crate) fn receiving_contract(&self, id: ConnectionId, stream: StreamId) -> Result<&Contract, Error> {
        let connection = self.connection(id)?;
        let kept = || self.states.get(&id)?.receiving.get(&stream)?.contract.as_deref();
        connection.receiving_contract(stream).or_else(kept).ok_or(Error::Unknown("stream"))
    }

    /// The stream will not be read any more: what arrives on it is discarded.
    pub(crate) fn discard(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) {
        if let Ok((_, connection_state)) = self.parts(id) {
            let receiving = connection_state.receiving.entry(stream).or_default();
            receiving.discarded = true;
            receiving.progress = None;
        }
        if let Ok((connection, _)) = self.parts(id) {
            connection.confirm_no_more(now, stream);
        }
        self.discard_received(now, id, stream);
    }

    /// Discards streams that were not accepted, and those that the peer will open.
    pub(crate) fn discard_unaccepted(&mut self, now: Timestamp, id: ConnectionId) {
        if let Ok((_, connection_state)) = self.parts(id) {
            connection_state.refuses_streams = true;
        }
        while let Some(stream) = self.parts(id).ok().and_then(|(_, connection_state)| connection_state.opened.pop_front()) {
            self.discard(now, id, stream);
        }
    }

    /// Discards all that arrives.
    pub(crate) fn discard_all(&mut self, now: Timestamp, id: ConnectionId) {
        self.discard_unaccepted(now, id);
        let streams = self
            .parts(id)
            .map(|(_, connection_state)| connection_state.receiving.keys().copied().collect::<Vec<StreamId>>())
            .unwrap_or_default();
        for stream in streams {
            self.discard(now, id, stream);
        }
    }

    pub(super) fn discard_received(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) {
        if let Some(connection) = self.protocol.connection_mut(id) {
            while connection.recv(now, stream).is_some() {}
        }
    }

    fn end_of_stream<T>(&mut self, id: ConnectionId, stream: StreamId) -> Poll<Result<Option<T>, Error>> {
        let (connection, connection_state) = self.parts(id)?;
        let ended = connection_state.receiving.get(&stream).is_some_and(|receiving| receiving.ended);
        // Why also: the state of an ended stream is removed when another one is opened.
        if ended || connection.has_retired(stream) { Poll::Ready(Ok(None)) } else { end_of_connection(connection_state) }
    }
}

fn end_of_connection<T>(connection_state: &ConnectionState) -> Poll<Result<Option<T>, Error>> {
    match connection_state.closed {
        None => Poll::Pending,
        Some(_) if connection_state.closed_gracefully() => Poll::Ready(Ok(None)),
        Some(_) => Poll::Ready(Err(ended(connection_state))),
    }
}
