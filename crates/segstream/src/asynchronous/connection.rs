//! A connection for tokio: streams in both directions, rate and class, the end.
//!
//! Called by applications. Invariant: a connection lives as long as any handle of it or of its streams.

use super::shared_state::{Handle, SharedNotify, SharedState};
use super::stream_sender::StreamGuard;
use super::{StreamReceiver, StreamSender};
use crate::connection_state::EventScope;
use crate::{
    Bandwidth, Class, CloseReason, ConnectionId, Contract, Error, Fingerprint, Rate, SegmentNumber, Statistics, StreamId, StreamStatistics,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::ready;

/// One connection. Clones are the same connection.
///
/// When the last handle of the connection and of its streams is dropped, the connection is closed gracefully in the background: what was
/// accepted for sending is delivered first, and what the peer still sends is discarded. [`Connection::close`] does the same and
/// returns the result.
#[derive(Clone, Debug)]
pub struct Connection {
    held: Arc<ConnectionGuard>,
    notify: SharedNotify,
    remote: SocketAddr,
}

/// Keeps a connection alive.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    pub(super) handle: Handle,
    pub(super) id: ConnectionId,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.handle.change(|state, now| state.release(now, self.id));
    }
}

impl Connection {
    /// Makes the first handle.
    pub(super) fn new(handle: &Handle, state: &mut SharedState, id: ConnectionId, remote: SocketAddr) -> Self {
        let notify = state.notify_for(id, EventScope::Connection);
        Self { held: Arc::new(ConnectionGuard { handle: handle.clone(), id }), notify, remote }
    }

    /// Waits until the connection is established.
    pub(super) async fn connected(&self) -> Result<(), Error> {
        self.held.handle.wait_for(&self.notify, |state, _| state.endpoint_state.poll_connected(self.held.id)).await
    }

    /// A handle for a stream of ours.
    pub(super) fn sender(&self, state: &mut SharedState, stream: StreamId) -> StreamSender {
        StreamSender::new(StreamGuard {
            notify: state.notify_for(self.held.id, EventScope::Sending(stream)),
            held: Arc::clone(&self.held),
            stream,
        })
    }

    /// The identifier of the connection at its endpoint.
    pub fn id(&self) -> ConnectionId {
        self.held.id
    }

    /// The peer's address.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Opens a stream. Segments can be sent at once; they leave when the peer has granted a window. The number of streams in total is
    /// not limited: one that is finished, judged and read by the peer makes room for the next.
    ///
    /// # Errors
    ///
    /// [`Error::OpenStream`] while as many streams are live as the peer allows.
    pub fn open_stream(&self, contract: Contract) -> Result<StreamSender, Error> {
        self.held.handle.change(|state, now| {
            let stream = state.endpoint_state.open_stream(now, self.held.id, contract)?;
            Ok(self.sender(state, stream))
        })
    }

    /// Like [`Connection::open_stream`], but waits while as many streams are live as the peer allows. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the connection has ended.
    pub async fn open_stream_when_allowed(&self, contract: Contract) -> Result<StreamSender, Error> {
        let held = &self.held;
        held.handle
            .wait_for(&self.notify, |state, now| {
                state.endpoint_state.poll_open_stream(now, held.id, &contract).map_ok(|stream| self.sender(state, stream))
            })
            .await
    }

    /// Waits for the next stream that the peer opens. `None` if the connection was closed gracefully. Cancel safe. A stream that is not
    /// accepted is not read, so its window closes and its sender waits.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the connection ended in another way.
    pub async fn accept_stream(&self) -> Result<Option<StreamReceiver>, Error> {
        let held = &self.held;
        held.handle
            .wait_for(&self.notify, |state, _| {
                state.endpoint_state.poll_accept_stream(held.id).map_ok(|stream| {
                    stream.map(|stream| {
                        let notify = state.notify_for(held.id, EventScope::Receiving(stream));
                        let contract = state.endpoint_state.receiving_contract(held.id, stream).cloned().unwrap_or_default();
                        StreamReceiver::new(Arc::clone(held), stream, contract, notify)
                    })
                })
            })
            .await
    }

    /// Sets the rate in our direction, in force at once: a [`crate::RateSpec`] is a fixed rate, [`Rate::AUTO`] is
    /// congestion-controlled.
    ///
    /// # Errors
    ///
    /// [`Error::Rate`] for an automatic rate whose bounds contradict each other, or under a class without rate control.
    pub fn set_rate(&self, rate: impl Into<Rate>) -> Result<(), Error> {
        let rate = rate.into();
        self.held.handle.change(|state, now| state.endpoint_state.set_rate(now, self.held.id, rate))
    }

