//! All connections behind one socket: datagrams and time in, datagrams and one deadline out.
//!
//! Driven by `net` on real sockets and by tests in virtual time (how: [`segstream_base::endpoint`]).
//! Applications reach a connection with [`Endpoint::connection_mut`] and hear from all of them with
//! [`Endpoint::poll_event`].
//!
//! Invariant: a datagram that belongs to no connection costs a counter and at most one answer, which is
//! not longer than itself; the number of connections, set-ups included, is bounded.

use crate::config::{Config, DATAGRAM_BYTES_MIN};
use crate::connection::{Connection, ConnectionEvent, Role, Start};
use crate::error::ConnectError;
use crate::rate::Rate;
use crate::session::{Plain, PlainSession, Session};
use core::net::SocketAddr;
use segstream_base::Instant;
use segstream_base::codec::{Reader, Writer};
use segstream_base::endpoint::{Arrival, Deadline, Transmit};
use segstream_base::random::{Random, Seed};
use segstream_wire::contract::Contract;
use segstream_wire::handshake::{Reject, RejectReason, Request, STREAMS_MAX, VERSION};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Header, Kind, Level};
use std::collections::VecDeque;

/// The largest UDP payload.
const DATAGRAM_BYTES_MAX: usize = 65_507;
/// Set-ups of peers that have not proved their address, at a time.
const UNPROVEN_MAX: usize = 64;
/// Answers to strangers waiting to leave.
const ANSWERS_MAX: usize = 16;
/// The length of a reject without its detail.
const REJECT_BYTES_MIN: usize = HEADER_BYTES + 12 + Plain::SEAL_BYTES;

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
}

/// A request that may be refused.
#[derive(Clone, Copy, Debug)]
struct Asked {
    from: SocketAddr,
    request: u64,
    connection: u32,
    number: u64,
    /// The length of its datagram, which no answer may exceed.
    bytes: usize,
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
    random: Random,
    slots: Vec<Option<Slot>>,
    next_id: u64,
    /// Where the next search for something to send begins.
    turn: usize,
    events: VecDeque<(ConnectionId, ConnectionEvent)>,
    answers: VecDeque<(SocketAddr, Vec<u8>)>,
    /// What arrived for no connection.
    pub strays: StrayCounters,
}

impl Endpoint {
    /// An endpoint. `seed` makes the identifiers of its connections; take it from the system's entropy.
    pub fn new(config: Config, seed: Seed) -> Result<Self, ConnectError> {
        if !(DATAGRAM_BYTES_MIN..=DATAGRAM_BYTES_MAX).contains(&config.datagram_bytes) {
            return Err(ConnectError::DatagramBytes(config.datagram_bytes));
        }
        Ok(Self {
            config,
            random: seed.stream("endpoint.identifiers"),
            slots: Vec::new(),
            next_id: 0,
            turn: 0,
            events: VecDeque::new(),
            answers: VecDeque::new(),
            strays: StrayCounters::default(),
        })
    }

    /// The configuration of new connections.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Accepts connections from now on, or refuses them; those that exist stay.
    pub const fn set_accepting(&mut self, accept: bool) {
        self.config.accept = accept;
    }

    /// Asks `remote` for a connection with the given first streams, numbered from 0.
    pub fn connect(&mut self, now: Instant, remote: SocketAddr, streams: Vec<Contract>) -> Result<ConnectionId, ConnectError> {
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
        if bytes + 64 > DATAGRAM_BYTES_MIN - HEADER_BYTES - 16 {
            return Err(ConnectError::RequestTooLong(bytes));
        }
        let rate = self.config.rate.peak();
        let (request, limits) = (self.random.bits(), self.config.limits);
        let request = Request { version: VERSION, request, connection: 0, class, rate, limits, streams };
        self.insert(now, remote, Role::Initiator, request).ok_or(ConnectError::TooMany(self.config.connections))
    }

