//! Two connected endpoints in virtual time, for `endpoint_datagrams`.
//!
//! The caller decides the fate of every datagram. After each of its steps [`Pair::settle`] lets both
//! ends do what they want to do now, and checks the promises that hold at any time.
//!
//! Why not a `segstream_network::Network`: there a seed decides when each datagram arrives; here the bytes of the fuzzer do, one
//! datagram at a time, so that what it learns about an input holds for the next.

use segstream_base::codec::Reader;
use segstream_base::endpoint::{Arrival, Endpoint as _, Local};
use segstream_base::random::Seed;
use segstream_base::sequence::expand;
use segstream_base::{Duration, Instant, Run, SegmentNumber, ShipmentNumber, StreamId, Tolerance, UnitIndex};
use segstream_blocks::work::{self, Budget};
use segstream_proto::config::Config;
use segstream_proto::connection::{Connection, ConnectionEvent, Received};
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_proto::rate::Rate;
use segstream_proto::session::{Plain, Trust};
use segstream_wire::contract::{InterleaveChoice, Limits, Order};
use segstream_wire::{Contract, Header, Kind, Level};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Datagrams that may be on their way to one end; of more the oldest are lost.
const PENDING_MAX: usize = 256;
/// Datagrams one end may send without time passing.
const AT_ONCE_MAX: usize = 5_000;
/// Calls without time passing, and calls until a forgotten connection is gone.
const CALLS_AT_ONCE_MAX: usize = 1_000;
const CALLS_TO_THE_END_MAX: usize = 50_000;
/// What the configuration of both ends allows.
const CONNECTIONS_MAX: usize = 8;
const STREAMS_MAX: u32 = 8;
const STREAM_WINDOW_BYTES: u64 = 64 * 1024;
/// Segments of a stream whose buffers are looked at.
const SEGMENTS_LOOKED_AT: u64 = 64;

/// One end.
pub(crate) struct Side {
    pub(crate) endpoint: Endpoint,
    address: SocketAddr,
    /// The connection both ends began with.
    pub(crate) connection: ConnectionId,
    /// How its peer addresses it.
    local: u32,
    highest: Option<u64>,
    /// Datagrams on their way to this end.
    pub(crate) pending: VecDeque<Vec<u8>>,
    judged: BTreeSet<(ConnectionId, StreamId, SegmentNumber)>,
    sent: usize,
}

/// Both ends: 0 has made the connection, 1 has accepted it.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) sides: [Side; 2],
    /// A request by a stranger just handed over: its length bounds the answer.
    asked_bytes: Option<usize>,
    budget: Budget,
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, side as u8], 4000))
}

const STRANGER: usize = 2;

fn config(accept: bool) -> Config {
    Config {
        accept,
        rate: if accept { Rate::AUTO } else { Rate::Unpaced },
        connections: CONNECTIONS_MAX,
        limits: Limits { streams: STREAMS_MAX, idle_timeout: Duration::from_secs(1), ..Limits::default() },
        stream_window_bytes: STREAM_WINDOW_BYTES,
        ..Config::default()
    }
}

/// A reliable stream, a partially tolerant one, and one with lifetimes that is delivered as accepted.
fn contracts() -> Vec<Contract> {
    let small = Contract { unit_bytes: 64, window_units: 128, window_segments: 8, ..Contract::default() };
    vec![
        small.clone(),
        Contract { tolerance: Tolerance::new(16, 4, 2).unwrap(), importance: 1, ..small.clone() },
        Contract {
            tolerance: Tolerance::new(8, 1, 1).unwrap(),
            order: Order::AsAccepted,
            lifetime: Duration::from_millis(50).into(),
            interleave: InterleaveChoice::Depth(8),
            ..small
        },
    ]
}

impl Pair {
    /// Two ends with an established connection and nothing on its way.
    pub(crate) fn established() -> Self {
        let mut a = Endpoint::new(config(false), Seed(1)).expect("the configuration is valid");
        let b = Endpoint::new(config(true), Seed(2)).expect("the configuration is valid");
        let connection = a.connect(Instant::ZERO, address(1), &Trust::Anyone, contracts()).expect("the contracts are valid");
        let side = |endpoint, side| Side {
            endpoint,
            address: address(side),
            connection,
            local: 0,
            highest: None,
            pending: VecDeque::new(),
            judged: BTreeSet::new(),
            sent: 0,
        };
        let mut pair = Self { now: Instant::ZERO, sides: [side(a, 0), side(b, 1)], asked_bytes: None, budget: Budget::default() };
        for _ in 0..8 {
            pair.settle();
            pair.now += Duration::from_millis(5);
            for to in [1, 0] {
                while let Some(datagram) = pair.sides[to].pending.pop_front() {
                    if to == 1 && pair.sides[1].endpoint.connections().next().is_none() {
                        pair.arrive(1, false, datagram);
                        if let Some(accepted) = pair.sides[1].endpoint.connections().next() {
                            pair.sides[1].connection = accepted;
                        }
                    } else {
                        pair.arrive(to, false, datagram);
                    }
                }
            }
        }
        pair.settle();
        assert!((0..2).all(|side| pair.connection(side).is_some_and(|connection| connection.is_established())));
        pair
    }

