//! Two endpoints with a path between them, in virtual time. Tests see every datagram and can send their own.
//!
//! It is a [`segstream_network::Network`] with names for what these tests do.

use core::ops::{Deref, DerefMut};
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant, StreamId};
use segstream_network::{Datagram, Fault, HostId, Middlebox, Ruling};
use segstream_path::PathConfig;
use segstream_proto::config::Config;
use segstream_proto::connection::{ConnectionEvent, Received};
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_proto::error::CloseReason;
use segstream_secure::{Admission, Identity, KeyLog, Tls, Trust};
use segstream_wire::Contract;
use std::collections::VecDeque;
use std::net::SocketAddr;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

const CLIENT: HostId = HostId(0);
const SERVER: HostId = HostId(1);
const DELAY: Duration = ms(20);

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

/// What the path does, and what it has seen.
#[derive(Default)]
pub(crate) struct Tap {
    /// What becomes of the first datagrams, in the order of departure.
    pub(crate) fates: VecDeque<Fate>,
    /// Everything that left either of the two, in order.
    pub(crate) sent: Vec<Sent>,
}

impl Middlebox for Tap {
    fn decide(&mut self, _now: Instant, datagram: &mut Datagram<'_>) -> Ruling {
        self.sent.push(Sent { from: datagram.from, to: datagram.to, bytes: datagram.bytes.to_vec() });
        match self.fates.pop_front().unwrap_or(Fate::Pass) {
            Fate::Lose => Ruling::Drop,
            Fate::Pass => Ruling::Pass,
            Fate::Twice => Ruling::Duplicate,
        }
    }
}

pub(crate) struct Network {
    /// Where the client is; what is sent to where it was is lost.
    pub(crate) client_address: SocketAddr,
    pub(crate) server_address: SocketAddr,
    pub(crate) server_identity: Identity,
    pub(crate) client_identity: Identity,
    pub(crate) client_events: Vec<(ConnectionId, ConnectionEvent)>,
    pub(crate) server_events: Vec<(ConnectionId, ConnectionEvent)>,
    pub(crate) received: Vec<Received>,
    network: segstream_network::Network<Endpoint, Tap>,
}

impl Deref for Network {
    type Target = Tap;

    fn deref(&self) -> &Tap {
        self.network.middlebox()
    }
}

impl DerefMut for Network {
    fn deref_mut(&mut self) -> &mut Tap {
        self.network.middlebox_mut()
    }
}

impl Network {
    /// A server that serves the client alone.
    pub(crate) fn new() -> Self {
        Self::with_key_log(None)
    }

    /// The same; the client writes its secrets to `log`.
    pub(crate) fn with_key_log(log: Option<&KeyLog>) -> Self {
        let (server_identity, client_identity) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let (client_address, server_address) = (address("192.0.2.1:1000"), address("198.51.100.2:2000"));
        let admission = Admission::nobody();
        admission.allow(client_identity.fingerprint());
        let accepting = Config { accept: true, listener: Some(server_address), ..Config::default() };
        let client_tls = *tls(&client_identity, Admission::nobody());
        let client_tls = Box::new(match log {
            Some(log) => client_tls.with_key_log(log),
            None => client_tls,
        });
        let client = Endpoint::with_protection(Config::default(), client_tls).unwrap();
        let server = Endpoint::with_protection(accepting, tls(&server_identity, admission)).unwrap();
        let mut network = segstream_network::Network::with_middlebox(Seed(1), Tap::default());
        network.add_host(client, client_address);
        network.add_host(server, server_address);
        network.link(CLIENT, SERVER, &PathConfig { delay: DELAY, ..PathConfig::default() }).unwrap();
        Self {
            client_address,
            server_address,
            server_identity,
            client_identity,
            client_events: Vec::new(),
            server_events: Vec::new(),
            received: Vec::new(),
            network,
        }
    }

    pub(crate) fn client(&self) -> &Endpoint {
        &self.network[CLIENT]
    }

    pub(crate) fn client_mut(&mut self) -> &mut Endpoint {
        &mut self.network[CLIENT]
    }

    pub(crate) fn server(&self) -> &Endpoint {
        &self.network[SERVER]
    }

    pub(crate) fn server_mut(&mut self) -> &mut Endpoint {
        &mut self.network[SERVER]
    }

    /// The client is seen at another address from now on.
    pub(crate) fn move_client(&mut self, to: SocketAddr) {
        self.network.fault(Fault::Rebind { host: CLIENT, inside: address("192.0.2.1:1000"), outside: to });
        self.client_address = to;
    }

    /// What leaves from now on takes so long.
    pub(crate) fn lay_path(&mut self, delay: Duration) {
        self.network.link(CLIENT, SERVER, &PathConfig { delay, ..PathConfig::default() }).unwrap();
    }

    pub(crate) const fn now(&self) -> Instant {
        self.network.now()
    }

    pub(crate) fn connect(&mut self) -> ConnectionId {
        let trust = Trust::Key(self.server_identity.fingerprint());
        self.connect_with(&trust, vec![Contract::default()])
    }

    pub(crate) fn connect_with(&mut self, trust: &Trust, streams: Vec<Contract>) -> ConnectionId {
        let (now, to) = (self.now(), self.server_address);
        self.client_mut().connect(now, to, trust, streams).unwrap()
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
        let now = self.now();
        let connection = self.client_mut().connection_mut(id).expect("the connection is there");
        connection.send(now, StreamId(0), vec![5; bytes].into(), Instant::ZERO, None).unwrap();
    }

    /// Gives the server (or the client) a datagram that neither of the two has sent there.
    pub(crate) fn inject(&mut self, from: SocketAddr, to_server: bool, bytes: &[u8]) {
        self.network.inject(if to_server { SERVER } else { CLIENT }, from, bytes);
        self.network.settle_all();
        self.take_events();
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        // Why not at `end` itself: the test acts there before anything else does.
        let (end, last) = (self.now() + span, self.now() + span - Duration::from_nanos(1));
        while self.network.step(last).is_some() {
            self.take_events();
        }
        self.network.advance_to(end);
        self.take_events();
        self.network.settle_all();
    }

    fn take_events(&mut self) {
        let now = self.now();
        while let Some((id, event)) = self.network[CLIENT].poll_event() {
            self.client_events.push((id, event));
        }
        let server = &mut self.network[SERVER];
        while let Some((id, event)) = server.poll_event() {
            if let ConnectionEvent::Readable(stream) = event {
                while let Some(received) = server.connection_mut(id).and_then(|connection| connection.recv(now, stream)) {
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
        self.server().connections().count()
    }
}

pub(crate) fn count(events: &[(ConnectionId, ConnectionEvent)], wanted: &ConnectionEvent) -> usize {
    events.iter().filter(|(_, event)| event == wanted).count()
}
