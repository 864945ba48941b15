//! All connections behind one socket: datagrams and time in, datagrams and one deadline out.
//!
//! Driven by `net` on real sockets and by tests in virtual time (how: [`segstream_base::endpoint`]).
//! Applications use a connection with [`Endpoint::connection_mut`] and get the events of all connections with
//! [`Endpoint::poll_event`].
//!
//! - `slots`: the connections, found by identifier; `run_queue`: which of them may have something to do;
//! - `connection_requests`: requests of unknown peers; `address_validation`: their tokens;
//! - `stateless_reset`: connections that one side has lost;
//! - `memory_budget`: what all peers and each key may be granted;
//! - `capacity_memory`: what earlier connections found of their paths;
//! - `rate_limiter`: limits handshakes and stateless resets in a second; `networks`: whose share an address uses.
//!
//! Invariant: an unmatched datagram costs a counter and at most one answer, which is not longer than itself; the number of connections,
//! including set-ups, is bounded. No call visits connections that it does not concern, except those that list them.

mod address_validation;
mod capacity_memory;
mod connection_requests;
pub(crate) mod memory_budget;
mod networks;
mod rate_limiter;
mod run_queue;
mod slots;
mod stateless_reset;
#[cfg(test)]
mod tests;

use crate::config::{Config, DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN};
use crate::connection::{Connection, ConnectionEvent, IssuedTokens, Role, Start};
use crate::error::ConnectError;
use crate::path::Addresses;
pub use crate::path::careful_resume::SavedCapacity;
use crate::rate::Rate;
use crate::session::{Fingerprint, Plain, Protection, Session, Trust};
use crate::trace::Traced;
use address_validation::{Purpose, TokenIssuer, code};
use capacity_memory::CapacityMemory;
use core::net::SocketAddr;
use memory_budget::{MemoryAccount, MemoryBudget};
use rate_limiter::{NetworkRateLimiter, RateLimiter};
use run_queue::RunQueue;
use segstream_base::codec::{Reader, Writer};
use segstream_base::endpoint::{Arrival, Deadline, Transmit};
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant, StreamId};
use segstream_wire::contract::Contract;
use segstream_wire::handshake::VERSION;
use segstream_wire::header::{HEADER_BYTES, UnprotectedHeader};
use segstream_wire::proposal::{Proposal, STREAMS_MAX};
use segstream_wire::{Header, Kind, Level, Part};
pub use slots::ConnectionId;
use slots::{Slot, Slots};
use std::collections::VecDeque;
use std::sync::Arc;

/// The longest proposal: a peer takes no more handshake bytes than fit some datagrams.
const PROPOSAL_BYTES_MAX: usize = 12 * 1024;
/// Address tokens kept for later connections.
const TOKENS_MAX: usize = 256;

/// Counters of unmatched datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnmatchedCounters {
    /// Datagrams that are not shipments of this protocol.
    pub not_ours: u64,
    /// Shipments for a connection that does not exist here, or from another address than its peer's.
    pub unknown_connection: u64,
    /// Requests with a broken integrity check, or that could not be decoded.
    pub bad_requests: u64,
    /// Requests that were refused.
    pub rejected: u64,
    /// Requests that do not fill their datagram.
    pub short_requests: u64,
    /// Requests answered by a cookie.
    pub cookies: u64,
    /// Requests refused because too many set-ups are in progress, in all or for one host.
    pub setups_full: u64,
    /// Requests refused by the handshake rate limiter.
    pub handshakes_refused: u64,
    /// Requests refused because there are too many connections.
    pub connections_full: u64,
    /// Answers to unknown peers that were dropped because too many are queued.
    pub answers_full: u64,
    /// Stateless resets sent.
    pub resets: u64,
    /// Stateless resets refused by the rate limiter.
    pub resets_refused: u64,
}

/// A connection to be made.
struct NewConnection {
    addresses: Addresses,
    role: Role,
    proposal: Proposal,
    token: Vec<u8>,
    session: Box<dyn Session>,
    /// How long its set-up is not evicted.
    spared: Duration,
}

