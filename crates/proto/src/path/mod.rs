//! A path: the state of the path between a local address and one of the peer.
//!
//! - `validation`: path validation (RFC 9000 8.2);
//! - `pmtu`: path MTU discovery (RFC 8899);
//! - `exchange`: rate samples by acknowledged exchanges;
//! - `delivery`: rate samples by reports, for a report-clocked controller;
//! - `careful_resume`: begins with half of what the last connection to the same peer found (RFC 9959);
//! - `circuit_breaker`: ends a fixed rate on a path that does not carry it (RFC 8084);
//! - and from the blocks: round trip, pacer, congestion controller.
//!
//! Held by the sending half, so that the simulator, which has no connection, has it as well. The endpoint answers unknown peers
//! along [`Addresses`] alone.
//!
//! Invariant: a peer that migrates to another host is on another path: a new value, which takes over only the counters of the connection's
//! shipments, and for which nothing sent on the previous path is a measurement ([`Path::migrated`]).
//!
//! Limit: an end whose own address has changed does not notice it, and keeps its measurements.

pub(crate) mod careful_resume;
pub(crate) mod circuit_breaker;
pub(crate) mod delivery;
pub(crate) mod exchange;
pub(crate) mod pmtu;
pub(crate) mod validation;

use careful_resume::{CapacityMeter, SavedCapacity};
use circuit_breaker::CircuitBreaker;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use delivery::Delivery;
use exchange::Exchanges;
use pmtu::{Pmtu, PmtuSearch};
use segstream_base::endpoint::{Arrival, Local};
use segstream_base::{Duration, Instant, ShipmentNumber};
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
    /// Since when shipments leave on it. What left before says nothing of it.
    began: Instant,
    pub(crate) validation: Validation,
    pub(crate) pmtu: Pmtu,
    pub(crate) rtt: Rtt,
    pub(crate) pacer: Pacer,
    pub(crate) congestion: Congestion,
    pub(crate) breaker: CircuitBreaker,
    /// What the last connection found, until the first round trip is known.
    pub(crate) saved: Option<Box<SavedCapacity>>,
    /// The highest echo of any report: Largest Acknowledged (RFC 9000 19.3).
    pub(crate) echo: Option<ShipmentNumber>,
    /// R, as the newest report tells it: the packet threshold (RFC 9002 6.1.1).
    pub(crate) reordering_threshold: u32,
}

/// Congestion control on a path.
#[derive(Debug)]
pub(crate) struct Congestion {
    /// There when the rate is congestion-controlled.
    pub(crate) controller: Option<Box<dyn Controller>>,
    pub(crate) exchanges: Exchanges,
    pub(crate) capacity: CapacityMeter,
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
            began: Instant::ZERO,
            validation: Validation::new([0; 16]),
            pmtu: Pmtu::fixed(body_bytes),
            rtt: Rtt::new(),
            pacer: Pacer::unlimited(),
            congestion: Congestion {
                controller: None,
                exchanges: Exchanges::default(),
                capacity: CapacityMeter::default(),
                delivery: None,
                ecn_capable: true,
            },
            breaker: CircuitBreaker::default(),
            saved: None,
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
        Self {
            addresses: self.addresses.migrated(addresses),
            began: now,
            breaker: CircuitBreaker::default(),
            // RFC 9959 3.3: another path is no path to resume on.
            saved: None,
            congestion: self.congestion.migrated(now, self.reordering_threshold),
            pmtu: self.pmtu.restarted(),
            // Challenges never repeat. The echo is that of the connection's shipments, on whichever path they left.
            validation: self.validation,
            echo: self.echo,
            rtt: Rtt::new(),
            reordering_threshold: REORDERING_THRESHOLD_ASSUMED,
            // Keeps what has just left in mind: the new path begins no faster than the controller lets it.
            pacer: self.pacer,
        }
    }

    /// The round trip that a report tells which echoes a TXS of `sent_at` and was `held` back; `None` when that left on another
    /// path (RFC 9000 9.4).
    pub(crate) fn round_trip_of(&self, now: Instant, sent_at: u64, held: u64) -> Option<Duration> {
        let round_trip = Duration::from_nanos(now.as_nanos().saturating_sub(sent_at).saturating_sub(held));
        (sent_at >= self.began.as_nanos()).then_some(round_trip)
    }
}

impl Congestion {
    /// Congestion control on the next path, which begins `now`. The path before had the reordering threshold `threshold`.
    fn migrated(mut self, now: Instant, threshold: u32) -> Self {
        if let Some(controller) = &mut self.controller {
            controller.on_path_change(now);
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.on_path_change();
        }
        self.exchanges.on_path_change(threshold);
        self.capacity = CapacityMeter::default();
        // RFC 9000 13.4.2: each path is validated by itself.
        self.ecn_capable = true;
        self
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A path on which everything was found out that can be.
    fn known() -> Path {
        let addresses = Addresses::to("192.0.2.1:1000".parse().unwrap());
        let mut path = Path::between(addresses, [7; 16], 1100, 1200, true);
        path.rtt.on_sample(at(500), Duration::from_millis(300));
        path.reordering_threshold = 40;
        path.congestion.ecn_capable = false;
        path.congestion.exchanges.on_sent(5000);
        path.echo = Some(ShipmentNumber(12));
        path
    }

    #[test]
    fn another_host_is_reached_by_a_path_of_which_nothing_is_known() {
        let to = Addresses::to("203.0.113.9:4000".parse().unwrap());
        let path = known().migrated(at(1000), to);
        assert_eq!((path.addresses, path.rtt, path.reordering_threshold), (to, Rtt::new(), REORDERING_THRESHOLD_ASSUMED));
        assert!(path.congestion.ecn_capable, "ECN is validated anew");
        assert_eq!((path.congestion.exchanges.in_flight(), path.congestion.exchanges.sent_bytes()), (0, 5000));
        assert_eq!(path.echo, Some(ShipmentNumber(12)), "shipments are those of the connection");
    }

    #[test]
    fn a_round_trip_that_began_on_another_path_is_none_of_this_one() {
        let path = known().migrated(at(1000), Addresses::to("203.0.113.9:4000".parse().unwrap()));
        let round_trip = |sent_at: u64| path.round_trip_of(at(1100), at(sent_at).as_nanos(), 10_000_000);
        assert_eq!((round_trip(999), round_trip(1000)), (None, Some(Duration::from_millis(90))));
    }
}
