//! Keys for models: a protection whose seal only the two ends can make, and whose bytes are the same in every run.
//!
//! Called by the world for instances in which an address changes: a peer that seems to move is followed only where a seal
//! proves that it is the peer. Handshake, cookies and identifiers are those of plain mode. The seal is SipHash-2-4 with 128
//! bits over the level, the number and the bytes, under a key that both ends have from the start.
//!
//! Invariant: whatever opens at a data level was sealed by one of the two ends under the same level and number. Limit: the
//! key is in the source, and nothing is hidden; this is for models, in which the network has no key.
//!
//! Source: Aumasson and Bernstein, SipHash: a fast short-input PRF (2012).

use core::hash::Hasher as _;
use core::net::SocketAddr;
use segstream_base::ShipmentNumber;
use segstream_proto::session::{Fingerprint, HandshakeError, Plain, Protection, Session, Trust};
use segstream_wire::Level;
use siphasher::sip128::{Hasher128 as _, SipHasher24};

/// The key of both ends.
const KEY: [u8; 16] = *b"segstream.models";

/// Plain mode with a seal that nobody else can make.
#[derive(Debug)]
pub struct Keyed(Plain);

impl Keyed {
    /// The bytes of the seal.
    pub const SEAL_BYTES: usize = 16;

    /// A protection whose cookies and identifiers are made with `key`.
    pub const fn new(key: [u8; 16]) -> Self {
        Self(Plain::new(key))
    }
}

fn code(level: Level, number: ShipmentNumber, bytes: &[u8]) -> [u8; Keyed::SEAL_BYTES] {
    let mut hasher = SipHasher24::new_with_key(&KEY);
    hasher.write(&[level as u8]);
    hasher.write(&number.0.to_be_bytes());
    hasher.write(bytes);
    hasher.finish128().as_bytes()
}

impl Protection for Keyed {
    fn mode(&self) -> u8 {
        self.0.mode()
    }

    fn initiate(&mut self, remote: SocketAddr, trust: &Trust, parameters: &[u8]) -> Result<Box<dyn Session>, HandshakeError> {
        self.0.initiate(remote, trust, parameters).map(|plain| Box::new(KeyedSession(plain)) as Box<dyn Session>)
    }

    fn respond(&mut self, remote: SocketAddr) -> Box<dyn Session> {
        Box::new(KeyedSession(self.0.respond(remote)))
    }

    fn mac(&self, message: &[u8]) -> [u8; 16] {
        self.0.mac(message)
    }

    fn lasting_mac(&self, message: &[u8]) -> Option<[u8; 16]> {
        self.0.lasting_mac(message)
    }
}

/// A plain session with the seal of [`Keyed`].
#[derive(Debug)]
struct KeyedSession(Box<dyn Session>);

impl Session for KeyedSession {
    fn seal_bytes(&self) -> usize {
        Keyed::SEAL_BYTES
    }

    fn data_level(&self) -> Level {
        self.0.data_level()
    }

    fn can_seal(&self, level: Level) -> bool {
        self.0.can_seal(level)
    }

    fn seal(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) {
        if let Some((bytes, seal)) = shipment.split_last_chunk_mut() {
            *seal = code(level, number, bytes);
        }
    }

    fn unprotect_header(&self, shipment: &mut [u8]) {
        self.0.unprotect_header(shipment);
    }

    fn open(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) -> Option<usize> {
        let (bytes, seal) = shipment.split_last_chunk()?;
        (self.is_complete() && *seal == code(level, number, bytes)).then_some(bytes.len())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_level_and_number_breaks_the_seal() {
        let to = SocketAddr::from(([10, 0, 0, 1], 1));
        let mut keyed = Keyed::new([7; 16]);
        let mut asking = keyed.initiate(to, &Trust::Anyone, b"proposed").unwrap();
        let mut answering = keyed.respond(to);
        let mut shipment = vec![3; 20 + Keyed::SEAL_BYTES];
        asking.seal(Level::Data, ShipmentNumber(5), &mut shipment);
        assert_eq!(answering.open(Level::Data, ShipmentNumber(5), &mut shipment), None, "the handshake is not complete");
        let (level, bytes) = asking.write_handshake().unwrap();
        answering.read_handshake(level, &bytes).unwrap();
        assert_eq!(answering.open(Level::Data, ShipmentNumber(5), &mut shipment), Some(20));
        assert_eq!(answering.open(Level::DataOdd, ShipmentNumber(5), &mut shipment), None);
        assert_eq!(answering.open(Level::Data, ShipmentNumber(6), &mut shipment), None);
        for at in 0..shipment.len() {
            let mut changed = shipment.clone();
            changed[at] ^= 1;
            assert_eq!(answering.open(Level::Data, ShipmentNumber(5), &mut changed), None, "byte {at}");
        }
    }
}