    /// The fingerprint of the peer's authenticated key; `None` in plain mode and after the connection was removed.
    pub fn peer_fingerprint(&self) -> Option<Fingerprint> {
        self.held.handle.read(|state| state.endpoint_state.peer_fingerprint(self.held.id))
    }

    /// The rate in force in our direction, in whole IP packets; `None` when unpaced.
    pub fn rate(&self) -> Option<Bandwidth> {
        self.held.handle.read(|state| state.endpoint_state.rate(self.held.id)).ok().flatten()
    }

    /// Waits until the rate has changed by more than 5 % since it was last returned, and returns it. An automatic rate is reported at
    /// most ten times a second; an encoder should follow it. Each change is returned once, to the first task that waits. Cancel
    /// safe.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the connection has ended.
    pub async fn rate_changed(&self) -> Result<Bandwidth, Error> {
        self.held.handle.wait_for(&self.notify, |state, _| state.endpoint_state.poll_rate_changed(self.held.id)).await
    }

    /// Changes the class in our direction, and waits until it is in force. When the future is dropped, the change
    /// goes on.
    ///
    /// # Errors
    ///
    /// [`Error::Unlimited`] for a class with neither flow control nor rate control, [`Error::Rate`] for one without rate
    /// control while the rate is automatic.
    pub async fn set_class(&self, class: Class) -> Result<(), Error> {
        let held = &self.held;
        held.handle.change(|state, now| {
            state.notify(held.id, EventScope::Connection);
            state.endpoint_state.set_class(now, held.id, class)
        })?;
        held.handle.wait_for(&self.notify, |state, _| state.endpoint_state.poll_class(held.id, class)).await
    }

    /// As [`StreamReceiver::confirm`], for a task that writes to disk what another receives.
    ///
    /// # Errors
    ///
    /// [`Error::Confirm`] if not all of them were taken, there is no such stream, or the peer does not know confirmations.
    pub fn confirm(&self, stream: StreamId, segments: SegmentNumber) -> Result<(), Error> {
        self.held.handle.change(|state, now| state.endpoint_state.confirm(now, self.held.id, stream, segments))
    }

    /// As [`StreamReceiver::confirm_no_more`], for such a task.
    pub fn confirm_no_more(&self, stream: StreamId) -> Result<(), Error> {
        self.held.handle.change(|state, now| state.endpoint_state.confirm_no_more(now, self.held.id, stream))
    }

    /// The statistics so far.
    pub fn statistics(&self) -> Statistics {
        self.held.handle.read(|state| state.endpoint_state.statistics(self.held.id)).unwrap_or_default()
    }

    /// The statistics of one stream of ours so far; all zero when there is no such stream.
    pub fn stream_statistics(&self, stream: StreamId) -> StreamStatistics {
        self.held.handle.read(|state| state.endpoint_state.stream_statistics(self.held.id, stream).unwrap_or_default())
    }

    /// Whether any segment of ours has no verdict yet.
    pub fn has_unjudged(&self) -> bool {
        self.held.handle.read(|state| state.endpoint_state.has_unjudged(self.held.id)).unwrap_or(false)
    }

    /// Closes gracefully: finishes every stream, and waits until every segment accepted at both ends is judged and the peer has
    /// confirmed. Streams of the peer that were not accepted are discarded from now on. Existing receivers can still be read, and
    /// must be read if the peer has much to send. Verdicts can still be read afterwards. If the future is dropped, the closing
    /// goes on.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the connection ended in another way.
    pub async fn close(&self, code: u64, detail: &str) -> Result<(), Error> {
        let held = &self.held;
        held.handle.change(|state, now| {
            state.endpoint_state.close(now, held.id, code, detail)?;
            state.endpoint_state.discard_unaccepted(now, held.id);
            state.notify(held.id, EventScope::All);
            Ok::<_, Error>(())
        })?;
        held.handle
            .wait_for(&self.notify, |state, _| {
                ready!(state.endpoint_state.poll_closed(held.id))?;
                state.endpoint_state.graceful_end(held.id)
            })
            .await
    }

    /// Aborts the connection at once; segments without a verdict are *unknown*.
    pub fn abort(&self, code: u64, detail: &str) {
        // Why the result is ignored: a connection that has ended cannot be aborted.
        let _ = self.held.handle.change(|state, now| state.endpoint_state.abort(now, self.held.id, code, detail));
    }

    /// Waits until the connection has ended, and returns the reason. Cancel safe.
    pub async fn closed(&self) -> CloseReason {
        let ended = self.held.handle.wait_for(&self.notify, |state, _| state.endpoint_state.poll_closed(self.held.id)).await;
        ended.unwrap_or(CloseReason::AbortedHere)
    }
}
