//! What seals shipments and proves who a peer is: the session of a connection, and the protection of an endpoint that
//! makes sessions.
//!
//! Called by connections for every shipment in and out and in set-up, and by the endpoint for the tokens it issues
//! without keeping state (cookies, address tokens, identifiers, reset tokens). Two protections exist: [`Plain`]
//! here, which detects accidental corruption only, and the encrypted one of the secure layer.
//!
//! Invariant: whatever `open` accepts was sealed by the peer's session under the same level and number.

use core::fmt;
use core::hash::Hasher as _;
use core::net::SocketAddr;
use segstream_base::ShipmentNumber;
use segstream_wire::Level;
use siphasher::sip128::{Hasher128 as _, SipHasher24};

mod fingerprint;

pub use fingerprint::{Fingerprint, FingerprintError};

/// Whether two codes are equal, compared in constant time.
pub(crate) fn constant_time_eq(ours: &[u8], theirs: &[u8]) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).fold(0, |differing, (ours, theirs)| differing | (ours ^ theirs)) == 0
}

/// How an initiator authenticates its peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Whoever answers. Only for a peer that nobody can stand in for, such as one in the same process.
    Anyone,
    /// The holder of the key with this fingerprint.
    Key(Fingerprint),
    /// Whoever an authority the endpoint trusts has certified under this name.
    Certified(String),
    /// Nobody: the handshake ends with the peer's fingerprint in [`HandshakeError::untrusted`].
    Nobody,
}

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeError {
    /// The code sent to the peer: 256 plus the TLS alert, as in RFC 9001 4.8.
    pub code: u64,
    /// The error text for the user of this end.
    pub detail: String,
    /// What the peer is told. Never what only this end knows, such as the key that it expected: the peer may be an impostor.
    // Why no string: it never grows, and errors are passed by value through every layer.
    pub told: Box<str>,
    /// The key of a peer that was not the one trusted, or not one to be served.
    pub untrusted: Option<Fingerprint>,
}

/// Seals and opens the shipments of one connection, and carries the handshake that makes the keys.
///
/// A shipment is header, body and, behind them, the seal. Those of the initial level are not a session's: no keys
/// exist yet, and [`Plain::checksum`] seals them.
///
/// Handshake bytes are a stream at each of the levels initial and handshake, in each direction. The connection brings
/// them across whole and in order, whatever the path does.
pub trait Session: fmt::Debug + Send {
    /// The bytes the seal takes behind the body.
    fn seal_bytes(&self) -> usize;
    /// The level under which data leaves now: it tells which key phase seals it.
    fn data_level(&self) -> Level;
    /// Whether shipments of this level can be sealed yet.
    fn can_seal(&self, level: Level) -> bool;
    /// Seals in place and applies header protection: `shipment` ends with [`Session::seal_bytes`] bytes
    /// to be overwritten. The level is the one in the header.
    fn seal(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]);
    /// Removes header protection from a shipment that has arrived, so that it can be decoded. Does nothing to one whose
    /// header was not protected.
    fn unprotect_header(&self, shipment: &mut [u8]);
    /// Opens in place. The length of header and body, or `None` when the seal is broken or there is no key (any more,
    /// or yet: nothing of the data levels opens before the handshake is complete).
    fn open(&mut self, level: Level, number: ShipmentNumber, shipment: &mut [u8]) -> Option<usize>;

    /// Takes the next handshake bytes of the peer's stream at `level`.
    ///
    /// # Errors
    /// When the handshake has failed: the connection ends. Later calls change nothing.
    fn read_handshake(&mut self, level: Level, bytes: &[u8]) -> Result<(), HandshakeError>;
    /// The next handshake bytes to send, and their level; asked until it gives `None`.
    fn write_handshake(&mut self) -> Option<(Level, Vec<u8>)>;
    /// What the peer proposes (to a responder) or has agreed to (to an initiator), once it is known. Authentic as soon
    /// as [`Session::is_complete`].
    fn peer_parameters(&self) -> Option<&[u8]>;
    /// The responder's side of the agreement; the handshake of a responder waits for it once the peer's parameters are
    /// known.
    ///
    /// # Errors
    /// As [`Session::read_handshake`].
    fn answer(&mut self, parameters: &[u8]) -> Result<(), HandshakeError>;
    /// Whether the handshake is done here, and the peer is who it should be.
    fn is_complete(&self) -> bool;
    /// The peer's key, once it is proved.
    fn peer(&self) -> Option<Fingerprint>;
    /// Whether what opens proves that the peer has sent it. If not, connection migration is off.
    fn authenticates_peer(&self) -> bool;
    /// Whether a key has reached its AEAD usage limit (RFC 9001 6.6), so that the connection must end.
    fn aead_limit_reached(&self) -> bool;
}

