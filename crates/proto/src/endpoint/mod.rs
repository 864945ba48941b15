//! All connections behind one socket: datagrams and time in, datagrams and one deadline out.
//!
//! Driven by `net` on real sockets and by tests in virtual time (how: [`segstream_base::endpoint`]).
//! Applications reach a connection with [`Endpoint::connection_mut`] and hear from all of them with
//! [`Endpoint::poll_event`].
//!
//! - `slots`: the connections, found by identifier; `run_queue`: which of them may have something to do;
//! - `first_contact`: requests of strangers; `proof_of_address`: the tokens that prove where they are;
//! - `reset`: connections that one side has lost;
//! - `rate_limiter`: how much strangers may make us do in a second.
//!
//! Invariant: a datagram that belongs to no connection costs a counter and at most one answer, which is
//! not longer than itself; the number of connections, set-ups included, is bounded. No call looks at connections that have
//! nothing to do with it, but those that list them.

mod first_contact;
mod proof_of_address;
mod rate_limiter;
mod reset;
mod run_queue;
mod slots;
#[cfg(test)]
mod tests;

use crate::config::{Config, DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN};
use crate::connection::{Connection, ConnectionEvent, IssuedTokens, Role, Start};
use crate::error::ConnectError;
use crate::path::Addresses;
use crate::rate::Rate;
use crate::session::{Plain, Protection, Session, Trust};
use core::net::SocketAddr;
use proof_of_address::{Purpose, code};
use rate_limiter::{HostRateLimiter, RateLimiter};
use run_queue::RunQueue;
use segstream_base::codec::{Reader, Writer};
use segstream_base::endpoint::{Arrival, Deadline, Transmit};
use segstream_base::random::Seed;
use segstream_base::{Instant, StreamId};
use segstream_wire::contract::Contract;
use segstream_wire::handshake::VERSION;
use segstream_wire::header::{HEADER_BYTES, Outside};
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

/// What arrived for no connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrayCounters {
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
    /// Requests refused because as many set-ups are under way as may be, in all or for one host.
    pub setups_full: u64,
    /// Requests refused because too many came in a second.
    pub handshakes_refused: u64,
    /// Requests refused because there are as many connections as may be.
    pub connections_full: u64,
    /// Answers to strangers left out because too many are waiting to leave.
    pub answers_full: u64,
    /// Strangers told that their connection is lost.
    pub resets: u64,
    /// Strangers not told so, because too many asked in a second.
    pub resets_refused: u64,
}

