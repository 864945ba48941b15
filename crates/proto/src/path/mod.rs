//! A path: all that is found out about the way between an address of ours and one of the peer's.
//!
//! - `validation`: whether the peer is where its shipments come from (RFC 9000 8.2);
//! - `pmtu`: how large datagrams may be (RFC 8899);
//! - `exchange`: what the path made of what was sent, by TXS whose arrival was told;
//! - `delivery`: the same by reports, for a controller that those clock;
//! - `circuit_breaker`: the end of a fixed rate on a path that does not carry it (RFC 8084);
//! - and from the blocks: round trip, pacer, congestion controller.
//!
//! Held by the sending half, so that the simulator, which has no connection, has it as well. The endpoint answers unknown peers
//! along [`Addresses`] alone.
//!
//! Invariant: a peer that is found at another host is on another path: a new value, which takes over only what counts the
//! shipments of the connection ([`Path::migrated`]).

pub(crate) mod circuit_breaker;
pub(crate) mod delivery;
pub(crate) mod exchange;
pub(crate) mod pmtu;
pub(crate) mod validation;

use circuit_breaker::CircuitBreaker;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use delivery::Delivery;
use exchange::Exchanges;
use pmtu::{Pmtu, PmtuSearch};
use segstream_base::Instant;
use segstream_base::endpoint::{Arrival, Local};
use segstream_blocks::burst::Pacer;
use segstream_blocks::congestion::Controller;
use segstream_blocks::rtt::Rtt;
use validation::Validation;

/// The reordering threshold until the first report tells it.
const REORDERING_THRESHOLD_ASSUMED: u32 = 3;

/// One path, as its sender knows it.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) addresses: Addresses,
    pub(crate) validation: Validation,
    pub(crate) pmtu: Pmtu,
    pub(crate) rtt: Rtt,
    pub(crate) pacer: Pacer,
    pub(crate) congestion: Congestion,
    pub(crate) breaker: CircuitBreaker,
    /// The highest echo of any report: Largest Acknowledged (RFC 9000 19.3).
    pub(crate) echo: Option<u64>,
    /// R, as the newest report tells it: the packet threshold (RFC 9002 6.1.1).
    pub(crate) reordering_threshold: u32,
}

/// Congestion control on a path.
#[derive(Debug)]
pub(crate) struct Congestion {
    /// There when the rate is congestion-controlled.
    pub(crate) controller: Option<Box<dyn Controller>>,
    pub(crate) exchanges: Exchanges,
    /// There when the controller is clocked by reports.
    pub(crate) delivery: Option<Box<Delivery>>,
    /// Nothing speaks against CE marks (ECN validation, RFC 9000 13.4.2).
    pub(crate) ecn_capable: bool,
}

impl Path {
    /// A path in a simulation, without addresses, whose shipments carry `body_bytes`.
    pub(crate) fn new(body_bytes: usize) -> Self {
        Self {
            addresses: Addresses::to(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0)),
            validation: Validation::new([0; 16]),
            pmtu: Pmtu::fixed(body_bytes),
            rtt: Rtt::new(),
            pacer: Pacer::unlimited(),
            congestion: Congestion { controller: None, exchanges: Exchanges::default(), delivery: None, ecn_capable: true },
            breaker: CircuitBreaker::default(),
            echo: None,
            reordering_threshold: REORDERING_THRESHOLD_ASSUMED,
        }
    }

    /// A path between two addresses. `key` makes challenges that nobody can foresee; `datagram_bytes` is the size of datagrams,
    /// or the first one if larger ones are searched for.
    pub(crate) fn between(addresses: Addresses, key: [u8; 16], body_bytes: usize, datagram_bytes: usize, discovers: bool) -> Self {
        let mut path = Self::new(body_bytes);
        path.addresses = addresses;
        path.validation = Validation::new(key);
        path.pmtu.control_bytes = datagram_bytes;
        path.pmtu.search = discovers.then(|| PmtuSearch::new(addresses.ip_udp_header_bytes()));
        path
    }

    /// The path to where the peer has migrated. What was found out about this one does not hold there (RFC 9000 9.4).
    pub(crate) fn migrated(self, now: Instant, addresses: Addresses) -> Self {
        let mut congestion = self.congestion;
        if let Some(controller) = &mut congestion.controller {
            controller.on_path_change(now);
        }
        if let Some(delivery) = &mut congestion.delivery {
            delivery.on_path_change(congestion.exchanges.sent_bytes());
        }
        Self {
            addresses: self.addresses.migrated(addresses),
            breaker: CircuitBreaker::default(),
            congestion,
            pmtu: self.pmtu.restarted(),
            // Challenges never repeat. Echo and exchanges count the shipments of the connection, on whichever path.
            validation: self.validation,
            echo: self.echo,
            // Limit: round trip and reordering are unlearned by the next report, not at once.
            rtt: self.rtt,
            reordering_threshold: self.reordering_threshold,
            // Keeps what has just left in mind: the new path begins no faster than the controller lets it.
            pacer: self.pacer,
        }
    }
}

/// The addresses of both ends of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// The peer's.
    pub(crate) remote: SocketAddr,
    /// Ours, by which the peer knows us: the one it sent to. Any for whoever began: the system chooses by its routes, and the
    /// peer follows.
    pub(crate) local: Local,
}

impl Addresses {
    /// Of a path that begins here.
    pub(crate) const fn to(remote: SocketAddr) -> Self {
        Self { remote, local: Local::ANY }
    }

    /// Of the path back, by which an arrival is answered.
    pub(crate) const fn back(arrival: &Arrival) -> Self {
        Self { remote: arrival.from, local: arrival.to }
    }

    /// After the peer has proved that it is where `new` says.
    pub(crate) fn migrated(self, new: Self) -> Self {
        // Why not both: an address of ours that the system has chosen may be gone when it chooses anew.
        Self { local: if self.local == Local::ANY { Local::ANY } else { new.local }, ..new }
    }

    /// Whether `new` is another host, and not just another port of the same.
    pub(crate) fn is_other_host(self, new: Self) -> bool {
        self.remote.ip() != new.remote.ip()
    }

    /// What a datagram takes on its way beyond itself: the headers of UDP and of IPv4 or IPv6.
    pub(crate) const fn ip_udp_header_bytes(self) -> u64 {
        if self.remote.is_ipv4() { 28 } else { 48 }
    }
}