/// How an endpoint protects its connections.
pub trait Protection: fmt::Debug + Send {
    /// How requests name it: 0 plain, 1 TLS 1.3. Both ends must agree.
    fn mode(&self) -> u8;
    /// The session of a connection that we ask for. `parameters` are proposed in its handshake.
    ///
    /// # Errors
    /// When what is trusted contradicts what the endpoint was given (no authority, a malformed name).
    fn initiate(&mut self, remote: SocketAddr, trust: &Trust, parameters: &[u8]) -> Result<Box<dyn Session>, HandshakeError>;
    /// The session of a connection that a peer asks for.
    fn respond(&mut self, remote: SocketAddr) -> Box<dyn Session>;
    /// A message authentication code that nobody else can make or foresee. The key lives as long as the endpoint.
    fn mac(&self, message: &[u8]) -> [u8; 16];
    /// The same under a key that outlives the endpoint, for those who come back after a crash; `None` when there is no
    /// such key.
    fn lasting_mac(&self, message: &[u8]) -> Option<[u8; 16]>;
}

/// Integrity only: CRC32C over the shipment and its full number. Anyone can read and forge it.
///
/// As a protection it still proves addresses: its cookies are keyed.
#[derive(Clone)]
pub struct Plain {
    key: [u8; 16],
}

impl Plain {
    /// The bytes of the seal.
    pub const SEAL_BYTES: usize = 4;
    /// How requests name this protection.
    pub const MODE: u8 = 0;

    /// A protection whose cookies are made with `key`, which must come from the system's entropy but in tests.
    pub const fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// The seal of a shipment: of those of the initial level in every mode, and of all in this one.
    // Why the upper half alone: the lower one stands in the header. Why not in the CRC: a second piece costs it a quarter more.
    pub fn checksum(number: ShipmentNumber, bytes: &[u8]) -> [u8; 4] {
        (crc32c(bytes) ^ (number.0 >> 32) as u32).to_be_bytes()
    }

    /// The parameters in the handshake bytes of one side, once they are all there: two bytes of length, then themselves.
    pub fn parameters(handshake: &[u8]) -> Option<&[u8]> {
        let (length, rest) = handshake.split_first_chunk::<2>()?;
        rest.get(..usize::from(u16::from_be_bytes(*length)))
    }

    /// Seals in place: `shipment` ends with [`Plain::SEAL_BYTES`] bytes to be overwritten.
    pub fn seal(number: ShipmentNumber, shipment: &mut [u8]) {
        if let Some((bytes, seal)) = shipment.split_last_chunk_mut::<4>() {
            *seal = Self::checksum(number, bytes);
        }
    }

    /// The length of header and body, or `None` when the seal is broken.
    pub fn open(number: ShipmentNumber, shipment: &[u8]) -> Option<usize> {
        let (bytes, seal) = shipment.split_last_chunk::<4>()?;
        (*seal == Self::checksum(number, bytes)).then_some(bytes.len())
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Plain")
    }
}

/// The CRC32C of a shipment.
///
/// Why two libraries: of some 1200 bytes, crc-fast takes 25 ns where the processor has AVX-512 and 110 to 160 where it has not; the
/// other takes 80 to 110 everywhere.
#[inline]
fn crc32c(bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if !is_x86_feature_detected!("avx512vl") {
        return crc32c::crc32c(bytes);
    }
    crc_fast::crc32_iscsi(bytes)
}

impl Protection for Plain {
    fn mode(&self) -> u8 {
        Self::MODE
    }

    fn initiate(&mut self, _remote: SocketAddr, _trust: &Trust, parameters: &[u8]) -> Result<Box<dyn Session>, HandshakeError> {
        Ok(Box::new(PlainSession { outgoing: Some(parameters.to_vec()), ..PlainSession::default() }))
    }

    fn respond(&mut self, _remote: SocketAddr) -> Box<dyn Session> {
        Box::new(PlainSession::default())
    }

    fn mac(&self, message: &[u8]) -> [u8; 16] {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(message);
        hasher.finish128().as_bytes()
    }

    fn lasting_mac(&self, _message: &[u8]) -> Option<[u8; 16]> {
        None
    }
}