    fn insert(&mut self, now: Instant, remote: SocketAddr, role: Role, mut request: Request) -> Option<ConnectionId> {
        let index = match self.slots.iter().position(Option::is_none) {
            Some(free) => free,
            None if self.slots.len() < self.config.connections.min(1 << 16) => {
                self.slots.push(None);
                self.slots.len() - 1
            }
            None => return None,
        };
        // The low half finds the slot, the high half is random, so that an old identifier does not find
        // a new connection.
        let local_id = (self.random.bits() as u32) << 16 | index as u32;
        if role == Role::Initiator {
            request.connection = local_id;
        }
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        let session: Box<dyn Session> = Box::new(PlainSession::default());
        let connection = Connection::new(now, Start { role, remote, local_id, request, session }, &self.config);
        self.slots[index] = Some(Slot { id, connection });
        Some(id)
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
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(|slot| slot.id == id && slot.connection.is_forgotten()) {
                *slot = None;
            }
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

    fn on_request(&mut self, now: Instant, from: SocketAddr, header: &Header, datagram: &mut [u8]) {
        let Some(end) = Plain::open(u64::from(header.number), datagram) else {
            self.strays.bad_requests += 1;
            return;
        };
        let body = datagram.get(HEADER_BYTES..end).unwrap_or(&[]);
        let Ok((version, identifier, connection)) = Request::decode_version(&mut Reader::new(body)) else {
            self.strays.bad_requests += 1;
            return;
        };
        let answered = self.slots.iter_mut().flatten().find(|slot| slot.connection.answers(from, identifier));
        if let Some(slot) = answered {
            slot.connection.on_repeated_request();
            slot.connection.count_request(now, u64::from(header.number), datagram.len());
            return;
        }
        let asked = Asked { from, request: identifier, connection, number: u64::from(header.number), bytes: datagram.len() };
        if let Some((reason, detail)) = self.refusal(version) {
            self.reject(asked, reason, detail);
            return;
        }
        match Request::decode(&mut Reader::new(body)) {
            Ok(request) => self.accept(now, asked, request),
            Err(_) => self.strays.bad_requests += 1,
        }
    }

    fn accept(&mut self, now: Instant, asked: Asked, mut request: Request) {
        // Never more than was proposed, and never neither of flow and rate control by a peer's wish alone.
        let agreed = segstream_wire::Class::new(request.class.number() & self.config.class.number()).unwrap_or_default();
        if !agreed.is_limited(!request.rate.is_zero()) && !self.config.unlimited {
            self.reject(asked, RejectReason::Unacceptable, "neither flow control nor rate control is not allowed here");
            return;
        }
        request.class = agreed;
        let Some(id) = self.insert(now, asked.from, Role::Responder, request) else {
            self.reject(asked, RejectReason::Busy, "too many connections");
            return;
        };
        if let Some(connection) = self.connection_mut(id) {
            connection.count_request(now, asked.number, asked.bytes);
        }
    }

    fn refusal(&self, version: u16) -> Option<(RejectReason, &'static str)> {
        let unproven = self.slots.iter().flatten().filter(|slot| slot.connection.is_unproven()).count();
        if version != VERSION {
            Some((RejectReason::Version, "choose a version both sides speak"))
        } else if !self.config.accept {
            Some((RejectReason::NotAccepting, "this endpoint only makes connections"))
        } else if unproven >= UNPROVEN_MAX {
            Some((RejectReason::Busy, "too many connections are being set up"))
        } else {
            None
        }
    }

    fn reject(&mut self, asked: Asked, reason: RejectReason, detail: &str) {
        self.strays.rejected += 1;
        if self.answers.len() >= ANSWERS_MAX {
            return;
        }
        // Why: an answer longer than the request would lend itself to floods from a forged address.
        let room = asked.bytes.saturating_sub(REJECT_BYTES_MIN);
        let detail = detail.get(..detail.len().min(room)).unwrap_or_default().to_owned();
        let mut out = vec![0; DATAGRAM_BYTES_MIN];
        let mut writer = Writer::new(&mut out);
        Header { level: Level::Initial, kind: Kind::Reject, connection: asked.connection, number: 0 }.encode(&mut writer);
        Reject { request: asked.request, reason, version: VERSION, detail }.encode(&mut writer);
        let Ok(written) = writer.finish() else { return };
        out.truncate(written + Plain::SEAL_BYTES);
        Plain::seal(0, &mut out);
        self.answers.push_back((asked.from, out));
    }

    fn slot_of(&mut self, header: &Header, from: SocketAddr) -> Option<&mut Slot> {
        let slot = self.slots.get_mut((header.connection & 0xffff) as usize)?.as_mut()?;
        // Limit: a peer whose address changes is not followed; that needs a proof of the new address.
        (slot.connection.local_id() == header.connection && slot.connection.remote() == from).then_some(slot)
    }
}

impl segstream_base::endpoint::Endpoint for Endpoint {
    fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        let Ok(header) = Header::decode(&mut Reader::new(datagram)) else {
            self.strays.not_ours += 1;
            return;
        };
        if header.kind == Kind::Request && header.connection == 0 {
            self.on_request(now, arrival.from, &header, datagram);
            return;
        }
        match self.slot_of(&header, arrival.from) {
            Some(slot) => slot.connection.handle_datagram(now, arrival, &header, datagram),
            None => self.strays.unknown_connection += 1,
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
            if let Some(datagram_bytes) = slot.connection.poll_transmit(now, max_datagrams.max(1), out) {
                self.turn = (index + 1) % count;
                return Some(Transmit { to: slot.connection.remote(), datagram_bytes, ecn: slot.connection.ecn() });
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
