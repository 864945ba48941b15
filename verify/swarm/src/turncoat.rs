//! A host that is served and turns against its peers: what it seals is changed before it is sealed, so that seals are valid and frames are not
//! what a sender or a receiver of ours would say.
//!
//! Called by the endpoint of such a host for everything it sends once a connection is established. Invariant: which bytes are changed depends
//! on the seed alone, and the length of a shipment never changes.

use crate::draw::{between, one_of};
use segstream_base::ShipmentNumber;
use segstream_base::random::{Random, Seed};
use segstream_proto::session::{Fingerprint, HandshakeError, Protection, Session, Trust};
use segstream_wire::Level;
use segstream_wire::header::HEADER_BYTES;
use std::net::SocketAddr;

/// How often a shipment is changed.
const CHANGED: f64 = 0.3;
/// Changes are mostly among the first bytes of a body, where the numbers of its first part or frames are.
const FIRST_BYTES: usize = 24;

/// The protection of a turncoat.
#[derive(Debug)]
pub(crate) struct Turncoat {
    inner: Box<dyn Protection>,
    seed: Seed,
    sessions: u64,
}

impl Turncoat {
    /// A host that is protected by `inner`.
    pub(crate) fn new(inner: Box<dyn Protection>, seed: Seed) -> Self {
        Self { inner, seed, sessions: 0 }
    }

    fn turn(&mut self, session: Box<dyn Session>) -> Box<dyn Session> {
        self.sessions += 1;
        Box::new(Turned { session, random: self.seed.child(&format!("session.{}", self.sessions)).stream("turncoat") })
    }
}

impl Protection for Turncoat {
    fn mode(&self) -> u8 {
        self.inner.mode()
    }

    fn initiate(&mut self, remote: SocketAddr, trust: &Trust, parameters: &[u8]) -> Result<Box<dyn Session>, HandshakeError> {
        let session = self.inner.initiate(remote, trust, parameters)?;
        Ok(self.turn(session))
    }

    fn respond(&mut self, remote: SocketAddr) -> Box<dyn Session> {
        let session = self.inner.respond(remote);
        self.turn(session)
    }

    fn mac(&self, message: &[u8]) -> [u8; 16] {
        self.inner.mac(message)
    }

    fn lasting_mac(&self, message: &[u8]) -> Option<[u8; 16]> {
        self.inner.lasting_mac(message)
    }
}

#[derive(Debug)]
struct Turned {
    session: Box<dyn Session>,
    random: Random,
}

impl Turned {
    /// Changes some bytes of a body: to borders of varints, or to anything.
    fn change(&mut self, body: &mut [u8]) {
        let reach = if self.random.chance(0.8) { body.len().min(FIRST_BYTES) } else { body.len() };
        for _ in 0..between(&mut self.random, 1, 4) {
            let at = self.random.below(reach.max(1) as u64) as usize;
            let any = self.random.bits() as u8;
            let value = one_of(&mut self.random, &[0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xff, any, any]);
            body.iter_mut().skip(at).take(1).for_each(|byte| *byte = value);
        }
    }
}

impl Session for Turned {
    fn seal_bytes(&self) -> usize {
        self.session.seal_bytes()
    }

    fn data_level(&self) -> Level {
        self.session.data_level()
    }

    fn can_seal(&self, level: Level) -> bool {
        self.session.can_seal(level)
    }

    fn seal(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) {
        let end = shipment.len().saturating_sub(self.seal_bytes());
        if matches!(level, Level::Data | Level::DataOdd)
            && self.random.chance(CHANGED)
            && let Some(body) = shipment.get_mut(HEADER_BYTES..end)
        {
            self.change(body);
        }
        self.session.seal(level, number, shipment);
    }

    fn unprotect_header(&self, shipment: &mut [u8]) {
        self.session.unprotect_header(shipment);
    }

    fn open(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) -> Option<usize> {
        self.session.open(level, number, shipment)
    }

    fn read_handshake(&mut self, level: Level, bytes: &[u8]) -> Result<(), HandshakeError> {
        self.session.read_handshake(level, bytes)
    }

    fn write_handshake(&mut self) -> Option<(Level, Vec<u8>)> {
        self.session.write_handshake()
    }

    fn peer_parameters(&self) -> Option<&[u8]> {
        self.session.peer_parameters()
    }

    fn answer(&mut self, parameters: &[u8]) -> Result<(), HandshakeError> {
        self.session.answer(parameters)
    }

    fn is_complete(&self) -> bool {
        self.session.is_complete()
    }

    fn peer(&self) -> Option<Fingerprint> {
        self.session.peer()
    }

    fn authenticates_peer(&self) -> bool {
        self.session.authenticates_peer()
    }

    fn aead_limit_reached(&self) -> bool {
        self.session.aead_limit_reached()
    }
}
