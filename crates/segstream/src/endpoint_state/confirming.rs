//! Confirmations: what the receiving application has in safety, told at its end and heard at the other.
//!
//! Called by the handles of streams. Invariant: what was heard of a stream can be read after its end, until the application has read it.

use super::{EndpointState, ended};
use crate::{ConnectionId, Durable, Error, SegmentNumber, StreamId, Timestamp};
use std::task::Poll;

impl EndpointState {
    /// All segments of a stream of the peer below `segments` are safe.
    pub(crate) fn confirm(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId, segments: SegmentNumber) -> Result<(), Error> {
        let (connection, connection_state) = self.parts(id)?;
        if connection_state.closed.is_some() {
            return Err(ended(connection_state));
        }
        Ok(connection.confirm(now, stream, segments)?)
    }

    /// No more of a stream of the peer will be confirmed.
    pub(crate) fn confirm_no_more(&mut self, now: Timestamp, id: ConnectionId, stream: StreamId) -> Result<(), Error> {
        let (connection, _) = self.parts(id)?;
        connection.confirm_no_more(now, stream);
        Ok(())
    }

    /// Whether the peer's application confirms what it receives.
    pub(crate) fn peer_confirms(&self, id: ConnectionId) -> Result<bool, Error> {
        self.connection(id).map(|connection| connection.peer_confirms())
    }

    /// What the peer has of a stream of ours.
    pub(crate) fn durable(&mut self, id: ConnectionId, stream: StreamId) -> Result<Durable, Error> {
        let (connection, connection_state) = self.parts(id)?;
        let Some(sending) = connection_state.sending.get_mut(&stream) else { return Err(Error::Unknown("stream")) };
        if connection_state.connected && !connection.peer_confirms() {
            return Err(Error::NotConfirming);
        }
        sending.durable_unread = false;
        Ok(sending.durable)
    }

    /// What the peer has of a stream of ours, once that is all below `segments`, or it will confirm no more.
    pub(crate) fn poll_durable(&mut self, id: ConnectionId, stream: StreamId, segments: SegmentNumber) -> Poll<Result<Durable, Error>> {
        let durable = self.durable(id, stream)?;
        let (_, connection_state) = self.parts(id)?;
        if durable.segments >= segments || durable.last {
            return Poll::Ready(Ok(durable));
        }
        if let Some(reason) = connection_state.sending.get(&stream).and_then(|sending| sending.refused) {
            return Poll::Ready(Err(Error::Refused { stream, reason }));
        }
        if connection_state.closed.is_some() { Poll::Ready(Err(ended(connection_state))) } else { Poll::Pending }
    }
}
