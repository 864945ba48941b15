//! The content of segments: both ends make it, so that the receiver can tell right from wrong.
//!
//! Called by clients and victims. Invariant: no two segments begin alike, and every byte of one depends on its place.

/// The bytes of segment `segment`.
pub(crate) fn pattern(segment: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 8);
    let mut word = 0u64;
    while bytes.len() < length {
        let mixed = (segment << 32 | word).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bytes.extend_from_slice(&(mixed ^ mixed >> 29).to_le_bytes());
        word += 1;
    }
    bytes.truncate(length);
    bytes
}
