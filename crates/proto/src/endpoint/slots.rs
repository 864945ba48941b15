//! The connections of an endpoint, each in its slot, and how many stand how, so that no call need look at all of them.
//!
//! Called by the endpoint and by its run queue. A slot is found by its index, which identifiers carry; a request of the
//! initial level is found by its number and its sender.
//!
//! Invariant: each count is that of the connections whose last noted state says so; a state is noted when the run
//! queue looks at a connection that was touched, and when it comes and goes. An identifier is never used again.

use super::run_queue::Queued;
use crate::connection::{Connection, ConnectionState, Role};
use core::cell::Cell;
use core::net::{IpAddr, SocketAddr};
use segstream_base::Instant;
use segstream_base::endpoint::Deadline;
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

/// What counts as one host: an IPv4 address, or an IPv6 network of 64 bits, of which a host has all addresses.
pub(super) fn host_of(address: SocketAddr) -> [u8; 8] {
    match address.ip() {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            [0, 0, 0, 0, a, b, c, d]
        }
        IpAddr::V6(ip) => core::array::from_fn(|at| ip.octets()[at]),
    }
}

/// How a request is found again: its number and, if it is a peer's, where it came from.
type Asked = (u64, Option<SocketAddr>);

/// A connection in its place.
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
    /// By what a reset that its peer may send is found, once that is known.
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
    /// Set-ups of peers that are not known yet, the oldest first.
    setups: BTreeSet<(Instant, u32)>,
    /// Connections that stay only to say again that the peer was refused.
    refused: BTreeSet<u32>,
    /// Set-ups and refused peers of each host. Why the refused as well: a handshake costs the same whatever comes of it.
    hosts: BTreeMap<[u8; 8], usize>,
    /// Connections that have said their goodbyes, and those of them of which nobody has been told.
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
    /// nobody is in.
    pub(super) fn place(&mut self, id: ConnectionId, connection: Connection, request: u64) {
        let remote = connection.remote();
        let asked = (request, (connection.role() == Role::Responder).then_some(remote));
        let state = connection.state();
        let slot = Slot { id, connection, queued: Queued::default(), deadline: Cell::new(None), state, asked, reset: None };
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

    /// Notes how a connection stands now.
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
        let of_hosts = self.iter().filter(|slot| slot.counted_host().is_some()).count();
        debug_assert_eq!(self.hosts.values().sum::<usize>(), of_hosts, "set-ups of hosts are miscounted");
        debug_assert_eq!(self.len(), self.iter().count(), "free slots are miscounted");
    }

    fn add(&mut self, slot: &Slot) {
        let index = slot.id.index;
        match slot.state {
            ConnectionState::SettingUp => _ = self.setups.insert((slot.connection.setup_began(), index)),
            ConnectionState::Refused => _ = self.refused.insert(index),
            ConnectionState::Terminated => self.gone += 1,
            ConnectionState::Active => {}
        }
        if let Some(host) = slot.counted_host() {
            *self.hosts.entry(host).or_default() += 1;
        }
    }

    fn subtract(&mut self, slot: &Slot) {
        let index = slot.id.index;
        match slot.state {
            ConnectionState::SettingUp => _ = self.setups.remove(&(slot.connection.setup_began(), index)),
            ConnectionState::Refused => _ = self.refused.remove(&index),
            ConnectionState::Terminated => self.gone -= 1,
            ConnectionState::Active => {}
        }
        if let Some(host) = slot.counted_host()
            && let Some(count) = self.hosts.get_mut(&host)
        {
            *count -= 1;
            if *count == 0 {
                self.hosts.remove(&host);
            }
        }
    }

    /// Set-ups of peers that are not known yet.
    pub(super) fn setups(&self) -> usize {
        self.setups.len()
    }

    /// The oldest of them: when it began, and its slot.
    pub(super) fn oldest_setup(&self) -> Option<(Instant, u32)> {
        self.setups.first().copied()
    }

    /// Set-ups and refused peers of a host.
    pub(super) fn of_host(&self, host: [u8; 8]) -> usize {
        self.hosts.get(&host).copied().unwrap_or(0)
    }

    /// Whether every connection has said its goodbyes.
    pub(super) fn are_gone(&self) -> bool {
        self.gone == self.len()
    }

    /// The next connection that has said its goodbyes, each once.
    pub(super) fn next_gone(&mut self) -> Option<ConnectionId> {
        self.gone_untold.pop_first()
    }

    /// The connection that a request from `from` belongs to: a peer's, or one of ours that has come back.
    pub(super) fn of_request(&self, request: u64, from: SocketAddr) -> Option<u32> {
        self.asked.get(&(request, None)).or_else(|| self.asked.get(&(request, Some(from)))).copied()
    }

    /// Notes by what a reset of the connection's peer is found.
    pub(super) fn note_reset(&mut self, index: u32, reset: [u8; 16]) {
        if let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::as_deref_mut) {
            slot.reset = Some(reset);
            self.resets.insert(reset, index);
        }
    }

    /// Whether any peer may send resets.
    pub(super) fn has_resets(&self) -> bool {
        !self.resets.is_empty()
    }

    /// The connection whose peer's resets are found by `reset`.
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

    /// Somebody may change the connection, or has.
    #[inline]
    pub(super) fn note_change(&self) {
        self.deadline.set(None);
    }

    /// The host that its set-up or its refusal is counted for: where it was asked for.
    fn counted_host(&self) -> Option<[u8; 8]> {
        let (_, from) = self.asked;
        from.filter(|_| matches!(self.state, ConnectionState::SettingUp | ConnectionState::Refused)).map(host_of)
    }

    /// Whether its peer has told how its resets end, and that was not noted.
    pub(super) fn unnoted_reset(&self) -> Option<[u8; 16]> {
        if self.reset.is_none() { self.connection.peer_reset() } else { None }
    }
}
