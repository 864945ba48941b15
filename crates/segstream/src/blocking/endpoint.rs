//! An endpoint on the caller's own thread.
//!
//! Called by applications and the command. Invariant: see [`super`].

use super::Connection;
use super::background::Background;
use super::on_calls::OnCalls;
use crate::builder::{Builder, Parts};
use crate::hub::Hub;
use crate::{
    ConnectionEvent, ConnectionId, Contract, Error, Fingerprint, Peer, Received, SocketCounters, SocketWarning, StrayCounters, StreamId,
    Timestamp, Waker, closing,
};
use segstream_net::clock::Clock;
use segstream_net::driver::blocking::BlockingDriver;
use segstream_net::socket::Socket;
use segstream_proto::config::Shard;
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A socket and its connections.
///
/// Dropped, it closes every connection gracefully on which all streams have ended and all segments are judged, which takes at
/// most three seconds and as a rule a few round trips. It breaks off every other connection and says so to the peer, once: segments
/// without a verdict are lost. [`Endpoint::close`] ends them all gracefully.
#[derive(Debug)]
pub struct Endpoint {
    driving: Driving,
    socket: Arc<Socket>,
    clock: Clock,
    waker: Waker,
    fingerprint: Option<Fingerprint>,
}

/// Who drives the endpoint.
#[derive(Debug)]
enum Driving {
    /// The application's calls.
    OnCalls(Box<OnCalls>),
    /// A thread.
    InBackground(Background),
}

impl Builder<Endpoint> {
    /// A thread drives the endpoint: the network is served while the application does other work between two calls. The calls
    /// are the same. Default: the calls drive it, and a program that does other work for longer than [`crate::Config::idle_timeout`]
    /// loses its connections. A thread costs a hand-over between two threads for what arrives and what is sent.
    pub fn driven_in_background(mut self) -> Self {
        self.in_background = true;
        self
    }

    /// An endpoint on `address` that only makes connections. Use port 0 for any free one.
    ///
    /// # Errors
    ///
    /// [`Error::Socket`] when the address cannot be used, [`Error::Identity`] when the key cannot.
    pub fn bind(self, address: impl Into<SocketAddr>) -> Result<Endpoint, Error> {
        Endpoint::at(address.into(), self.parts(false)?)
    }

    /// An endpoint on `address` that also accepts connections.
    ///
    /// # Errors
    ///
    /// As for [`Builder::bind`], and [`Error::ServesNobody`] when nobody was named to be served.
    pub fn listen(self, address: impl Into<SocketAddr>) -> Result<Endpoint, Error> {
        Endpoint::at(address.into(), self.parts(true)?)
    }

