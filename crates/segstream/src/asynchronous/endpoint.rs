//! An endpoint for tokio: bind, connect, accept.
//!
//! Called by applications. Invariant: one background task drives the socket; it ends when the endpoint has no handles and every
//! connection has ended.

use super::shared_state::{Handle, SharedNotify, SharedState};
use super::{Connection, StreamSender};
use crate::builder::{Builder, Parts};
use crate::endpoint_state::EndpointState;
use crate::{Contract, Error, Fingerprint, Peer, SavedCapacity, SocketCounters, SocketWarning, StreamId, UnmatchedCounters};
use segstream_net::clock::Clock;
use segstream_net::driver::DriverConfig;
use segstream_net::driver::tokio::AsyncDriver;
use segstream_net::socket::Socket;
use segstream_proto::config::Shard;
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::task::Poll;

/// A socket and its connections, driven by one task in the background.
///
/// ```no_run
/// use segstream::{Contract, Endpoint, Error, Fingerprint};
///
/// # async fn example(key: Fingerprint) -> Result<(), Error> {
/// let endpoint = Endpoint::builder().bind(([0, 0, 0, 0], 0))?;
/// let (connection, streams) = endpoint.connect((([192, 0, 2, 1], 9000).into(), key), vec![Contract::default()]).await?;
/// let segment = streams[0].send("a segment".into()).await?;
/// println!("{}", streams[0].verdict(segment).await?);
/// connection.close(0, "done").await?;
/// endpoint.close().await?;
/// # Ok(())
/// # }
/// ```
///
/// Clones are the same endpoint. When the last one is dropped, no more connections are accepted, and those that were not accepted yet
/// are closed. Connections that have handles go on, and the socket is closed with the last of them.
///
/// The background task ends with its runtime. Then every connection on which all streams have ended and all segments are judged is
/// closed gracefully, which takes at most three seconds and usually a few round trips; every other one is aborted. A program that
/// has more to deliver awaits [`Endpoint::close`] before it ends.
#[derive(Clone, Debug)]
pub struct Endpoint {
    owner: Arc<Owner>,
}

#[derive(Debug)]
struct Owner {
    handle: Handle,
    socket: Arc<Socket>,
    endpoint_notify: SharedNotify,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.handle.change(|state, now| state.release_endpoint(now));
    }
}

impl Builder<Endpoint> {
    /// Builds an endpoint on `address` that only makes connections. Use port 0 for any free port.
    ///
    /// # Errors
    ///
    /// [`Error::NoRuntime`] outside a tokio runtime, [`Error::Socket`] when the address cannot be used, [`Error::Identity`] when
    /// the key cannot.
    ///
    /// # Panics
    ///
    /// In a tokio runtime that was built without I/O (`enable_io`).
    pub fn bind(self, address: impl Into<SocketAddr>) -> Result<Endpoint, Error> {
        Endpoint::at(address.into(), self.parts(false)?)
    }

    /// Builds an endpoint on `address` that also accepts connections.
    ///
    /// # Errors
    ///
    /// As for `bind`, and [`Error::ServesNobody`] if the builder does not say whom it serves.
    ///
    /// # Panics
    ///
    /// As `bind`.
    pub fn listen(self, address: impl Into<SocketAddr>) -> Result<Endpoint, Error> {
        Endpoint::at(address.into(), self.parts(true)?)
    }

    /// Builds `count` endpoints (shards) that accept connections on one port. Each has a background task; a multi-threaded runtime
    /// spreads them over its threads. A connection stays with one of them, even if its peer migrates. They have one identity and
    /// one clock; limits are for each. Linux only, except for a `count` of one.
    ///
    /// # Errors
    ///
    /// As for `listen`.
    ///
    /// # Panics
    ///
    /// As `bind`.
    pub fn listen_shards(self, address: impl Into<SocketAddr>, count: NonZeroU8) -> Result<Vec<Endpoint>, Error> {
        in_a_runtime()?;
        let parts = self.parts(true)?;
        let shards = crate::shards::open(address.into(), &parts.config, count)?;
        shards.into_iter().map(|(socket, shard)| Endpoint::on(socket, parts.clone(), shard)).collect()
    }
}

fn in_a_runtime() -> Result<(), Error> {
    tokio::runtime::Handle::try_current().map(|_| ()).map_err(|_| Error::NoRuntime)
}

