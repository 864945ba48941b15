//! The packets of TCP: data and its end forward, acknowledgments back.
//!
//! Called by both halves and by the endpoint adapter. The formats are ours: what HT's comparison needs and nothing
//! else; sequence numbers count packets. Integers are big-endian.
//!
//! ```text
//! data  CID 4  TYPE 2  SEQ 4  SEGMENT 4  PACKET 2  PACKETS 2  STRIDE 2  payload  CHECKSUM 2
//! end   CID 4  TYPE 2  SEQ 4  CHECKSUM 2
//! ack   CID 4  TYPE 2  NEXT 4  CHECKSUM 2
//! ```
//!
//! The end takes a sequence number of its own (RFC 9293 3.4). STRIDE is the payload of a full packet, so that a short
//! last packet can be placed.
//!
//! Invariant: no input makes `decode` panic, and what decodes has its packet within its segment and its payload within
//! its stride.

use crate::envelope::{CHECKSUM_BYTES, DATA, Sealing, opened};
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{Packet, PayloadSpan, SegmentNumber, StreamId};

const END: u16 = 1;
const ACK: u16 = 2;

/// Bytes of a data packet in front of its payload.
const DATA_HEADER_BYTES: usize = 20;
/// Bytes of the others in front of their checksum.
const SHORT_BYTES: usize = 10;

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

/// A cumulative acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The connection.
    pub connection: u32,
    /// The first packet that has not arrived: all before it have.
    pub next: u32,
}

impl Forward {
    /// Bytes of a data packet around its payload.
    pub const OVERHEAD_BYTES: u32 = (DATA_HEADER_BYTES + CHECKSUM_BYTES) as u32;
}

impl Packet for Forward {
    #[inline]
    fn encoded_len(&self) -> usize {
        match self {
            Self::Data { bytes, .. } => Self::OVERHEAD_BYTES as usize + usize::from(*bytes),
            Self::End { .. } => SHORT_BYTES + CHECKSUM_BYTES,
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
            Self::End { connection, sequence } => encode_short(out, connection, END, sequence),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut body = opened(input, DATA_HEADER_BYTES)?;
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

impl Packet for Feedback {
    #[inline]
    fn encoded_len(&self) -> usize {
        SHORT_BYTES + CHECKSUM_BYTES
    }

    fn encode(&self, out: &mut Writer<'_>) {
        encode_short(out, self.connection, ACK, self.next);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut body = opened(input, DATA_HEADER_BYTES)?;
        let connection = body.u32("connection")?;
        let kind = body.u16("type")?;
        if kind != ACK {
            return Err(body.error("type", DecodeErrorKind::UnknownType(u64::from(kind))));
        }
        let next = body.u32("next")?;
        body.finish("acknowledgment")?;
        Ok(Self { connection, next })
    }

    #[inline]
    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}

fn encode_short(out: &mut Writer<'_>, connection: u32, kind: u16, number: u32) {
    let mut sealing = Sealing::start(out, connection, kind);
    sealing.u32(number);
    sealing.finish();
}
