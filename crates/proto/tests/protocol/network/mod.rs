//! A network of two endpoints in virtual time: delay, loss, corruption, an application that takes
//! everything at once. Used by the tests of connections.
//!
//! It is a [`segstream_network::Network`] with names for what these tests do; what the path does besides its delay is decided by
//! [`Habits`], which tests change while it runs.

#![allow(dead_code, reason = "each test uses its own part of the harness")]

use core::ops::{Deref, DerefMut};
use segstream_base::endpoint::Ecn;
use segstream_base::halves::Verdict;
use segstream_base::random::{Random, Seed};
use segstream_base::{Duration, Instant};
use segstream_network::{Datagram, HostId, Middlebox, Ruling};
use segstream_path::PathConfig;
use segstream_proto::config::Config;
use segstream_proto::connection::{ConnectionEvent, Received};
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_proto::session::Trust;
use segstream_wire::contract::Contract;
use std::net::SocketAddr;

const A: HostId = HostId(0);
const B: HostId = HostId(1);

/// Whether the path drops a datagram, and which way it goes: to b or not.
pub(crate) type Drops = Box<dyn FnMut(bool, &[u8]) -> bool>;

/// What becomes of a datagram, whatever the habits of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Lose,
    Twice,
}

/// What happens to datagrams on the path besides its delay.
pub(crate) struct Habits {
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
    random: Random,
}

impl Middlebox for Habits {
    fn decide(&mut self, _now: Instant, datagram: &mut Datagram<'_>) -> Ruling {
        let to_b = datagram.host == A;
        let markable = datagram.ecn == Some(Ecn::Ect0);
        self.markable[usize::from(!to_b)] += u64::from(markable);
        if (self.drops)(to_b, datagram.bytes) {
            return Ruling::Drop;
        }
        let fate = self.fates.pop_front();
        if fate == Some(Fate::Lose) {
            return Ruling::Drop;
        }
        if self.random.chance(self.loss_back.filter(|_| !to_b).unwrap_or(self.loss)) {
            return Ruling::Drop;
        }
        if self.random.chance(self.corrupt) {
            let bit = self.random.below(datagram.bytes.len() as u64 * 8) as usize;
            datagram.bytes[bit / 8] ^= 1 << (bit % 8);
        }
        match fate {
            Some(Fate::Twice) => Ruling::Duplicate,
            _ if markable && self.marking => Ruling::Mark,
            _ => Ruling::Pass,
        }
    }
}

pub(crate) struct Network {
    /// The applications take segments as they come.
    pub(crate) taking: bool,
    pub(crate) events_a: Vec<(ConnectionId, ConnectionEvent)>,
    pub(crate) events_b: Vec<(ConnectionId, ConnectionEvent)>,
    pub(crate) received: Vec<Received>,
    network: segstream_network::Network<Endpoint, Habits>,
}

impl Deref for Network {
    type Target = Habits;

    fn deref(&self) -> &Habits {
        self.network.middlebox()
    }
}

impl DerefMut for Network {
    fn deref_mut(&mut self) -> &mut Habits {
        self.network.middlebox_mut()
    }
}

fn address(host: HostId) -> SocketAddr {
    if host == B { "10.0.0.2:2".parse().unwrap() } else { "10.0.0.1:1".parse().unwrap() }
}

impl Network {
    pub(crate) fn new(a: Config, b: Config, delay: Duration) -> Self {
        let habits = Habits {
            loss: 0.0,
            loss_back: None,
            corrupt: 0.0,
            fates: std::collections::VecDeque::new(),
            drops: Box::new(|_, _| false),
            markable: [0; 2],
            marking: false,
            random: Seed(3).stream("network"),
        };
        let mut network = segstream_network::Network::with_middlebox(Seed(3), habits);
        network.set_receives_in_batches(true);
        network.add_host(Endpoint::new(a, Seed(1)).unwrap(), address(A));
        network.add_host(Endpoint::new(b, Seed(2)).unwrap(), address(B));
        network.link(A, B, &PathConfig { delay, ..PathConfig::default() }).unwrap();
        Self { taking: true, events_a: Vec::new(), events_b: Vec::new(), received: Vec::new(), network }
    }

    pub(crate) fn now(&self) -> Instant {
        self.network.now()
    }

    pub(crate) fn a(&self) -> &Endpoint {
        &self.network[A]
    }

    pub(crate) fn a_mut(&mut self) -> &mut Endpoint {
        &mut self.network[A]
    }

    pub(crate) fn b(&self) -> &Endpoint {
        &self.network[B]
    }

    pub(crate) fn b_mut(&mut self) -> &mut Endpoint {
        &mut self.network[B]
    }

    pub(crate) fn connect(&mut self, streams: Vec<Contract>) -> ConnectionId {
        let now = self.now();
        self.a_mut().connect(now, address(B), &Trust::Anyone, streams).unwrap()
    }

    pub(crate) fn judged(&self) -> Vec<(u32, u64, Verdict)> {
        let mut judged = Vec::new();
        for (_, event) in &self.events_a {
            if let ConnectionEvent::Judged { stream, segments, verdict, .. } = event {
                judged.extend(segments.start.up_to(segments.end).map(|segment| (stream.0, segment.0, *verdict)));
            }
        }
        judged
    }

    pub(crate) fn run_until(&mut self, end: Duration) {
        // Why not at `end` itself: the test acts there before anything else does.
        let (end, last) = (Instant::ZERO + end, Instant::ZERO + end - Duration::from_nanos(1));
        while self.network.step(last).is_some() {
            self.take_events();
        }
        self.network.advance_to(end);
        self.take_events();
        self.network.settle_all();
    }

    /// Both applications look at everything, so that both endpoints are asked for datagrams whenever anything happens.
    fn take_events(&mut self) {
        [A, B].into_iter().for_each(|host| self.take_events_at(host));
    }

    fn take_events_at(&mut self, host: HostId) {
        let (now, endpoint) = (self.network.now(), &mut self.network[host]);
        while let Some((id, event)) = endpoint.poll_event() {
            if let ConnectionEvent::Readable(stream) = event
                && self.taking
            {
                while let Some(received) = endpoint.connection_mut(id).and_then(|connection| connection.recv(now, stream)) {
                    self.received.push(received);
                }
            }
            if host == A {
                self.events_a.push((id, event));
            } else {
                self.events_b.push((id, event));
            }
        }
        let ids: Vec<ConnectionId> = endpoint.connections().collect();
        for id in ids {
            endpoint.release(id);
        }
    }
}
