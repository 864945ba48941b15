//! The events of a network, and the [`Middlebox`] that sees them and that every datagram passes.
//!
//! Called by [`crate::Network`]; implemented by [`crate::EventLog`], [`crate::Capture`] and by tests that drop, change or count
//! datagrams or check what they see.
//!
//! Invariant: all events of a run go by one middlebox, in the order in which they happen.

use crate::fault::Fault;
use crate::host::HostId;
use core::fmt;
use core::net::SocketAddr;
use segstream_base::Instant;
use segstream_base::endpoint::Ecn;

/// A datagram that leaves a host.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The host.
    pub host: HostId,
    /// Its source address, as routers see it: behind a NAT, the outside one.
    pub from: SocketAddr,
    /// Its destination.
    pub to: SocketAddr,
    /// Its ECN codepoint.
    pub ecn: Option<Ecn>,
    /// Its payload. It may be changed in place.
    pub bytes: &'a mut [u8],
}

/// What a middlebox does with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ruling {
    /// It is forwarded.
    #[default]
    Pass,
    /// It is dropped.
    Drop,
    /// It is forwarded twice.
    Duplicate,
    /// It goes on and arrives CE-marked, whether it is ECN-capable or not.
    Mark,
}

/// The fate of a datagram that has left a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Arrives {
        /// When.
        at: Instant,
        /// When a second copy arrives.
        copy: Option<Instant>,
        /// Whether a bit of its payload is flipped.
        damaged: bool,
    },
    /// The path lost it: its loss process or a burst of losses took it, its queue dropped it, or its IP or UDP header was damaged.
    Lost,
    /// The middlebox dropped it.
    Filtered,
    /// The route is blocked.
    Blocked,
    /// No host has the destination's address, no route leads there, or the sender has no address of its family.
    Unreachable,
}

/// What a host does with a datagram that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// Its endpoint gets it now.
    Handled,
    /// It waits in the socket's buffer of a paused host.
    Buffered,
    /// The socket's buffer is full; it is dropped.
    Overflown,
    /// The host is crashed; it is dropped.
    Down,
}

/// Something that has happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The clock has come to a new point in time, or everything that was due was done and more is due at the same one.
    Clock,
    /// A datagram has left a host.
    Sent {
        /// The host.
        host: HostId,
        /// Its source address, as routers see it.
        from: SocketAddr,
        /// Its destination.
        to: SocketAddr,
        /// Its payload, before the path has damaged it.
        bytes: &'a [u8],
        /// Its ECN codepoint.
        ecn: Option<Ecn>,
        /// Its fate.
        fate: Fate,
    },
    /// A datagram has arrived at a host. Its endpoint is told after this.
    Arrived {
        /// The host.
        host: HostId,
        /// Its source address.
        from: SocketAddr,
        /// The address of the host that it came to; behind a NAT, the inside one.
        to: SocketAddr,
        /// Its payload.
        bytes: &'a [u8],
        /// Its ECN codepoint.
        ecn: Option<Ecn>,
        /// What the host does with it.
        reception: Reception,
    },
    /// A datagram has arrived where no host is any more.
    Undelivered {
        /// Its source address.
        from: SocketAddr,
        /// Its destination.
        to: SocketAddr,
        /// Its payload.
        bytes: &'a [u8],
    },
    /// An endpoint's deadline has come. It is called after this.
    Woken {
        /// The host.
        host: HostId,
        /// The name of the timer.
        timer: &'static str,
    },
    /// A fault begins or ends.
    Fault(Fault),
    /// A host has started again with a new endpoint.
    Restarted(HostId),
}

/// Sees everything that happens in a network and decides about each datagram: a firewall, a tap, an attacker on the path.
/// By default everything passes. A pair of middleboxes is one: the second sees what the first lets pass.
pub trait Middlebox {
    /// A datagram is about to enter its route.
    fn decide(&mut self, now: Instant, datagram: &mut Datagram<'_>) -> Ruling {
        let _ = (now, datagram);
        Ruling::Pass
    }

    /// Something has happened.
    fn observe(&mut self, now: Instant, event: &Event<'_>) {
        let _ = (now, event);
    }
}

impl Middlebox for () {}

impl<A: Middlebox, B: Middlebox> Middlebox for (A, B) {
    fn decide(&mut self, now: Instant, datagram: &mut Datagram<'_>) -> Ruling {
        match self.0.decide(now, datagram) {
            Ruling::Pass => self.1.decide(now, datagram),
            other => other,
        }
    }

    fn observe(&mut self, now: Instant, event: &Event<'_>) {
        self.0.observe(now, event);
        self.1.observe(now, event);
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrives { at, copy, damaged } => {
                write!(f, "arrives={}", at.as_nanos())?;
                if let Some(copy) = copy {
                    write!(f, " copy={}", copy.as_nanos())?;
                }
                f.write_str(if *damaged { " damaged" } else { "" })
            }
            Self::Lost => f.write_str("lost"),
            Self::Filtered => f.write_str("filtered"),
            Self::Blocked => f.write_str("blocked"),
            Self::Unreachable => f.write_str("unreachable"),
        }
    }
}

impl fmt::Display for Reception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handled => "handled",
            Self::Buffered => "buffered",
            Self::Overflown => "overflown",
            Self::Down => "down",
        })
    }
}

/// As " ce" behind what is said of a datagram.
fn mark(ecn: Option<Ecn>) -> &'static str {
    match ecn {
        None => "",
        Some(Ecn::Ect0) => " ect0",
        Some(Ecn::Ect1) => " ect1",
        Some(Ecn::CongestionExperienced) => " ce",
    }
}

/// The event without its time, as [`crate::EventLog`] writes it.
impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clock => f.write_str("clock"),
            Self::Sent { host, from, to, bytes, ecn, fate } => {
                write!(f, "{host} sent {from} > {to} bytes={}{} {fate}", bytes.len(), mark(*ecn))
            }
            Self::Arrived { host, from, to, bytes, ecn, reception } => {
                write!(f, "{host} got {from} > {to} bytes={}{} {reception}", bytes.len(), mark(*ecn))
            }
            Self::Undelivered { from, to, bytes } => write!(f, "undelivered {from} > {to} bytes={}", bytes.len()),
            Self::Woken { host, timer } => write!(f, "{host} timer {timer}"),
            Self::Fault(fault) => write!(f, "fault {fault}"),
            Self::Restarted(host) => write!(f, "{host} restarted"),
        }
    }
}