    /// The connection both ends began with, as long as `side` has it.
    pub(crate) fn connection(&mut self, side: usize) -> Option<&mut Connection> {
        let side = &mut self.sides[side];
        side.endpoint.connection_mut(side.connection)
    }

    /// How shipments to `side` are addressed, and the number the next of them would have.
    pub(crate) fn next_shipment(&self, side: usize) -> (u32, u64) {
        let side = &self.sides[side];
        (side.local, side.highest.map_or(0, |highest| highest.saturating_add(1)))
    }

    /// Hands a datagram to `side`, sealed so that `side` will open it, whatever its header says.
    pub(crate) fn arrive_sealed(&mut self, side: usize, from_stranger: bool, mut datagram: Vec<u8>) {
        let sealed = Header::decode(&mut Reader::new(&datagram)).ok();
        if let Some(header) = &sealed {
            Plain::seal(ShipmentNumber(self.number_of(side, header)), &mut datagram);
        }
        let broken = |pair: &mut Self| pair.connection(side).map_or(0, |connection| connection.counters.authentication_failures);
        let before = broken(self);
        self.arrive(side, from_stranger, datagram);
        // Why only then: what has no header cannot be sealed, nor opened.
        assert!(sealed.is_none() || broken(self) == before, "the play seals as endpoints do");
    }

    fn number_of(&self, side: usize, header: &Header) -> u64 {
        let literal = matches!(header.level, Level::Initial | Level::Handshake);
        let expected = if literal { 0 } else { self.next_shipment(side).1 };
        if literal { u64::from(header.number) } else { expand(u64::from(header.number), 32, expected) }
    }

    /// Hands a datagram to `side`, from its peer or from a stranger.
    pub(crate) fn arrive(&mut self, side: usize, from_stranger: bool, mut datagram: Vec<u8>) {
        let header = Header::decode(&mut Reader::new(&datagram));
        let number = header.as_ref().map(|header| self.number_of(side, header));
        let received = |pair: &mut Self| pair.connection(side).map(|connection| connection.counters.datagrams_received);
        let before = received(self);
        let from = if from_stranger { address(STRANGER) } else { self.sides[1 - side].address };
        let arrival = Arrival { from, to: Local::ANY, ecn: None, received: self.now };
        self.asked_bytes = Some(datagram.len());
        self.budget.on_bytes(datagram.len() as u64);
        let (now, endpoint) = (self.now, &mut self.sides[side].endpoint);
        let (_, steps) = work::counted(|| endpoint.handle_datagram(now, arrival, &mut datagram));
        self.worked(steps);
        if let Ok(number) = number
            && before.is_some()
            && received(self) > before
        {
            let highest = &mut self.sides[side].highest;
            *highest = Some(highest.map_or(number, |highest| highest.max(number)));
        }
        self.drain();
        self.asked_bytes = None;
    }

    /// Lets both ends do what is due now.
    pub(crate) fn settle(&mut self) {
        self.sides.iter_mut().for_each(|side| side.sent = 0);
        for _ in 0..CALLS_AT_ONCE_MAX {
            self.drain();
            let due = |side: &Side| side.endpoint.poll_deadline().is_some_and(|deadline| deadline.at <= self.now);
            if !self.sides.iter().any(due) {
                return;
            }
            let now = self.now;
            for side in 0..self.sides.len() {
                let endpoint = &mut self.sides[side].endpoint;
                let ((), steps) = work::counted(|| endpoint.handle_timeout(now));
                self.worked(steps);
            }
        }
        panic!("time stands still at {:?}: {:?}", self.now, self.sides.each_ref().map(|side| side.endpoint.poll_deadline()));
    }

    /// A turn of an end took so many steps: no more than one may, and all of them no more than their bytes are worth (spec 11.4).
    fn worked(&mut self, steps: u64) {
        assert_eq!(self.budget.on_turn(steps), Ok(()));
    }

    fn drain(&mut self) {
        for from in [0, 1] {
            let mut out = Vec::new();
            while let Some(transmit) = self.sides[from].endpoint.poll_transmit(self.now, 8, &mut out) {
                assert!(transmit.datagram_bytes > 0 && !out.is_empty(), "an empty transmission");
                for datagram in out.chunks(transmit.datagram_bytes) {
                    self.leave(from, transmit.to, datagram);
                }
                out.clear();
            }
            self.take_events(from);
        }
    }

