//! Two encrypted endpoints from their first datagram on, and an input that says the fate of each: it passes, is
//! lost, comes twice, late, from elsewhere, cut or changed; and datagrams of any bytes in between.
//!
//! Promises: nothing panics; an address that has not proved itself gets no more than three times what it sent; whoever is
//! connected knows the key of the other; no changed bytes are delivered; without a peer every connection ends.

use segstream_base::endpoint::{Arrival, Endpoint as _, Local};
use segstream_base::{Duration, Instant, StreamId};
use segstream_proto::config::Config;
use segstream_proto::connection::ConnectionEvent;
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_secure::{Admission, Fingerprint, Identity, Tls, Trust};
use segstream_wire::{Contract, Limits};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::LazyLock;

/// Steps of one input.
const STEPS_MAX: usize = 60;

/// The low three bits of a step's first byte.
pub mod step {
    /// The next datagram to an end arrives.
    pub const DELIVER: u8 = 0;
    /// It is lost.
    pub const LOSE: u8 = 1;
    /// It arrives twice.
    pub const TWICE: u8 = 2;
    /// It comes later.
    pub const DELAY: u8 = 3;
    /// It arrives changed: how often, each position (2) and value.
    pub const CHANGE: u8 = 4;
    /// It arrives cut: to how many bytes (2).
    pub const CUT: u8 = 5;
    /// Any bytes arrive: how many, bytes.
    pub const RAW: u8 = 6;
    /// Time passes: two to the power of this many microseconds.
    pub const ADVANCE: u8 = 7;
    /// A flag: to the responder.
    pub const RESPONDER: u8 = 8;
    /// A flag: from elsewhere.
    pub const ELSEWHERE: u8 = 16;
}

/// Made once: keys cost more than a play.
static IDENTITIES: LazyLock<[Identity; 2]> = LazyLock::new(|| [0, 1].map(|_| Identity::generate().expect("the system gives randomness")));

struct Play {
    now: Instant,
    ends: [Endpoint; 2],
    pending: [VecDeque<Vec<u8>>; 2],
    connected: [Option<ConnectionId>; 2],
    /// Bytes from elsewhere, and bytes answered there.
    elsewhere: [usize; 2],
    delivered: usize,
}

const PAYLOAD: &[u8] = b"what is sent is what arrives, or nothing does";

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, end as u8], 4000))
}

const ELSEWHERE: usize = 2;

fn endpoint(end: usize) -> Endpoint {
    let identities = &*IDENTITIES;
    let admission = Admission::nobody();
    admission.allow(identities[0].fingerprint());
    let tls = Tls::new(identities[end].clone(), admission, None).expect("the identity is sound");
    let limits = Limits { idle_timeout: Duration::from_secs(1), ..Limits::default() };
    let config = Config { accept: end == 1, connections: 8, limits, ..Config::default() };
    Endpoint::with_protection(config, Box::new(tls)).expect("the configuration is valid")
}

impl Play {
    fn new() -> Self {
        let mut ends = [endpoint(0), endpoint(1)];
        let trust = Trust::Key(IDENTITIES[1].fingerprint());
        let id = ends[0].connect(Instant::ZERO, address(1), &trust, vec![Contract::default()]).expect("the contract is valid");
        let connection = ends[0].connection_mut(id).expect("the connection is new");
        let sent = connection.send(Instant::ZERO, StreamId(0), PAYLOAD.into(), Instant::ZERO, None);
        assert!(sent.is_ok(), "a new stream takes a segment");
        Self { now: Instant::ZERO, ends, pending: Default::default(), connected: [None, None], elsewhere: [0, 0], delivered: 0 }
    }

    fn arrive(&mut self, to: usize, elsewhere: bool, mut datagram: Vec<u8>) {
        let from = address(if elsewhere { ELSEWHERE } else { 1 - to });
        self.elsewhere[0] += if elsewhere { datagram.len() } else { 0 };
        let arrival = Arrival { from, to: Local::ANY, ecn: None, received: self.now };
        self.ends[to].handle_datagram(self.now, arrival, &mut datagram);
        self.drain();
    }

