//! An endpoint on the caller's own thread.
//!
//! Called by applications and the command. Invariant: see [`super`].

use super::Connection;
use crate::hub::Hub;
use crate::{
    Config, ConnectionEvent, ConnectionId, Contract, Duration, Error, Fingerprint, Instant, Peer, SocketCounters, SocketWarning,
    StrayCounters, Waker,
};
use segstream_base::endpoint::Endpoint as _;
use segstream_net::clock::Clock;
use segstream_net::driver::blocking::BlockingDriver;
use segstream_net::socket::Socket;
use segstream_proto::config::Shard;
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::task::Poll;

/// How long an endpoint that is dropped tries to tell its peers.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// How long what is due waits for the application's next call: to a peer it is nothing.
const LATE: Duration = Duration::from_micros(20);

/// A socket and its connections.
///
/// Dropped, it breaks off every connection that is left and says so to the peer, once: segments without a verdict
/// are lost. [`Endpoint::close`] ends them gracefully.
#[derive(Debug)]
pub struct Endpoint {
    driver: BlockingDriver,
    pub(super) hub: Hub,
    /// A wake that no call has reported yet.
    woken: bool,
}

impl Endpoint {
    /// An endpoint that only makes connections. Use port 0 for any free one.
    pub fn bind(address: SocketAddr, config: Config) -> Result<Self, Error> {
        Self::with_clock(address, config, false, Clock::start())
    }

    /// An endpoint that also accepts connections.
    pub fn listen(address: SocketAddr, config: Config) -> Result<Self, Error> {
        Self::with_clock(address, config, true, Clock::start())
    }

    /// An endpoint on a clock that others use too, so that source times compare within a process.
    pub fn with_clock(address: SocketAddr, config: Config, accept: bool, clock: Clock) -> Result<Self, Error> {
        let socket = Socket::bind(address, &config.socket())?;
        Self::on(socket, config, accept, Shard::ONLY, clock)
    }

    /// `count` endpoints that accept connections on one port, for a thread each. A connection belongs to one of them as
    /// long as it lives, wherever its peer moves. They show one identity and have one clock; limits are for each. Linux
    /// only, but for a `count` of one.
    ///
    /// # Errors
    ///
    /// As for one endpoint.
    pub fn listen_shards(address: SocketAddr, config: Config, count: NonZeroU8) -> Result<Vec<Self>, Error> {
        let clock = Clock::start();
        let (shards, config) = crate::shards::open(address, config, count)?;
        shards.into_iter().map(|(socket, shard)| Self::on(socket, config.clone(), true, shard, clock)).collect()
    }

    fn on(socket: Socket, config: Config, accept: bool, shard: Shard, clock: Clock) -> Result<Self, Error> {
        let driver = BlockingDriver::new(socket, clock, config.driver())?;
        Ok(Self { driver, hub: Hub::new(config, accept, shard)?, woken: false })
    }

    /// The address in use.
    pub fn local_addr(&self) -> SocketAddr {
        self.driver.socket().local_addr()
    }

    /// What the system granted less of than was asked for.
    pub fn warnings(&self) -> &[SocketWarning] {
        self.driver.socket().warnings()
    }

    /// What the socket has carried so far, and what the network has answered to it (ICMP). Anyone near the path can forge
    /// such an answer, so it ends no connection; it is worth telling a person when nobody has answered.
    pub fn socket_counters(&self) -> SocketCounters {
        self.driver.socket().counters()
    }

    /// The clock of this endpoint.
    pub fn clock(&self) -> Clock {
        self.driver.clock()
    }

    /// Ends the call that is waiting, or else the next one that would wait, from another thread: [`Endpoint::wait`]
    /// gives `None`, every other call [`Error::Woken`].
    pub fn waker(&self) -> Waker {
        self.driver.waker()
    }

    /// The fingerprint of our key, by which peers know us; `None` in plain mode.
    pub const fn fingerprint(&self) -> Option<Fingerprint> {
        self.hub.fingerprint
    }

    /// Who to connect to for a program that has this endpoint at hand: its address and its key.
    pub fn peer(&self) -> Peer {
        self.hub.peer(self.local_addr())
    }

    /// What has arrived for no connection.
    pub fn strays(&self) -> StrayCounters {
        self.hub.protocol.strays
    }

