//! The ways between hosts: a path each, which may be blocked; and the addresses.
//!
//! Called by the swarm for every datagram that leaves. Invariant: a datagram enters its path whatever becomes of it, so
//! that a blocked way does not shift what the path does to later ones.

use crate::agenda::{Agenda, Task};
use crate::event::{Fate, Place};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use segstream_base::random::Seed;
use segstream_base::{Bytes, Instant};
use segstream_path::{Fate as PathFate, Path, PathConfig, SpecError};

/// Bytes of UDP and IPv4 around a datagram.
const BELOW_BYTES: u64 = 28;
/// The port of every host.
const PORT: u16 = 4433;

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(crate) struct Arriving {
    pub(crate) to: usize,
    pub(crate) from: Place,
    pub(crate) datagram: Vec<u8>,
    /// Whether it was marked on the way.
    pub(crate) marked: bool,
    /// Whether the host at its source address has made it.
    pub(crate) genuine: bool,
    /// Whether an attacker has brought it.
    pub(crate) hostile: bool,
}

/// A datagram that leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving<'a> {
    pub(crate) from: usize,
    pub(crate) to: Place,
    pub(crate) datagram: &'a [u8],
    /// Whether it may be marked.
    pub(crate) markable: bool,
}

#[derive(Debug)]
struct Way {
    path: Path,
    /// So many faults block it.
    blocks: u32,
}

/// The ways between hosts.
#[derive(Debug)]
pub(crate) struct Network {
    ipv6: bool,
    ways: Vec<Vec<Way>>,
}

impl Network {
    /// The ways as planned.
    ///
    /// # Errors
    /// When a path cannot be: a fault of the plan.
    pub(crate) fn new(paths: &[Vec<PathConfig>], ipv6: bool, seed: Seed) -> Result<Self, SpecError> {
        let way =
            |from: usize, to: usize, config: &PathConfig| Ok(Way { path: Path::new(config, seed, &format!("{from}>{to}"))?, blocks: 0 });
        let ways_from = |(from, configs): (usize, &Vec<PathConfig>)| {
            configs.iter().enumerate().map(|(to, config)| way(from, to, config)).collect::<Result<Vec<Way>, SpecError>>()
        };
        Ok(Self { ipv6, ways: paths.iter().enumerate().map(ways_from).collect::<Result<_, _>>()? })
    }

    /// The address of a place.
    pub(crate) fn address(&self, place: Place) -> SocketAddr {
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
    pub(crate) fn place(&self, address: SocketAddr) -> Place {
        let host = (0..self.ways.len()).map(Place::Host).find(|&place| self.address(place) == address);
        host.unwrap_or(Place::Elsewhere(address.port()))
    }

    /// Blocks a way, or opens it again; blocks add up.
    pub(crate) fn block(&mut self, from: usize, to: usize, blocked: bool) {
        if let Some(way) = self.ways.get_mut(from).and_then(|ways| ways.get_mut(to)) {
            way.blocks = if blocked { way.blocks + 1 } else { way.blocks.saturating_sub(1) };
        }
    }

    /// Sends a datagram on its way.
    pub(crate) fn send(&mut self, now: Instant, leaving: Leaving<'_>, agenda: &mut Agenda) -> Fate {
        let Place::Host(to) = leaving.to else { return Fate::Nowhere };
        let Some(way) = self.ways.get_mut(leaving.from).and_then(|ways| ways.get_mut(to)) else { return Fate::Nowhere };
        let bytes = Bytes::new(leaving.datagram.len() as u64 + BELOW_BYTES);
        let passage = if leaving.markable { way.path.send_markable(now, bytes) } else { way.path.send(now, bytes) };
        if way.blocks > 0 {
            return Fate::Blocked;
        }
        let PathFate::Delivered { at } = passage.fate else { return Fate::Lost };
        let mut datagram = leaving.datagram.to_vec();
        if let Some(bit) = passage.corrupt_bit {
            // A damaged header never comes to a socket; a damaged datagram is let through, to see the seal find it.
            match bit.checked_sub(BELOW_BYTES * 8) {
                None => return Fate::Lost,
                Some(bit) => datagram[bit as usize / 8] ^= 0x80 >> (bit % 8),
            }
        }
        let arriving = Arriving { to, from: Place::Host(leaving.from), datagram, marked: passage.marked, genuine: true, hostile: false };
        if let Some(copy) = passage.duplicate {
            agenda.plan(copy, Task::Arrive(arriving.clone()));
        }
        agenda.plan(at, Task::Arrive(arriving));
        match passage.duplicate {
            Some(copy) => Fate::Twice(at, copy),
            None if passage.corrupt_bit.is_some() => Fate::Damaged(at),
            None => Fate::Arrives(at),
        }
    }
}