/// All connections behind one socket.
#[derive(Debug)]
pub struct Endpoint {
    config: Arc<Config>,
    protection: Box<dyn Protection>,
    /// Identifiers drawn so far.
    drawn: u64,
    slots: Slots,
    queue: RunQueue,
    answers: VecDeque<(Addresses, Vec<u8>)>,
    /// Address tokens of earlier connections, the newest last.
    tokens: VecDeque<(SocketAddr, Vec<u8>)>,
    capacities: CapacityMemory,
    memory: Arc<MemoryBudget>,
    handshakes: RateLimiter,
    handshakes_of_networks: NetworkRateLimiter,
    resets: RateLimiter,
    /// What arrived for no connection.
    pub unmatched: UnmatchedCounters,
}

impl Endpoint {
    /// An endpoint in plain mode: anyone can read and forge what it sends. `seed` makes its identifiers and cookies; take
    /// it from the system's entropy but in tests.
    pub fn new(config: Config, seed: Seed) -> Result<Self, ConnectError> {
        let mut random = seed.stream("endpoint.key");
        let (high, low) = (random.bits().to_be_bytes(), random.bits().to_be_bytes());
        let key = core::array::from_fn(|at| if at < 8 { high[at] } else { low[at - 8] });
        Self::with_protection(config, Box::new(Plain::new(key)))
    }

    /// An endpoint whose connections are protected as `protection` does it.
    pub fn with_protection(config: Config, protection: Box<dyn Protection>) -> Result<Self, ConnectError> {
        let datagram_bytes = config.datagram_bytes.first();
        if !(DATAGRAM_BYTES_MIN..=DATAGRAM_BYTES_MAX).contains(&datagram_bytes) {
            return Err(ConnectError::DatagramBytes(datagram_bytes));
        }
        let handshakes = RateLimiter::per_second(config.handshakes_per_second);
        let handshakes_of_networks = NetworkRateLimiter::per_second(config.handshakes_per_second);
        let resets = RateLimiter::per_second(config.resets_per_second);
        // Why divided: shards have no word with each other.
        let shards = config.shard.count();
        let memory = Arc::new(MemoryBudget::new(config.memory_bytes / shards, config.memory_bytes_per_peer / shards));
        Ok(Self {
            config: Arc::new(config),
            protection,
            drawn: 0,
            slots: Slots::default(),
            queue: RunQueue::default(),
            answers: VecDeque::new(),
            tokens: VecDeque::new(),
            capacities: CapacityMemory::default(),
            memory,
            handshakes,
            handshakes_of_networks,
            resets,
            unmatched: UnmatchedCounters::default(),
        })
    }

