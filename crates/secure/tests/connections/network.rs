//! Two endpoints with a path between them, in virtual time. Tests see every datagram and can send their own.

use segstream_base::endpoint::{Arrival, Endpoint as _, Local};
use segstream_base::{Duration, Instant};
use segstream_proto::config::Config;
use segstream_proto::connection::{ConnectionEvent, Received};
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_proto::error::CloseReason;
use segstream_secure::{Admission, Identity, Tls, Trust};
use segstream_wire::Contract;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Lose,
    Twice,
}

/// A datagram that left one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn tls(identity: &Identity, admission: Admission) -> Box<Tls> {
    Box::new(Tls::new(identity.clone(), admission, None).unwrap())
}

pub(crate) struct Network {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    /// Where the client is; what is sent to where it was is lost.
    pub(crate) client_address: SocketAddr,
    pub(crate) server_address: SocketAddr,
    pub(crate) server_identity: Identity,
    pub(crate) client_identity: Identity,
    /// What becomes of the first datagrams, in the order of departure.
    pub(crate) fates: VecDeque<Fate>,
    /// Everything that left either of the two, in order.
    pub(crate) sent: Vec<Sent>,
    pub(crate) client_events: Vec<(ConnectionId, ConnectionEvent)>,
    pub(crate) server_events: Vec<(ConnectionId, ConnectionEvent)>,
    pub(crate) received: Vec<Received>,
    now: Instant,
    in_flight: BTreeMap<(Instant, u64), Sent>,
    sequence: u64,
}

const DELAY: Duration = ms(20);

impl Network {
    /// A server that serves the client alone.
    pub(crate) fn new() -> Self {
        let (server_identity, client_identity) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let admission = Admission::nobody();
        admission.allow(client_identity.fingerprint());
        let accepting = Config { accept: true, ..Config::default() };
        Self {
            client: Endpoint::with_protection(Config::default(), tls(&client_identity, Admission::nobody())).unwrap(),
            server: Endpoint::with_protection(accepting, tls(&server_identity, admission)).unwrap(),
            client_address: address("192.0.2.1:1000"),
            server_address: address("198.51.100.2:2000"),
            server_identity,
            client_identity,
            fates: VecDeque::new(),
            sent: Vec::new(),
            client_events: Vec::new(),
            server_events: Vec::new(),
            received: Vec::new(),
            now: Instant::ZERO,
            in_flight: BTreeMap::new(),
            sequence: 0,
        }
    }

    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn connect(&mut self) -> ConnectionId {
        let trust = Trust::Key(self.server_identity.fingerprint());
        self.connect_with(&trust, vec![Contract::default()])
    }

    pub(crate) fn connect_with(&mut self, trust: &Trust, streams: Vec<Contract>) -> ConnectionId {
        self.client.connect(self.now, self.server_address, trust, streams).unwrap()
    }

    /// A connection that is set up, on which a segment has been judged.
    pub(crate) fn established() -> (Self, ConnectionId) {
        let mut network = Self::new();
        let id = network.connect();
        network.run_for(ms(500));
        network.send(id, 3000);
        network.run_for(ms(500));
        assert_eq!(network.received.len(), 1, "{:?}", network.client_events);
        (network, id)
    }

    pub(crate) fn send(&mut self, id: ConnectionId, bytes: usize) {
        let now = self.now;
        let connection = self.client.connection_mut(id).expect("the connection is there");
        connection.send(now, 0, vec![5; bytes].into(), Instant::ZERO, None).unwrap();
    }

    /// Gives the server (or the client) a datagram that neither of the two has sent there.
    pub(crate) fn inject(&mut self, from: SocketAddr, to_server: bool, bytes: &[u8]) {
        let (now, mut bytes) = (self.now, bytes.to_vec());
        let target = if to_server { &mut self.server } else { &mut self.client };
        target.handle_datagram(now, Arrival { from, to: Local::ANY, ecn: None, received: now }, &mut bytes);
        self.drain();
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.drain();
            let arrival = self.in_flight.keys().next().map(|key| key.0);
            let deadlines = [self.client.poll_deadline(), self.server.poll_deadline()];
            let next = deadlines.iter().flatten().map(|deadline| deadline.at).chain(arrival).min().unwrap_or(end);
            if next >= end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            while let Some(entry) = self.in_flight.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let mut sent = entry.remove();
                let arrival = Arrival { from: sent.from, to: Local::ANY, ecn: None, received: self.now };
                if sent.to == self.server_address {
                    self.server.handle_datagram(self.now, arrival, &mut sent.bytes);
                } else if sent.to == self.client_address {
                    self.client.handle_datagram(self.now, arrival, &mut sent.bytes);
                }
            }
        }
    }

    fn drain(&mut self) {
        for from_client in [true, false] {
            loop {
                let (endpoint, from) =
                    if from_client { (&mut self.client, self.client_address) } else { (&mut self.server, self.server_address) };
                let mut out = Vec::new();
                let Some(transmit) = endpoint.poll_transmit(self.now, 8, &mut out) else { break };
                for bytes in out.chunks(transmit.datagram_bytes) {
                    let sent = Sent { from, to: transmit.to, bytes: bytes.to_vec() };
                    self.sent.push(sent.clone());
                    let copies = match self.fates.pop_front().unwrap_or(Fate::Pass) {
                        Fate::Lose => 0,
                        Fate::Pass => 1,
                        Fate::Twice => 2,
                    };
                    for _ in 0..copies {
                        self.sequence += 1;
                        self.in_flight.insert((self.now + DELAY, self.sequence), sent.clone());
                    }
                }
            }
        }
        while let Some((id, event)) = self.client.poll_event() {
            self.client_events.push((id, event));
        }
        while let Some((id, event)) = self.server.poll_event() {
            if let ConnectionEvent::Readable(stream) = event {
                while let Some(received) = self.server.connection_mut(id).and_then(|connection| connection.recv(self.now, stream)) {
                    self.received.push(received);
                }
            }
            self.server_events.push((id, event));
        }
    }

    /// Why the client's connection has ended, if it has.
    pub(crate) fn ended(&self) -> Option<CloseReason> {
        self.client_events.iter().find_map(|(_, event)| match event {
            ConnectionEvent::Closed(reason) => Some(reason.clone()),
            _ => None,
        })
    }

    pub(crate) fn server_connections(&self) -> usize {
        self.server.connections().count()
    }
}

pub(crate) fn count(events: &[(ConnectionId, ConnectionEvent)], wanted: &ConnectionEvent) -> usize {
    events.iter().filter(|(_, event)| event == wanted).count()
}
