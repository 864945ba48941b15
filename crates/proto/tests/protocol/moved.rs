//! A peer is followed to another address only if it answers a challenge from there.

use core::net::SocketAddr;
use segstream_base::codec::Reader;
use segstream_base::endpoint::{Arrival, Endpoint as _, Local};
use segstream_base::{Duration, Instant, ShipmentNumber, StreamId};
use segstream_proto::config::Config;
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_proto::session::{Fingerprint, HandshakeError, Plain, Protection, Session, Trust};
use segstream_wire::{Contract, Header, Kind, Level};

/// Plain mode that passes for authentic, so that peers are followed while headers can be read.
#[derive(Debug)]
struct Believed(Plain);

#[derive(Debug)]
struct BelievedSession(Box<dyn Session>);

impl Protection for Believed {
    fn mode(&self) -> u8 {
        self.0.mode()
    }
    fn initiate(&mut self, remote: SocketAddr, trust: &Trust, parameters: &[u8]) -> Result<Box<dyn Session>, HandshakeError> {
        Ok(Box::new(BelievedSession(self.0.initiate(remote, trust, parameters)?)))
    }
    fn respond(&mut self, remote: SocketAddr) -> Box<dyn Session> {
        Box::new(BelievedSession(self.0.respond(remote)))
    }
    fn mac(&self, message: &[u8]) -> [u8; 16] {
        self.0.mac(message)
    }
    fn lasting_mac(&self, message: &[u8]) -> Option<[u8; 16]> {
        self.0.lasting_mac(message)
    }
}

impl Session for BelievedSession {
    fn seal_bytes(&self) -> usize {
        self.0.seal_bytes()
    }
    fn data_level(&self) -> Level {
        self.0.data_level()
    }
    fn can_seal(&self, level: Level) -> bool {
        self.0.can_seal(level)
    }
    fn seal(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) {
        self.0.seal(level, number, shipment);
    }
    fn unprotect_header(&self, shipment: &mut [u8]) {
        self.0.unprotect_header(shipment);
    }
    fn open(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) -> Option<usize> {
        self.0.open(level, number, shipment)
    }
    fn read_handshake(&mut self, level: Level, bytes: &[u8]) -> Result<(), HandshakeError> {
        self.0.read_handshake(level, bytes)
    }
    fn write_handshake(&mut self) -> Option<(Level, Vec<u8>)> {
        self.0.write_handshake()
    }
    fn peer_parameters(&self) -> Option<&[u8]> {
        self.0.peer_parameters()
    }
    fn answer(&mut self, parameters: &[u8]) -> Result<(), HandshakeError> {
        self.0.answer(parameters)
    }
    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }
    fn peer(&self) -> Option<Fingerprint> {
        self.0.peer()
    }
    fn authenticates_peer(&self) -> bool {
        true
    }
    fn aead_limit_reached(&self) -> bool {
        self.0.aead_limit_reached()
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A client and a server with nothing between them but the test.
struct Two {
    client: Endpoint,
    server: Endpoint,
    at_client: ConnectionId,
    now: Instant,
}

impl Two {
    fn connected() -> Self {
        let endpoint = |accept, key| {
            let config = Config { accept, ..Config::default() };
            Endpoint::with_protection(config, Box::new(Believed(Plain::new([key; 16])))).unwrap()
        };
        let (mut client, server) = (endpoint(false, 1), endpoint(true, 2));
        let contract = Contract::default();
        let at_client = client.connect(Instant::ZERO, address("10.0.0.2:2"), &Trust::Anyone, vec![contract]).unwrap();
        let mut two = Self { client, server, at_client, now: Instant::ZERO };
        for _ in 0..500 {
            for datagram in two.leaves_client() {
                two.reaches_server("10.0.0.1:1", datagram);
            }
            for (_, datagram) in two.leaves_server() {
                two.reaches_client(datagram);
            }
        }
        two
    }

    /// What the client sends in the next ten milliseconds.
    fn leaves_client(&mut self) -> Vec<Vec<u8>> {
        self.now += Duration::from_millis(10);
        self.client.handle_timeout(self.now);
        let mut out = Vec::new();
        core::iter::from_fn(|| {
            out.clear();
            self.client.poll_transmit(self.now, 1, &mut out).map(|_| out.clone())
        })
        .collect()
    }

    /// What the server sends now, and where.
    fn leaves_server(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.server.handle_timeout(self.now);
        let mut out = Vec::new();
        core::iter::from_fn(|| {
            out.clear();
            self.server.poll_transmit(self.now, 1, &mut out).map(|transmit| (transmit.to, out.clone()))
        })
        .collect()
    }

    fn reaches_server(&mut self, from: &str, mut datagram: Vec<u8>) {
        let arrival = Arrival { from: address(from), to: Local::ANY, ecn: None, received: self.now };
        self.server.handle_datagram(self.now, arrival, &mut datagram);
    }

    fn reaches_client(&mut self, mut datagram: Vec<u8>) {
        let arrival = Arrival { from: address("10.0.0.2:2"), to: Local::ANY, ecn: None, received: self.now };
        self.client.handle_datagram(self.now, arrival, &mut datagram);
    }

    /// Data of the client, which the server has not seen yet.
    fn data(&mut self) -> Vec<u8> {
        let now = self.now;
        let connection = self.client.connection_mut(self.at_client).unwrap();
        connection.send(now, StreamId(0), vec![1; 500].into(), now, None).unwrap();
        self.next_of_client(Kind::Data)
    }

    /// The next shipment of this kind that the client sends; what it sends before is lost.
    fn next_of_client(&mut self, wanted: Kind) -> Vec<u8> {
        let mut sent = (0..200).flat_map(|_| self.leaves_client());
        sent.find(|datagram| kind(datagram) == wanted).unwrap()
    }

    fn remote(&self) -> SocketAddr {
        let id = self.server.connections().next().unwrap();
        self.server.connection(id).unwrap().remote()
    }
}

fn kind(datagram: &[u8]) -> Kind {
    Header::decode(&mut Reader::new(datagram)).unwrap().kind
}

#[test]
fn an_answer_to_a_challenge_counts_only_from_the_address_that_was_challenged() {
    let (present, other) = ("10.0.0.1:1", "203.0.113.66:6");
    for (answered_from, followed) in [(present, false), ("203.0.113.77:7", false), (other, true)] {
        let mut two = Two::connected();
        assert_eq!(two.remote(), address(present));
        // A copy of what the client sends arrives from elsewhere, and the challenge is sent on to the client.
        let first = two.data();
        two.reaches_server(other, first);
        let (to, challenge) = two.leaves_server().into_iter().find(|(_, datagram)| kind(datagram) == Kind::Challenge).unwrap();
        assert_eq!(to, address(other));
        two.reaches_client(challenge);
        let answer = two.next_of_client(Kind::Response);
        // The answer is overtaken by a further copy, so that it is not what is newest.
        let second = two.data();
        two.reaches_server(other, second);
        two.reaches_server(answered_from, answer);
        let expected = if followed { other } else { present };
        assert_eq!(two.remote(), address(expected), "answered from {answered_from}");
    }
}
