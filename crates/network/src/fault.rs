//! Faults besides those of the paths: blocked routes, bursts of losses, paused and crashed hosts, NAT rebinding.
//!
//! Planned or carried out by [`crate::Network`]. A host that has crashed starts again by [`crate::Network::restart`]: only the
//! caller can make a new endpoint.

use crate::host::HostId;
use core::fmt;
use core::net::SocketAddr;
use segstream_base::Duration;
use segstream_path::Probability;

/// A fault that begins or ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Nothing passes from one host to another. Blocks add up: as many [`Fault::Unblock`] open the route again.
    Block {
        /// Where datagrams come from.
        from: HostId,
        /// Where they go.
        to: HostId,
    },
    /// One block of a route is over.
    Unblock {
        /// Where datagrams come from.
        from: HostId,
        /// Where they go.
        to: HostId,
    },
    /// From now on and for a while, datagrams from one host to another are lost with this probability, besides what the path does.
    Burst {
        /// Where datagrams come from.
        from: HostId,
        /// Where they go.
        to: HostId,
        /// The share that is lost.
        share: Probability,
        /// For how long.
        lasts: Duration,
    },
    /// A host is not driven: its endpoint is not called, and what arrives waits in its socket's buffer.
    Pause(HostId),
    /// A paused host is driven again: its endpoint sees a clock that has jumped and a full socket.
    Resume(HostId),
    /// A host loses its endpoint and whatever waits at its socket.
    Crash(HostId),
    /// The NAT in front of a host gives its address `inside` another address outside. What is sent to the former one from now on,
    /// or is in flight to it, reaches nobody. The host notices nothing.
    Rebind {
        /// The host.
        host: HostId,
        /// The address as the host knows it.
        inside: SocketAddr,
        /// The address as everyone else sees it from now on; when it is `inside` there is no NAT any more.
        outside: SocketAddr,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { from, to } => write!(f, "block {from} > {to}"),
            Self::Unblock { from, to } => write!(f, "unblock {from} > {to}"),
            Self::Burst { from, to, share, lasts } => write!(f, "burst {from} > {to} share={} for {lasts}", share.get()),
            Self::Pause(host) => write!(f, "pause {host}"),
            Self::Resume(host) => write!(f, "resume {host}"),
            Self::Crash(host) => write!(f, "crash {host}"),
            Self::Rebind { host, inside, outside } => write!(f, "rebind {host} {inside} as {outside}"),
        }
    }
}
