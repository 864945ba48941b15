//! All connections behind one socket: datagrams and time in, datagrams and one deadline out.
//!
//! Driven by `net` on real sockets and by tests in virtual time (how: [`segstream_base::endpoint`]).
//! Applications reach a connection with [`Endpoint::connection_mut`] and hear from all of them with
//! [`Endpoint::poll_event`].
//!
//! - `first_contact`: requests of strangers; `proof_of_address`: the tokens that prove where they are;
//! - `reset`: connections that one side has lost;
//! - `allowance`: how much strangers may make us do in a second.
//!
//! Invariant: a datagram that belongs to no connection costs a counter and at most one answer, which is
//! not longer than itself; the number of connections, set-ups included, is bounded.

mod allowance;
mod first_contact;
mod proof_of_address;
mod reset;

use crate::config::{Config, DATAGRAM_BYTES_MIN};
use crate::connection::{Connection, ConnectionEvent, Gifts, Role, Start};
use crate::error::ConnectError;
use crate::rate::Rate;
use crate::session::{Plain, Protection, Session, Trust};
use allowance::{Allowance, Shares};
use core::net::SocketAddr;
use proof_of_address::{Purpose, code};
use segstream_base::Instant;
use segstream_base::codec::{Reader, Writer};
use segstream_base::endpoint::{Arrival, Deadline, Transmit};
use segstream_base::random::Seed;
use segstream_wire::contract::Contract;
use segstream_wire::handshake::VERSION;
use segstream_wire::header::Outside;
use segstream_wire::proposal::{Proposal, STREAMS_MAX};
use segstream_wire::{Header, Kind, Level};
use std::collections::VecDeque;

/// The largest UDP payload.
const DATAGRAM_BYTES_MAX: usize = 65_507;
/// The longest proposal: a peer takes no more handshake bytes than fit some datagrams.
const PROPOSAL_BYTES_MAX: usize = 12 * 1024;
/// Address tokens kept for later connections.
const TOKENS_MAX: usize = 256;

/// Names a connection of an endpoint for as long as the endpoint lives; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

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
    remote: SocketAddr,
    role: Role,
    proposal: Proposal,
    token: Vec<u8>,
    session: Box<dyn Session>,
}

#[derive(Debug)]
struct Slot {
    id: ConnectionId,
    connection: Connection,
}