/// A connection to be made.
struct NewConnection {
    addresses: Addresses,
    role: Role,
    proposal: Proposal,
    token: Vec<u8>,
    session: Box<dyn Session>,
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
    handshakes: RateLimiter,
    handshakes_of_hosts: HostRateLimiter,
    resets: RateLimiter,
    /// What arrived for no connection.
    pub strays: StrayCounters,
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
        // Why a tenth: no host may take what all are to share.
        let handshakes_of_hosts = HostRateLimiter::per_second((config.handshakes_per_second / 10).max(1));
        let resets = RateLimiter::per_second(config.resets_per_second);
        Ok(Self {
            config: Arc::new(config),
            protection,
            drawn: 0,
            slots: Slots::default(),
            queue: RunQueue::default(),
            answers: VecDeque::new(),
            tokens: VecDeque::new(),
            handshakes,
            handshakes_of_hosts,
            resets,
            strays: StrayCounters::default(),
        })
    }

    /// A number that nobody can foresee.
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

    /// Asks `remote` for a connection with the given first streams, numbered from 0. In plain mode nobody can be told
    /// from anybody, and `trust` says nothing.
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
        let proposal = Proposal { version: VERSION, request, connection, class, rate, limits, streams };
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
        let new = NewConnection { addresses: Addresses::to(remote), role: Role::Initiator, proposal, token, session };
        Ok(self.place(now, index, connection, new, IssuedTokens::default()))
    }

    /// Where one more connection may go.
    fn vacancy(&mut self, now: Instant) -> Option<u32> {
        self.queue.tell(now);
        self.queue.settle(&mut self.slots);
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
        let NewConnection { addresses, role, proposal, token, session } = new;
        self.vacate(index);
        let id = self.slots.next_id(index);
        let remote_id = if role == Role::Responder { proposal.connection } else { 0 };
        let (request, protection) = (proposal.request, self.protection.mode());
        let key = code(&*self.protection, Purpose::Challenges, &id.serial().to_be_bytes());
        let start = Start { role, addresses, local_id, remote_id, proposal, protection, token, issued_tokens, key, session };
        self.slots.place(id, Connection::new(now, start, &self.config), request);
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
        self.queue.touch(index, slot);
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

    /// A connection, until its end has been told and it is forgotten with [`Endpoint::forget`].
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(id).map(|slot| &slot.connection)
    }

    /// A connection to be changed; drain [`segstream_base::endpoint::Endpoint::poll_transmit`] afterwards.
    pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id)?;
        self.queue.touch(id.index(), slot);
        Some(&mut slot.connection)
    }

    /// The application needs nothing of the connection any more; it goes when it has said its goodbyes.
    pub fn forget(&mut self, id: ConnectionId) {
        if self.connection(id).is_some_and(Connection::is_forgotten)
            && let Some(mut connection) = self.vacate(id.index())
        {
            self.keep_token(&mut connection);
        }
    }

    /// Whether the connection has ended and said its goodbyes.
    pub fn is_forgotten(&self, id: ConnectionId) -> bool {
        self.connection(id).is_none_or(Connection::is_forgotten)
    }

    /// The next connection that has ended and said its goodbyes, and can be forgotten with [`Endpoint::forget`]; each is
    /// told once. What one tells comes with [`Endpoint::poll_event`] before.
    pub fn poll_forgotten(&mut self) -> Option<ConnectionId> {
        self.queue.settle(&mut self.slots);
        self.slots.next_gone()
    }

    /// Whether every connection has ended and said its goodbyes.
    pub fn is_quiet(&mut self) -> bool {
        self.queue.settle(&mut self.slots);
        self.slots.are_gone()
    }

    /// The connections there are, ended ones included.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.slots.iter().map(|slot| slot.id)
    }

    /// How many they are.
    pub fn connection_count(&self) -> usize {
        self.slots.len()
    }

    /// The next thing a connection tells its application.
    pub fn poll_event(&mut self) -> Option<(ConnectionId, ConnectionEvent)> {
        self.queue.poll_event(&mut self.slots)
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
        // A peer whose address changes is followed where its seal proves that it is the peer, and when set-up is done.
        if connection.remote() == arrival.from || connection.may_migrate() {
            self.hand_over(identifier & 0xffff, |connection| connection.handle_datagram(now, arrival, datagram));
        } else {
            self.strays.unknown_connection += 1;
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
fn alike(datagrams: &[u8], datagram_bytes: usize) -> (Option<Outside>, usize) {
    let mut shown = datagrams.chunks(datagram_bytes).map(Outside::read);
    let first = shown.next().flatten();
    (first, 1 + shown.take_while(|next| *next == first).count())
}

impl segstream_base::endpoint::Endpoint for Endpoint {
    fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        self.queue.tell(now);
        let Some(outside) = Outside::read(datagram) else {
            self.strays.not_ours += 1;
            return;
        };
        if outside.data {
            self.on_data_level(now, arrival, outside.connection, datagram);
            return;
        }
        let Ok(header) = Header::decode(&mut Reader::new(datagram)) else {
            self.strays.not_ours += 1;
            return;
        };
        if header.kind == Kind::Request && header.connection == 0 {
            self.on_request(now, arrival, &header, datagram);
            return;
        }
        if self.addressed(header.connection).is_none_or(|slot| slot.connection.remote() != arrival.from) {
            self.strays.unknown_connection += 1;
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
                Some(outside) if outside.data && count > 1 && self.is_from_peer(outside.connection, arrival.from) => {
                    self.queue.tell(now);
                    self.hand_over(outside.connection & 0xffff, |connection| connection.handle_batch(now, arrival, these, datagram_bytes));
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
