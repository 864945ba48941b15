//! The world of a model: two endpoints, the datagrams in flight between them, the time, and two applications.
//!
//! Called by the exploration, which decides the fate of every datagram, and by the instances, which play the
//! applications. The endpoints are the protocol's own; nothing of it is described here a second time.
//!
//! What is abstracted, and what that misses:
//! - Every datagram is on its way for the same time. Then its fate is decided: it is delivered, lost, copied or held. Those
//!   that nobody holds arrive in the order of departure; one that is held, and the second of a copy, arrives whenever the
//!   exploration pleases, so that any other order takes a hold. Before its arrival a datagram changes nothing, so deciding
//!   late loses nothing.
//! - Arrivals at the same time at different ends are taken in one order. What they cause arrives later at the other end,
//!   so the order makes no difference.
//! - Timers expire on time, and before what arrives at the same time. Limit: a driver that oversleeps is not explored.
//! - Datagrams leave as soon as they may, and computing takes no time.
//! - An end that moves receives at its new address only, from that moment on. What is for an address nobody is at is lost
//!   without a choice.
//! - An attacker sees every datagram, is as near as the ends are, and has no key. Limit: it does not change what it copies.
//!
//! Why not a `segstream_network::Network`: there a seed chooses one order of events; here the checker takes every order, and tells
//! worlds apart by everything that is in flight in them.
//!
//! Invariant: the same steps give the same world.

use crate::anti_amplification::AntiAmplification;
use crate::cost::Cost;
use crate::digest::Digest;
use crate::heard::Heard;
use crate::keyed::Keyed;
use crate::tap::{self, Tap};
use bytes::Bytes;
use core::net::SocketAddr;
use segstream_base::endpoint::{Arrival, Endpoint as _, Local};
use segstream_base::halves::Verdict;
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant, SegmentNumber, StreamId};
use segstream_proto::config::Config;
use segstream_proto::connection::{Connection, ConnectionEvent, Received};
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_proto::rate::Rate;
use segstream_proto::session::{Plain, Trust};
use segstream_wire::{Contract, Kind};

/// Rounds at one point in time after which it stands still.
const ROUNDS_MAX: u32 = 200;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The one that asks for the connection.
    A,
    /// The one that accepts it.
    B,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The opposite end.
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    const fn index(self) -> usize {
        self as usize
    }

    /// Where it is at the start.
    fn first_address(self) -> SocketAddr {
        host(1 + self as u8)
    }
}

/// The address of a host; the ends begin at hosts 1 and 2.
fn host(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 1))
}

/// The host of the attacker.
const THIEF: u8 = 99;

/// Who copies datagrams of A and sends them to B from its own address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attacker {
    /// Loses what comes to its address.
    Silent,
    /// Sends challenges that come to its address on to A, as if they came from B, and loses all else.
    Relays,
    /// As that, and its copy of whatever A sends arrives right before it, always.
    Races,
}

/// One end.
#[derive(Debug)]
struct End {
    endpoint: Endpoint,
    /// Its latest connection.
    connection: Option<ConnectionId>,
    heard: Heard,
    tap: Tap,
    anti_amplification: AntiAmplification,
    /// Where it is now.
    address: SocketAddr,
    /// It is there.
    present: bool,
}

/// Where a datagram says it comes from, and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Way {
    from: SocketAddr,
    to: SocketAddr,
}

/// A datagram between its departure and its fate.
#[derive(Clone, Debug)]
struct Airborne {
    way: Way,
    arrives: Instant,
    bytes: Vec<u8>,
}

/// A network that changes what it carries: for the tests of the models themselves.
pub type Forger = fn(Side, &mut Vec<u8>);

/// Two endpoints and what is between them.
#[derive(Debug)]
pub struct World {
    ends: [End; 2],
    now: Instant,
    latency: Duration,
    /// In the order of departure.
    air: Vec<Airborne>,
    /// What arrives whenever the exploration pleases; sorted, because it does not matter in which order it was held.
    held: Vec<(Way, Vec<u8>)>,
    /// How many shipments of A with units or repair units were lost or held; `None` where nobody asks.
    missed: Option<u32>,
    /// The applications take segments as they come.
    taking: bool,
    forger: Option<Forger>,
    attacker: Attacker,
    stands_still: bool,
    pub(crate) cost: Cost,
}

