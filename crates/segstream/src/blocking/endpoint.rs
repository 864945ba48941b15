//! An endpoint on the caller's own thread.
//!
//! Called by applications and the command. Invariant: see [`super`].

use super::Connection;
use super::background::Background;
use super::call_driven::CallDriven;
use crate::builder::{Builder, Parts};
use crate::endpoint_state::EndpointState;
use crate::{
    ConnectionEvent, ConnectionId, Contract, Error, Fingerprint, Peer, Received, SavedCapacity, SocketCounters, SocketWarning, StreamId,
    Timestamp, UnmatchedCounters, Waker, closing,
};
use segstream_net::clock::Clock;
use segstream_net::driver::blocking::BlockingDriver;
use segstream_net::socket::Socket;
use segstream_proto::config::Shard;
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A socket and its connections.
///
/// When it is dropped, it closes every connection gracefully on which all streams have ended and all segments are judged, which takes at
/// most three seconds and usually a few round trips. It aborts every other connection and notifies the peer once: segments without a
/// verdict are lost. [`Endpoint::close`] closes them all gracefully.
#[derive(Debug)]
pub struct Endpoint {
    driving: Driving,
    socket: Arc<Socket>,
    clock: Clock,
    waker: Waker,
    fingerprint: Option<Fingerprint>,
}

/// How the endpoint is driven.
#[derive(Debug)]
enum Driving {
    /// The application's calls.
    CallDriven(Box<CallDriven>),
    /// A thread.
    InBackground(Background),
}

impl Builder<Endpoint> {
    /// A background thread drives the endpoint and serves the network while the application does other work. The calls are the same. By
    /// default the calls drive the endpoint, and a program that does other work for longer than [`crate::Config::idle_timeout`]
    /// loses its connections. The thread costs a hand-over between two threads for what arrives and what is sent.
    pub fn driven_in_background(mut self) -> Self {
        self.in_background = true;
        self
    }

    /// Builds an endpoint on `address` that only makes connections. Use port 0 for any free port.
    ///
    /// # Errors
    ///
    /// [`Error::Socket`] when the address cannot be used, [`Error::Identity`] when the key cannot.
    pub fn bind(self, address: impl Into<SocketAddr>) -> Result<Endpoint, Error> {
        Endpoint::at(address.into(), self.parts(false)?)
    }

    /// Builds an endpoint on `address` that also accepts connections.
    ///
    /// # Errors
    ///
    /// As for [`Builder::bind`], and [`Error::ServesNobody`] if the builder does not say whom it serves.
    pub fn listen(self, address: impl Into<SocketAddr>) -> Result<Endpoint, Error> {
        Endpoint::at(address.into(), self.parts(true)?)
    }

    /// Builds `count` endpoints (shards) that accept connections on one port, each for its own thread. A connection stays with one of
    /// them, even if its peer migrates. They have one identity and one clock; limits are for each. Linux only, except for a
    /// `count` of one.
    ///
    /// # Errors
    ///
    /// As for [`Builder::listen`].
    pub fn listen_shards(self, address: impl Into<SocketAddr>, count: NonZeroU8) -> Result<Vec<Endpoint>, Error> {
        let parts = self.parts(true)?;
        let shards = crate::shards::open(address.into(), &parts.config, count)?;
        shards.into_iter().map(|(socket, shard)| Endpoint::on(socket, parts.clone(), shard)).collect()
    }
}