impl Endpoint {
    /// A builder; its methods `bind` and `listen` build the endpoint, in a tokio runtime.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    fn at(address: SocketAddr, parts: Parts) -> Result<Self, Error> {
        in_a_runtime()?;
        let socket = Socket::bind(address, &parts.config.socket())?;
        Self::on(socket, parts, Shard::ONLY)
    }

    fn on(socket: Socket, parts: Parts, shard: Shard) -> Result<Self, Error> {
        let socket = Arc::new(socket);
        let driver = AsyncDriver::new(Arc::clone(&socket), parts.clock, DriverConfig::default())?;
        let state = SharedState::new(EndpointState::new(parts, socket.local_addr(), shard)?);
        let endpoint_notify = Arc::clone(&state.endpoint_notify);
        Ok(Self { owner: Arc::new(Owner { handle: Handle::open(state, driver), socket, endpoint_notify }) })
    }

    /// The address in use.
    pub fn local_addr(&self) -> SocketAddr {
        self.owner.socket.local_addr()
    }

    /// Where the system granted less than was requested.
    pub fn warnings(&self) -> &[SocketWarning] {
        self.owner.socket.warnings()
    }

    /// The counters of the socket, with the ICMP errors that it has received. Anyone near the path can forge such an error, so it ends no
    /// connection; it is useful in an error message if the peer has not answered.
    pub fn socket_counters(&self) -> SocketCounters {
        self.owner.socket.counters()
    }

    /// The clock of this endpoint.
    pub fn clock(&self) -> Clock {
        self.owner.handle.clock
    }

    /// The fingerprint of our key, by which peers identify us; `None` in plain mode.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.owner.handle.read(|state| state.endpoint_state.fingerprint)
    }

    /// This endpoint as a peer to connect to: its address and its key.
    pub fn peer(&self) -> Peer {
        self.owner.handle.read(|state| state.endpoint_state.peer(self.local_addr()))
    }

    /// The counters of datagrams that match no connection.
    pub fn unmatched(&self) -> UnmatchedCounters {
        self.owner.handle.read(|state| state.endpoint_state.protocol.unmatched)
    }

    /// What is known of the capacity of the path to the host of `remote`, as [`crate::blocking::Endpoint::saved_capacity`].
    pub fn saved_capacity(&self, remote: SocketAddr) -> Option<SavedCapacity> {
        self.owner.handle.read(|state| state.endpoint_state.protocol.saved_capacity(remote))
    }

    /// Lets the next connection to the host of `remote` begin with `capacity`, as [`crate::blocking::Endpoint::save_capacity`].
    pub fn save_capacity(&self, remote: SocketAddr, capacity: SavedCapacity) {
        self.owner.handle.change(|state, _| state.endpoint_state.protocol.save_capacity(remote, capacity));
    }

    /// Makes a connection with these first streams, and waits until it is established, at most for
    /// [`crate::Config::connect_timeout`]. Returns a sender for each stream, in the same order. Dropping the future aborts the
    /// connection.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] before anything is sent; [`Error::Closed`] if the peer refuses, is not the trusted one, or does not answer.
    pub async fn connect(&self, peer: impl Into<Peer>, streams: Vec<Contract>) -> Result<(Connection, Vec<StreamSender>), Error> {
        let peer = peer.into();
        let handle = &self.owner.handle;
        let end = StreamId(streams.len() as u32);
        let connection = handle.change(|state, now| {
            state.check_open()?;
            let id = state.endpoint_state.connect(now, &peer, streams)?;
            Ok::<_, Error>(Connection::new(handle, state, id, peer.address))
        })?;
        connection.connected().await?;
        let senders = handle.read(|state| StreamId::FIRST.up_to(end).map(|stream| connection.sender(state, stream)).collect());
        Ok((connection, senders))
    }

    /// Waits for the next incoming connection. `None` if the endpoint does not accept connections, or was closed. Cancel safe.
    pub async fn accept(&self) -> Result<Option<Connection>, Error> {
        let handle = &self.owner.handle;
        handle
            .wait_for(&self.owner.endpoint_notify, |state, _| match state.endpoint_state.poll_accept() {
                Poll::Ready(id) => {
                    let remote = state.endpoint_state.connection_state(id)?.remote;
                    Poll::Ready(Ok(Some(Connection::new(handle, state, id, remote))))
                }
                Poll::Pending if !state.endpoint_state.protocol.config().accept => Poll::Ready(Ok(None)),
                Poll::Pending => Poll::Pending,
            })
            .await
    }

    /// Accepts no connection from now on: requests are answered with a refusal, connections that were not accepted yet are closed, and
    /// [`Endpoint::accept`] returns `None`. Those that were accepted go on. For a server that lets its work end before it does.
    pub fn stop_accepting(&self) {
        self.owner.handle.change(|state, now| {
            state.endpoint_state.stop_accepting(now);
            state.endpoint_notify.notify_waiters();
        });
    }

    /// Closes the endpoint: accepts no more connections, closes every connection gracefully, and returns when all have ended and
    /// drained. Meanwhile existing receivers can still be read, and must be read if the peer has much to send. If the future is
    /// dropped, the closing goes on.
    pub async fn close(&self) -> Result<(), Error> {
        let handle = &self.owner.handle;
        handle.change(|state, now| {
            state.closed = true;
            state.endpoint_state.stop_accepting(now);
            for id in state.endpoint_state.connections() {
                // Why the result is ignored: a connection without handles is being closed already.
                let _ = state.endpoint_state.close(now, id, 0, "the endpoint is closed");
                state.endpoint_state.discard_unaccepted(now, id);
                state.notify(id, crate::connection_state::EventScope::All);
            }
            state.endpoint_notify.notify_waiters();
        });
        handle
            .wait_for(
                &self.owner.endpoint_notify,
                |state, _| if state.endpoint_state.all_drained() { Poll::Ready(Ok(())) } else { Poll::Pending },
            )
            .await
    }
}
