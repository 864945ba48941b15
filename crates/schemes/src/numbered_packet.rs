//! The forward packets of the schemes that number packets: data, whose place in its segment it says, and the end.
//!
//! Called by TCP and adaptive acknowledgment, whose acknowledgments differ. The format is ours; sequence numbers count
//! packets from 0. Integers are big-endian.
//!
//! ```text
//! data  CID 4  TYPE 2  SEQ 4  SEGMENT 4  PACKET 2  PACKETS 2  STRIDE 2  payload  CHECKSUM 2
//! end   CID 4  TYPE 2  SEQ 4  CHECKSUM 2
//! ```
//!
//! The end takes a sequence number of its own (RFC 9293 3.4), so that its loss shows as that of data does. STRIDE is the
//! payload of a full packet, so that a short last packet can be placed.
//!
//! Invariant: no input makes `decode` panic, and what decodes has its packet within its segment and its payload within
//! its stride.

use crate::checksum;
use crate::envelope::{CHECKSUM_BYTES, DATA, Sealing, opened};
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{Packet, PayloadSpan, SegmentNumber, StreamId};

/// The TYPE of an end.
const END: u16 = 1;
/// The TYPE of an acknowledgment, in the formats of the schemes that have these packets.
pub(crate) const ACK: u16 = 2;

/// Bytes of a data packet in front of its payload.
pub(crate) const DATA_HEADER_BYTES: usize = 20;
/// Bytes of an end in front of its checksum.
const END_BYTES: usize = 10;

/// A packet from sender to receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// One packet of a segment.
    Data {
        /// The connection.
        connection: u32,
        /// The number of the packet, counted over all segments from 0.
        sequence: u32,
        /// Which packet of which segment.
        place: Place,
        /// Payload bytes of every packet of the segment but the last.
        stride: u16,
        /// Payload bytes of this one.
        bytes: u16,
    },
    /// No data follows.
    End {
        /// The connection.
        connection: u32,
        /// The number after that of the last data packet.
        sequence: u32,
    },
}

/// Which packet of which segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The segment, counted from 0.
    pub segment: u32,
    /// The packet of it, counted from 0.
    pub packet: u16,
    /// How many packets the segment has.
    pub packets: u16,
}

impl Place {
    /// Whether the segment ends with this packet.
    pub const fn is_last(self) -> bool {
        self.packet + 1 == self.packets
    }
}

impl Forward {
    /// Bytes of a data packet around its payload.
    pub const OVERHEAD_BYTES: u32 = (DATA_HEADER_BYTES + CHECKSUM_BYTES) as u32;

    /// The number of the packet.
    #[inline]
    pub(crate) const fn sequence(&self) -> u32 {
        match *self {
            Self::Data { sequence, .. } | Self::End { sequence, .. } => sequence,
        }
    }

    /// Whether the receiver of `connection` regards it.
    #[inline]
    pub(crate) const fn is_for(&self, connection: u32) -> bool {
        let of = match *self {
            Self::Data { connection, .. } | Self::End { connection, .. } => connection,
        };
        // Why below the maximum: the number after the last packet must exist.
        of == connection && self.sequence() != u32::MAX
    }
}

impl Packet for Forward {
    #[inline]
    fn encoded_len(&self) -> usize {
        match self {
            Self::Data { bytes, .. } => Self::OVERHEAD_BYTES as usize + usize::from(*bytes),
            Self::End { .. } => END_BYTES + CHECKSUM_BYTES,
        }
    }

    fn encode(&self, out: &mut Writer<'_>) {
        match *self {
            Self::Data { connection, sequence, place, stride, bytes } => {
                let mut sealing = Sealing::start(out, connection, DATA);
                sealing.u32(sequence);
                sealing.u32(place.segment);
                sealing.u16(place.packet);
                sealing.u16(place.packets);
                sealing.u16(stride);
                sealing.finish_behind_payload(bytes);
            }
            Self::End { connection, sequence } => {
                let mut sealing = Sealing::start(out, connection, END);
                sealing.u32(sequence);
                sealing.finish();
            }
        }
    }

    fn seal(&self, encoding: &mut [u8]) {
        checksum::seal(encoding);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut body = opened(input)?;
        let connection = body.u32("connection")?;
        match body.u16("type")? {
            DATA => decode_data(connection, &mut body),
            END => {
                let sequence = body.u32("sequence")?;
                body.finish("end")?;
                Ok(Self::End { connection, sequence })
            }
            other => Err(body.error("type", DecodeErrorKind::UnknownType(u64::from(other)))),
        }
    }