    /// Makes and knows again the tokens that validate addresses.
    fn token_issuer(&self, now: Instant) -> TokenIssuer<'_> {
        TokenIssuer::new(&*self.protection, self.config.listener, self.config.epoch, now)
    }

    /// An unpredictable number.
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        let code = code(&*self.protection, Purpose::Identifier, &self.drawn.to_be_bytes());
        u64::from_be_bytes(core::array::from_fn(|at| code[at]))
    }

    /// The configuration of new connections.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Accepts connections from now on, or refuses them; those that exist stay.
    pub fn set_accepting(&mut self, accept: bool) {
        // Those that exist keep the configuration they came with.
        Arc::make_mut(&mut self.config).accept = accept;
    }

    /// Starts a connection to `remote` with the given first streams, numbered from 0. In plain mode peers are not authenticated, and `trust`
    /// is ignored.
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        trust: &Trust,
        streams: Vec<Contract>,
    ) -> Result<ConnectionId, ConnectError> {
        let class = self.config.class;
        if !class.is_limited(self.config.rate != Rate::Unpaced) && !self.config.unlimited {
            return Err(ConnectError::Unlimited(class));
        }
        self.config.rate.check(class)?;
        if streams.len() > STREAMS_MAX {
            return Err(ConnectError::TooManyStreams(streams.len()));
        }
        for contract in &streams {
            contract.validate()?;
        }
        let bytes: usize = streams.iter().map(Contract::encoded_len).sum();
        if bytes + 64 > PROPOSAL_BYTES_MAX {
            return Err(ConnectError::RequestTooLong(bytes));
        }
        let index = self.vacancy(now).ok_or(ConnectError::TooMany(self.config.connections))?;
        let (request, connection) = (self.draw(), self.identifier(index));
        let (rate, limits) = (self.config.rate.peak(), self.config.limits);
        let extensions = self.config.extensions();
        let proposal = Proposal { version: VERSION, request, connection, class, rate, limits, streams, extensions };
        let mut parameters = vec![0; PROPOSAL_BYTES_MAX];
        let mut writer = Writer::new(&mut parameters);
        proposal.encode(&mut writer);
        let written = writer.finish().map_err(|_| ConnectError::RequestTooLong(bytes))?;
        let session = self.protection.initiate(remote, trust, &parameters[..written]).map_err(ConnectError::Protection)?;
        for (stream, contract) in (0..).zip(&proposal.streams) {
            Part::check_room(StreamId(stream), contract, None, DATAGRAM_BYTES_MIN - HEADER_BYTES - session.seal_bytes())?;
        }
        let known = self.tokens.iter().position(|(address, _)| *address == remote);
        let token = known.and_then(|at| self.tokens.remove(at)).map(|(_, token)| token).unwrap_or_default();
        let (addresses, role) = (Addresses::to(remote), Role::Initiator);
        let new = NewConnection { addresses, role, proposal, token, session, spared: Duration::ZERO };
        Ok(self.place(now, index, connection, new, IssuedTokens::default()))
    }

    /// Where one more connection may go.
    fn vacancy(&mut self, now: Instant) -> Option<u32> {
        self.queue.set_now(now);
        self.queue.process_touched(&mut self.slots);
        self.slots.vacancy(self.config.connections)
    }

    /// The identifier of a new connection: the low half finds the slot, the high half is random, so that an old
    /// identifier does not find a new connection; and it names the shard. It is never zero, which would name none.
    fn identifier(&mut self, index: u32) -> u32 {
        loop {
            let identifier = self.config.shard.mark((self.draw() as u32) << 16 | index);
            if identifier != 0 {
                return identifier;
            }
        }
    }

    fn place(&mut self, now: Instant, index: u32, local_id: u32, new: NewConnection, issued_tokens: IssuedTokens) -> ConnectionId {
        let NewConnection { addresses, role, proposal, token, session, spared } = new;
        self.vacate(index);
        let id = self.slots.next_id(index);
        let remote_id = if role == Role::Responder { proposal.connection } else { 0 };
        let (request, protection) = (proposal.request, self.protection.mode());
        let key = code(&*self.protection, Purpose::Challenges, &id.serial().to_be_bytes());
        let saved = self.capacities.take(addresses.remote);
        let memory = MemoryAccount::new(&self.memory);
        let start = Start { role, addresses, local_id, remote_id, proposal, protection, token, issued_tokens, saved, key, memory, session };
        self.slots.place(id, Connection::new(now, start, &self.config), request, spared);
        self.touched(index);
        id
    }

    /// Whoever is in slot `index` goes.
    fn vacate(&mut self, index: u32) -> Option<Connection> {
        let slot = self.slots.take(index)?;
        self.queue.remove(index, &slot.queued);
        Some(slot.connection)
    }

    /// The slot `index`, whose connection may be changed by the caller.
    fn touched(&mut self, index: u32) -> Option<&mut Slot> {
        let slot = self.slots.at_mut(index)?;
        self.queue.mark_touched(index, slot);
        Some(slot)
    }

    /// An address token of a connection that goes, for the next one to the same peer.
    fn keep_token(&mut self, connection: &mut Connection) {
        let Some(token) = connection.take_address_token() else { return };
        let remote = connection.remote();
        self.tokens.retain(|(address, _)| *address != remote);
        if self.tokens.len() >= TOKENS_MAX {
            self.tokens.pop_front();
        }
        self.tokens.push_back((remote, token));
    }

    /// What a connection that goes has found out about its path.
    fn keep_capacity(&mut self, connection: &Connection) {
        if let Some(capacity) = connection.capacity() {
            self.save_capacity(connection.remote(), capacity);
        }
    }

    /// What is known of the path to the host of `remote`: by a connection that has gone, by [`Endpoint::save_capacity`], or else by a
    /// connection that there is. `None` if [`Config::careful_resume`] is off.
    pub fn saved_capacity(&self, remote: SocketAddr) -> Option<SavedCapacity> {
        let host = remote.ip().to_canonical();
        let there = || self.slots.iter().filter(|slot| slot.connection.remote().ip().to_canonical() == host);
        let known =
            self.capacities.get(remote).or_else(|| there().filter_map(|slot| slot.connection.capacity()).max_by_key(|saved| saved.expires));
        known.filter(|_| self.config.careful_resume)
    }

    /// Lets the next connection to `remote` begin as if one of this endpoint had found `capacity` (RFC 9959).
    pub fn save_capacity(&mut self, remote: SocketAddr, capacity: SavedCapacity) {
        if self.config.careful_resume {
            self.capacities.save(remote, capacity);
        }
    }

    /// A connection, until it is released with [`Endpoint::release`].
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(id).map(|slot| &slot.connection)
    }

    /// A connection to be changed; drain [`segstream_base::endpoint::Endpoint::poll_transmit`] afterwards.
    pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id)?;
        self.queue.mark_touched(id.index(), slot);
        Some(&mut slot.connection)
    }

    /// Releases a connection; it is removed when it has drained.
    pub fn release(&mut self, id: ConnectionId) {
        if self.connection(id).is_some_and(Connection::is_drained)
            && let Some(mut connection) = self.vacate(id.index())
        {
            self.keep_token(&mut connection);
            self.keep_capacity(&connection);
        }
    }

    /// Whether the connection has drained.
    pub fn is_drained(&self, id: ConnectionId) -> bool {
        self.connection(id).is_none_or(Connection::is_drained)
    }

    /// The next connection that has drained and can be released with [`Endpoint::release`]; each is returned once. Its events come from
    /// [`Endpoint::poll_event`] before.
    pub fn poll_drained(&mut self) -> Option<ConnectionId> {
        self.queue.process_touched(&mut self.slots);
        self.slots.next_gone()
    }

    /// Whether every connection has drained.
    pub fn all_drained(&mut self) -> bool {
        self.queue.process_touched(&mut self.slots);
        self.slots.are_gone()
    }

    /// The connections there are, ended ones included.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.slots.iter().map(|slot| slot.id)
    }

    /// What all peers have been granted for their streams, payload and state, in bytes; and what the holder of `peer` has been.
    pub fn granted_bytes(&self, peer: Option<Fingerprint>) -> u64 {
        peer.map_or_else(|| self.memory.granted_bytes(), |peer| self.memory.granted_bytes_of(peer))
    }

    /// What all peers have been granted of memory, and what they may be granted at most, in bytes.
    pub fn memory(&self) -> (u64, u64) {
        (self.memory.granted_bytes(), self.memory.limit())
    }

    /// How many they are.
    pub fn connection_count(&self) -> usize {
        self.slots.len()
    }

    /// The next event of a connection for its application.
    pub fn poll_event(&mut self) -> Option<(ConnectionId, ConnectionEvent)> {
        self.queue.poll_event(&mut self.slots)
    }

    /// What a connection has done since this was last asked of it, if [`Config::trace`] is on. Of a connection that has drained it must be
    /// asked before the connection is released.
    pub fn poll_trace(&mut self) -> Option<(ConnectionId, Vec<Traced>)> {
        self.queue.poll_trace(&mut self.slots)
    }

    /// The connection that a shipment addresses.
    fn addressed(&self, identifier: u32) -> Option<&Slot> {
        self.slots.at(identifier & 0xffff).filter(|slot| slot.connection.local_id() == identifier)
    }

    /// Whether the connection with this identifier has its peer at `from`.
    fn is_from_peer(&self, identifier: u32, from: SocketAddr) -> bool {
        self.addressed(identifier).is_some_and(|slot| slot.connection.remote() == from)
    }

    fn on_data_level(&mut self, now: Instant, arrival: Arrival, identifier: u32, datagram: &mut [u8]) {
        let Some(Slot { connection, .. }) = self.addressed(identifier) else {
            self.on_unknown(now, arrival, identifier, datagram);
            return;
        };
        // Migration needs an authenticated peer and completed set-up.
        if connection.remote() == arrival.from || connection.may_migrate() {
            self.hand_over(identifier & 0xffff, |connection| connection.handle_datagram(now, arrival, datagram));
        } else {
            self.unmatched.unknown_connection += 1;
        }
    }

    /// Something is for the connection in slot `index`.
    fn hand_over(&mut self, index: u32, hand: impl FnOnce(&mut Connection)) {
        let Some(slot) = self.touched(index) else { return };
        hand(&mut slot.connection);
        if let Some(end) = slot.unnoted_reset() {
            self.note_reset(index, &end);
        }
    }
}

