//! A stream of the peer: receives segments, whole or unit by unit.
//!
//! Called by applications. Invariant: a segment is returned once; taking it opens the window.

use super::connection::ConnectionGuard;
use super::shared_state::SharedNotify;
use crate::{Contract, Error, Progress, Received, SegmentNumber, StreamId};
use std::sync::Arc;

/// A stream of the peer. When it is dropped, what still arrives on the stream is discarded, so that the peer does not wait for a window
/// that never opens. The verdicts still say what has arrived.
#[derive(Debug)]
pub struct StreamReceiver {
    held: Arc<ConnectionGuard>,
    stream: StreamId,
    // Why stored here: the connection removes a stream that has ended.
    contract: Contract,
    notify: SharedNotify,
}

impl Drop for StreamReceiver {
    fn drop(&mut self) {
        self.held.handle.change(|state, now| {
            state.endpoint_state.discard(now, self.held.id, self.stream);
            state.drop_receiving(self.held.id, self.stream);
        });
    }
}

impl StreamReceiver {
    pub(super) const fn new(held: Arc<ConnectionGuard>, stream: StreamId, contract: Contract, notify: SharedNotify) -> Self {
        Self { held, stream, contract, notify }
    }

    /// The stream's number at both ends.
    pub const fn stream(&self) -> StreamId {
        self.stream
    }

    /// The contract, with the window as granted.
    pub fn contract(&self) -> Contract {
        self.contract.clone()
    }

    /// Waits for the next judged segment. `None` when the stream has ended. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the connection was not closed gracefully; segments judged before are returned first.
    pub async fn recv(&mut self) -> Result<Option<Received>, Error> {
        self.held.handle.wait_for(&self.notify, |state, now| state.endpoint_state.poll_recv(now, self.held.id, self.stream)).await
    }

    /// Like [`StreamReceiver::recv`] into a buffer of the caller: copies what fits, and returns the length of the segment in bytes and
    /// its description, whose `bytes` are empty.
    pub async fn recv_into(&mut self, buffer: &mut [u8]) -> Result<Option<(usize, Received)>, Error> {
        let received = self.recv().await?;
        Ok(received.map(|received| crate::progress::copy_into(buffer, received)))
    }

    /// Waits for judged segments and appends those that are there to `into`, no more than `most` or 1024; how many. 0 when the stream
    /// has ended. For many short segments: the endpoint is locked and its task woken once for all of them. Cancel safe.
    ///
    /// # Errors
    ///
    /// As [`StreamReceiver::recv`].
    pub async fn recv_many(&mut self, into: &mut Vec<Received>, most: usize) -> Result<usize, Error> {
        self.held
            .handle
            .wait_for(&self.notify, |state, now| state.endpoint_state.poll_recv_many(now, (self.held.id, self.stream), into, most))
            .await
    }

    /// The next judged segment, if there is one.
    pub fn try_recv(&mut self) -> Option<Received> {
        self.held.handle.change(|state, now| state.endpoint_state.try_recv(now, self.held.id, self.stream))
    }

    /// Tells the peer that all segments below `segments` are safe with this application, as [`crate::blocking::Connection::confirm`]. A
    /// receiver that is dropped confirms no more.
    ///
    /// # Errors
    ///
    /// [`Error::Confirm`] if not all of them were taken, the stream is gone, or the peer does not know confirmations.
    pub fn confirm(&self, segments: SegmentNumber) -> Result<(), Error> {
        self.held.handle.change(|state, now| state.endpoint_state.confirm(now, self.held.id, self.stream, segments))
    }

    /// No more will be confirmed: the peer is told, and the stream can end.
    pub fn confirm_no_more(&self) -> Result<(), Error> {
        self.held.handle.change(|state, now| state.endpoint_state.confirm_no_more(now, self.held.id, self.stream))
    }

    /// Waits for the next units, or for a segment that is judged and whose units were all returned. `None` if the stream has ended. From
    /// the first call on the stream is read unit by unit; [`StreamReceiver::recv`] still returns whole segments. Cancel safe.
    ///
    /// Every unit that arrives is returned exactly once, in order of arrival within its segment, before the verdict on the segment.
    /// Units of later segments may come in between.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the connection was not closed gracefully; what arrived before is returned first.
    pub async fn next_units(&mut self) -> Result<Option<Progress>, Error> {
        self.held.handle.wait_for(&self.notify, |state, now| state.endpoint_state.poll_progress(now, self.held.id, self.stream)).await
    }
}