    fn drain(&mut self) {
        for end in [0, 1] {
            let mut out = Vec::new();
            while let Some(transmit) = self.ends[end].poll_transmit(self.now, 4, &mut out) {
                for datagram in out.chunks(transmit.datagram_bytes) {
                    if transmit.to == address(ELSEWHERE) {
                        self.elsewhere[1] += datagram.len();
                    } else if self.pending[1 - end].len() < 64 {
                        self.pending[1 - end].push_back(datagram.to_vec());
                    }
                }
                out.clear();
            }
            while let Some((id, event)) = self.ends[end].poll_event() {
                self.hear(end, id, &event);
            }
        }
        assert!(self.elsewhere[1] <= 3 * self.elsewhere[0], "{:?} from and to an address that has proved nothing", self.elsewhere);
    }

    fn hear(&mut self, end: usize, id: ConnectionId, event: &ConnectionEvent) {
        match event {
            ConnectionEvent::Connected => {
                let key: Option<Fingerprint> = self.ends[end].connection(id).and_then(|connection| connection.peer());
                assert_eq!(key, Some(IDENTITIES[1 - end].fingerprint()), "connected to whom?");
                self.connected[end] = Some(id);
            }
            ConnectionEvent::Readable(stream) => {
                let now = self.now;
                while let Some(received) = self.ends[end].connection_mut(id).and_then(|connection| connection.recv(now, *stream)) {
                    assert_eq!(received.bytes, PAYLOAD);
                    self.delivered += 1;
                    assert_eq!(self.delivered, 1, "delivered twice");
                }
            }
            _ => {}
        }
    }

    fn settle(&mut self) {
        for _ in 0..10_000 {
            self.drain();
            let due = |end: &Endpoint| end.poll_deadline().is_some_and(|deadline| deadline.at <= self.now);
            if !self.ends.iter().any(due) {
                return;
            }
            let now = self.now;
            self.ends.iter_mut().for_each(|end| end.handle_timeout(now));
        }
        panic!("time stands still at {:?}", self.now);
    }

    /// Nothing arrives any more.
    fn wind_down(&mut self) {
        for _ in 0..100_000 {
            self.settle();
            let next = self.ends.iter().filter_map(|end| end.poll_deadline()).map(|deadline| deadline.at).min();
            let Some(next) = next else { break };
            self.now = self.now.max(next);
        }
        for end in &mut self.ends {
            let ids: Vec<ConnectionId> = end.connections().collect();
            ids.into_iter().for_each(|id| end.release(id));
            assert_eq!(end.connections().count(), 0, "a connection without a peer does not end");
        }
    }
}

/// Checks the promises for one input.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    let mut play = Play::new();
    let mut input = data.iter().copied();
    for _ in 0..STEPS_MAX {
        play.settle();
        let Some(first) = input.next() else { break };
        step_once(&mut play, first, &mut input);
    }
    play.wind_down();
}

fn step_once(play: &mut Play, first: u8, input: &mut impl Iterator<Item = u8>) {
    let to = usize::from(first & step::RESPONDER != 0);
    let elsewhere = first & step::ELSEWHERE != 0;
    let mut byte = || input.next().unwrap_or(0);
    match first & 7 {
        step::ADVANCE => {
            let span = Duration::from_micros(1 << (byte() % 23));
            play.now += span;
        }
        step::RAW => {
            let count = byte();
            let bytes = (0..count).map(|_| byte()).collect();
            play.arrive(to, elsewhere, bytes);
        }
        kind => {
            let Some(mut datagram) = play.pending[to].pop_front() else { return };
            match kind {
                step::LOSE => return,
                step::DELAY => return play.pending[to].push_back(datagram),
                step::TWICE => play.arrive(to, elsewhere, datagram.clone()),
                step::CHANGE => {
                    for _ in 0..=byte() % 4 {
                        let at = usize::from(u16::from_be_bytes([byte(), byte()])) % datagram.len();
                        datagram[at] = byte();
                    }
                }
                step::CUT => datagram.truncate(usize::from(u16::from_be_bytes([byte(), byte()]))),
                _ => {}
            }
            play.arrive(to, elsewhere, datagram);
        }
    }
}