impl World {
    /// Two endpoints in plain mode `latency` apart, and a connection that A has asked for.
    ///
    /// # Panics
    /// When an instance gives an impossible configuration.
    pub fn new(configs: [Config; 2], latency: Duration, streams: Vec<Contract>) -> Self {
        let [a, b] = configs;
        let endpoint = |config, seed| Endpoint::new(config, Seed(seed)).expect("an instance gives a possible configuration");
        Self::of([endpoint(a, 1), endpoint(b, 2)], Plain::SEAL_BYTES, latency, streams)
    }

    /// The same with keys: what opens is the peer's.
    ///
    /// # Panics
    /// As [`World::new`].
    pub fn keyed(configs: [Config; 2], latency: Duration, streams: Vec<Contract>) -> Self {
        let [a, b] = configs;
        let endpoint = |config, key| {
            let made = Endpoint::with_protection(config, Box::new(Keyed::new([key; 16])));
            made.expect("an instance gives a possible configuration")
        };
        Self::of([endpoint(a, 1), endpoint(b, 2)], Keyed::SEAL_BYTES, latency, streams)
    }

    fn of(endpoints: [Endpoint; 2], seal_bytes: usize, latency: Duration, streams: Vec<Contract>) -> Self {
        let end = |endpoint, side: Side| End {
            endpoint,
            connection: None,
            heard: Heard::default(),
            tap: Tap::new(seal_bytes),
            anti_amplification: AntiAmplification::new(side.other().first_address()),
            address: side.first_address(),
            present: true,
        };
        let [a, b] = endpoints;
        let mut world = Self {
            ends: [end(a, Side::A), end(b, Side::B)],
            now: Instant::ZERO,
            latency,
            air: Vec::new(),
            held: Vec::new(),
            missed: None,
            taking: true,
            forger: None,
            attacker: Attacker::Silent,
            stands_still: false,
            cost: Cost::default(),
        };
        let asked = world.ends[0].endpoint.connect(world.now, Side::B.first_address(), &Trust::Anyone, streams);
        world.ends[0].connection = Some(asked.expect("an instance asks for what its configuration allows"));
        world.settle();
        world
    }

    /// The same once both ends are connected over a path without faults, and `quiet` has passed.
    ///
    /// # Panics
    /// When set-up fails on such a path.
    pub fn connected(mut self, quiet: Duration) -> Self {
        let until = self.now + quiet;
        while self.now < until {
            if self.has_arrival() {
                self.deliver();
            } else {
                self.wait();
            }
        }
        assert!(Side::BOTH.iter().all(|&side| self.heard(side).connected == 1), "set-up works where nothing is lost");
        self
    }

    /// The applications take nothing before [`World::read`].
    pub fn slow_readers(mut self) -> Self {
        self.taking = false;
        self
    }

    /// The network changes what leaves from now on.
    pub fn forging(mut self, forger: Option<Forger>) -> Self {
        self.forger = forger;
        self
    }

    /// Shipments of A with units or repair units that are lost or held are counted from now on.
    pub const fn counting_missed(mut self) -> Self {
        self.missed = Some(0);
        self
    }

    /// What the attacker does from now on besides copying.
    pub const fn with_attacker(mut self, attacker: Attacker) -> Self {
        self.attacker = attacker;
        self
    }

    /// The time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// What the application of an end has heard.
    pub fn heard(&self, side: Side) -> &Heard {
        &self.ends[side.index()].heard
    }

    /// What is wrong where no connection should end: the end that hears of one, and why.
    pub fn early_end(&self) -> Option<String> {
        let ended = Side::BOTH.into_iter().find(|&side| !self.heard(side).ended.is_empty())?;
        Some(format!("the connection of {ended:?} ends: {:?}", self.heard(ended).ended))
    }

    /// What an end has said in its reports.
    pub fn said(&self, side: Side) -> &Tap {
        &self.ends[side.index()].tap
    }

    /// What an end has had from addresses of others and sent there.
    pub fn anti_amplification(&self, side: Side) -> &AntiAmplification {
        &self.ends[side.index()].anti_amplification
    }

    /// How many shipments of A with units or repair units were lost or held since [`World::counting_missed`].
    pub fn missed(&self) -> u32 {
        self.missed.unwrap_or_default()
    }

    /// Where an end is.
    pub const fn address(&self, side: Side) -> SocketAddr {
        self.ends[side.index()].address
    }

