//! What is done with streams of the peer: segments in, whole or unit by unit.
//!
//! Called by both interfaces. Invariant: a segment is handed out once; taking it frees its room in the window.

use super::{Hub, ended};
use crate::inbox::Inbox;
use crate::progress::{Progress, Progressive, units};
use crate::{ConnectionId, Contract, Error, Received, StreamId, Timestamp};
use std::task::Poll;

impl Hub {
    /// The next stream the peer has opened; `None` when the connection has ended as it should.
    pub(crate) fn poll_accept_stream(&mut self, id: ConnectionId) -> Poll<Result<Option<StreamId>, Error>> {
        let (_, inbox) = match self.parts(id) {
            Ok(parts) => parts,
            Err(error) => return Poll::Ready(Err(error)),
        };
        match inbox.opened.pop_front() {
            Some(stream) => Poll::Ready(Ok(Some(stream))),
            None => end_of_connection(inbox),
        }
    }

    /// The next judged segment, if one is there.
    pub(crate) fn try_recv(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> Option<Received> {
        let (connection, inbox) = self.parts(id).ok()?;
        let Some(progress) = inbox.receiving.get_mut(&stream).and_then(|receiving| receiving.progress.as_mut()) else {
            return connection.recv(now, stream);
        };
        if let Some(received) = progress.take_whole() {
            return Some(received);
        }
        let received = connection.recv(now, stream)?;
        progress.on_taken(received.segment);
        Some(received)
    }

    /// Whether the connection has a report to send for what the application has taken.
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

    /// The next units or judged segment of a stream read unit by unit, which it is from now on; `None` when the
    /// stream has ended.
    pub(crate) fn poll_progress(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> Poll<Result<Option<Progress>, Error>> {
        match self.try_progress(now, id, stream) {
            Ok(Some(progress)) => Poll::Ready(Ok(Some(progress))),
            Ok(None) => self.end_of_stream(id, stream),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// The next units or judged segment, if there are any.
    pub(crate) fn try_progress(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> Result<Option<Progress>, Error> {
        let (connection, inbox) = self.parts(id)?;
        let receiving = inbox.receiving.entry(stream).or_default();
        let progress =
            receiving.progress.get_or_insert_with(|| Box::new(Progressive::starting_with(connection.read_progressively(stream))));
        if let Some(told) = progress.take_held() {
            return Ok(Some(told));
        }
        // Why first: a reader that lags behind hears of the judged segments, which hold the window up.
        if let Some(received) = connection.recv(now, stream) {
            progress.hold(received);
            return Ok(progress.take_held());
        }
        let Some((segment, first, count)) = progress.take_fresh() else { return Ok(None) };
        let unit_bytes = connection.receiving_contract(stream).map_or(1, |contract| contract.unit_bytes);
        let bytes = connection.peek(stream, segment);
        Ok(Some(Progress::Units(units(stream, segment, (first, count), unit_bytes, bytes))))
    }

    /// The contract of a stream of the peer.
    pub(crate) fn receiving_contract(&self, id: ConnectionId, stream: StreamId) -> Result<&Contract, Error> {
        let connection = self.protocol.connection(id).ok_or(Error::Unknown("connection"))?;
        let kept = || self.inboxes.get(&id)?.receiving.get(&stream)?.contract.as_deref();
        connection.receiving_contract(stream).or_else(kept).ok_or(Error::Unknown("stream"))
    }

    /// Nobody will read the stream any more: what comes is thrown away.
    pub(crate) fn discard(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) {
        if let Ok((_, inbox)) = self.parts(id) {
            let receiving = inbox.receiving.entry(stream).or_default();
            receiving.discarded = true;
            receiving.progress = None;
        }
        self.throw_away(now, id, stream);
    }

    /// Streams that nobody was given are thrown away, and so are those the peer will open.
    pub(crate) fn discard_unaccepted(&mut self, now: Timestamp, id: ConnectionId) {
        if let Ok((_, inbox)) = self.parts(id) {
            inbox.takes_no_streams = true;
        }
        while let Some(stream) = self.parts(id).ok().and_then(|(_, inbox)| inbox.opened.pop_front()) {
            self.discard(now, id, stream);
        }
    }

    /// Whatever comes is thrown away.
    pub(crate) fn discard_all(&mut self, now: Timestamp, id: ConnectionId) {
        self.discard_unaccepted(now, id);
        let streams = self.parts(id).map(|(_, inbox)| inbox.receiving.keys().copied().collect::<Vec<StreamId>>()).unwrap_or_default();
        for stream in streams {
            self.discard(now, id, stream);
        }
    }

    pub(super) fn throw_away(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) {
        if let Some(connection) = self.protocol.connection_mut(id) {
            while connection.recv(now, stream).is_some() {}
        }
    }

    fn end_of_stream<T>(&mut self, id: ConnectionId, stream: StreamId) -> Poll<Result<Option<T>, Error>> {
        match self.parts(id) {
            Err(error) => Poll::Ready(Err(error)),
            Ok((_, inbox)) if inbox.receiving.get(&stream).is_some_and(|receiving| receiving.ended) => Poll::Ready(Ok(None)),
            // Why second: of a stream that has ended nothing is kept once another one was opened.
            Ok((connection, _)) if connection.has_retired(stream) => Poll::Ready(Ok(None)),
            Ok((_, inbox)) => end_of_connection(inbox),
        }
    }
}

fn end_of_connection<T>(inbox: &Inbox) -> Poll<Result<Option<T>, Error>> {
    match inbox.closed {
        None => Poll::Pending,
        Some(_) if inbox.closed_gracefully() => Poll::Ready(Ok(None)),
        Some(_) => Poll::Ready(Err(ended(inbox))),
    }
}
