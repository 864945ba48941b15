//! A host: an endpoint behind one socket with one or several addresses, driven as a program drives it.
//!
//! Owned by [`crate::Network`]. A host has a clock of its own: all its endpoint is told is in its own time.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use segstream_base::endpoint::{Deadline, Ecn, Endpoint};
use segstream_base::{Duration, Instant};

/// The number of a host, in the order in which they were added, from 0.
///
/// Methods that take one panic when their network has no such host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub usize);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "h{}", self.0)
    }
}

/// What a host is besides its endpoint.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The addresses of its socket, as the host knows them. What is sent without a source address leaves from the first one of the
    /// destination's family.
    pub addresses: Vec<SocketAddr>,
    /// What its clock shows when the network's shows zero. Default: zero.
    pub clock: Duration,
    /// Whether its endpoint looks at its timers before its socket when it is driven again after a pause. Default: no.
    pub timers_first: bool,
    /// Datagrams that wait at its socket while it is paused; further ones are dropped. Default: 200.
    pub socket_datagrams: usize,
}

impl HostConfig {
    /// A host at these addresses, with the defaults.
    pub fn at(addresses: &[SocketAddr]) -> Self {
        Self { addresses: addresses.to_vec(), clock: Duration::ZERO, timers_first: false, socket_datagrams: 200 }
    }
}

impl From<SocketAddr> for HostConfig {
    fn from(address: SocketAddr) -> Self {
        Self::at(&[address])
    }
}

/// A datagram in the buffer of a socket.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) received: Instant,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) ecn: Option<Ecn>,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Host<E> {
    /// None while it is crashed.
    pub(crate) endpoint: Option<E>,
    pub(crate) config: HostConfig,
    /// The outside address of each of its addresses.
    pub(crate) outside: Vec<SocketAddr>,
    pub(crate) paused: bool,
    pub(crate) waiting: Vec<Waiting>,
    /// When its endpoint wants to be called, on the network's clock.
    pub(crate) deadline: Option<Deadline>,
    /// Its endpoint may have changed since it was last drained.
    pub(crate) touched: bool,
}

impl<E: Endpoint> Host<E> {
    pub(crate) fn new(endpoint: E, config: HostConfig) -> Self {
        let outside = config.addresses.clone();
        Self { endpoint: Some(endpoint), config, outside, paused: false, waiting: Vec::new(), deadline: None, touched: false }
    }

    /// What its clock shows.
    pub(crate) fn local(&self, now: Instant) -> Instant {
        now + self.config.clock
    }

    /// When it wants to be called, if it is driven.
    pub(crate) fn next_wake(&self) -> Option<Deadline> {
        if self.paused { None } else { self.deadline }
    }

    /// Asks its endpoint again when that wants to be called.
    pub(crate) fn ask_deadline(&mut self) {
        let deadline = self.endpoint.as_ref().and_then(Endpoint::poll_deadline);
        self.deadline = deadline.map(|deadline| Deadline { at: deadline.at - self.config.clock, ..deadline });
        self.touched = false;
    }

    /// Tells its endpoint that time has passed.
    pub(crate) fn wake(&mut self, now: Instant) {
        let local = self.local(now);
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.handle_timeout(local);
        }
    }

    /// It loses everything.
    pub(crate) fn crash(&mut self) {
        self.endpoint = None;
        self.deadline = None;
        self.waiting.clear();
    }

    /// The outside address from which a datagram to `to` leaves, when it names the source `from` or none; `None` when the host has
    /// no such address.
    pub(crate) fn source(&self, from: Option<IpAddr>, to: SocketAddr) -> Option<SocketAddr> {
        let fits = |inside: &SocketAddr| from.map_or(inside.is_ipv4() == to.is_ipv4(), |ip| inside.ip() == ip);
        let at = self.config.addresses.iter().position(fits)?;
        self.outside.get(at).copied()
    }
}
