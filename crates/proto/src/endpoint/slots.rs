//! The connection table of an endpoint, with counts of connections by state, so that no call needs to visit all of them.
//!
//! Called by the endpoint and by its run queue. A slot is found by its index, which is a part of the identifier; the connection of a
//! request is found by the number of the request and its sender.
//!
//! Invariant: each count is that of the connections whose last recorded state is the counted one. A state is recorded when the run queue
//! updates a touched connection, and when a connection is added and removed. An identifier is never used again.

use super::networks::{NETWORKS, NetworkPrefix, networks_of};
use super::run_queue::Queued;
use crate::connection::{Connection, ConnectionState, Role};
use core::cell::Cell;
use core::net::SocketAddr;
use segstream_base::endpoint::Deadline;
use segstream_base::{Duration, Instant};
use segstream_blocks::recount;
use std::collections::{BTreeMap, BTreeSet};

/// Connections an endpoint can have: the low half of an identifier on the wire tells the slot.
const SLOTS_MAX: usize = 1 << 16;

/// Names a connection of an endpoint for as long as the endpoint lives; never used again. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    serial: u64,
    index: u32,
}

impl ConnectionId {
    /// How many connections the endpoint had before.
    pub(super) const fn serial(self) -> u64 {
        self.serial
    }

    /// The slot.
    pub(super) const fn index(self) -> u32 {
        self.index
    }
}

/// How a request is found again: its number and, if it is a peer's, where it came from.
type Asked = (u64, Option<SocketAddr>);

/// A connection and its place in the queues.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: ConnectionId,
    pub(super) connection: Connection,
    /// What the run queue knows of it.
    pub(super) queued: Queued,
    /// When the connection wants to be called, as long as nobody has changed it.
    deadline: Cell<Option<Option<Deadline>>>,
    /// What it was counted as.
    state: ConnectionState,
    asked: Asked,
    /// How long its set-up may take before it can be evicted, for one that a peer began.
    spared: Duration,
    /// The MAC by which the peer's stateless reset token is looked up, once it is known.
    reset: Option<[u8; 16]>,
}

/// The connections of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Slots {
    // Why boxed: a slot that is free takes no memory, and those there are need not move when there are more.
    slots: Vec<Option<Box<Slot>>>,
    free: BTreeSet<u32>,
    serial: u64,
    asked: BTreeMap<Asked, u32>,
    resets: BTreeMap<[u8; 16], u32>,
    /// Set-ups of unauthenticated peers and until when each is spared, the first to be evicted first.
    setups: BTreeSet<(Instant, u32)>,
    /// Connections that stay to repeat a refusal.
    refused: BTreeSet<u32>,
    /// Set-ups and refused peers of each network. Why the refused as well: a handshake costs the same whatever comes of it.
    networks: BTreeMap<NetworkPrefix, usize>,
    /// Connections that have drained, and those of them that were not reported yet.
    gone: usize,
    gone_untold: BTreeSet<ConnectionId>,
}

