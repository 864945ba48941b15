//! The packets of adaptive acknowledgment: data and its end forward, acknowledgments back.
//!
//! Called by both halves and by the endpoint adapter. AA 2 names the fields, AA Table 1 the lengths (1024 bytes of DATA,
//! 32 of ACK); the order and width of the fields are ours. Integers are big-endian; sequence numbers count packets from 0.
//!
//! ```text
//! data  CID 4  TYPE 2  SEQ 4  SEGMENT 4  PACKET 2  PACKETS 2  STRIDE 2  payload  CHECKSUM 2
//! end   CID 4  TYPE 2  SEQ 4  CHECKSUM 2
//! ack   CID 4  TYPE 2  CUMULATIVE 4  GAP-IN 4  GAP-OUT 4  zeros 12  CHECKSUM 2
//! ```
//!
//! The end takes a sequence number of its own, so that its loss shows as that of data does. STRIDE is the payload of
//! a full packet, so that a short last packet can be placed.
//!
//! Invariant: no input makes `decode` panic; what decodes has its packet within its segment, its payload within its
//! stride, and its gap, if it names one, at or above the cumulative number. What decodes encodes to the same bytes, payload aside.

use crate::envelope::{CHECKSUM_BYTES, DATA, Sealing, opened};
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{Packet, PayloadSpan, SegmentNumber, StreamId};

const END: u16 = 1;
const ACK: u16 = 2;

/// Bytes of a data packet in front of its payload.
const DATA_HEADER_BYTES: usize = 20;
/// Bytes of an end in front of its checksum.
const END_BYTES: usize = 10;
/// Bytes of an acknowledgment, checksum included (AA Table 1).
const ACK_BYTES: usize = 32;
/// The fields of two bytes that fill an acknowledgment up to that.
const ACK_ZEROS: usize = 6;

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

/// An acknowledgment, which names at most one gap (AA 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The connection.
    pub connection: u32,
    /// Cumulative ack number: the first packet that has not arrived in order; all before it have.
    pub cumulative: u32,
    /// Gap-in number: the first packet of the gap.
    pub gap_in: u32,
    /// Gap-out number: the packet behind the gap, which has arrived. Equal to gap-in when no gap is named.
    pub gap_out: u32,
}

impl Feedback {
    /// Whether packets are asked for again.
    #[inline]
    pub const fn names_gap(&self) -> bool {
        self.gap_in != self.gap_out
    }
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
        ACK_BYTES
    }

    fn encode(&self, out: &mut Writer<'_>) {
        let mut sealing = Sealing::start(out, self.connection, ACK);
        sealing.u32(self.cumulative);
        sealing.u32(self.gap_in);
        sealing.u32(self.gap_out);
        for _ in 0..ACK_ZEROS {
            sealing.u16(0);
        }
        sealing.finish();
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut body = opened(input, DATA_HEADER_BYTES)?;
        let connection = body.u32("connection")?;
        let kind = body.u16("type")?;
        if kind != ACK {
            return Err(body.error("type", DecodeErrorKind::UnknownType(u64::from(kind))));
        }
        let cumulative = body.u32("cumulative")?;
        let gap_in = body.u32("gap-in")?;
        if gap_in < cumulative {
            return Err(body.error("gap-in", DecodeErrorKind::OutOfRange(u64::from(gap_in))));
        }
        let gap_out = body.u32("gap-out")?;
        if gap_out < gap_in {
            return Err(body.error("gap-out", DecodeErrorKind::OutOfRange(u64::from(gap_out))));
        }
        for _ in 0..ACK_ZEROS {
            match body.u16("zeros")? {
                0 => {}
                other => return Err(body.error("zeros", DecodeErrorKind::OutOfRange(u64::from(other)))),
            }
        }
        body.finish("acknowledgment")?;
        Ok(Self { connection, cumulative, gap_in, gap_out })
    }

    #[inline]
    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}