    #[inline]
    fn is_data(&self) -> bool {
        matches!(self, Self::Data { .. })
    }

    fn payload(&self, index: usize) -> Option<PayloadSpan> {
        match *self {
            Self::Data { place, stride, bytes, .. } if index == 0 && bytes > 0 => Some(PayloadSpan {
                at: DATA_HEADER_BYTES,
                bytes: usize::from(bytes),
                stream: StreamId(0),
                segment: SegmentNumber(u64::from(place.segment)),
                offset: u64::from(place.packet) * u64::from(stride),
            }),
            _ => None,
        }
    }
}

fn decode_data(connection: u32, body: &mut Reader<'_>) -> Result<Forward, DecodeError> {
    let sequence = body.u32("sequence")?;
    let place = Place { segment: body.u32("segment")?, packet: body.u16("packet")?, packets: body.u16("packets")? };
    if place.packet >= place.packets {
        return Err(body.error("packet", DecodeErrorKind::OutOfRange(u64::from(place.packet))));
    }
    let stride = body.u16("stride")?;
    let left = body.remaining();
    match u16::try_from(left) {
        Ok(bytes) if bytes == stride || (place.is_last() && bytes < stride) => {
            Ok(Forward::Data { connection, sequence, place, stride, bytes })
        }
        _ => Err(body.error("payload", DecodeErrorKind::OutOfRange(left as u64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoded::{assert_payload_is_covered, encoded, seal};
    use proptest::prelude::*;

    fn data() -> impl Strategy<Value = Forward> {
        (any::<[u32; 3]>(), 1u16.., any::<prop::sample::Index>(), 0u16..2000, 0u16..2000).prop_map(
            |([connection, sequence, segment], packets, index, stride, short)| {
                let place = Place { segment, packet: index.index(usize::from(packets)) as u16, packets };
                let bytes = if place.is_last() { stride.min(short) } else { stride };
                Forward::Data { connection, sequence, place, stride, bytes }
            },
        )
    }

    #[test]
    fn a_data_packet_costs_22_bytes_and_says_where_its_payload_goes() {
        let place = Place { segment: 5, packet: 2, packets: 3 };
        let packet = Forward::Data { connection: 1, sequence: 17, place, stride: 1002, bytes: 40 };
        let bytes = encoded(&packet);
        assert_eq!((bytes.len(), Forward::OVERHEAD_BYTES), (62, 22));
        let span = packet.payload(0).unwrap();
        assert_eq!((span.at, span.bytes, span.segment, span.offset), (20, 40, SegmentNumber(5), 2004));
        assert_eq!(packet.payload(1), None);
        assert_payload_is_covered(&packet);
    }

    #[test]
    fn a_packet_outside_its_segment_is_refused() {
        let packet = |packet, packets, stride, bytes| {
            let place = Place { segment: 0, packet, packets };
            encoded(&Forward::Data { connection: 0, sequence: 0, place, stride, bytes })
        };
        let refused = |bytes: Vec<u8>| Forward::decode(&mut Reader::new(&bytes)).unwrap_err().kind;
        assert_eq!(refused(packet(3, 3, 0, 0)), DecodeErrorKind::OutOfRange(3));
        assert_eq!(refused(packet(1, 3, 9, 4)), DecodeErrorKind::OutOfRange(4));
    }

    proptest! {
        #[test]
        fn every_packet_comes_back_from_its_bytes(data in data(), [connection, sequence] in any::<[u32; 2]>()) {
            for packet in [data, Forward::End { connection, sequence }] {
                prop_assert_eq!(Forward::decode(&mut Reader::new(&encoded(&packet))), Ok(packet));
            }
        }

        #[test]
        fn a_flipped_bit_in_front_of_the_payload_is_found(data in data(), at in 0usize..20, bit in 0u8..8) {
            let mut bytes = encoded(&data);
            bytes[at] ^= 1 << bit;
            prop_assert!(Forward::decode(&mut Reader::new(&bytes)).is_err());
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0u8..4, repair in any::<bool>()) {
            if bytes.len() >= 8 {
                (bytes[4], bytes[5]) = (0, kind);
            }
            if repair {
                seal(&mut bytes);
            }
            if let Ok(packet) = Forward::decode(&mut Reader::new(&bytes)) {
                prop_assert_eq!(packet.encoded_len(), bytes.len());
            }
        }
    }
}
