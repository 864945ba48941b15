//! The budgets of memory of an endpoint: for all its peers together, and for each key (spec 11.4).
//!
//! What is counted is what streams are charged with when they are opened, not what they keep at the moment: what was granted can be claimed
//! at any time. The receiving half of each connection has an account; the budget sums them up by the peer's key.
//!
//! Made by the endpoint, shared with its connections.
//!
//! Invariant: the sum of the accounts of all connections that are set up is what the endpoint has granted. A stream that would exceed a budget is refused, unless it is the
//! first of its connection, which gets the least. The first streams of a connection are opened before the peer's key is known: if they
//! exceed a budget, the connection ends when the key is known. Until then they count for other set-ups alone: anyone can begin one.

use crate::session::Fingerprint;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most that one stream is granted of what is left of the endpoint's budget: a thirty-second. Why: so a few never use the budget up,
/// and windows become smaller as it fills.
const SHARE: u64 = 32;
/// The same of the budget of a key: a quarter.
const SHARE_OF_PEER: u64 = 4;
/// What a connection has at most that was granted the least: it stands also where nothing is left.
const LEAST: u64 = 256 << 10;

/// The budgets of an endpoint.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    /// For all peers together, in bytes.
    limit: u64,
    /// For the connections of one key together, in bytes.
    limit_per_peer: u64,
    granted: Mutex<Granted>,
}

#[derive(Debug, Default)]
struct Granted {
    total: u64,
    /// What set-ups that are not complete hold.
    pending: u64,
    /// By key; a key that has nothing is not in it.
    peers: BTreeMap<Fingerprint, u64>,
}

impl Granted {
    fn add(&mut self, peer: Option<Fingerprint>, bytes: u64) {
        self.total += bytes;
        if let Some(peer) = peer.filter(|_| bytes > 0) {
            *self.peers.entry(peer).or_default() += bytes;
        }
    }

    fn subtract(&mut self, peer: Option<Fingerprint>, bytes: u64) {
        debug_assert!(self.total >= bytes, "more is given back than was granted");
        self.total = self.total.saturating_sub(bytes);
        if let Some(peer) = peer
            && let Some(granted) = self.peers.get_mut(&peer)
        {
            *granted = granted.saturating_sub(bytes);
            if *granted == 0 {
                self.peers.remove(&peer);
            }
        }
    }
}

impl MemoryBudget {
    pub(crate) fn new(limit: u64, limit_per_peer: u64) -> Self {
        Self { limit, limit_per_peer, granted: Mutex::default() }
    }

    fn granted(&self) -> MutexGuard<'_, Granted> {
        // Why a poisoned lock is taken: the numbers are changed one at a time, so a call that has panicked has left them consistent.
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What all peers have been granted, in bytes.
    pub(crate) fn granted_bytes(&self) -> u64 {
        self.granted().total
    }

    /// What all peers may be granted, in bytes.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// What the holder of a key has been granted, in bytes.
    pub(crate) fn granted_bytes_of(&self, peer: Fingerprint) -> u64 {
        self.granted().peers.get(&peer).copied().unwrap_or(0)
    }
}

/// What may still be granted, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// To one stream.
    pub(crate) share: u64,
    /// In all.
    pub(crate) all: u64,
}

/// What one connection has been granted of a budget. What it has goes back when it goes.
#[derive(Debug)]
pub(crate) struct MemoryAccount {
    budget: Arc<MemoryBudget>,
    /// Whose it is, once that is known.
    peer: Option<Fingerprint>,
    granted: u64,
    /// Set-up is complete, and what is granted counts for all. Why not before: anyone can begin a set-up, and no data arrives in one.
    counts: bool,
}

impl MemoryAccount {
    pub(crate) fn new(budget: &Arc<MemoryBudget>) -> Self {
        Self { budget: Arc::clone(budget), peer: None, granted: 0, counts: false }
    }

    /// What may still be granted.
    pub(crate) fn left(&self) -> Left {
        let granted = self.budget.granted();
        let of_peer = self.peer.and_then(|peer| granted.peers.get(&peer)).copied().unwrap_or(0);
        let of_key = self.budget.limit_per_peer.saturating_sub(of_peer + if self.peer.is_none() { self.granted } else { 0 });
        let of_all = self.budget.limit.saturating_sub(granted.total + if self.counts { 0 } else { granted.pending });
        Left { share: (of_all / SHARE).min(of_key / SHARE_OF_PEER), all: of_all.min(of_key) }
    }

    /// So much is granted.
    pub(crate) fn grant(&mut self, bytes: u64) {
        self.granted += bytes;
        let mut granted = self.budget.granted();
        if self.counts { granted.add(self.peer, bytes) } else { granted.pending += bytes }
    }

    /// So much of it is given back.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        let bytes = bytes.min(self.granted);
        self.granted -= bytes;
        let mut granted = self.budget.granted();
        if self.counts { granted.subtract(self.peer, bytes) } else { granted.pending = granted.pending.saturating_sub(bytes) }
    }

    /// Set-up is complete, and the peer has proved this key, if it has one. Whether the budgets hold with this connection.
    pub(crate) fn on_set_up(&mut self, peer: Option<Fingerprint>) -> bool {
        debug_assert!(!self.counts, "a connection is set up once");
        let mut granted = self.budget.granted();
        granted.pending = granted.pending.saturating_sub(self.granted);
        granted.add(peer, self.granted);
        (self.peer, self.counts) = (peer, true);
        let of_peer = peer.and_then(|peer| granted.peers.get(&peer)).copied().unwrap_or(0);
        of_peer <= self.budget.limit_per_peer && (granted.total <= self.budget.limit || self.granted <= LEAST)
    }
}

impl Drop for MemoryAccount {
    fn drop(&mut self) {
        self.give_back(self.granted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_shared_by_all_and_by_those_of_one_key_and_what_goes_gives_back() {
        let budget = Arc::new(MemoryBudget::new(3200, 400));
        let (alice, bob) = (Fingerprint([1; 32]), Fingerprint([2; 32]));
        let mut first = MemoryAccount::new(&budget);
        assert_eq!(first.left(), Left { share: 100, all: 400 }, "whoever it is");
        first.grant(300);
        assert_eq!(first.left(), Left { share: 25, all: 100 });
        assert_eq!(budget.granted_bytes(), 0, "what is not set up takes nothing from others");
        assert!(first.on_set_up(Some(alice)));
        let mut second = MemoryAccount::new(&budget);
        second.grant(200);
        assert!(!second.on_set_up(Some(alice)), "together they have 500");
        assert_eq!((second.left().all, budget.granted_bytes(), budget.granted_bytes_of(alice)), (0, 500, 500));
        drop(second);
        assert_eq!((first.left().all, budget.granted_bytes()), (100, 300));
        let mut others: Vec<MemoryAccount> = (0..9).map(|_| MemoryAccount::new(&budget)).collect();
        for (number, other) in others.iter_mut().enumerate() {
            other.grant(other.left().all);
            assert!(other.on_set_up((number == 0).then_some(bob)));
        }
        assert_eq!((first.left(), budget.granted_bytes()), (Left { share: 0, all: 0 }, 3200), "all is granted, whatever one key may have");
        others[0].give_back(350);
        assert_eq!((budget.granted_bytes_of(bob), first.left().all), (50, 100));
        drop(others);
        drop(first);
        assert_eq!((budget.granted_bytes(), budget.granted().peers.len()), (0, 0));
    }
}
