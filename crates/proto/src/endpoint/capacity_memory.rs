//! What connections that have ended found out about the capacity of their paths, for the next ones to the same hosts (RFC 9959).
//!
//! Called by the endpoint when a connection begins and when it goes.
//!
//! Invariant: at most [`HOSTS_MAX`] hosts are remembered, those of last. What is taken is gone: of several connections to a host one
//! begins with it, and one that was wrong forgets it (RFC 9959 3.5).

use crate::path::careful_resume::SavedCapacity;
use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

const HOSTS_MAX: usize = 256;

#[derive(Debug, Default)]
pub(super) struct CapacityMemory {
    /// The newest last.
    hosts: VecDeque<(IpAddr, SavedCapacity)>,
}

impl CapacityMemory {
    /// Remembers the capacity of the path to `remote` in place of what is known.
    pub(super) fn save(&mut self, remote: SocketAddr, capacity: SavedCapacity) {
        self.take(remote);
        if self.hosts.len() >= HOSTS_MAX {
            self.hosts.pop_front();
        }
        self.hosts.push_back((remote.ip().to_canonical(), capacity));
    }

    /// What is known of the path to `remote`.
    pub(super) fn get(&self, remote: SocketAddr) -> Option<SavedCapacity> {
        let host = remote.ip().to_canonical();
        self.hosts.iter().find(|(known, _)| *known == host).map(|(_, capacity)| *capacity)
    }

    /// The same, and forgets it.
    pub(super) fn take(&mut self, remote: SocketAddr) -> Option<SavedCapacity> {
        let host = remote.ip().to_canonical();
        let at = self.hosts.iter().position(|(known, _)| *known == host)?;
        self.hosts.remove(at).map(|(_, capacity)| capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::{Bandwidth, Duration, Instant};

    fn capacity(megabits: u64) -> SavedCapacity {
        let rate = Bandwidth::from_megabits_per_second(megabits);
        SavedCapacity { rate, rtt: Duration::from_millis(40), expires: Instant::ZERO }
    }

    #[test]
    fn a_host_is_known_by_its_address_until_somebody_takes_it() {
        let mut memory = CapacityMemory::default();
        let [first, again]: [SocketAddr; 2] = ["192.0.2.1:1", "[::ffff:192.0.2.1]:2"].map(|address| address.parse().unwrap());
        memory.save(first, capacity(1));
        memory.save(again, capacity(2));
        assert_eq!((memory.get(first), memory.take(again), memory.take(first)), (Some(capacity(2)), Some(capacity(2)), None));
    }

    #[test]
    fn the_hosts_of_last_are_remembered() {
        let mut memory = CapacityMemory::default();
        let host = |number: usize| SocketAddr::new(IpAddr::from([10, 0, (number >> 8) as u8, number as u8]), 1);
        (0..=HOSTS_MAX).for_each(|number| memory.save(host(number), capacity(1)));
        assert_eq!((memory.take(host(0)), memory.hosts.len()), (None, HOSTS_MAX));
    }
}