    /// Asks for a connection with the given first streams, numbered from 0, and waits until it is there, at most
    /// for [`Config::connect_timeout`].
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] before anything is sent; [`Error::Closed`] when the peer refuses, is not the one trusted, or
    /// nobody answers.
    pub fn connect(&mut self, peer: impl Into<Peer>, streams: Vec<Contract>) -> Result<ConnectionId, Error> {
        let now = self.clock().now();
        let id = self.hub.connect(now, &peer.into(), streams)?;
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
    /// [`Config::connections`].
    pub fn forget(&mut self, id: ConnectionId) {
        let now = self.clock().now();
        self.hub.release(now, id);
    }

    /// Closes every connection gracefully, and returns when all have ended and said their goodbyes. Nothing is
    /// received any more.
    pub fn close(mut self) -> Result<(), Error> {
        let now = self.clock().now();
        self.hub.stop_accepting(now);
        for id in self.hub.connections() {
            self.hub.release(now, id);
        }
        self.wait_for(None, |hub, _| if hub.is_quiet() { Poll::Ready(Ok(())) } else { Poll::Pending })
    }

    /// Serves the network until `ready` gives a value, `timeout` has passed, or a waker ends the call. Serves it
    /// at least once before it gives up.
    pub(super) fn wait_for<T>(
        &mut self,
        timeout: Option<Duration>,
        ready: impl FnMut(&mut Hub, Instant) -> Poll<Result<T, Error>>,
    ) -> Result<T, Error> {
        let now = self.clock().now();
        self.wait_from(now, timeout, ready).map(|(value, _)| value)
    }

    /// As [`Endpoint::wait_for`], where it is `now`; and when the value was there.
    pub(super) fn wait_from<T>(
        &mut self,
        mut now: Instant,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut Hub, Instant) -> Poll<Result<T, Error>>,
    ) -> Result<(T, Instant), Error> {
        let until = timeout.map(|timeout| now + timeout);
        let mut served = false;
        loop {
            // Why before the first turn too: what an application does may end something at once, without anything arriving.
            self.hub.absorb(now, |_, _| ());
            if let Poll::Ready(value) = ready(&mut self.hub, now) {
                return value.map(|value| (value, now));
            }
            if core::mem::take(&mut self.woken) {
                return Err(Error::Woken);
            }
            if served && until.is_some_and(|until| now >= until) {
                return Err(Error::TimedOut);
            }
            now = self.turn(until)?;
            served = true;
        }
    }

    pub(super) fn serve_for(&mut self, time: Duration) -> Result<(), Error> {
        match self.wait_for(Some(time), |_, _| Poll::<Result<(), Error>>::Pending) {
            Err(Error::TimedOut) => Ok(()),
            other => other,
        }
    }

    /// Serves the network once, without sleeping.
    pub(super) fn serve(&mut self) -> Result<(), Error> {
        let now = self.turn(Some(Instant::ZERO))?;
        self.hub.absorb(now, |_, _| ());
        Ok(())
    }

    /// Serves the network once, after the application was given something of `id`, if the peer may wait for the room that is free
    /// now, or anything was due a while ago.
    ///
    /// Why not for what is just due: whoever is given an answer sends the next question at once, and that should not wait.
    pub(super) fn serve_if_due(&mut self, now: Instant, id: ConnectionId) -> Result<(), Error> {
        let late = || self.hub.poll_deadline().is_some_and(|deadline| deadline.at + LATE <= now);
        if self.hub.wants_report(now, id) || late() { self.serve() } else { Ok(()) }
    }

    /// Serves the network once, and waits for something to do until `until` at the latest. When it ended.
    fn turn(&mut self, until: Option<Instant>) -> Result<Instant, Error> {
        let turn = self.driver.turn(&mut self.hub, until)?;
        self.woken |= turn.woken;
        Ok(turn.at)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let now = self.clock().now();
        self.hub.abort_all(now, "the application is gone");
        // Why more than one turn: what was written before goes first, and may wait for room. Why an error is ignored: a peer that
        // is not told finds out when its idle timeout has passed.
        let (mut until, end) = (now, now + LAST_WORDS);
        while let Ok(turn) = self.driver.turn(&mut self.hub, Some(until))
            && (turn.blocked || turn.more)
            && until < end
        {
            until = self.clock().now() + Duration::from_millis(1);
        }
    }
}
