//! The addresses of a swarm.
//!
//! Called by the swarm and by its observer.

use crate::event::Place;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The port of every host.
const PORT: u16 = 4433;

/// Where hosts and attackers are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) ipv6: bool,
    /// This many hosts.
    pub(crate) hosts: usize,
}

impl Addresses {
    /// The address of a place.
    pub(crate) fn address(self, place: Place) -> SocketAddr {
        let (net, host, port) = match place {
            Place::Host(host) => (0, host as u16 + 1, PORT),
            Place::Elsewhere(port) => (1, 1, port),
        };
        let ip = match self.ipv6 {
            true => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, net, host)),
            false => IpAddr::V4(Ipv4Addr::new(10, 0, net as u8, host as u8)),
        };
        SocketAddr::new(ip, port)
    }

    /// The place at an address.
    pub(crate) fn place(self, address: SocketAddr) -> Place {
        let host = (0..self.hosts).map(Place::Host).find(|&place| self.address(place) == address);
        host.unwrap_or(Place::Elsewhere(address.port()))
    }
}
