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
//!
//! Limit: the checksum (RFC 1071) covers everything but the payload, which is filled in after `encode`; corruption of
//! payload is the datagram's own checksum's to find.

use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{Packet, PayloadSpan, SegmentNumber, StreamId};

const DATA: u16 = 0;
const END: u16 = 1;
const ACK: u16 = 2;

/// Bytes of a data packet in front of its payload.
const DATA_HEADER_BYTES: usize = 20;
/// Bytes of the others in front of their checksum.
const SHORT_BYTES: usize = 10;
const CHECKSUM_BYTES: usize = 2;

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
                let mut summing = Summing::start(out, connection, DATA);
                summing.u32(sequence);
                summing.u32(place.segment);
                summing.u16(place.packet);
                summing.u16(place.packets);
                summing.u16(stride);
                let sum = summing.sum;
                if let Some(room) = out.reserve(usize::from(bytes)) {
                    room.fill(0);
                }
                out.u16(checksum(sum));
            }
            Self::End { connection, sequence } => encode_short(out, connection, END, sequence),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut body = body(input)?;
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
        let mut body = body(input)?;
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
    let mut summing = Summing::start(out, connection, kind);
    summing.u32(number);
    let sum = summing.sum;
    out.u16(checksum(sum));
}

/// What lies in front of the checksum, once that is found right. Of a data packet only the header is summed.
fn body<'a>(input: &mut Reader<'a>) -> Result<Reader<'a>, DecodeError> {
    let bytes = input.bytes(input.remaining().saturating_sub(CHECKSUM_BYTES), "packet")?;
    let found = input.u16("checksum")?;
    let is_data = bytes.get(4..6) == Some(&DATA.to_be_bytes());
    let covered = if is_data { bytes.get(..DATA_HEADER_BYTES).unwrap_or(bytes) } else { bytes };
    let sum = covered.chunks(2).fold(0u64, |sum, pair| {
        let (high, low) = (pair.first().copied().unwrap_or(0), pair.get(1).copied().unwrap_or(0));
        sum + u64::from(u16::from_be_bytes([high, low]))
    });
    if checksum(sum) == found { Ok(Reader::new(bytes)) } else { Err(input.error("checksum", DecodeErrorKind::BadChecksum)) }
}

/// The Internet checksum of a sum of 16-bit words (RFC 1071).
fn checksum(sum: u64) -> u16 {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Writes fields and sums them up.
struct Summing<'a, 'b> {
    out: &'a mut Writer<'b>,
    sum: u64,
}

impl<'a, 'b> Summing<'a, 'b> {
    fn start(out: &'a mut Writer<'b>, connection: u32, kind: u16) -> Self {
        let mut summing = Self { out, sum: 0 };
        summing.u32(connection);
        summing.u16(kind);
        summing
    }

    fn u16(&mut self, value: u16) {
        self.out.u16(value);
        self.sum += u64::from(value);
    }

    fn u32(&mut self, value: u32) {
        self.u16((value >> 16) as u16);
        self.u16(value as u16);
    }
}