/// A session without keys. Its handshake is the parameters of each side: two bytes of length, then themselves.
#[derive(Debug, Default)]
pub struct PlainSession {
    outgoing: Option<Vec<u8>>,
    incoming: Vec<u8>,
}

impl Session for PlainSession {
    fn seal_bytes(&self) -> usize {
        Plain::SEAL_BYTES
    }

    fn data_level(&self) -> Level {
        Level::Data
    }

    fn can_seal(&self, level: Level) -> bool {
        level != Level::Handshake
    }

    fn seal(&mut self, _level: Level, number: ShipmentNumber, shipment: &mut [u8]) {
        Plain::seal(number, shipment);
    }

    fn unprotect_header(&self, _shipment: &mut [u8]) {}

    fn open(&mut self, _level: Level, number: ShipmentNumber, shipment: &mut [u8]) -> Option<usize> {
        Plain::open(number, shipment)
    }

    fn read_handshake(&mut self, _level: Level, bytes: &[u8]) -> Result<(), HandshakeError> {
        self.incoming.extend_from_slice(bytes);
        Ok(())
    }

    fn write_handshake(&mut self) -> Option<(Level, Vec<u8>)> {
        let parameters = self.outgoing.take()?;
        let length = u16::try_from(parameters.len()).unwrap_or(u16::MAX);
        let bytes = length.to_be_bytes().into_iter().chain(parameters.into_iter().take(usize::from(length))).collect();
        Some((Level::Initial, bytes))
    }

    fn peer_parameters(&self) -> Option<&[u8]> {
        Plain::parameters(&self.incoming)
    }

    fn answer(&mut self, parameters: &[u8]) -> Result<(), HandshakeError> {
        self.outgoing = Some(parameters.to_vec());
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.peer_parameters().is_some()
    }

    fn peer(&self) -> Option<Fingerprint> {
        None
    }

    fn authenticates_peer(&self) -> bool {
        false
    }

    fn aead_limit_reached(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_and_every_wrong_number_breaks_the_seal() {
        let mut shipment = vec![7u8; 50];
        shipment.resize(50 + Plain::SEAL_BYTES, 0);
        Plain::seal(ShipmentNumber(1 << 40), &mut shipment);
        assert_eq!(Plain::open(ShipmentNumber(1 << 40), &shipment), Some(50));
        assert_eq!(Plain::open(ShipmentNumber((1 << 40) + (1 << 32)), &shipment), None, "another number");
        for at in 0..shipment.len() {
            let mut changed = shipment.clone();
            changed[at] ^= 0x10;
            assert_eq!(Plain::open(ShipmentNumber(1 << 40), &changed), None, "byte {at}");
        }
        assert_eq!(Plain::open(ShipmentNumber(0), &[1, 2]), None);
    }

    #[test]
    fn two_processors_agree_on_the_checksum_whichever_library_suits_them() {
        let bytes: Vec<u8> = (0..3000u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect();
        for length in 0..bytes.len() {
            let bytes = &bytes[length % 16..length.max(length % 16)];
            assert_eq!(crc_fast::crc32_iscsi(bytes), crc32c::crc32c(bytes), "{length}");
        }
    }

    #[test]
    fn the_parameters_of_a_plain_handshake_come_across_in_pieces() {
        let mut plain = Plain::new([7; 16]);
        let to = SocketAddr::from(([10, 0, 0, 1], 1));
        let mut initiator = plain.initiate(to, &Trust::Anyone, b"proposed").unwrap();
        let mut responder = plain.respond(to);
        let (level, bytes) = initiator.write_handshake().unwrap();
        for byte in &bytes {
            assert_eq!(responder.peer_parameters(), None);
            responder.read_handshake(level, &[*byte]).unwrap();
        }
        assert_eq!(responder.peer_parameters(), Some(&b"proposed"[..]));
        responder.answer(b"agreed").unwrap();
        let (level, bytes) = responder.write_handshake().unwrap();
        assert!(!initiator.is_complete());
        initiator.read_handshake(level, &bytes).unwrap();
        assert!(initiator.is_complete() && initiator.peer_parameters() == Some(&b"agreed"[..]));
    }

    #[test]
    fn a_code_depends_on_the_key_and_on_every_byte() {
        let ours = Plain::new([1; 16]).mac(b"message");
        assert_ne!(ours, Plain::new([2; 16]).mac(b"message"));
        assert_ne!(ours, Plain::new([1; 16]).mac(b"messagf"));
    }
}
