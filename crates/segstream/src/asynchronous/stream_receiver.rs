//! A stream of the peer: segments in, whole or unit by unit.
//!
//! Called by applications. Invariant: a segment is handed out once; taking it frees its room in the window.

use super::connection::Held;
use super::shared_state::SharedNotify;
use crate::{Contract, Error, Progress, Received, StreamId};
use std::sync::Arc;

/// A stream of the peer. When it is dropped, what still comes on the stream is thrown away, so that the peer need
/// not wait for a window that never opens; the verdicts say what has arrived all the same.
#[derive(Debug)]
pub struct StreamReceiver {
    held: Arc<Held>,
    stream: StreamId,
    // Why kept here: of a stream that has ended the connection keeps nothing.
    contract: Contract,
    notify: SharedNotify,
}

impl Drop for StreamReceiver {
    fn drop(&mut self) {
        self.held.handle.change(|state, now| {
            state.hub.discard(now, self.held.id, self.stream);
            state.drop_receiving(self.held.id, self.stream);
        });
    }
}

impl StreamReceiver {
    pub(super) const fn new(held: Arc<Held>, stream: StreamId, contract: Contract, notify: SharedNotify) -> Self {
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
    /// [`Error::Closed`] when the connection has broken off; segments judged before are handed out first.
    pub async fn recv(&mut self) -> Result<Option<Received>, Error> {
        self.held.handle.wait_for(&self.notify, |state, now| state.hub.poll_recv(now, self.held.id, self.stream)).await
    }

    /// Like [`StreamReceiver::recv`] into a buffer of the caller's: copies what fits and gives the length of the
    /// segment in bytes together with its description, whose `bytes` are empty.
    pub async fn recv_into(&mut self, buffer: &mut [u8]) -> Result<Option<(usize, Received)>, Error> {
        let received = self.recv().await?;
        Ok(received.map(|received| crate::progress::copy_into(buffer, received)))
    }

    /// The next judged segment, if one is there.
    pub fn try_recv(&mut self) -> Option<Received> {
        self.held.handle.change(|state, now| state.hub.try_recv(now, self.held.id, self.stream))
    }

    /// Waits for the next units, or for a segment all of whose units have been told and which is judged now. `None`
    /// when the stream has ended. From the first call on the stream is read unit by unit;
    /// [`StreamReceiver::recv`] still gives whole segments. Cancel safe.
    ///
    /// Every unit that arrives is told exactly once, in the order of arrival within its segment, before the verdict
    /// on it. Units of later segments may come in between.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the connection has broken off; what arrived before is handed out first.
    pub async fn next_units(&mut self) -> Result<Option<Progress>, Error> {
        self.held.handle.wait_for(&self.notify, |state, now| state.hub.poll_progress(now, self.held.id, self.stream)).await
    }
}