impl Slots {
    pub(super) fn at(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)?.as_deref()
    }

    pub(super) fn at_mut(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize)?.as_deref_mut()
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&Slot> {
        self.at(id.index).filter(|slot| slot.id == id)
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Slot> {
        self.at_mut(id.index).filter(|slot| slot.id == id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> + '_ {
        self.slots.iter().flatten().map(|slot| &**slot)
    }

    /// How many connections there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Where one more connection may go, if there may be `most`; the place of a refused peer if there is no other.
    pub(super) fn vacancy(&self, most: usize) -> Option<u32> {
        match self.free.first() {
            Some(free) => Some(*free),
            None if self.slots.len() < most.min(SLOTS_MAX) => Some(self.slots.len() as u32),
            // Whoever was refused has been told so once at least.
            None => self.refused.first().copied(),
        }
    }

    /// The name of the next connection, if it goes to `index`.
    pub(super) const fn next_id(&mut self, index: u32) -> ConnectionId {
        let serial = self.serial;
        self.serial += 1;
        ConnectionId { serial, index }
    }

    /// Puts a connection that answers `request`, or asks with it, into its slot, which [`Slots::vacancy`] has told and
    /// nobody is in. A set-up is spared for so long when others need its place.
    pub(super) fn place(&mut self, id: ConnectionId, connection: Connection, request: u64, spared: Duration) {
        let remote = connection.remote();
        let asked = (request, (connection.role() == Role::Responder).then_some(remote));
        let state = connection.state();
        let (queued, deadline) = (Queued::default(), Cell::new(None));
        let slot = Slot { id, connection, queued, deadline, state, asked, spared, reset: None };
        self.asked.insert(asked, id.index);
        self.add(&slot);
        self.free.remove(&id.index);
        while self.slots.len() <= id.index as usize {
            self.slots.push(None);
        }
        self.slots[id.index as usize] = Some(Box::new(slot));
        self.debug_assert_counts();
    }

    /// Takes a connection out of its slot.
    pub(super) fn take(&mut self, index: u32) -> Option<Slot> {
        let slot = self.slots.get_mut(index as usize)?.take()?;
        self.free.insert(index);
        self.subtract(&slot);
        self.gone_untold.remove(&slot.id);
        if self.asked.get(&slot.asked) == Some(&index) {
            self.asked.remove(&slot.asked);
        }
        if let Some(reset) = slot.reset.filter(|reset| self.resets.get(reset) == Some(&index)) {
            self.resets.remove(&reset);
        }
        self.debug_assert_counts();
        Some(*slot)
    }

    /// Records the state of a connection.
    pub(super) fn update_state(&mut self, index: u32) {
        let Some(place) = self.slots.get_mut(index as usize) else { return };
        let Some(mut slot) = place.take_if(|slot| slot.connection.state() != slot.state) else { return };
        self.subtract(&slot);
        slot.state = slot.connection.state();
        self.add(&slot);
        if slot.state == ConnectionState::Terminated {
            self.gone_untold.insert(slot.id);
        }
        self.slots[index as usize] = Some(slot);
        self.debug_assert_counts();
    }

    /// Each count is that of the connections that were noted so.
    fn debug_assert_counts(&self) {
        if !recount::is_due(self.slots.len()) {
            return;
        }
        let count = |state| self.iter().filter(|slot| slot.state == state).count();
        debug_assert_eq!(self.gone, count(ConnectionState::Terminated), "connections that are gone are miscounted");
        debug_assert_eq!(self.setups.len(), count(ConnectionState::SettingUp), "set-ups are miscounted");
        debug_assert_eq!(self.refused.len(), count(ConnectionState::Refused), "refused peers are miscounted");
        let counted = self.iter().filter(|slot| slot.counted_networks().is_some()).count();
        debug_assert_eq!(self.networks.values().sum::<usize>(), NETWORKS * counted, "set-ups of networks are miscounted");
        debug_assert_eq!(self.len(), self.iter().count(), "free slots are miscounted");
    }

    fn add(&mut self, slot: &Slot) {
        let index = slot.id.index;
        match slot.state {
            ConnectionState::SettingUp => _ = self.setups.insert((slot.spared_until(), index)),
            ConnectionState::Refused => _ = self.refused.insert(index),
            ConnectionState::Terminated => self.gone += 1,
            ConnectionState::Active => {}
        }
        for network in slot.counted_networks().into_iter().flatten() {
            *self.networks.entry(network).or_default() += 1;
        }
    }

    fn subtract(&mut self, slot: &Slot) {
        let index = slot.id.index;
        match slot.state {
            ConnectionState::SettingUp => _ = self.setups.remove(&(slot.spared_until(), index)),
            ConnectionState::Refused => _ = self.refused.remove(&index),
            ConnectionState::Terminated => self.gone -= 1,
            ConnectionState::Active => {}
        }
        for network in slot.counted_networks().into_iter().flatten() {
            let Some(count) = self.networks.get_mut(&network) else { continue };
            *count -= 1;
            if *count == 0 {
                self.networks.remove(&network);
            }
        }
    }

    /// The number of set-ups of unauthenticated peers.
    pub(super) fn setups(&self) -> usize {
        self.setups.len()
    }

    /// The first of them that may be evicted: from when on, and its slot.
    pub(super) fn first_spared_setup(&self) -> Option<(Instant, u32)> {
        self.setups.first().copied()
    }

    /// Set-ups and refused peers of a network.
    pub(super) fn of_network(&self, network: NetworkPrefix) -> usize {
        self.networks.get(&network).copied().unwrap_or(0)
    }

    /// Whether every connection has drained.
    pub(super) fn are_gone(&self) -> bool {
        self.gone == self.len()
    }

    /// The next connection that has drained, each once.
    pub(super) fn next_gone(&mut self) -> Option<ConnectionId> {
        self.gone_untold.pop_first()
    }

    /// The connection that a request from `from` belongs to: a peer's, or one of ours that has come back.
    pub(super) fn of_request(&self, request: u64, from: SocketAddr) -> Option<u32> {
        self.asked.get(&(request, None)).or_else(|| self.asked.get(&(request, Some(from)))).copied()
    }

    /// Records the lookup key of the peer's stateless reset token.
    pub(super) fn note_reset(&mut self, index: u32, reset: [u8; 16]) {
        if let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::as_deref_mut) {
            slot.reset = Some(reset);
            self.resets.insert(reset, index);
        }
    }

    /// Whether any peer has issued a stateless reset token.
    pub(super) fn has_resets(&self) -> bool {
        !self.resets.is_empty()
    }

    /// The connection whose peer's stateless reset token has the lookup key `reset`.
    pub(super) fn of_reset(&self, reset: &[u8; 16]) -> Option<u32> {
        self.resets.get(reset).copied()
    }
}

impl Slot {
    /// When and why the connection wants to be called.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Deadline> {
        if let Some(known) = self.deadline.get() {
            debug_assert_eq!(known, self.connection.poll_timeout(), "someone has changed a connection without a word");
            return known;
        }
        let deadline = self.connection.poll_timeout();
        self.deadline.set(Some(deadline));
        deadline
    }

    /// The connection may have changed.
    #[inline]
    pub(super) fn note_change(&self) {
        self.deadline.set(None);
    }

    /// Until when its set-up is not evicted.
    fn spared_until(&self) -> Instant {
        self.connection.setup_began() + self.spared
    }

    /// The networks that its set-up or its refusal is counted for: those where it was asked for.
    fn counted_networks(&self) -> Option<[NetworkPrefix; NETWORKS]> {
        let (_, from) = self.asked;
        from.filter(|_| matches!(self.state, ConnectionState::SettingUp | ConnectionState::Refused)).map(networks_of)
    }

    /// Whether its peer has told how its resets end, and that was not noted.
    pub(super) fn unnoted_reset(&self) -> Option<[u8; 16]> {
        if self.reset.is_none() { self.connection.peer_reset() } else { None }
    }
}
