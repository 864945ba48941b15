//! The client table (as of a NAT): each client has a socket of its own towards the destination.
//!
//! Called by the relay.
//!
//! Invariant: there are never more than [`CLIENTS_MAX`] clients; a new one evicts the least recently active one.

use super::socket_drops;
use crate::bind::{SocketConfig, SocketError};
use crate::socket::Socket;
use segstream_base::Instant;
use segstream_base::endpoint::Local;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The maximum number of clients at a time.
pub(super) const CLIENTS_MAX: usize = 64;

/// Identifies a client. It is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClientId(pub(super) u64);

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: ClientId,
    /// Its address, to which answers go.
    pub(super) address: SocketAddr,
    /// Our address that it first sent to.
    pub(super) local: Local,
    /// Its socket towards the destination.
    pub(super) upstream: Socket,
    active_at: Instant,
}

/// The client table.
#[derive(Debug)]
pub(super) struct ClientTable {
    clients: Vec<Client>,
    /// The results of the last lookups: most datagrams come from the same client as the one before.
    last_address: usize,
    last_id: usize,
    seen: u64,
    evicted: u64,
    evicted_drops: Option<u64>,
    config: SocketConfig,
}

impl ClientTable {
    pub(super) fn new(config: SocketConfig) -> Self {
        Self { clients: Vec::new(), last_address: 0, last_id: 0, seen: 0, evicted: 0, evicted_drops: Some(0), config }
    }

    /// The client at `address`, which has sent to `local`; a new one if there is none. Its socket is of the family of `to`.
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

    /// The client `id`, unless it was evicted.
    pub(super) fn get(&mut self, id: ClientId) -> Option<&Client> {
        if self.clients.get(self.last_id).is_none_or(|client| client.id != id) {
            self.last_id = self.clients.iter().position(|client| client.id == id)?;
        }
        self.clients.get(self.last_id)
    }

    /// All clients, in an order that changes only when one is added.
    pub(super) fn all(&self) -> &[Client] {
        &self.clients
    }

    /// How many clients there have been.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// How many were evicted.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// How many datagrams their sockets' receive buffers have dropped; `None` if the system does not tell.
    pub(super) fn receive_buffer_drops(&self) -> Option<u64> {
        self.clients.iter().map(|client| socket_drops::dropped(&client.upstream)).try_fold(self.evicted_drops?, |sum, one| Some(sum + one?))
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
            self.evicted_drops = self.evicted_drops.zip(socket_drops::dropped(&gone.upstream)).map(|(sum, one)| sum + one);
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
        let mut clients = ClientTable::new(SocketConfig::default());
        let ids: Vec<ClientId> =
            (0..CLIENTS_MAX).map(|n| clients.at(client(n), Local::ANY, to, Instant::from_nanos(n as u64)).unwrap()).collect();
        // Client 0 sends again, so client 1 is the least recently active one.
        assert_eq!(clients.at(client(0), Local::ANY, to, Instant::from_nanos(100)).unwrap(), ids[0]);
        let late = clients.at(client(CLIENTS_MAX), Local::ANY, to, Instant::from_nanos(101)).unwrap();
        assert!(clients.get(ids[1]).is_none());
        assert_eq!(clients.get(ids[0]).map(|c| c.address), Some(client(0)));
        assert_eq!(clients.get(late).map(|c| c.address), Some(client(CLIENTS_MAX)));
        assert_eq!((clients.all().len(), clients.seen(), clients.evicted()), (CLIENTS_MAX, CLIENTS_MAX as u64 + 1, 1));
        // A client that comes back is a new client.
        assert_ne!(clients.at(client(1), Local::ANY, to, Instant::from_nanos(102)).unwrap(), ids[1]);
    }
}
