//! A part: a run of units of one segment, with their bytes (spec 3).
//!
//! ```text
//! +-------+--------+---------+-------+-------+--------+------+-----------+---------+---------+
//! | flags | stream | segment | first | count | time   | [len]| [W, E, B] | payload | payload |
//! |  u8   | varint | varint  | varint| varint| varint | v.int| 3 varints | bytes   | ...     |
//! +-------+--------+---------+-------+-------+--------+------+-----------+---------+---------+
//! flags: 1 retransmission, 2 the segment's length follows, 4 a tolerance of its own follows, 8 opened before its length was known
//! ```
//!
//! `first` and `count` are positions in the *sending order* of the segment, which both ends compute from
//! its length and contract. So a run of shipments lost together is one run of positions whatever the
//! interleaving is.
//!
//! Called by both halves. Invariant: a part names its payload's length, so it can be skipped by someone
//! who does not know the stream.

use crate::contract::{
    Contract, ContractError, UNIT_BYTES_MAX, decode_time, decode_tolerance, encode_time, encode_tolerance, time_len, tolerance_len,
};
use crate::state::stream;
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer, varint_len};
use segstream_base::{Instant, Position, Run, SegmentNumber, StreamId, Tolerance};

const RETRANSMISSION: u8 = 1;
const LENGTH: u8 = 2;
const TOLERANCE: u8 = 4;
const OPENED: u8 = 8;

/// A run of units of one segment, without their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The stream.
    pub stream: StreamId,
    /// The segment, counted from 0.
    pub segment: SegmentNumber,
    /// Where in the sending order the first of them leaves.
    pub first: Position,
    /// How many positions.
    pub count: u32,
    /// Whether these units have been sent before.
    pub retransmission: bool,
    /// Whether the segment was opened before its length was known, which decides its sending order.
    pub opened: bool,
    /// The length of the segment in bytes, once the sender knows it.
    pub length: Option<u64>,
    /// The segment's tolerance, when it is not the stream's.
    pub tolerance: Option<Tolerance>,
    /// The source's time of the segment, in whole microseconds.
    pub source_time: Instant,
    /// How many bytes of payload follow.
    pub payload_bytes: u32,
}

impl Part {
    /// The position behind the last of them.
    #[inline]
    pub const fn end(&self) -> Position {
        self.first.saturating_add(self.count)
    }

    /// Where the units leave; `None` of a part without any, which no decoder gives.
    #[inline]
    pub fn positions(&self) -> Option<Run<Position>> {
        Run::new(self.first, self.end())
    }

    /// The bytes in front of the payload.
    pub fn header_len(&self) -> usize {
        1 + varint_len(u64::from(self.stream))
            + varint_len(self.segment.0)
            + varint_len(u64::from(self.first))
            + varint_len(u64::from(self.count))
            + time_len(self.source_time)
            + self.length.map_or(0, varint_len)
            + self.tolerance.map_or(0, tolerance_len)
            + varint_len(u64::from(self.payload_bytes))
    }

    /// The whole part, payload included.
    pub fn encoded_len(&self) -> usize {
        self.header_len() + self.payload_bytes as usize
    }

    /// The largest unit that stream `stream` can have under `contract`, whose own size of units does not count: alone in a
    /// shipment of `body_bytes` it fits behind the longest heading, with `own` if a segment has that tolerance of its own.
    pub fn unit_bytes_max(stream: StreamId, contract: &Contract, own: Option<Tolerance>, body_bytes: usize) -> u32 {
        let longest = Self {
            stream,
            // Why: segments and their source times may go on for ever.
            segment: SegmentNumber(u64::MAX),
            source_time: Instant::from_nanos(u64::MAX),
            first: Position(contract.window_units.saturating_sub(1)),
            count: 1,
            length: Some(u64::from(contract.window_units) * u64::from(UNIT_BYTES_MAX)),
            tolerance: own,
            payload_bytes: UNIT_BYTES_MAX,
            ..Self::default()
        };
        u32::try_from(body_bytes.saturating_sub(longest.header_len())).unwrap_or(u32::MAX).min(UNIT_BYTES_MAX)
    }

    /// Whether the units of stream `stream` fit: see [`Part::unit_bytes_max`].
    ///
    /// # Errors
    /// When they do not, with what would.
    pub fn check_room(stream: StreamId, contract: &Contract, own: Option<Tolerance>, body_bytes: usize) -> Result<(), ContractError> {
        let fits = Self::unit_bytes_max(stream, contract, own, body_bytes);
        if contract.unit_bytes <= fits { Ok(()) } else { Err(ContractError::UnitRoom { unit_bytes: contract.unit_bytes, fits }) }
    }

    /// Where [`Part::first`] stands: behind the flags, the stream and the segment.
    pub const fn first_at(&self) -> usize {
        1 + varint_len(self.stream.0 as u64) + varint_len(self.segment.0)
    }

    /// Writes everything in front of the payload; the caller writes the payload itself.
    #[inline]
    pub fn encode_header(&self, out: &mut Writer<'_>) {
        let start = out.position();
        let mut flags = 0;
        if self.retransmission {
            flags |= RETRANSMISSION;
        }
        if self.opened {
            flags |= OPENED;
        }
        if self.length.is_some() {
            flags |= LENGTH;
        }
        if self.tolerance.is_some() {
            flags |= TOLERANCE;
        }
        out.u8(flags);
        out.varint(u64::from(self.stream));
        out.varint(self.segment.0);
        debug_assert_eq!(out.position() - start, self.first_at(), "the first unit stands elsewhere");
        out.varint(u64::from(self.first));
        out.varint(u64::from(self.count));
        encode_time(self.source_time, out);
        if let Some(length) = self.length {
            out.varint(length);
        }
        if let Some(tolerance) = self.tolerance {
            encode_tolerance(tolerance, out);
        }
        out.varint(u64::from(self.payload_bytes));
        debug_assert_eq!(out.position() - start, self.header_len(), "a heading is not as long as it says");
    }