/// All connections behind one socket.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    protection: Box<dyn Protection>,
    /// Identifiers drawn so far.
    drawn: u64,
    slots: Vec<Option<Slot>>,
    next_id: u64,
    /// Where the next search for something to send begins.
    turn: usize,
    events: VecDeque<(ConnectionId, ConnectionEvent)>,
    answers: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Address tokens of earlier connections, the newest last.
    tokens: VecDeque<(SocketAddr, Vec<u8>)>,
    handshakes: Allowance,
    handshakes_of_hosts: Shares,
    resets: Allowance,
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
        if !(DATAGRAM_BYTES_MIN..=DATAGRAM_BYTES_MAX).contains(&config.datagram_bytes) {
            return Err(ConnectError::DatagramBytes(config.datagram_bytes));
        }
        let handshakes = Allowance::per_second(config.handshakes_per_second);
        // Why a tenth: no host may take what all are to share.
        let handshakes_of_hosts = Shares::per_second((config.handshakes_per_second / 10).max(1));
        let resets = Allowance::per_second(config.resets_per_second);
        Ok(Self {
            config,
            protection,
            drawn: 0,
            slots: Vec::new(),
            next_id: 0,
            turn: 0,
            events: VecDeque::new(),
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
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Accepts connections from now on, or refuses them; those that exist stay.
    pub const fn set_accepting(&mut self, accept: bool) {
        self.config.accept = accept;
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
        let index = self.free_slot().ok_or(ConnectError::TooMany(self.config.connections))?;
        let (request, connection) = (self.draw(), self.identifier(index));
        let (rate, limits) = (self.config.rate.peak(), self.config.limits);
        let proposal = Proposal { version: VERSION, request, connection, class, rate, limits, streams };
        let mut parameters = vec![0; PROPOSAL_BYTES_MAX];
        let mut writer = Writer::new(&mut parameters);
        proposal.encode(&mut writer);
        let written = writer.finish().map_err(|_| ConnectError::RequestTooLong(bytes))?;
        let session = self.protection.initiate(remote, trust, &parameters[..written]).map_err(ConnectError::Protection)?;
        let known = self.tokens.iter().position(|(address, _)| *address == remote);
        let token = known.and_then(|at| self.tokens.remove(at)).map(|(_, token)| token).unwrap_or_default();
        let new = NewConnection { remote, role: Role::Initiator, proposal, token, session };
        Ok(self.place(now, index, connection, new, Gifts::default()))
    }

    fn free_slot(&mut self) -> Option<usize> {
        match self.slots.iter().position(Option::is_none) {
            Some(free) => Some(free),
            None if self.slots.len() < self.config.connections.min(1 << 16) => {
                self.slots.push(None);
                Some(self.slots.len() - 1)
            }
            // Whoever was refused has been told so once at least.
            None => self.slots.iter().position(|slot| slot.as_ref().is_some_and(|slot| slot.connection.is_refused())),
        }
    }

    /// The identifier of a new connection: the low half finds the slot, the high half is random, so that an old
    /// identifier does not find a new connection.
    fn identifier(&mut self, index: usize) -> u32 {
        (self.draw() as u32) << 16 | index as u32
    }

    fn place(&mut self, now: Instant, index: usize, local_id: u32, new: NewConnection, gifts: Gifts) -> ConnectionId {
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        let NewConnection { remote, role, proposal, token, session } = new;
        let remote_id = if role == Role::Responder { proposal.connection } else { 0 };
        let protection = self.protection.mode();
        let key = code(&*self.protection, Purpose::Challenges, &id.0.to_be_bytes());
        let start = Start { role, remote, local_id, remote_id, proposal, protection, token, gifts, key, session };
        self.slots[index] = Some(Slot { id, connection: Connection::new(now, start, &self.config) });
        id
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
        self.slots.iter().flatten().find(|slot| slot.id == id).map(|slot| &slot.connection)
    }

    /// A connection to be changed; drain [`segstream_base::endpoint::Endpoint::poll_transmit`] afterwards.
    pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.slots.iter_mut().flatten().find(|slot| slot.id == id).map(|slot| &mut slot.connection)
    }

    /// The application needs nothing of the connection any more; it goes when it has said its goodbyes.
    pub fn forget(&mut self, id: ConnectionId) {
        let found = self.slots.iter_mut().find(|slot| slot.as_ref().is_some_and(|slot| slot.id == id && slot.connection.is_forgotten()));
        if let Some(mut slot) = found.and_then(Option::take) {
            self.keep_token(&mut slot.connection);
        }
    }

    /// Whether the connection has ended and said its goodbyes.
    pub fn is_forgotten(&self, id: ConnectionId) -> bool {
        self.connection(id).is_none_or(Connection::is_forgotten)
    }

    /// The connections there are, ended ones included.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.slots.iter().flatten().map(|slot| slot.id)
    }

    /// The next thing a connection tells its application.
    pub fn poll_event(&mut self) -> Option<(ConnectionId, ConnectionEvent)> {
        for slot in self.slots.iter_mut().flatten() {
            while let Some(event) = slot.connection.poll_event() {
                self.events.push_back((slot.id, event));
            }
        }
        self.events.pop_front()
    }

    fn slot_of(&mut self, identifier: u32) -> Option<&mut Slot> {
        let slot = self.slots.get_mut((identifier & 0xffff) as usize)?.as_mut()?;
        (slot.connection.local_id() == identifier).then_some(slot)
    }

    fn on_data_level(&mut self, now: Instant, arrival: Arrival, identifier: u32, datagram: &mut [u8]) {
        let Some(slot) = self.slot_of(identifier) else {
            self.on_unknown(now, arrival.from, identifier, datagram);
            return;
        };
        // A peer whose address changes is followed where its seal proves that it is the peer, and when set-up is done.
        if slot.connection.remote() == arrival.from || slot.connection.may_move() {
            slot.connection.handle_datagram(now, arrival, datagram);
        } else {
            self.strays.unknown_connection += 1;
        }
    }
}

impl segstream_base::endpoint::Endpoint for Endpoint {
    fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
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
            self.on_request(now, arrival.from, &header, datagram);
            return;
        }
        let Some(slot) = self.slot_of(header.connection).filter(|slot| slot.connection.remote() == arrival.from) else {
            self.strays.unknown_connection += 1;
            return;
        };
        if header.level == Level::Initial {
            slot.connection.handle_initial(now, &header, datagram);
        } else {
            slot.connection.handle_datagram(now, arrival, datagram);
        }
    }

    fn poll_transmit(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((to, answer)) = self.answers.pop_front() {
            out.extend_from_slice(&answer);
            return Some(Transmit { to, datagram_bytes: answer.len(), ecn: None });
        }
        let count = self.slots.len();
        for step in 0..count {
            let index = (self.turn + step) % count;
            let Some(slot) = &mut self.slots[index] else { continue };
            if let Some((to, datagram_bytes)) = slot.connection.poll_transmit(now, max_datagrams.max(1), out) {
                self.turn = (index + 1) % count;
                return Some(Transmit { to, datagram_bytes, ecn: slot.connection.ecn() });
            }
        }
        None
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        self.slots.iter().flatten().fold(None, |earliest, slot| Deadline::earlier(earliest, slot.connection.poll_timeout()))
    }

    fn handle_timeout(&mut self, now: Instant) {
        for slot in self.slots.iter_mut().flatten() {
            if slot.connection.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
                slot.connection.handle_timeout(now);
            }
        }
    }
}