    /// Whether an end takes the attacker's address for its peer's.
    pub fn is_at_the_attacker(&self, side: Side) -> bool {
        self.connection(side).is_some_and(|connection| connection.remote() == host(THIEF))
    }

    /// How many connections an end keeps anything of.
    pub fn kept(&self, side: Side) -> usize {
        self.ends[side.index()].endpoint.connections().count()
    }

    /// The latest connection of an end, unless it is forgotten.
    pub fn connection(&self, side: Side) -> Option<&Connection> {
        let end = &self.ends[side.index()];
        end.connection.and_then(|id| end.endpoint.connection(id))
    }

    /// Whether time stood still: an end wanted to be called again and again at one point in time.
    pub const fn stands_still(&self) -> bool {
        self.stands_still
    }

    /// Whether a datagram waits for its fate now.
    pub fn has_arrival(&self) -> bool {
        self.arrival().is_some()
    }

    /// What is held, each kind of datagram once: its place for [`World::release`].
    pub fn held(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.held.len()).filter(|&at| at == 0 || self.held[at] != self.held[at - 1])
    }

    /// When anything happens next, if nothing that is held is delivered.
    pub fn next_event(&self) -> Option<Instant> {
        let deadlines = self.ends.iter().filter(|end| end.present).filter_map(|end| end.endpoint.poll_deadline());
        self.air.iter().map(|datagram| datagram.arrives).chain(deadlines.map(|deadline| deadline.at)).min()
    }

    /// The datagram whose fate is decided next.
    fn arrival(&self) -> Option<usize> {
        // Why this order: it does not matter, so one is enough.
        let due = |side| self.air.iter().position(|datagram| datagram.arrives <= self.now && self.side_at(datagram.way.to) == Some(side));
        due(Side::B).or_else(|| due(Side::A))
    }

    /// The end that receives at an address now.
    fn side_at(&self, address: SocketAddr) -> Option<Side> {
        Side::BOTH.into_iter().find(|side| self.address(*side) == address)
    }

    fn name(&self, way: Way, bytes: &[u8]) -> String {
        let to = self.side_at(way.to).map_or_else(|| way.to.to_string(), |side| format!("{side:?}"));
        let moved = Side::BOTH.iter().all(|side| side.first_address() != way.from);
        let from = if moved { format!(" from {}", way.from) } else { String::new() };
        format!("{} to {to}{from}", tap::name(bytes))
    }

    /// What the datagram is whose fate is decided next.
    pub fn arrival_name(&self) -> String {
        self.arrival().map_or_else(String::new, |at| self.name(self.air[at].way, &self.air[at].bytes))
    }

    /// Its kind.
    pub fn arrival_kind(&self) -> Option<Kind> {
        self.arrival().and_then(|at| tap::kind(&self.air[at].bytes))
    }

    /// What the held datagram at `place` is.
    pub fn held_name(&self, place: usize) -> String {
        self.held.get(place).map_or_else(String::new, |(way, bytes)| self.name(*way, bytes))
    }

    /// The datagram whose fate is decided next is delivered.
    pub fn deliver(&mut self) {
        if let Some(at) = self.arrival() {
            let Airborne { way, bytes, .. } = self.air.remove(at);
            self.hand_over(way, bytes);
        }
    }

    /// It is lost.
    pub fn lose(&mut self) {
        if let Some(at) = self.arrival() {
            let lost = self.air.remove(at);
            self.note_missed(&lost);
        }
    }

    fn note_missed(&mut self, datagram: &Airborne) {
        let carries_units = matches!(tap::kind(&datagram.bytes), Some(Kind::Data | Kind::Repair));
        if let Some(missed) = self.missed.as_mut().filter(|_| carries_units && datagram.way.to == Side::B.first_address()) {
            *missed += 1;
        }
    }

    /// It is held, to be delivered later.
    pub fn hold(&mut self) {
        if let Some(at) = self.arrival() {
            let held = self.air.remove(at);
            self.note_missed(&held);
            self.keep(held.way, held.bytes);
        }
    }

    /// A copy of it is held; its own fate is still to be decided.
    pub fn copy(&mut self) {
        if let Some(at) = self.arrival() {
            let Airborne { way, bytes, .. } = self.air[at].clone();
            self.keep(way, bytes);
        }
    }

    /// Whether it is one that the attacker would copy: one of A, from A.
    pub fn attacker_can_copy(&self) -> bool {
        let way = self.arrival().map(|at| self.air[at].way);
        way.is_some_and(|way| way.to == self.address(Side::B) && way.from != host(THIEF))
    }

    /// A copy of it is held, to come from the attacker's address; its own fate is still to be decided.
    pub fn copy_by_attacker(&mut self) {
        if let Some(at) = self.arrival() {
            let Airborne { way, bytes, .. } = self.air[at].clone();
            self.keep(Way { from: host(THIEF), ..way }, bytes);
        }
    }

    fn keep(&mut self, way: Way, bytes: Vec<u8>) {
        let datagram = (way, bytes);
        let at = self.held.partition_point(|held| *held < datagram);
        self.held.insert(at, datagram);
    }

    /// The held datagram at `place` is delivered.
    pub fn release(&mut self, place: usize) {
        if place < self.held.len() {
            let (way, bytes) = self.held.remove(place);
            self.hand_over(way, bytes);
        }
    }

    fn hand_over(&mut self, way: Way, mut bytes: Vec<u8>) {
        // Why not always: an end may have moved away from where something was held for it.
        let Some(to) = self.side_at(way.to) else { return };
        let (now, end) = (self.now, &mut self.ends[to.index()]);
        if end.present {
            let arrival = Arrival { from: way.from, to: Local::ANY, ecn: None, received: now };
            end.anti_amplification.on_arrival(way.from, &bytes);
            self.cost.on_bytes(bytes.len());
            self.cost.of_turn(|| end.endpoint.handle_datagram(now, arrival, &mut bytes));
        }
        self.settle();
    }

    /// What has come to an address nobody is at is lost, or sent on by the attacker.
    fn lose_strays(&mut self) {
        let (now, ends) = (self.now, Side::BOTH.map(|side| self.address(side)));
        let unmatched = self.air.extract_if(.., |datagram| datagram.arrives <= now && !ends.contains(&datagram.way.to));
        let is_relayed = |stray: &Airborne| stray.way.to == host(THIEF) && tap::kind(&stray.bytes) == Some(Kind::Challenge);
        let relayed: Vec<Airborne> = unmatched.filter(is_relayed).collect();
        if self.attacker != Attacker::Silent {
            let arrives = now + self.latency;
            self.air.extend(relayed.into_iter().map(|stray| Airborne { way: Way { to: ends[0], ..stray.way }, arrives, ..stray }));
        }
    }

    /// An end is at another host from now on.
    pub fn move_to(&mut self, side: Side, number: u8) {
        self.ends[side.index()].address = host(number);
        self.settle();
    }

    /// Time passes until something happens.
    pub fn wait(&mut self) {
        if let Some(next) = self.next_event() {
            self.now = self.now.max(next);
            self.settle();
        }
    }

    /// An end is gone, and with it everything it has sent.
    pub fn vanish(&mut self, side: Side) {
        self.ends[side.index()].present = false;
        let address = self.address(side);
        self.air.retain(|datagram| datagram.way.to == address);
        self.held.retain(|(way, _)| way.to == address);
    }

    /// Timers expire and datagrams leave until nothing more is to be done now.
    fn settle(&mut self) {
        self.lose_strays();
        for _ in 0..ROUNDS_MAX {
            for side in Side::BOTH {
                if self.ends[side.index()].present {
                    let (now, end) = (self.now, &mut self.ends[side.index()]);
                    self.cost.of_turn(|| end.endpoint.handle_timeout(now));
                    self.drain(side);
                    self.tell(side);
                }
            }
            let present = self.ends.iter().filter(|end| end.present);
            let due = |end: &End| end.endpoint.poll_deadline().is_some_and(|deadline| deadline.at <= self.now);
            if !present.clone().any(due) {
                return;
            }
        }
        self.stands_still = true;
    }

    fn drain(&mut self, side: Side) {
        let end = &mut self.ends[side.index()];
        let mut bytes = Vec::new();
        while let Some(transmit) = self.cost.of_turn(|| end.endpoint.poll_transmit(self.now, 1, &mut bytes)) {
            self.cost.on_bytes(bytes.len());
            end.tap.read(&bytes);
            end.anti_amplification.on_departure(transmit.to, &bytes);
            if let Some(forge) = self.forger {
                forge(side, &mut bytes);
            }
            let way = Way { from: end.address, to: transmit.to };
            let datagram = Airborne { way, arrives: self.now + self.latency, bytes: core::mem::take(&mut bytes) };
            if self.attacker == Attacker::Races && side == Side::A {
                self.air.push(Airborne { way: Way { from: host(THIEF), ..way }, ..datagram.clone() });
            }
            self.air.push(datagram);
        }
    }

    /// The application of an end hears what there is, and forgets what is over.
    fn tell(&mut self, side: Side) {
        while let Some((id, event)) = self.ends[side.index()].endpoint.poll_event() {
            let end = &mut self.ends[side.index()];
            end.connection = Some(id);
            match event {
                ConnectionEvent::Connected => end.heard.connected += 1,
                ConnectionEvent::Judged { stream, segments, verdict, .. } => {
                    end.heard.judged.extend(segments.start.up_to(segments.end).map(|segment| (stream, segment, verdict)));
                }
                ConnectionEvent::Reclassed(class) => end.heard.reclassed.push(class),
                ConnectionEvent::Closed(reason) => end.heard.ended.push(reason),
                ConnectionEvent::Readable(stream) if self.taking => while self.take(side, stream) {},
                _ => {}
            }
        }
        let end = &mut self.ends[side.index()];
        let connections: Vec<ConnectionId> = end.endpoint.connections().collect();
        connections.into_iter().for_each(|id| end.endpoint.release(id));
    }

    /// The application of `side` takes the next segment of `stream`. False when there is none.
    fn take(&mut self, side: Side, stream: StreamId) -> bool {
        let (now, end) = (self.now, &mut self.ends[side.index()]);
        let connection = end.connection.and_then(|id| end.endpoint.connection_mut(id));
        let Some(received) = connection.and_then(|connection| connection.recv(now, stream)) else { return false };
        let Received { stream, segment, verdict, bytes, .. } = received;
        let wrong = |byte: &u8| *byte != filling(side.other(), segment);
        end.heard.mangled |= verdict == Verdict::Complete && (bytes.is_empty() || bytes.iter().any(wrong));
        end.heard.taken.push((stream, segment, verdict));
        true
    }

    /// The application of `side` does something with its connection, and what follows from it at once happens. Nothing
    /// when there is no connection.
    pub fn act<R>(&mut self, side: Side, act: impl FnOnce(&mut Connection, Instant) -> R) -> Option<R> {
        let (now, end) = (self.now, &mut self.ends[side.index()]);
        let done = end.connection.and_then(|id| end.endpoint.connection_mut(id)).map(|connection| act(connection, now));
        self.settle();
        done
    }

    /// The application of `side` takes the next segment of `stream`, and what follows from it at once happens. False when
    /// there is none.
    pub fn read(&mut self, side: Side, stream: StreamId) -> bool {
        let taken = self.take(side, stream);
        if taken {
            self.settle();
        }
        taken
    }

    /// The application of `side` submits a segment of `bytes` bytes on `stream`.
    pub fn submit(&mut self, side: Side, stream: StreamId, bytes: usize) {
        let next = SegmentNumber(self.heard(side).accepted.len() as u64);
        let payload = Bytes::from(vec![filling(side, next); bytes]);
        let sent = self.act(side, |connection, now| connection.send(now, stream, payload, Instant::ZERO, None));
        if let Some(Ok(segment)) = sent {
            self.ends[side.index()].heard.accepted.push((stream, segment));
        }
    }

    /// Everything that decides the future, and everything a property looks at.
    pub fn digest(&self) -> Digest {
        let mut digest = Digest::default();
        digest.value(&self.now.as_nanos());
        for end in &self.ends {
            digest.text(&(&end.endpoint, &end.connection, &end.heard, &end.tap, &end.anti_amplification, end.address, end.present));
        }
        for datagram in &self.air {
            digest.value(&(datagram.way, datagram.arrives.as_nanos(), &datagram.bytes));
        }
        digest.value(&(&self.held, self.missed));
        digest
    }
}

/// What the bytes of a segment are: its number and its sender can be told from each.
const fn filling(side: Side, segment: SegmentNumber) -> u8 {
    (segment.0 as u8) << 1 | side as u8
}

/// The configuration of most instances: not paced and without gathering, so that no more timers expire than the claim needs.
pub fn small_config(accept: bool) -> Config {
    Config { rate: Rate::Unpaced, pacing_quantum: Duration::ZERO, accept, ..Config::default() }
}

/// A reliable stream of units of one byte with a window of `window` segments and units.
pub fn small_contract(window: u32) -> Contract {
    Contract { unit_bytes: 1, window_units: window, window_segments: window, ..Contract::default() }
}
