//! Repair units: what a code makes of a segment's protected units, any of which stands for any that is missing (spec 3.4).
//!
//! ```text
//! +--------+---------+--------+--------+--------+---------+---------+
//! | stream | segment | every  | first  | count  | payload | payload |
//! | varint | varint  | varint | varint | varint | bytes   | ...     |
//! +--------+---------+--------+--------+--------+---------+---------+
//! ```
//!
//! It is the body of an RP. The receiver knows the segment from its parts or from FINISHED, so length, tolerance and source time are not
//! repeated: the heading is never longer than that of the segment's parts.
//!
//! Called by both halves. Invariant: repair units are no positions. They have numbers of their own, from 0 in each segment, and none is
//! used twice.

use crate::state::stream;
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer, varint_len};
use segstream_base::{SegmentNumber, StreamId};

/// The most units that one code protects. A segment with more protected units is not coded.
pub const PROTECTED_MAX: u32 = 1024;
/// The most units of a segment that is coded, protected or not.
pub const CODED_UNITS_MAX: u32 = 4096;

/// How many repair units a code over so many protected units has; both ends make the same code of it. A power of two, between half of the
/// protected units and all of them, but at least 8.
pub const fn repair_units_max(protected: u32) -> u32 {
    let half = protected.div_ceil(2).next_power_of_two();
    if half < 8 { 8 } else { half }
}

/// How many bytes a repair unit has over units of so many: the code works on pairs of bytes.
pub const fn repair_unit_bytes(unit_bytes: u32) -> u32 {
    unit_bytes.next_multiple_of(2)
}

/// A run of repair units of one segment, without their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The stream.
    pub stream: StreamId,
    /// The segment, counted from 0.
    pub segment: SegmentNumber,
    /// Of the units behind the important ones every so many-th is protected; 1: all are, 0: only the important ones.
    pub every: u32,
    /// The number of the first repair unit.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// How many bytes of payload follow.
    pub payload_bytes: u32,
}

impl Repair {
    /// The number behind the last of them.
    pub const fn end(&self) -> u32 {
        self.first.saturating_add(self.count)
    }

    /// The bytes in front of the payload.
    pub fn header_len(&self) -> usize {
        varint_len(u64::from(self.stream))
            + varint_len(self.segment.0)
            + [self.every, self.first, self.count, self.payload_bytes].map(|value| varint_len(u64::from(value))).iter().sum::<usize>()
    }

    /// The whole body, payload included.
    pub fn encoded_len(&self) -> usize {
        self.header_len() + self.payload_bytes as usize
    }

    /// Writes everything in front of the payload; the caller writes the payload itself.
    pub fn encode_header(&self, out: &mut Writer<'_>) {
        out.varint(u64::from(self.stream));
        out.varint(self.segment.0);
        for value in [self.every, self.first, self.count, self.payload_bytes] {
            out.varint(u64::from(value));
        }
    }

    /// Reads the body of an RP to its end.
    ///
    /// # Errors
    /// When it is cut short, has numbers that no code has, or bytes behind the payload.
    pub fn decode<'a>(input: &mut Reader<'a>) -> Result<(Self, &'a [u8]), DecodeError> {
        let (stream, segment) = (stream(input)?, SegmentNumber(input.varint("segment")?));
        let every = input.varint_up_to(u64::from(CODED_UNITS_MAX), "every")? as u32;
        let first = input.varint_up_to(u64::from(PROTECTED_MAX), "first repair unit")? as u32;
        let count = input.varint_up_to(u64::from(PROTECTED_MAX), "repair unit count")? as u32;
        if count == 0 {
            return Err(input.error("repair unit count", DecodeErrorKind::OutOfRange(0)));
        }
        let payload_bytes = input.varint_up_to(u64::from(u16::MAX), "payload bytes")? as u32;
        let payload = input.bytes(payload_bytes as usize, "payload")?;
        if !input.is_empty() {
            return Err(input.error("repair payload", DecodeErrorKind::OutOfRange(input.remaining() as u64)));
        }
        Ok((Self { stream, segment, every, first, count, payload_bytes }, payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Part;
    use proptest::prelude::*;
    use segstream_base::{Instant, Position};

    #[test]
    fn a_code_has_as_many_repair_units_as_the_specification_says() {
        let most = [1, 15, 16, 17, 32, 33, 256, 257, 1024].map(repair_units_max);
        assert_eq!(most, [8, 8, 8, 16, 16, 32, 128, 256, 512]);
        assert_eq!([1, 2, 1147, 1160].map(repair_unit_bytes), [2, 2, 1148, 1160]);
    }

    proptest! {
        #[test]
        fn repair_units_come_back_as_they_were(stream: u32, segment in 0u64..1 << 60, every in 0..=CODED_UNITS_MAX, first in 0u32..512, count in 1u32..40, payload_bytes in 0u32..100) {
            let repair = Repair { stream: StreamId(stream), segment: SegmentNumber(segment), every, first, count, payload_bytes };
            let mut buffer = vec![0; 200];
            let mut writer = Writer::new(&mut buffer);
            repair.encode_header(&mut writer);
            writer.bytes(&[7; 100][..payload_bytes as usize]);
            let written = writer.finish().unwrap();
            prop_assert_eq!(written, repair.encoded_len());
            let (decoded, payload) = Repair::decode(&mut Reader::new(&buffer[..written])).unwrap();
            prop_assert_eq!((decoded, payload.len()), (repair, payload_bytes as usize));
            prop_assert!(Repair::decode(&mut Reader::new(&buffer[..written + 1])).is_err(), "a byte behind the payload");
        }

        /// Whatever the segment, with the byte that pads an odd unit: so a repair unit fits wherever a unit does.
        #[test]
        fn a_heading_is_no_longer_than_that_of_the_part(stream: u32, segment in 0u64..1 << 60, units in 1u32..=CODED_UNITS_MAX, unit_bytes in 1u32..=1160,
            every in 1u32..=CODED_UNITS_MAX, at in 0f64..1.0, micros in 0u64..1 << 50) {
            let every = every.min(units);
            let (stream, segment) = (StreamId(stream), SegmentNumber(segment));
            let index = (at * f64::from(repair_units_max((units / every).min(PROTECTED_MAX)))) as u32;
            let length = u64::from(units) * u64::from(unit_bytes);
            let part = Part { stream, segment, first: Position(0), count: 1, length: Some(length), payload_bytes: unit_bytes, source_time: Instant::from_nanos(micros * 1000), ..Part::default() };
            let repair = Repair { stream, segment, every, first: index, count: 1, payload_bytes: repair_unit_bytes(unit_bytes) };
            let padding = (repair.payload_bytes - unit_bytes) as usize;
            // The first part of a segment has the shortest heading of all; only there may padding take one byte more.
            prop_assert!(repair.header_len() <= part.header_len(), "{repair:?} {part:?}");
            prop_assert!(repair.header_len() + padding <= part.header_len() + 1);
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(input in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Repair::decode(&mut Reader::new(&input));
        }
    }
}