    fn leave(&mut self, from: usize, to: SocketAddr, datagram: &[u8]) {
        self.sides[from].sent += 1;
        self.budget.on_bytes(datagram.len() as u64);
        assert!(self.sides[from].sent <= AT_ONCE_MAX, "datagrams without end at {:?}", self.now);
        let header = Header::decode(&mut Reader::new(datagram)).expect("an endpoint sends shipments");
        if let Some(asked) = self.asked_bytes.filter(|_| header.kind == Kind::Reject) {
            assert!(datagram.len() <= asked, "a request of {asked} bytes is refused with {}", datagram.len());
        }
        let peer = &mut self.sides[1 - from];
        if to != peer.address {
            return;
        }
        // A cookie comes before the first number that counts.
        if matches!(header.kind, Kind::Data | Kind::State | Kind::Report | Kind::Confirm) && peer.local == 0 {
            peer.local = header.connection;
        }
        peer.pending.push_back(datagram.to_vec());
        if peer.pending.len() > PENDING_MAX {
            peer.pending.pop_front();
        }
    }

    fn take_events(&mut self, side: usize) {
        let side = &mut self.sides[side];
        while let Some((id, event)) = side.endpoint.poll_event() {
            match event {
                ConnectionEvent::Judged { stream, segments, holes, .. } => {
                    for segment in segments.start.up_to(segments.end) {
                        assert!(side.judged.insert((id, stream, segment)), "segment {segment} of stream {stream} is judged twice");
                    }
                    assert!(are_runs(&holes, u32::MAX), "{holes:?} are no runs");
                }
                ConnectionEvent::Closed(reason) => {
                    let unjudged = side.endpoint.connection(id).is_some_and(Connection::has_unjudged);
                    assert!(!unjudged, "{reason}, and segments are without a verdict");
                }
                _ => {}
            }
        }
    }

    /// Takes everything `side` can read.
    pub(crate) fn read(&mut self, side: usize) {
        let now = self.now;
        for stream in 0..STREAMS_MAX {
            while let Some(received) = self.connection(side).and_then(|connection| connection.recv(now, StreamId(stream))) {
                check_received(&received);
            }
        }
    }

    /// Looks at everything that is kept.
    pub(crate) fn check_bounds(&self) {
        for side in &self.sides {
            let ids: Vec<ConnectionId> = side.endpoint.connections().collect();
            assert!(ids.len() <= CONNECTIONS_MAX, "{} connections", ids.len());
            for connection in ids.iter().filter_map(|&id| side.endpoint.connection(id)) {
                for stream in 0..STREAMS_MAX {
                    let kept: usize =
                        (0..SEGMENTS_LOOKED_AT).map(|segment| connection.peek(StreamId(stream), SegmentNumber(segment)).len()).sum();
                    assert!(kept as u64 <= STREAM_WINDOW_BYTES, "{kept} bytes are kept for stream {stream}");
                    let Some(contract) = connection.sending_contract(StreamId(stream)) else { continue };
                    let units = connection.buffered_units(StreamId(stream));
                    assert!(units <= 2 * u64::from(contract.window_units), "{units} units wait on stream {stream}");
                }
            }
        }
    }

    /// Nothing arrives any more: every connection must come to its end by itself.
    pub(crate) fn wind_down(&mut self) {
        (0..2).for_each(|side| self.read(side));
        for _ in 0..CALLS_TO_THE_END_MAX {
            self.settle();
            for side in &mut self.sides {
                side.pending.clear();
                if side.endpoint.poll_deadline().is_none() {
                    let ids: Vec<ConnectionId> = side.endpoint.connections().collect();
                    ids.into_iter().for_each(|id| side.endpoint.release(id));
                }
            }
            let Some(next) = self.sides.iter().filter_map(|side| side.endpoint.poll_deadline()).map(|deadline| deadline.at).min() else {
                let left: usize = self.sides.iter().map(|side| side.endpoint.connections().count()).sum();
                assert_eq!(left, 0, "connections without a deadline");
                return;
            };
            self.now = self.now.max(next);
        }
        panic!("a connection without a peer does not end");
    }
}

fn are_runs(runs: &[Run<UnitIndex>], end: u32) -> bool {
    let ascending = runs.windows(2).all(|pair| pair[0].end() < pair[1].start());
    ascending && runs.iter().all(|run| run.start() < run.end() && run.end().0 <= end)
}

fn check_received(received: &Received) {
    assert!(are_runs(&received.holes, received.units), "{:?} are no runs of {} units", received.holes, received.units);
    let complete = received.verdict == segstream_base::halves::Verdict::Complete;
    assert!(!complete || received.holes.is_empty(), "complete with holes {:?}", received.holes);
    let room = u64::from(received.units) * u64::from(received.unit_bytes);
    assert!(received.bytes.len() as u64 <= room, "{} bytes in {} units", received.bytes.len(), received.units);
}
