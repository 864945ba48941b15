//! A connection for tokio: streams in both directions, rate and class, the end.
//!
//! Called by applications. Invariant: a connection lives as long as any handle of it or of its streams.

use super::shared_state::{Handle, SharedNotify, SharedState};
use super::stream_sender::Writing;
use super::{StreamReceiver, StreamSender};
use crate::inbox::News;
use crate::{Bandwidth, Class, CloseReason, ConnectionId, Contract, Error, Fingerprint, Rate, Statistics, StreamId, StreamStatistics};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

/// One connection. Clones are the same connection.
///
/// When the last handle is dropped, those of its streams included, the connection is closed gracefully in the
/// background: what was accepted for sending is delivered first, what the peer still sends is thrown away. To hear
/// how that went, use [`Connection::close`].
#[derive(Clone, Debug)]
pub struct Connection {
    held: Arc<Held>,
    notify: SharedNotify,
    remote: SocketAddr,
}

/// Keeps a connection alive.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) handle: Handle,
    pub(super) id: ConnectionId,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.handle.change(|state, now| state.release(now, self.id));
    }
}

impl Connection {
    /// The first handle.
    pub(super) fn new(handle: &Handle, state: &mut SharedState, id: ConnectionId, remote: SocketAddr) -> Self {
        let notify = state.notify_for(id, News::Connection);
        Self { held: Arc::new(Held { handle: handle.clone(), id }), notify, remote }
    }

    /// Waits until the connection asked for is there.
    pub(super) async fn connected(&self) -> Result<(), Error> {
        self.held.handle.wait_for(&self.notify, |state, _| state.hub.poll_connected(self.held.id)).await
    }

    /// A handle for a stream of ours.
    pub(super) fn sender(&self, state: &mut SharedState, stream: StreamId) -> StreamSender {
        StreamSender::new(Writing { notify: state.notify_for(self.held.id, News::Sending(stream)), held: Arc::clone(&self.held), stream })
    }

    /// The connection's name at its endpoint.
    pub fn id(&self) -> ConnectionId {
        self.held.id
    }

    /// The peer's address.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Opens a stream. Segments can be sent at once; they leave when the peer has granted a window. Streams are opened one
    /// after another without end: one that is finished, judged and read by the peer makes room for the next.
    ///
    /// # Errors
    ///
    /// [`Error::OpenStream`] while as many streams are live as the peer allows.
    pub fn open_stream(&self, contract: Contract) -> Result<StreamSender, Error> {
        self.held.handle.change(|state, now| {
            let stream = state.hub.open_stream(now, self.held.id, contract)?;
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
                state.hub.poll_open_stream(now, held.id, &contract).map_ok(|stream| self.sender(state, stream))
            })
            .await
    }

    /// Waits for the next stream that the peer opens. `None` when the connection has ended as it should. Cancel
    /// safe. A stream nobody accepts is not read, so its window closes and its sender waits.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the connection has broken off.
    pub async fn accept_stream(&self) -> Result<Option<StreamReceiver>, Error> {
        let held = &self.held;
        held.handle
            .wait_for(&self.notify, |state, _| {
                state.hub.poll_accept_stream(held.id).map_ok(|stream| {
                    stream.map(|stream| {
                        let notify = state.notify_for(held.id, News::Receiving(stream));
                        let contract = state.hub.receiving_contract(held.id, stream).cloned().unwrap_or_default();
                        StreamReceiver::new(Arc::clone(held), stream, contract, notify)
                    })
                })
            })
            .await
    }

    /// A new rate in our direction, in force at once: a [`crate::RateSpec`] fixes it, [`Rate::AUTO`] has it found.
    ///
    /// # Errors
    ///
    /// [`Error::Rate`] for an automatic rate whose bounds contradict each other, or under a class without rate control.
    pub fn set_rate(&self, rate: impl Into<Rate>) -> Result<(), Error> {
        let rate = rate.into();
        self.held.handle.change(|state, now| state.hub.set_rate(now, self.held.id, rate))
    }

    /// The fingerprint of the key the peer has proved to hold; `None` in plain mode and when the connection is no more.
    pub fn peer_fingerprint(&self) -> Option<Fingerprint> {
        self.held.handle.look(|state| state.hub.peer_fingerprint(self.held.id))
    }

    /// The rate in force in our direction, in whole IP packets; `None` when unpaced.
    pub fn rate(&self) -> Option<Bandwidth> {
        self.held.handle.look(|state| state.hub.rate(self.held.id)).ok().flatten()
    }

    /// Waits until the rate has changed by more than a twentieth since it was told last, and gives it. An automatic rate
    /// is told at most ten times a second; an encoder should follow it. Each change is told once, to whoever waits
    /// first. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the connection has ended.
    pub async fn rate_changed(&self) -> Result<Bandwidth, Error> {
        self.held.handle.wait_for(&self.notify, |state, _| state.hub.poll_rate_changed(self.held.id)).await
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
            state.notify(held.id, News::Connection);
            state.hub.set_class(now, held.id, class)
        })?;
        held.handle.wait_for(&self.notify, |state, _| state.hub.poll_class(held.id, class)).await
    }

    /// The statistics so far.
    pub fn statistics(&self) -> Statistics {
        self.held.handle.look(|state| state.hub.statistics(self.held.id)).unwrap_or_default()
    }

    /// The statistics of one stream of ours so far; all zero when there is no such stream.
    pub fn stream_statistics(&self, stream: StreamId) -> StreamStatistics {
        self.held.handle.look(|state| state.hub.stream_statistics(self.held.id, stream).unwrap_or_default())
    }

    /// Whether any segment of ours has no verdict yet.
    pub fn has_unjudged(&self) -> bool {
        self.held.handle.look(|state| state.hub.has_unjudged(self.held.id)).unwrap_or(false)
    }

    /// Closes gracefully: finishes every stream, waits until everything accepted at both ends is judged and the peer
    /// has confirmed. Streams of the peer nobody has accepted are thrown away from now on; receivers that exist can
    /// still be read, and must be when the peer has much to send. Verdicts can still be asked for afterwards. When
    /// the future is dropped, the closing goes on.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the connection broke off instead.
    pub async fn close(&self, code: u64, detail: &str) -> Result<(), Error> {
        let held = &self.held;
        held.handle.change(|state, now| {
            state.hub.close(now, held.id, code, detail)?;
            state.hub.discard_unaccepted(now, held.id);
            state.notify(held.id, News::All);
            Ok::<_, Error>(())
        })?;
        let ready = |state: &mut SharedState, _| match state.hub.poll_closed(held.id) {
            Poll::Ready(Ok(_)) => state.hub.closed_well(held.id),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        held.handle.wait_for(&self.notify, ready).await
    }

    /// Breaks off at once; what has no verdict is *unknown*.
    pub fn abort(&self, code: u64, detail: &str) {
        // Why ignored: a connection that has ended has nothing to break off.
        let _ = self.held.handle.change(|state, now| state.hub.abort(now, self.held.id, code, detail));
    }

    /// Waits until the connection has ended, and says why. Cancel safe.
    pub async fn closed(&self) -> CloseReason {
        let ended = self.held.handle.wait_for(&self.notify, |state, _| state.hub.poll_closed(self.held.id)).await;
        ended.unwrap_or(CloseReason::AbortedHere)
    }
}
