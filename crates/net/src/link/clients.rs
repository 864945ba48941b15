//! Who sends through the link: each client has a socket of its own towards the destination.
//!
//! Called by the relay.
//!
//! Invariant: there are never more than [`CLIENTS_MAX`] clients; a new one takes the place of the one that was
//! silent the longest.

use super::overflow;
use crate::bind::{SocketConfig, SocketError};
use crate::socket::Socket;
use segstream_base::Instant;
use segstream_base::endpoint::Local;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The most clients at a time.
pub(super) const CLIENTS_MAX: usize = 64;

/// Names a client for as long as it is kept, and no other after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClientId(pub(super) u64);

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: ClientId,
    /// Where it sends from and where answers go.
    pub(super) address: SocketAddr,
    /// Our address that it sent to first.
    pub(super) local: Local,
    /// The socket that stands for it at the destination.
    pub(super) upstream: Socket,
    active_at: Instant,
}

/// All clients.
#[derive(Debug)]
pub(super) struct Clients {
    clients: Vec<Client>,
    /// Where the last lookups ended: most datagrams come from the client of the one before.
    last_address: usize,
    last_id: usize,
    seen: u64,
    evicted: u64,
    evicted_overflow: Option<u64>,
    config: SocketConfig,
}

impl Clients {
    pub(super) fn new(config: SocketConfig) -> Self {
        Self { clients: Vec::new(), last_address: 0, last_id: 0, seen: 0, evicted: 0, evicted_overflow: Some(0), config }
    }

    /// The client at `address`, which has sent to `local`; a new one if there is none. `to` tells the family its socket needs.
    pub(super) fn at(&mut self, address: SocketAddr, local: Local, to: SocketAddr, now: Instant) -> Result<ClientId, SocketError> {
        let is_it = |client: &Client| client.address == address;
        let place = match self.clients.get(self.last_address).filter(|client| is_it(client)) {
            Some(_) => self.last_address,
            None => match self.clients.iter().position(is_it) {
                Some(place) => place,
                None => self.admit(address, local, to)?,
            },
        };
        self.last_address = place;
        let client = self.clients.get_mut(place);
        Ok(client.map_or(ClientId(u64::MAX), |client| {
            client.active_at = now;
            client.id
        }))
    }

    /// The client called `id`, unless it had to make room.
    pub(super) fn get(&mut self, id: ClientId) -> Option<&Client> {
        if self.clients.get(self.last_id).is_none_or(|client| client.id != id) {
            self.last_id = self.clients.iter().position(|client| client.id == id)?;
        }
        self.clients.get(self.last_id)
    }

    /// All clients, in an order that holds until one is admitted.
    pub(super) fn all(&self) -> &[Client] {
        &self.clients
    }

    /// How many clients there have been.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// How many had to make room.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// What their sockets' buffers have dropped so far; `None` when the system does not tell.
    pub(super) fn overflow(&self) -> Option<u64> {
        self.clients.iter().map(|client| overflow::dropped(&client.upstream)).try_fold(self.evicted_overflow?, |sum, one| Some(sum + one?))
    }

    fn admit(&mut self, address: SocketAddr, local: Local, to: SocketAddr) -> Result<usize, SocketError> {
        if self.clients.len() >= CLIENTS_MAX {
            self.evict();
        }
        let any = if to.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
        let upstream = Socket::bind(any, &self.config)?;
        self.clients.push(Client { id: ClientId(self.seen), address, local, upstream, active_at: Instant::ZERO });
        self.seen += 1;
        Ok(self.clients.len() - 1)
    }

    fn evict(&mut self) {
        let oldest = self.clients.iter().enumerate().min_by_key(|(_, client)| (client.active_at, client.id)).map(|(place, _)| place);
        if let Some(place) = oldest {
            let gone = self.clients.swap_remove(place);
            self.evicted += 1;
            self.evicted_overflow = self.evicted_overflow.zip(overflow::dropped(&gone.upstream)).map(|(sum, one)| sum + one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_that_was_silent_the_longest_makes_room() {
        let to = SocketAddr::from(([127, 0, 0, 1], 9));
        let client = |n: usize| SocketAddr::from(([127, 0, 0, 1], 1000 + n as u16));
        let mut clients = Clients::new(SocketConfig::default());
        let ids: Vec<ClientId> =
            (0..CLIENTS_MAX).map(|n| clients.at(client(n), Local::ANY, to, Instant::from_nanos(n as u64)).unwrap()).collect();
        // Client 0 speaks again, so client 1 is the silent one.
        assert_eq!(clients.at(client(0), Local::ANY, to, Instant::from_nanos(100)).unwrap(), ids[0]);
        let late = clients.at(client(CLIENTS_MAX), Local::ANY, to, Instant::from_nanos(101)).unwrap();
        assert!(clients.get(ids[1]).is_none());
        assert_eq!(clients.get(ids[0]).map(|c| c.address), Some(client(0)));
        assert_eq!(clients.get(late).map(|c| c.address), Some(client(CLIENTS_MAX)));
        assert_eq!((clients.all().len(), clients.seen(), clients.evicted()), (CLIENTS_MAX, CLIENTS_MAX as u64 + 1, 1));
        // Who comes back is a new client.
        assert_ne!(clients.at(client(1), Local::ANY, to, Instant::from_nanos(102)).unwrap(), ids[1]);
    }
}
