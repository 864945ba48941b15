//! Header protection: hides kind, key phase and number of a shipment from observers.
//!
//! Called by sessions, for shipments of the data levels: after sealing, and before opening. The connection identifier stays readable, so
//! that the endpoint finds the connection, and so does the high bit of the level, which says that the header is protected.
//!
//! Invariant: applied twice it changes nothing. Its keys stay the same through key updates.
//!
//! Source: RFC 9001 5.4; the sample is the 16 bytes after the header.

use rustls::quic::HeaderProtectionKey;
use segstream_wire::header::{HEADER_BYTES, UnprotectedHeader};

const SAMPLE_BYTES: usize = 16;
/// The bytes of the number in a header.
const NUMBER: core::ops::Range<usize> = 5..HEADER_BYTES;
// Why: rustls reads the length of the number from the low two bits of the unprotected first byte. Our first byte has other bits there, so
// rustls gets a byte of a short header with a number of four bytes, and the bits that it changes are changed in ours.
const SHORT_HEADER_OF_FOUR: u8 = 0x43;

/// Protects a header, or removes the protection. Does nothing to a shipment of another level or too short for a seal.
pub(crate) fn apply(key: &dyn HeaderProtectionKey, shipment: &mut [u8]) {
    let is_data = UnprotectedHeader::read(shipment).is_some_and(|unprotected| unprotected.data);
    let Some((header, rest)) = shipment.split_first_chunk_mut::<HEADER_BYTES>() else { return };
    let Some(sample) = rest.get(..SAMPLE_BYTES).filter(|_| is_data) else { return };
    let mut first = SHORT_HEADER_OF_FOUR;
    if key.encrypt_in_place(sample, &mut first, &mut header[NUMBER]).is_ok() {
        header[0] ^= first ^ SHORT_HEADER_OF_FOUR;
    }
}
