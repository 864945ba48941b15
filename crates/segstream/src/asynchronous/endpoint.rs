//! An endpoint for tokio: bind, connect, accept.
//!
//! Called by applications. Invariant: one background task drives the socket; it ends when no handle of the endpoint
//! is left and every connection has ended.

use super::shared_state::{Handle, SharedNotify, SharedState};
use super::{Connection, StreamSender};
use crate::builder::{Builder, Parts};
use crate::hub::Hub;
use crate::{Contract, Error, Fingerprint, Peer, SocketCounters, SocketWarning, StrayCounters, StreamId};
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
/// Clones are the same endpoint. When the last one is dropped, no connection is accepted any more, and those nobody
/// was given are closed; connections that have handles live on, and the socket is closed with the last of them.
///
/// The background task ends with its runtime. Then every connection on which all streams have ended and all segments are
/// judged is closed gracefully, which takes at most three seconds and as a rule a few round trips; every other one is broken off.
/// A program that has more to deliver awaits [`Endpoint::close`] before it ends.
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
        self.handle.change(|state, now| state.disown(now));
    }
}

impl Builder<Endpoint> {
    /// An endpoint on `address` that only makes connections. Use port 0 for any free one.
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

    /// An endpoint on `address` that also accepts connections.
    ///
    /// # Errors
    ///
    /// As for `bind`, and [`Error::ServesNobody`] when nobody was named to be served.
    ///
    /// # Panics
    ///
    /// As `bind`.
    pub fn listen(self, address: impl Into<SocketAddr>) -> Result<Endpoint, Error> {
        Endpoint::at(address.into(), self.parts(true)?)
    }

    /// `count` endpoints that accept connections on one port, with a background task each, which a runtime of several
    /// threads spreads over them. A connection belongs to one of them as long as it lives, wherever its peer moves. They
    /// show one identity and have one clock; limits are for each. Linux only, but for a `count` of one.
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
    /// Says what the endpoint is made of; `bind` and `listen` of the builder make it, in a tokio runtime.
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
        let state = SharedState::new(Hub::new(parts, shard)?);
        let endpoint_notify = Arc::clone(&state.endpoint_notify);
        Ok(Self { owner: Arc::new(Owner { handle: Handle::open(state, driver), socket, endpoint_notify }) })
    }

    /// The address in use.
    pub fn local_addr(&self) -> SocketAddr {
        self.owner.socket.local_addr()
    }

    /// What the system granted less of than was asked for.
    pub fn warnings(&self) -> &[SocketWarning] {
        self.owner.socket.warnings()
    }

    /// What the socket has carried so far, and what the network has answered to it (ICMP). Anyone near the path can forge
    /// such an answer, so it ends no connection; it is worth telling a person when nobody has answered.
    pub fn socket_counters(&self) -> SocketCounters {
        self.owner.socket.counters()
    }

    /// The clock of this endpoint.
    pub fn clock(&self) -> Clock {
        self.owner.handle.clock
    }

    /// The fingerprint of our key, by which peers know us; `None` in plain mode.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.owner.handle.look(|state| state.hub.fingerprint)
    }

    /// Who to connect to for a program that has this endpoint at hand: its address and its key.
    pub fn peer(&self) -> Peer {
        self.owner.handle.look(|state| state.hub.peer(self.local_addr()))
    }

    /// What has arrived for no connection.
    pub fn strays(&self) -> StrayCounters {
        self.owner.handle.look(|state| state.hub.protocol.strays)
    }

    /// Asks for a connection with the given first streams, and waits until it is there, at most for
    /// [`crate::Config::connect_timeout`]. Gives a sender for each stream, in the same order. Dropping the future gives
    /// the connection up.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] before anything is sent; [`Error::Closed`] when the peer refuses, is not the one trusted, or
    /// nobody answers.
    pub async fn connect(&self, peer: impl Into<Peer>, streams: Vec<Contract>) -> Result<(Connection, Vec<StreamSender>), Error> {
        let peer = peer.into();
        let handle = &self.owner.handle;
        let end = StreamId(streams.len() as u32);
        let connection = handle.change(|state, now| {
            state.check_open()?;
            let id = state.hub.connect(now, &peer, streams)?;
            Ok::<_, Error>(Connection::new(handle, state, id, peer.address))
        })?;
        connection.connected().await?;
        let senders = handle.look(|state| StreamId::FIRST.up_to(end).map(|stream| connection.sender(state, stream)).collect());
        Ok((connection, senders))
    }

    /// Waits for the next connection of a peer. `None` when the endpoint does not accept any, or not any more.
    /// Cancel safe.
    pub async fn accept(&self) -> Result<Option<Connection>, Error> {
        let handle = &self.owner.handle;
        handle
            .wait_for(&self.owner.endpoint_notify, |state, _| match state.hub.poll_accept() {
                Poll::Ready(id) => {
                    let remote = state.hub.inbox(id)?.remote;
                    Poll::Ready(Ok(Some(Connection::new(handle, state, id, remote))))
                }
                Poll::Pending if !state.hub.protocol.config().accept => Poll::Ready(Ok(None)),
                Poll::Pending => Poll::Pending,
            })
            .await
    }

    /// Closes the endpoint: accepts nothing more, closes every connection gracefully, and returns when all have
    /// ended and drained. Receivers that exist can still be read meanwhile, and must be when the peer
    /// has much to send. When the future is dropped, the closing goes on.
    pub async fn close(&self) -> Result<(), Error> {
        let handle = &self.owner.handle;
        handle.change(|state, now| {
            state.closed = true;
            state.hub.stop_accepting(now);
            for id in state.hub.connections() {
                // Why ignored: one that nobody holds is being closed already.
                let _ = state.hub.close(now, id, 0, "the endpoint is closed");
                state.hub.discard_unaccepted(now, id);
                state.notify(id, crate::inbox::News::All);
            }
            state.endpoint_notify.notify_waiters();
        });
        handle
            .wait_for(&self.owner.endpoint_notify, |state, _| if state.hub.is_quiet() { Poll::Ready(Ok(())) } else { Poll::Pending })
            .await
    }
}