impl Endpoint {
    /// A builder; [`Builder::bind`] and [`Builder::listen`] build the endpoint.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    fn at(address: SocketAddr, parts: Parts) -> Result<Self, Error> {
        let socket = Socket::bind(address, &parts.config.socket())?;
        Self::on(socket, parts, Shard::ONLY)
    }

    fn on(socket: Socket, parts: Parts, shard: Shard) -> Result<Self, Error> {
        let (clock, in_background) = (parts.clock, parts.in_background);
        let driver = BlockingDriver::new(socket, clock, parts.config.driver())?;
        let (socket, waker) = (Arc::clone(driver.socket()), driver.waker());
        let endpoint_state = EndpointState::new(parts, socket.local_addr(), shard)?;
        let fingerprint = endpoint_state.fingerprint;
        let driving = if in_background {
            Driving::InBackground(Background::start(driver, endpoint_state)?)
        } else {
            Driving::CallDriven(Box::new(CallDriven::new(driver, endpoint_state)))
        };
        Ok(Self { driving, socket, clock, waker, fingerprint })
    }

    /// The address in use.
    pub fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// Where the system granted less than was requested.
    pub fn warnings(&self) -> &[SocketWarning] {
        self.socket.warnings()
    }

    /// The counters of the socket, with the ICMP errors that it has received. Anyone near the path can forge such an error, so it ends no
    /// connection; it is useful in an error message if the peer has not answered.
    pub fn socket_counters(&self) -> SocketCounters {
        self.socket.counters()
    }

    /// The clock of this endpoint.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Ends, from another thread, the call that is waiting, or otherwise the next one that would wait: [`Endpoint::wait`] returns
    /// `None`, every other call [`Error::Woken`].
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// The fingerprint of our key, by which peers identify us; `None` in plain mode.
    pub const fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// This endpoint as a peer to connect to: its address and its key.
    pub fn peer(&self) -> Peer {
        self.read(|endpoint_state| endpoint_state.peer(self.local_addr()))
    }

    /// The counters of datagrams that match no connection.
    pub fn unmatched(&self) -> UnmatchedCounters {
        self.read(|endpoint_state| endpoint_state.protocol.unmatched)
    }

    /// What is known of the capacity of the path to the host of `remote`: by a connection that was released, or else by one that there
    /// is. `None` if [`crate::Config::careful_resume`] is off.
    pub fn saved_capacity(&self, remote: SocketAddr) -> Option<SavedCapacity> {
        self.read(|endpoint_state| endpoint_state.protocol.saved_capacity(remote))
    }

    /// Lets the next connection to the host of `remote` begin as if one of this endpoint had found `capacity`: for what was stored when
    /// another process ended.
    pub fn save_capacity(&mut self, remote: SocketAddr, capacity: SavedCapacity) {
        self.change(|endpoint_state, _| endpoint_state.protocol.save_capacity(remote, capacity));
    }

    /// Makes a connection with these first streams, numbered from 0, and waits until it is established, at most for
    /// [`crate::Config::connect_timeout`].
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] before anything is sent; [`Error::Closed`] if the peer refuses, is not the trusted one, or does not answer.
    pub fn connect(&mut self, peer: impl Into<Peer>, streams: Vec<Contract>) -> Result<ConnectionId, Error> {
        let id = self.change(|endpoint_state, now| endpoint_state.connect(now, &peer.into(), streams))?;
        let connected = self.wait_for(None, |endpoint_state, _| endpoint_state.poll_connected(id));
        if connected.is_err() {
            self.release(id);
        }
        connected.map(|()| id)
    }

    /// Begins a connection as [`Endpoint::connect`] does, and does not wait: [`ConnectionEvent::Connected`] or
    /// [`ConnectionEvent::Closed`] is the event of its outcome. Release it in either case.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] before anything is sent.
    pub fn begin_connect(&mut self, peer: impl Into<Peer>, streams: Vec<Contract>) -> Result<ConnectionId, Error> {
        self.change(|endpoint_state, now| endpoint_state.connect(now, &peer.into(), streams))
    }

    /// For programs with an event loop of their own: after which time [`Endpoint::wait`] must be called with a timeout of zero, even if
    /// the socket ([`AsFd`]) has not become readable until then. Zero after every call that has changed something; `None` if only a
    /// datagram or the application makes work, or if a background thread drives the endpoint.
    ///
    /// ```text
    /// loop {
    ///     sleep until the socket is readable, or serve_after() has passed
    ///     while let Some(event) = endpoint.wait(Some(Duration::ZERO))? { handle it }
    /// }
    /// ```
    pub fn serve_after(&self) -> Option<Duration> {
        match &self.driving {
            Driving::CallDriven(calls) => calls.serve_after(self.clock.now()).map(Duration::from),
            Driving::InBackground(_) => None,
        }
    }

    /// Serves the network once, without sleeping. Events are kept.
    ///
    /// # Errors
    ///
    /// Only failures of the system.
    pub fn process(&mut self) -> Result<(), Error> {
        self.serve()
    }

    /// Whether a background thread drives the endpoint ([`Builder::driven_in_background`]).
    pub const fn is_driven_in_background(&self) -> bool {
        matches!(self.driving, Driving::InBackground(_))
    }

    /// Waits for the next incoming connection.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed; `None` is no timeout.
    pub fn accept(&mut self, timeout: Option<Duration>) -> Result<ConnectionId, Error> {
        self.wait_for(timeout, |endpoint_state, _| endpoint_state.poll_accept().map(Ok))
    }

    /// Serves the network until there is an event; `None` when `timeout` has passed or a waker has ended the call. With a timeout of zero
    /// it serves the network once and does not sleep.
    ///
    /// An event that occurs again before the application has taken it is reported once. [`ConnectionEvent::Closed`] is the last event of
    /// its connection; call [`Endpoint::release`] after it. New units of a stream that is read unit by unit are reported as
    /// [`ConnectionEvent::Readable`].
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<(ConnectionId, ConnectionEvent)>, Error> {
        let event =
            self.wait_for(timeout, |endpoint_state, _| endpoint_state.next_event().map_or(Poll::Pending, |event| Poll::Ready(Ok(event))));
        match event {
            Ok(event) => Ok(Some(event)),
            Err(Error::TimedOut | Error::Woken) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Borrows a connection, to use it.
    pub fn connection(&mut self, id: ConnectionId) -> Connection<'_> {
        Connection { endpoint: self, id }
    }

    /// Releases a connection; its identifier is not valid from now on. A connection that has not ended is closed gracefully while the
    /// network is served. Until this is called, an ended connection counts towards [`crate::Config::connections`].
    pub fn release(&mut self, id: ConnectionId) {
        self.change(|endpoint_state, now| endpoint_state.release(now, id));
    }

    /// Accepts no connection from now on: requests are answered with a refusal, and connections that the application has not seen yet are
    /// closed. Those that it has go on. For a server that lets its work end before it does.
    pub fn stop_accepting(&mut self) {
        self.change(|endpoint_state, now| endpoint_state.stop_accepting(now));
    }

    /// Closes every connection gracefully, and returns when all have ended and drained. What arrives in the meantime is discarded.
    pub fn close(mut self) -> Result<(), Error> {
        self.change(|endpoint_state, now| {
            endpoint_state.stop_accepting(now);
            for id in endpoint_state.connections() {
                endpoint_state.release(now, id);
            }
        });
        self.wait_for(None, |endpoint_state, _| if endpoint_state.all_drained() { Poll::Ready(Ok(())) } else { Poll::Pending })
    }

    /// Reads from the state.
    pub(super) fn read<R>(&self, call: impl FnOnce(&EndpointState) -> R) -> R {
        match &self.driving {
            Driving::CallDriven(calls) => call(&calls.endpoint_state),
            Driving::InBackground(background) => background.read(call),
        }
    }

    /// Changes something that need not be sent at once.
    pub(super) fn take<R>(&mut self, call: impl FnOnce(&mut EndpointState, Timestamp) -> R) -> R {
        match &mut self.driving {
            Driving::CallDriven(calls) => {
                calls.on_changed();
                call(&mut calls.endpoint_state, self.clock.now())
            }
            Driving::InBackground(background) => background.take(call),
        }
    }

    /// Changes something. The next call that serves the network, or the background thread, sends what is necessary.
    pub(super) fn change<R>(&mut self, call: impl FnOnce(&mut EndpointState, Timestamp) -> R) -> R {
        let result = self.take(call);
        if let Driving::InBackground(background) = &self.driving {
            background.serve();
        }
        result
    }

    /// Serves the network until `ready` returns a value, `timeout` has passed, or a waker ends the call. Serves it at least once before
    /// it times out.
    pub(super) fn wait_for<T>(
        &mut self,
        timeout: Option<Duration>,
        ready: impl FnMut(&mut EndpointState, Timestamp) -> Poll<Result<T, Error>>,
    ) -> Result<T, Error> {
        let now = self.clock.now();
        self.wait_from(now, timeout, ready).map(|(value, _)| value)
    }

    /// As [`Endpoint::wait_for`], from `now` on; also returns the time.
    pub(super) fn wait_from<T>(
        &mut self,
        now: Timestamp,
        timeout: Option<Duration>,
        ready: impl FnMut(&mut EndpointState, Timestamp) -> Poll<Result<T, Error>>,
    ) -> Result<(T, Timestamp), Error> {
        let timeout = timeout.map(Into::into);
        match &mut self.driving {
            Driving::CallDriven(calls) => calls.wait(now, timeout, ready),
            Driving::InBackground(background) => background.wait(timeout, ready),
        }
    }

    /// Waits for the next judged segment of a stream.
    pub(super) fn recv(&mut self, id: ConnectionId, stream: StreamId, timeout: Option<Duration>) -> Result<Option<Received>, Error> {
        let now = self.clock.now();
        let ready = |endpoint_state: &mut EndpointState, now| endpoint_state.poll_recv(now, id, stream);
        // Why first: often many small segments are ready, and the network need not be served for each.
        let (received, now) = match &mut self.driving {
            Driving::CallDriven(calls) => match calls.endpoint_state.try_recv(now, id, stream) {
                Some(received) => (Some(received), now),
                None => calls.wait(now, timeout.map(Into::into), ready)?,
            },
            Driving::InBackground(background) => background.wait(timeout.map(Into::into), ready)?,
        };
        // Why: the peer may wait for the window update.
        self.serve_if_due(now, id)?;
        Ok(received)
    }

    pub(super) fn serve_for(&mut self, time: Duration) -> Result<(), Error> {
        match self.wait_for(Some(time), |_, _| Poll::<Result<(), Error>>::Pending) {
            Err(Error::TimedOut) => Ok(()),
            other => other,
        }
    }

    /// Serves the network once, without sleeping; a background thread needs no call.
    pub(super) fn serve(&mut self) -> Result<(), Error> {
        match &mut self.driving {
            Driving::CallDriven(calls) => calls.serve(),
            Driving::InBackground(background) => {
                background.serve();
                Ok(())
            }
        }
    }

    /// Serves the network once after the application has taken a segment of `id`, if the peer may wait for a window update.
    pub(super) fn serve_if_due(&mut self, now: Timestamp, id: ConnectionId) -> Result<(), Error> {
        match &mut self.driving {
            Driving::CallDriven(calls) => calls.serve_if_due(now, id),
            Driving::InBackground(background) => {
                background.serve_if_due(id);
                Ok(())
            }
        }
    }
}

/// The socket, for programs with an event loop of their own: see [`Endpoint::serve_after`]. It is there to be watched; whoever reads
/// from it takes datagrams from the connections. If [`crate::Config::threads`] names a thread that receives, that thread empties it.
impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        match &mut self.driving {
            Driving::CallDriven(calls) => closing::finish(&mut calls.endpoint_state, &mut calls.driver),
            Driving::InBackground(background) => background.stop(closing::finish),
        }
    }
}
