//! The endpoint contract: datagrams and time in, datagrams and one deadline out.
//!
//! Implemented by the flagship's endpoint (all its connections) and by an adapter around any pair of
//! halves. Driven by `net` on real sockets and by tests in virtual time.
//!
//! How to drive one: after every mutation (a datagram, a timeout, a call of the application) drain
//! [`Endpoint::poll_transmit`] until it returns `None`, then sleep until [`Endpoint::poll_deadline`] or
//! the next datagram. Time never goes backward between calls.

use crate::time::Instant;
use core::net::{IpAddr, SocketAddr};

/// Explicit congestion notification: the two bits of the IP header (RFC 3168 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// ECT(0): ECN-capable transport.
    Ect0,
    /// ECT(1): ECN-capable transport with a scalable congestion control (L4S, RFC 9331).
    Ect1,
    /// CE: congestion experienced.
    CongestionExperienced,
}

impl Ecn {
    /// The codepoint of these two bits; `None` for Not-ECT. Higher bits do not count.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits & 0b11 {
            0b01 => Some(Self::Ect1),
            0b10 => Some(Self::Ect0),
            0b11 => Some(Self::CongestionExperienced),
            _ => None,
        }
    }

    /// The two bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::CongestionExperienced => 0b11,
        }
    }
}

/// The local end of a path: the address of this host that datagrams arrive at and leave from. The port is the socket's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// The address. Of an arrival: `None` if the system did not tell, or if other hosts share it (multicast). Of a
    /// transmission: `None` leaves the choice to the routes of the system.
    pub address: Option<IpAddr>,
    /// The interface, by the number the system gives it; `None` if the system did not tell. A link-local address is
    /// ambiguous without it (RFC 4007 4).
    pub interface: Option<u32>,
}

impl Local {
    /// No particular address: the system chooses.
    pub const ANY: Self = Self { address: None, interface: None };
}

/// Where from, where to and how a datagram came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The sender's address.
    pub from: SocketAddr,
    /// The local address it was sent to. Answers are sent from it, because a peer accepts nothing from another address.
    pub to: Local,
    /// The ECN codepoint of the datagram, if the socket tells it.
    pub ecn: Option<Ecn>,
    /// When the kernel received it, on the clock of `now`; `now` itself when the socket did not tell.
    pub received: Instant,
}

/// What [`Endpoint::poll_transmit`] has written into the buffer: one datagram, or several equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where the datagrams go.
    pub to: SocketAddr,
    /// The local address they leave from.
    pub from: Local,
    /// The size of each datagram but the last, which may be shorter, for segmentation offload.
    pub datagram_bytes: usize,
    /// Their ECN codepoint.
    pub ecn: Option<Ecn>,
}

/// When an endpoint or a half wants to be called again, and the name of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When. Being called early is harmless, being called late costs delay.
    pub at: Instant,
    /// The name of the timer.
    pub timer: &'static str,
}

impl Deadline {
    /// The earlier of two deadlines; the first wins a tie.
    #[inline]
    pub fn earlier(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

/// Datagrams and time in, datagrams and one deadline out.
pub trait Endpoint {
    /// Takes a datagram. It may be changed in place (a seal is opened there).
    fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]);

    /// Takes a batch that GRO has joined: `datagrams` that came together, one behind the other in memory, each of
    /// `datagram_bytes` (at least 1) but the last, which may be shorter. Does what [`Endpoint::handle_datagram`] does with one
    /// after the other, perhaps in fewer steps.
    fn handle_batch(&mut self, now: Instant, arrival: Arrival, datagrams: &mut [u8], datagram_bytes: usize) {
        for datagram in datagrams.chunks_mut(datagram_bytes) {
            self.handle_datagram(now, arrival, datagram);
        }
    }

    /// Appends up to `max_datagrams` datagrams for one destination to `out`, all of the same size but
    /// the last. `None` when nothing may be sent now.
    fn poll_transmit(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit>;

    /// When [`Endpoint::handle_timeout`] is wanted; `None` when only a datagram or the application can
    /// cause anything. It may be early as long as [`Endpoint::poll_transmit`] has not returned `None`.
    fn poll_deadline(&self) -> Option<Deadline>;

    /// Tells that time has passed. Calling it early does nothing.
    fn handle_timeout(&mut self, now: Instant);
}