/// What the first of `datagrams` shows, and how many from there on show the same.
fn alike(datagrams: &[u8], datagram_bytes: usize) -> (Option<UnprotectedHeader>, usize) {
    let mut shown = datagrams.chunks(datagram_bytes).map(UnprotectedHeader::read);
    let first = shown.next().flatten();
    (first, 1 + shown.take_while(|next| *next == first).count())
}

impl segstream_base::endpoint::Endpoint for Endpoint {
    fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        self.queue.set_now(now);
        let Some(unprotected) = UnprotectedHeader::read(datagram) else {
            self.unmatched.not_ours += 1;
            return;
        };
        if unprotected.data {
            self.on_data_level(now, arrival, unprotected.connection, datagram);
            return;
        }
        let Ok(header) = Header::decode(&mut Reader::new(datagram)) else {
            self.unmatched.not_ours += 1;
            return;
        };
        if header.kind == Kind::Request && header.connection == 0 {
            self.on_request(now, arrival, &header, datagram);
            return;
        }
        if self.addressed(header.connection).is_none_or(|slot| slot.connection.remote() != arrival.from) {
            self.unmatched.unknown_connection += 1;
            return;
        }
        self.hand_over(header.connection & 0xffff, |connection| match header.level {
            Level::Initial => connection.handle_initial(now, &header, datagram),
            _ => connection.handle_datagram(now, arrival, datagram),
        });
    }

    fn handle_batch(&mut self, now: Instant, arrival: Arrival, datagrams: &mut [u8], datagram_bytes: usize) {
        let mut rest = datagrams;
        while !rest.is_empty() {
            let (first, count) = alike(rest, datagram_bytes);
            let (these, after) = rest.split_at_mut(rest.len().min(count * datagram_bytes));
            match first {
                Some(unprotected) if unprotected.data && count > 1 && self.is_from_peer(unprotected.connection, arrival.from) => {
                    self.queue.set_now(now);
                    self.hand_over(unprotected.connection & 0xffff, |connection| {
                        connection.handle_batch(now, arrival, these, datagram_bytes);
                    });
                }
                _ => these.chunks_mut(datagram_bytes).for_each(|datagram| self.handle_datagram(now, arrival, datagram)),
            }
            rest = after;
        }
    }

    fn poll_transmit(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((Addresses { remote, local }, answer)) = self.answers.pop_front() {
            out.extend_from_slice(&answer);
            return Some(Transmit { to: remote, from: local, datagram_bytes: answer.len(), ecn: None });
        }
        self.queue.poll_transmit(now, &mut self.slots, max_datagrams.max(1), out)
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        self.queue.poll_deadline(&self.slots)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.queue.handle_timeout(now, &mut self.slots);
    }
}
