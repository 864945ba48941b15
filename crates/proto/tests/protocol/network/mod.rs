//! A network of two endpoints in virtual time: delay, loss, corruption, an application that takes
//! everything at once. Used by the tests of connections.

#![allow(dead_code, reason = "each test uses its own part of the harness")]

use segstream_base::endpoint::{Arrival, Ecn, Endpoint as _, Local};
use segstream_base::halves::Verdict;
use segstream_base::random::{Random, Seed};
use segstream_base::{Duration, Instant};
use segstream_proto::config::Config;
use segstream_proto::connection::{ConnectionEvent, Received};
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_proto::session::Trust;
use segstream_wire::contract::Contract;
use std::collections::BTreeMap;
use std::net::SocketAddr;

const MAX_BATCH: usize = 16;

/// Whether the path drops a datagram, and which way it goes: to b or not.
pub(crate) type Drops = Box<dyn FnMut(bool, &[u8]) -> bool>;

/// What becomes of a datagram, whatever the habits of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Lose,
    Twice,
}

pub(crate) struct Network {
    pub(crate) a: Endpoint,
    pub(crate) b: Endpoint,
    pub(crate) loss: f64,
    /// The loss from b to a when it is another one.
    pub(crate) loss_back: Option<f64>,
    pub(crate) corrupt: f64,
    /// What becomes of the first datagrams, in the order of departure from either end; then habits decide.
    pub(crate) fates: std::collections::VecDeque<Fate>,
    /// What the path drops besides.
    pub(crate) drops: Drops,
    /// How many datagrams of each end could be marked.
    pub(crate) markable: [u64; 2],
    /// Everything that can be marked arrives marked.
    pub(crate) marking: bool,
    /// The applications take segments as they come.
    pub(crate) taking: bool,
    pub(crate) events_a: Vec<(ConnectionId, ConnectionEvent)>,
    pub(crate) events_b: Vec<(ConnectionId, ConnectionEvent)>,
    pub(crate) received: Vec<Received>,
    delay: Duration,
    now: Instant,
    random: Random,
    in_flight: BTreeMap<(Instant, u64), (bool, Vec<u8>, bool)>,
    sequence: u64,
}

fn address(to_b: bool) -> SocketAddr {
    if to_b { "10.0.0.2:2".parse().unwrap() } else { "10.0.0.1:1".parse().unwrap() }
}

impl Network {
    pub(crate) fn new(a: Config, b: Config, delay: Duration) -> Self {
        Self {
            a: Endpoint::new(a, Seed(1)).unwrap(),
            b: Endpoint::new(b, Seed(2)).unwrap(),
            loss: 0.0,
            loss_back: None,
            corrupt: 0.0,
            fates: std::collections::VecDeque::new(),
            drops: Box::new(|_, _| false),
            markable: [0; 2],
            marking: false,
            taking: true,
            events_a: Vec::new(),
            events_b: Vec::new(),
            received: Vec::new(),
            delay,
            now: Instant::ZERO,
            random: Seed(3).stream("network"),
            in_flight: BTreeMap::new(),
            sequence: 0,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn connect(&mut self, streams: Vec<Contract>) -> ConnectionId {
        self.a.connect(self.now, address(true), &Trust::Anyone, streams).unwrap()
    }

    pub(crate) fn judged(&self) -> Vec<(u32, u64, Verdict)> {
        let mut judged = Vec::new();
        for (_, event) in &self.events_a {
            if let ConnectionEvent::Judged { stream, segments, verdict, .. } = event {
                judged.extend(segments.clone().map(|segment| (*stream, segment, *verdict)));
            }
        }
        judged
    }

    pub(crate) fn run_until(&mut self, end: Duration) {
        let end = Instant::ZERO + end;
        let mut idle = 0;
        loop {
            self.drain();
            let arrival = self.in_flight.keys().next().map(|key| key.0);
            let deadlines = [self.a.poll_deadline(), self.b.poll_deadline()];
            let next = deadlines.iter().flatten().map(|deadline| deadline.at).chain(arrival).min().unwrap_or(end);
            if next >= end {
                self.now = end;
                return;
            }
            idle = if next <= self.now { idle + 1 } else { 0 };
            assert!(idle < 10_000, "time stands still at {}: {deadlines:?}", self.now);
            self.now = self.now.max(next);
            self.a.handle_timeout(self.now);
            self.b.handle_timeout(self.now);
            while let Some(entry) = self.in_flight.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to_b, mut datagram, marked) = entry.remove();
                let ecn = marked.then_some(Ecn::CongestionExperienced);
                let arrival = Arrival { from: address(!to_b), to: Local::ANY, ecn, received: self.now };
                let target = if to_b { &mut self.b } else { &mut self.a };
                target.handle_datagram(self.now, arrival, &mut datagram);
            }
        }
    }

    fn drain(&mut self) {
        for to_b in [true, false] {
            let mut out = Vec::new();
            loop {
                out.clear();
                let source = if to_b { &mut self.a } else { &mut self.b };
                let Some(transmit) = source.poll_transmit(self.now, MAX_BATCH, &mut out) else { break };
                for datagram in out.chunks(transmit.datagram_bytes) {
                    let markable = transmit.ecn == Some(Ecn::Ect0);
                    self.markable[usize::from(!to_b)] += u64::from(markable);
                    self.transfer(to_b, datagram.to_vec(), markable && self.marking);
                }
            }
        }
        self.take_events();
    }

    fn transfer(&mut self, to_b: bool, mut datagram: Vec<u8>, marked: bool) {
        if (self.drops)(to_b, &datagram) {
            return;
        }
        match self.fates.pop_front() {
            Some(Fate::Lose) => return,
            Some(Fate::Twice) => {
                self.sequence += 1;
                self.in_flight.insert((self.now + self.delay, self.sequence), (to_b, datagram.clone(), marked));
            }
            _ => {}
        }
        if self.random.chance(self.loss_back.filter(|_| !to_b).unwrap_or(self.loss)) {
            return;
        }
        if self.random.chance(self.corrupt) {
            let bit = self.random.below(datagram.len() as u64 * 8) as usize;
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
        self.sequence += 1;
        self.in_flight.insert((self.now + self.delay, self.sequence), (to_b, datagram, marked));
    }

    fn take_events(&mut self) {
        for side_a in [true, false] {
            let endpoint = if side_a { &mut self.a } else { &mut self.b };
            while let Some((id, event)) = endpoint.poll_event() {
                if let ConnectionEvent::Readable(stream) = event
                    && self.taking
                {
                    while let Some(received) = endpoint.connection_mut(id).and_then(|connection| connection.recv(self.now, stream)) {
                        self.received.push(received);
                    }
                }
                if side_a {
                    self.events_a.push((id, event));
                } else {
                    self.events_b.push((id, event));
                }
            }
            let ids: Vec<ConnectionId> = endpoint.connections().collect();
            for id in ids {
                endpoint.forget(id);
            }
        }
    }
}