    /// Reads a part and its payload.
    #[inline]
    pub fn decode<'a>(input: &mut Reader<'a>) -> Result<(Self, &'a [u8]), DecodeError> {
        let mut part = Self::default();
        let payload = part.read(input)?;
        Ok((part, payload))
    }

    /// Reads a part over this one, and its payload. After an error nothing of this part means anything.
    ///
    /// Why beside [`Part::decode`]: a part that is returned is copied in larger pieces than it was written in, before those
    /// have reached the cache, and the processor waits for them longer than reading it took.
    #[inline]
    pub fn read<'a>(&mut self, input: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
        let flags = input.u8("part flags")?;
        if flags & !(RETRANSMISSION | LENGTH | TOLERANCE | OPENED) != 0 {
            return Err(input.error("part flags", DecodeErrorKind::UnknownType(u64::from(flags))));
        }
        self.stream = stream(input)?;
        self.segment = SegmentNumber(input.varint("segment")?);
        self.first = Position(input.varint_up_to(u64::from(u32::MAX), "first unit")? as u32);
        self.count = input.varint_up_to(u64::from(u32::MAX - self.first.0), "unit count")? as u32;
        if self.count == 0 {
            return Err(input.error("unit count", DecodeErrorKind::OutOfRange(0)));
        }
        (self.retransmission, self.opened) = (flags & RETRANSMISSION != 0, flags & OPENED != 0);
        self.source_time = decode_time(input, "source time")?;
        self.length = if flags & LENGTH != 0 { Some(input.varint("segment length")?) } else { None };
        self.tolerance = if flags & TOLERANCE != 0 { Some(decode_tolerance(input)?) } else { None };
        self.payload_bytes = input.varint_up_to(u64::from(u16::MAX), "payload bytes")? as u32;
        input.bytes(self.payload_bytes as usize, "payload")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::SEGMENT_UNITS_MAX;
    use proptest::prelude::*;

    prop_compose! {
        fn any_part()(stream in any::<u32>().prop_map(StreamId), segment in (0u64..1 << 60).prop_map(SegmentNumber), first in (0u32..1 << 30).prop_map(Position), count in 1u32..1000, retransmission: bool, opened: bool,
            length in proptest::option::of(0u64..1 << 60), tolerance in proptest::option::of((1u32..5000).prop_flat_map(|w| (Just(w), 0..=w, 0..=w)).prop_map(|(w, e, b)| Tolerance::new(w, e, b).unwrap())),
            micros in 0u64..1 << 50, payload_bytes in 0u32..100) -> Part {
            Part { stream, segment, first, count, retransmission, opened, length, tolerance, source_time: Instant::from_nanos(micros * 1000), payload_bytes }
        }
    }

    /// Datagrams of 1200 bytes: nine of header, and the seal.
    #[test]
    fn units_are_as_long_as_the_specification_says() {
        let most = |stream: u32, window_units: u32, own: Option<Tolerance>, seal: usize| {
            Part::unit_bytes_max(StreamId(stream), &Contract { window_units, ..Contract::default() }, own, 1200 - 9 - seal)
        };
        let own = Some(Tolerance::any(SEGMENT_UNITS_MAX));
        assert_eq!((most(0, 1 << 14, None, 4), most(63, 1 << 14, None, 16)), (1160, 1148));
        assert_eq!((most(64, 1 << 14, None, 16), most(0, (1 << 14) + 1, None, 16)), (1147, 1146));
        assert_eq!(
            (most(0, 1 << 14, Some(Tolerance::new(64, 4, 1).unwrap()), 16), most(u32::MAX, SEGMENT_UNITS_MAX, own, 16)),
            (1144, 1123)
        );
    }

    proptest! {
        #[test]
        fn a_part_comes_back_as_it_was(part in any_part()) {
            let mut buffer = vec![0; 400];
            let mut writer = Writer::new(&mut buffer);
            part.encode_header(&mut writer);
            prop_assert_eq!(writer.position(), part.header_len());
            prop_assert_eq!(Reader::new(writer.written(part.first_at())).varint("first").unwrap(), u64::from(part.first));
            writer.bytes(&[7; 100][..part.payload_bytes as usize]);
            let count = writer.finish().unwrap();
            prop_assert_eq!(count, part.encoded_len());
            let mut reader = Reader::new(&buffer[..count]);
            let (decoded, payload) = Part::decode(&mut reader).unwrap();
            prop_assert_eq!(decoded, part);
            prop_assert_eq!(payload.len(), part.payload_bytes as usize);
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn a_unit_that_fits_at_first_always_fits(stream in any::<u32>().prop_map(StreamId), window_units in 1u32..=SEGMENT_UNITS_MAX, body_bytes in 1000usize..1200,
            mut part in any_part(), at in 0f64..1.0) {
            let contract = Contract { window_units, ..Contract::default() };
            let unit = Part::unit_bytes_max(stream, &contract, part.tolerance, body_bytes);
            part.first = Position((at * f64::from(window_units)) as u32);
            part.length = part.length.map(|length| length % (u64::from(window_units) * u64::from(unit)));
            part = Part { stream, count: 1, payload_bytes: unit, ..part };
            prop_assert!(part.encoded_len() <= body_bytes, "{part:?} under {contract:?}");
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(input in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Part::decode(&mut Reader::new(&input));
        }
    }
}
