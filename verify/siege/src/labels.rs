//! The kind of each datagram on the wire, which header protection hides from everyone but the two ends.
//!
//! A client's protection that keeps, besides protecting, the kinds of what it seals and opens. Called by the client;
//! asked by the attacks, so that no kind is left out unnoticed.
//!
//! Invariant: nothing of what is sealed or opened is changed, but for data shipments of a client that is an attacker itself and forges their
//! bodies.

use segstream_base::ShipmentNumber;
use segstream_base::codec::Reader;
use segstream_proto::session::{Fingerprint, HandshakeError, Protection, Session, Trust};
use segstream_secure::Tls;
use segstream_wire::header::{HEADER_BYTES, UnprotectedHeader};
use segstream_wire::{Header, Kind, Level};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many of the last sealed shipments keep their labels.
const TAILS_MAX: usize = 16_384;
/// Samples kept of each kind.
const SAMPLES: usize = 4;
/// The end of a shipment, which the cover leaves alone.
type Tail = [u8; 16];

/// What a client has seen of the kinds.
#[derive(Clone, Debug, Default)]
pub struct Labels(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    tails: BTreeMap<Tail, &'static str>,
    order: VecDeque<Tail>,
    sealed: BTreeMap<&'static str, Vec<Vec<u8>>>,
    opened: BTreeSet<&'static str>,
    /// What the next data shipments say instead of what they would.
    forged: VecDeque<Forged>,
}

/// What a data shipment says instead of what it would.
#[derive(Clone, Debug)]
pub struct Forged {
    /// Of which kind the shipment is then.
    pub kind: Kind,
    /// Its body, as far as it has room.
    pub body: Vec<u8>,
    /// Fills the rest, so that the whole can be read.
    pub fill: fn(&mut [u8]),
}

impl Labels {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kind of a datagram that the client has sent.
    pub fn of(&self, datagram: &[u8]) -> Option<&'static str> {
        if UnprotectedHeader::read(datagram)?.data {
            return self.seen().tails.get(datagram.last_chunk::<16>()?).copied();
        }
        kind(datagram)
    }

    /// The kinds beyond the initial level that the client has sealed or opened.
    pub fn kinds(&self) -> Vec<&'static str> {
        let seen = self.seen();
        let mut kinds: Vec<_> = seen.sealed.keys().chain(&seen.opened).copied().collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Some shipments of each kind, as they left.
    pub fn samples(&self) -> Vec<Vec<u8>> {
        self.seen().sealed.values().flatten().cloned().collect()
    }

    /// The next data shipment says this.
    pub fn forge(&self, forged: Forged) {
        self.seen().forged.push_back(forged);
    }

    /// Puts a forged body into a data shipment that is about to be sealed. Returns its kind then, if there is one to forge.
    fn replace(&self, body: &mut [u8]) -> Option<Kind> {
        let Forged { kind, body: forged, fill } = self.seen().forged.pop_front()?;
        let length = forged.len().min(body.len());
        body[..length].copy_from_slice(&forged[..length]);
        fill(&mut body[length..]);
        Some(kind)
    }

    fn note_sealed(&self, kind: &'static str, shipment: &[u8]) {
        let mut seen = self.seen();
        let Some(&tail) = shipment.last_chunk::<16>() else { return };
        seen.tails.insert(tail, kind);
        seen.order.push_back(tail);
        if seen.order.len() > TAILS_MAX {
            let oldest = seen.order.pop_front();
            oldest.and_then(|oldest| seen.tails.remove(&oldest));
        }
        let samples = seen.sealed.entry(kind).or_default();
        if samples.len() < SAMPLES {
            samples.push(shipment.to_vec());
        }
    }
}

fn kind(shipment: &[u8]) -> Option<&'static str> {
    Header::decode(&mut Reader::new(shipment)).ok().map(|header| header.kind.name())
}

/// TLS whose shipments are labelled.
#[derive(Debug)]
pub(crate) struct LabelledTls {
    pub(crate) tls: Tls,
    pub(crate) labels: Labels,
}

impl Protection for LabelledTls {
    fn mode(&self) -> u8 {
        self.tls.mode()
    }

    fn initiate(&mut self, remote: SocketAddr, trust: &Trust, parameters: &[u8]) -> Result<Box<dyn Session>, HandshakeError> {
        let session = self.tls.initiate(remote, trust, parameters)?;
        Ok(Box::new(LabelledSession { session, labels: self.labels.clone() }))
    }

    fn respond(&mut self, remote: SocketAddr) -> Box<dyn Session> {
        self.tls.respond(remote)
    }

    fn mac(&self, message: &[u8]) -> [u8; 16] {
        self.tls.mac(message)
    }

    fn lasting_mac(&self, message: &[u8]) -> Option<[u8; 16]> {
        self.tls.lasting_mac(message)
    }
}

#[derive(Debug)]
struct LabelledSession {
    session: Box<dyn Session>,
    labels: Labels,
}

impl Session for LabelledSession {
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
        let kind = kind(shipment);
        let end = shipment.len().saturating_sub(self.session.seal_bytes());
        if kind == Some(Kind::Data.name())
            && let Some(body) = shipment.get_mut(HEADER_BYTES..end)
            && let Some(forged) = self.labels.replace(body)
        {
            // The kind of a shipment is in the lower half of its first byte (spec 2.1).
            shipment[0] = shipment[0] & 0xf0 | forged as u8;
        }
        self.session.seal(level, number, shipment);
        if let Some(kind) = kind {
            self.labels.note_sealed(kind, shipment);
        }
    }

    fn unprotect_header(&self, shipment: &mut [u8]) {
        self.session.unprotect_header(shipment);
    }

    fn open(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) -> Option<usize> {
        let kind = kind(shipment);
        let end = self.session.open(level, number, shipment)?;
        if let Some(kind) = kind {
            self.labels.seen().opened.insert(kind);
        }
        Some(end)
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