    /// `count` endpoints that accept connections on one port, for a thread each. A connection belongs to one of them as
    /// long as it lives, wherever its peer moves. They show one identity and have one clock; limits are for each. Linux
    /// only, but for a `count` of one.
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
    /// Says what the endpoint is made of; [`Builder::bind`] and [`Builder::listen`] make it.
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
        let hub = Hub::new(parts, shard)?;
        let fingerprint = hub.fingerprint;
        let driving = if in_background {
            Driving::InBackground(Background::start(driver, hub)?)
        } else {
            Driving::OnCalls(Box::new(OnCalls::new(driver, hub)))
        };
        Ok(Self { driving, socket, clock, waker, fingerprint })
    }

    /// The address in use.
    pub fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// What the system granted less of than was asked for.
    pub fn warnings(&self) -> &[SocketWarning] {
        self.socket.warnings()
    }

    /// What the socket has carried so far, and what the network has answered to it (ICMP). Anyone near the path can forge
    /// such an answer, so it ends no connection; it is worth telling a person when nobody has answered.
    pub fn socket_counters(&self) -> SocketCounters {
        self.socket.counters()
    }

    /// The clock of this endpoint.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Ends the call that is waiting, or else the next one that would wait, from another thread: [`Endpoint::wait`]
    /// gives `None`, every other call [`Error::Woken`].
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// The fingerprint of our key, by which peers know us; `None` in plain mode.
    pub const fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// Who to connect to for a program that has this endpoint at hand: its address and its key.
    pub fn peer(&self) -> Peer {
        self.look(|hub| hub.peer(self.local_addr()))
    }

    /// What has arrived for no connection.
    pub fn strays(&self) -> StrayCounters {
        self.look(|hub| hub.protocol.strays)
    }

    /// Asks for a connection with the given first streams, numbered from 0, and waits until it is there, at most
    /// for [`crate::Config::connect_timeout`].
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] before anything is sent; [`Error::Closed`] when the peer refuses, is not the one trusted, or
    /// nobody answers.
    pub fn connect(&mut self, peer: impl Into<Peer>, streams: Vec<Contract>) -> Result<ConnectionId, Error> {
        let id = self.change(|hub, now| hub.connect(now, &peer.into(), streams))?;
        let connected = self.wait_for(None, |hub, _| hub.poll_connected(id));
        if connected.is_err() {
            self.forget(id);
        }
        connected.map(|()| id)
    }

    /// Waits for the next connection of a peer.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed; `None` waits for ever.
    pub fn accept(&mut self, timeout: Option<Duration>) -> Result<ConnectionId, Error> {
        self.wait_for(timeout, |hub, _| hub.poll_accept().map(Ok))
    }

    /// Serves the network until something happens; `None` when `timeout` has passed or a waker has ended the call.
    /// With a timeout of zero it serves once and does not sleep.
    ///
    /// An event that occurs again before the application has taken it is reported once. [`ConnectionEvent::Closed`] is the
    /// last event of its connection; call [`Endpoint::forget`] after it. New units of a stream that is read unit by unit
    /// are reported as [`ConnectionEvent::Readable`].
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<(ConnectionId, ConnectionEvent)>, Error> {
        let event = self.wait_for(timeout, |hub, _| hub.next_event().map_or(Poll::Pending, |event| Poll::Ready(Ok(event))));
        match event {
            Ok(event) => Ok(Some(event)),
            Err(Error::TimedOut | Error::Woken) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What a connection can be asked to do.
    pub fn connection(&mut self, id: ConnectionId) -> Connection<'_> {
        Connection { endpoint: self, id }
    }

    /// Nothing is needed of a connection any more; its identifier is unknown from now on. One that has not ended
    /// is closed gracefully while the network is served. Until this is called, an ended connection counts towards
    /// [`crate::Config::connections`].
    pub fn forget(&mut self, id: ConnectionId) {
        self.change(|hub, now| hub.release(now, id));
    }

    /// Closes every connection gracefully, and returns when all have ended and drained. Nothing is
    /// received any more.
    pub fn close(mut self) -> Result<(), Error> {
        self.change(|hub, now| {
            hub.stop_accepting(now);
            for id in hub.connections() {
                hub.release(now, id);
            }
        });
        self.wait_for(None, |hub, _| if hub.is_quiet() { Poll::Ready(Ok(())) } else { Poll::Pending })
    }

    /// Looks something up.
    pub(super) fn look<R>(&self, call: impl FnOnce(&Hub) -> R) -> R {
        match &self.driving {
            Driving::OnCalls(calls) => call(&calls.hub),
            Driving::InBackground(background) => background.look(call),
        }
    }

    /// Takes something, or changes what need not be sent at once.
    pub(super) fn take<R>(&mut self, call: impl FnOnce(&mut Hub, Timestamp) -> R) -> R {
        match &mut self.driving {
            Driving::OnCalls(calls) => call(&mut calls.hub, self.clock.now()),
            Driving::InBackground(background) => background.take(call),
        }
    }

    /// Changes something. What is to be sent for it is sent by the next call that serves the network, or by the thread.
    pub(super) fn change<R>(&mut self, call: impl FnOnce(&mut Hub, Timestamp) -> R) -> R {
        let result = self.take(call);
        if let Driving::InBackground(background) = &self.driving {
            background.serve();
        }
        result
    }

    /// Serves the network until `ready` gives a value, `timeout` has passed, or a waker ends the call. Serves it
    /// at least once before it gives up.
    pub(super) fn wait_for<T>(
        &mut self,
        timeout: Option<Duration>,
        ready: impl FnMut(&mut Hub, Timestamp) -> Poll<Result<T, Error>>,
    ) -> Result<T, Error> {
        let now = self.clock.now();
        self.wait_from(now, timeout, ready).map(|(value, _)| value)
    }

    /// As [`Endpoint::wait_for`], where it is `now`; and when the value was there.
    pub(super) fn wait_from<T>(
        &mut self,
        now: Timestamp,
        timeout: Option<Duration>,
        ready: impl FnMut(&mut Hub, Timestamp) -> Poll<Result<T, Error>>,
    ) -> Result<(T, Timestamp), Error> {
        let timeout = timeout.map(Into::into);
        match &mut self.driving {
            Driving::OnCalls(calls) => calls.wait(now, timeout, ready),
            Driving::InBackground(background) => background.wait(timeout, ready),
        }
    }

    /// Waits for the next judged segment of a stream.
    pub(super) fn recv(&mut self, id: ConnectionId, stream: StreamId, timeout: Option<Duration>) -> Result<Option<Received>, Error> {
        let now = self.clock.now();
        let ready = |hub: &mut Hub, now| hub.poll_recv(now, id, stream);
        // Why first: of small segments many are there, and nothing has happened since the last.
        let (received, now) = match &mut self.driving {
            Driving::OnCalls(calls) => match calls.hub.try_recv(now, id, stream) {
                Some(received) => (Some(received), now),
                None => calls.wait(now, timeout.map(Into::into), ready)?,
            },
            Driving::InBackground(background) => background.wait(timeout.map(Into::into), ready)?,
        };
        // Why: the room that is free now may be what the peer waits for.
        self.serve_if_due(now, id)?;
        Ok(received)
    }

    pub(super) fn serve_for(&mut self, time: Duration) -> Result<(), Error> {
        match self.wait_for(Some(time), |_, _| Poll::<Result<(), Error>>::Pending) {
            Err(Error::TimedOut) => Ok(()),
            other => other,
        }
    }

    /// Serves the network once, without sleeping; a thread does so by itself.
    pub(super) fn serve(&mut self) -> Result<(), Error> {
        match &mut self.driving {
            Driving::OnCalls(calls) => calls.serve(),
            Driving::InBackground(background) => {
                background.serve();
                Ok(())
            }
        }
    }

    /// Serves the network once, after the application was given something of `id`, if the peer may wait for the room that is
    /// free now.
    pub(super) fn serve_if_due(&mut self, now: Timestamp, id: ConnectionId) -> Result<(), Error> {
        match &mut self.driving {
            Driving::OnCalls(calls) => calls.serve_if_due(now, id),
            Driving::InBackground(background) => {
                background.serve_if_due(id);
                Ok(())
            }
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        match &mut self.driving {
            Driving::OnCalls(calls) => closing::finish(&mut calls.hub, &mut calls.driver),
            Driving::InBackground(background) => background.stop(closing::finish),
        }
    }
}
