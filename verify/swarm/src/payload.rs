//! The bytes of a segment, made from its name, so that no copy of sent data is needed to check what arrives.
//!
//! Called by applications that send and by the checker of the promise. Invariant: two segments of a run have different
//! bytes, and so have two places of one, except for chance.

use crate::event::SegmentName;
use segstream_base::random::mixed;

/// Writes the bytes of `segment` from the byte number `from` on.
pub(crate) fn fill(segment: SegmentName, from: u64, out: &mut [u8]) {
    let key = key(segment);
    for (at, byte) in (from..).zip(out) {
        *byte = byte_at(key, at);
    }
}

/// The place of the first byte that is not the segment's, when `bytes` begin with its byte number `from`.
pub(crate) fn first_difference(segment: SegmentName, from: u64, bytes: &[u8]) -> Option<u64> {
    let key = key(segment);
    (from..).zip(bytes).find(|&(at, &byte)| byte != byte_at(key, at)).map(|(at, _)| at)
}

fn key(segment: SegmentName) -> u64 {
    let stream = u64::from(segment.stream.side) << 32 | u64::from(segment.stream.stream);
    mixed(mixed(stream) ^ segment.segment.0)
}

fn byte_at(key: u64, at: u64) -> u8 {
    let word = (key ^ (at / 8)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((word ^ word >> 29) >> (at % 8 * 8)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::StreamName;
    use segstream_base::{SegmentNumber, StreamId};

    #[test]
    fn a_byte_of_another_place_or_segment_is_found() {
        let of = |segment| SegmentName { stream: StreamName { side: 3, stream: StreamId(1) }, segment };
        let mut bytes = [0; 100];
        fill(of(SegmentNumber(5)), 40, &mut bytes);
        assert_eq!(first_difference(of(SegmentNumber(5)), 40, &bytes), None);
        assert_eq!(first_difference(of(SegmentNumber(5)), 50, &bytes[10..]), None);
        assert!(first_difference(of(SegmentNumber(5)), 41, &bytes).is_some());
        assert!(first_difference(of(SegmentNumber(6)), 40, &bytes).is_some());
        bytes[70] ^= 1;
        assert_eq!(first_difference(of(SegmentNumber(5)), 40, &bytes), Some(110));
    }
}
