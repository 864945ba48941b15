//! The five packet types of EC 4.1 (the same in FC 3.2), and the oracle of the figures.
//!
//! Called by the halves, which make and take them as values, and by the adapter that encodes them.
//!
//! ```text
//! sender to receiver                           receiver to sender
//!   CID                                          CID
//!   TYPE              | packet NO                TYPE                 | bits of the bitmap
//!   shipment sequence NO                         control sequence NO
//!   segment NO                                   segment NO
//!   data, padded                                 ACK segment NO
//!                     | checksum                 window upper limit
//!                                                bitmap, padded to rows, "0" asks
//!                                                reserved             | checksum
//! ```
//! Rows are 4 bytes, numbers big-endian and counted from 1. EC 4.1 gives the widths of CID, TYPE and
//! checksum alone; the others are ours. So are the flags in the high byte of TYPE. Data packets are all of
//! one length: a packet with less data is padded, and the last two bytes of the padding count it.
//!
//! Invariant: what [`Packet::encode`] writes, [`Packet::decode`] reads back equal; a packet that was cut
//! short or damaged in its fields is refused.
//!
//! The checksum covers the data too (EC 3.2: it detects corruption in the packet), which are not here when a packet is encoded: zeros add nothing to
//! the sum, and [`Packet::seal`] makes it anew when the data are there.

use crate::checksum::{self, Checksum};
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{Packet, PayloadSpan, SegmentNumber, StreamId};
use segstream_blocks::Bitmap;

/// Bytes around the data of a packet: 16 of header, 2 of checksum.
pub(super) const OVERHEAD_BYTES: u32 = 18;
/// Bytes before the data.
const HEADER_BYTES: usize = 16;
/// Bytes before the bitmap of a SNAK.
const FEEDBACK_HEADER_BYTES: usize = 24;

const DATA: u8 = 0;
const KEEP_ALIVE: u8 = 1;
const END_STREAM: u8 = 2;
const PACK: u8 = 3;
const SNAK: u8 = 4;
/// Not of the papers: see [`Forward::GroupEnd`].
const GROUP_END: u8 = 5;

/// Flags of a data packet.
const LAST: u8 = 1;
/// One byte of padding, which cannot count itself.
const PADDED_BY_ONE: u8 = 2;
/// Padding that counts itself in its last two bytes.
const PADDED: u8 = 4;
/// Flags of a PACK.
const SOFT: u8 = 1;
const HOLES: u8 = 2;
const END: u8 = 4;

/// A data packet (type 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// CID.
    pub connection: u32,
    /// Shipment sequence number, cut to 32 bits.
    pub shipment: u32,
    /// The segment, from 0.
    pub segment: u32,
    /// The packet of the segment, from 0.
    pub packet: u16,
    /// Bytes of data it carries.
    pub bytes: u16,
    /// Bytes of data it has room for, the same in all packets of a connection.
    pub room: u16,
    /// Whether it is the last packet of its segment.
    pub last: bool,
}

/// What a control packet of the sender says: how far the data have gone (types 1 and 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// CID.
    pub connection: u32,
    /// Shipment sequence number, cut to 32 bits.
    pub shipment: u32,
    /// Segments sent: the number of the highest, counted from 1.
    pub segments: u32,
    /// Packets of the highest segment that were sent.
    pub packets: u16,
}

/// Sender to receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Type 0: data, new or again.
    Data(Data),
    /// Type 1: the sender has nothing to send now.
    KeepAlive(Mark),
    /// Type 2: the sender has sent everything at least once; the mark is the stream's end.
    EndStream(Mark),
    /// Ideal feedback only (EC 5.2): the last packet of a group of segment `segments - 1` has just left.
    /// It takes no shipment number and never travels a real wire.
    GroupEnd(Mark),
}

/// The fields of every packet of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// CID.
    pub connection: u32,
    /// Control sequence number, cut to 32 bits.
    pub control: u32,
    /// The segment it is about, from 0; `None` before the first.
    pub segment: Option<u32>,
    /// Segments accepted in sequence: all below are acknowledged.
    pub accepted: u32,
    /// The first segment that may not be sent.
    pub limit: u32,
}

/// A positive acknowledgment (type 3). One whose segment lies below `accepted` only grants a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pack {
    /// The common fields.
    pub grant: Grant,
    /// The segment may still be discarded: the sender must keep it (FC 4.3.1).
    pub soft: bool,
    /// The segment was accepted with holes.
    pub holes: bool,
    /// The receiver knows the end of the stream and has accepted all of it.
    pub end: bool,
}

/// A selective negative acknowledgment (type 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snak {
    /// The common fields.
    pub grant: Grant,
    /// The packets that are requested; a "0" on the wire.
    pub request: Bitmap,
}

/// Receiver to sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// Type 3.
    Pack(Pack),
    /// Type 4.
    Snak(Snak),
}

impl Feedback {
    /// The fields both types have.
    pub const fn grant(&self) -> &Grant {
        match self {
            Self::Pack(pack) => &pack.grant,
            Self::Snak(snak) => &snak.grant,
        }
    }
}

impl Data {
    const fn padding(&self) -> u16 {
        self.room.saturating_sub(self.bytes)
    }

    const fn flags(&self) -> u8 {
        let last = if self.last { LAST } else { 0 };
        last | match self.padding() {
            0 => 0,
            1 => PADDED_BY_ONE,
            _ => PADDED,
        }
    }
}

/// The four rows before the data; `segment` and `packet` as on the wire.
fn forward_header(connection: u32, kind: u8, flags: u8, packet: u16, shipment: u32, segment: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let mut writer = Writer::new(&mut header);
    writer.u32(connection);
    writer.u8(flags);
    writer.u8(kind);
    writer.u16(packet);
    writer.u32(shipment);
    writer.u32(segment);
    header
}

impl Packet for Forward {
    #[inline]
    fn encoded_len(&self) -> usize {
        match self {
            Self::Data(data) => OVERHEAD_BYTES as usize + usize::from(data.room),
            _ => OVERHEAD_BYTES as usize,
        }
    }

    fn encode(&self, out: &mut Writer<'_>) {
        let (header, room, padding) = match self {
            // EC 3.2 and 4.2 count segments and packets from 1, and so does the wire.
            Self::Data(d) => {
                let header = forward_header(d.connection, DATA, d.flags(), d.packet.wrapping_add(1), d.shipment, d.segment.wrapping_add(1));
                (header, d.room, d.padding())
            }
            Self::KeepAlive(m) => (forward_header(m.connection, KEEP_ALIVE, 0, m.packets, m.shipment, m.segments), 0, 0),
            Self::EndStream(m) => (forward_header(m.connection, END_STREAM, 0, m.packets, m.shipment, m.segments), 0, 0),
            Self::GroupEnd(m) => (forward_header(m.connection, GROUP_END, 0, m.packets, m.shipment, m.segments), 0, 0),
        };
        out.bytes(&header);
        let mut sum = Checksum::default().with(&header);
        let counted = if padding >= 2 { 2 } else { 0 };
        if let Some(area) = out.reserve(usize::from(room - counted)) {
            area.fill(0);
        }
        if counted > 0 {
            out.u16(padding);
            let [high, low] = padding.to_be_bytes();
            // Behind an odd number of bytes the count lies across two words of the sum.
            sum = if room % 2 == 1 { sum.with(&[0, high, low, 0]) } else { sum.with(&[high, low]) };
        }
        out.u16(sum.finish());
    }

    fn seal(&self, encoding: &mut [u8]) {
        checksum::seal(encoding);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let covered = input.remaining().saturating_sub(checksum::CHECKSUM_BYTES);
        let sum = Checksum::default().with(input.clone().bytes(covered, "packet")?);
        let connection = input.u32("CID")?;
        let flags = input.u8("flags")?;
        let kind = input.u8("type")?;
        let packet = input.u16("packet NO")?;
        let shipment = input.u32("shipment sequence NO")?;
        let segment = input.u32("segment NO")?;
        let Some(room) = input.remaining().checked_sub(2).and_then(|room| u16::try_from(room).ok()) else {
            return Err(input.error("data", DecodeErrorKind::UnexpectedEnd));
        };
        let area = input.bytes(usize::from(room), "data")?;
        let padding = match (flags & PADDED != 0, area) {
            (true, [.., high, low]) => u16::from_be_bytes([*high, *low]),
            (true, _) => return Err(input.error("padding", DecodeErrorKind::UnexpectedEnd)),
            (false, _) => u16::from(flags & PADDED_BY_ONE != 0),
        };
        if input.u16("checksum")? != sum.finish() {
            return Err(input.error("header", DecodeErrorKind::BadChecksum));
        }
        let mark = Mark { connection, shipment, segments: segment, packets: packet };
        let refuse = |field, value| Err(input.error(field, DecodeErrorKind::OutOfRange(value)));
        if kind != DATA {
            return mark_of(kind, flags, room, mark, input);
        }
        if flags > LAST | PADDED {
            // Both paddings at once are above that, too.
            return refuse("flags", u64::from(flags));
        }
        let (Some(segment), Some(packet)) = (segment.checked_sub(1), packet.checked_sub(1)) else {
            return refuse("segment and packet NO", 0);
        };
        let Some(bytes) = room.checked_sub(padding).filter(|_| room > 0) else { return refuse("padding", u64::from(padding)) };
        if flags & PADDED != 0 && padding < 2 {
            return refuse("padding", u64::from(padding));
        }
        Ok(Self::Data(Data { connection, shipment, segment, packet, bytes, room, last: flags & LAST != 0 }))
    }

    #[inline]
    fn is_data(&self) -> bool {
        matches!(self, Self::Data(_))
    }

    fn payload(&self, index: usize) -> Option<PayloadSpan> {
        match self {
            Self::Data(data) if index == 0 && data.bytes > 0 => Some(PayloadSpan {
                at: HEADER_BYTES,
                bytes: usize::from(data.bytes),
                stream: StreamId(0),
                segment: SegmentNumber(u64::from(data.segment)),
                offset: u64::from(data.packet) * u64::from(data.room),
            }),
            _ => None,
        }
    }
}

/// A control packet of the sender, which carries nothing but its mark.
fn mark_of(kind: u8, flags: u8, room: u16, mark: Mark, input: &Reader<'_>) -> Result<Forward, DecodeError> {
    let refuse = |field, kind| Err(input.error(field, kind));
    if flags != 0 {
        return refuse("flags", DecodeErrorKind::OutOfRange(u64::from(flags)));
    }
    if room != 0 {
        return refuse("segment NO", DecodeErrorKind::TrailingBytes(usize::from(room)));
    }
    if (mark.segments == 0) != (mark.packets == 0) {
        return refuse("packet NO", DecodeErrorKind::OutOfRange(u64::from(mark.packets)));
    }
    match kind {
        KEEP_ALIVE => Ok(Forward::KeepAlive(mark)),
        END_STREAM => Ok(Forward::EndStream(mark)),
        GROUP_END if mark.segments > 0 => Ok(Forward::GroupEnd(mark)),
        _ => refuse("type", DecodeErrorKind::UnknownType(u64::from(kind))),
    }
}

/// The six rows before the bitmap.
fn feedback_header(grant: &Grant, kind: u8, flags: u8, bits: u16) -> [u8; FEEDBACK_HEADER_BYTES] {
    let mut header = [0; FEEDBACK_HEADER_BYTES];
    let mut writer = Writer::new(&mut header);
    writer.u32(grant.connection);
    writer.u8(flags);
    writer.u8(kind);
    writer.u16(bits);
    writer.u32(grant.control);
    writer.u32(grant.segment.map_or(0, |segment| segment.wrapping_add(1)));
    // FC 3.4: R_l, the lowest segment not accepted, and R_h, the highest that may be sent, both from 1.
    writer.u32(grant.accepted.wrapping_add(1));
    writer.u32(grant.limit);
    header
}

/// Row `row` of the bitmap: the most significant bit is the first packet, and a "0" asks (EC 3.3).
fn row_of(request: &Bitmap, row: u32) -> u32 {
    (0..32).fold(0, |bits, bit| bits << 1 | u32::from(!request.get(row * 32 + bit)))
}

const fn rows(bits: u32) -> u32 {
    bits.div_ceil(32)
}

impl Packet for Feedback {
    fn encoded_len(&self) -> usize {
        let bitmap = match self {
            Self::Pack(_) => 0,
            Self::Snak(snak) => rows(snak.request.len()) as usize * 4,
        };
        FEEDBACK_HEADER_BYTES + bitmap + 4
    }

    fn encode(&self, out: &mut Writer<'_>) {
        let mut sum = Checksum::default();
        match self {
            Self::Pack(pack) => {
                let flag = |set, flag| if set { flag } else { 0 };
                let flags = flag(pack.soft, SOFT) | flag(pack.holes, HOLES) | flag(pack.end, END);
                let header = feedback_header(&pack.grant, PACK, flags, 0);
                sum = sum.with(&header);
                out.bytes(&header);
            }
            Self::Snak(snak) => {
                let header = feedback_header(&snak.grant, SNAK, 0, snak.request.len() as u16);
                sum = sum.with(&header);
                out.bytes(&header);
                for row in 0..rows(snak.request.len()) {
                    let bits = row_of(&snak.request, row);
                    sum = sum.with(&bits.to_be_bytes());
                    out.u32(bits);
                }
            }
        }
        out.u16(0);
        out.u16(sum.finish());
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut sum = Checksum::default().with(input.clone().bytes(FEEDBACK_HEADER_BYTES, "header")?);
        let connection = input.u32("CID")?;
        let flags = input.u8("flags")?;
        let kind = input.u8("type")?;
        let bits = u32::from(input.u16("bits of the bitmap")?);
        let control = input.u32("control sequence NO")?;
        let segment = input.u32("segment NO")?.checked_sub(1);
        let accepted = input.u32("ACK segment NO")?;
        let limit = input.u32("window upper limit")?;
        let bitmap = input.bytes(rows(bits) as usize * 4, "bitmap")?;
        sum = sum.with(bitmap);
        let reserved = input.u16("reserved")?;
        sum = sum.with(&reserved.to_be_bytes());
        if input.u16("checksum")? != sum.finish() {
            return Err(input.error("header", DecodeErrorKind::BadChecksum));
        }
        input.finish("checksum")?;
        let refuse = |field, value| Err(input.error(field, DecodeErrorKind::OutOfRange(value)));
        let Some(accepted) = accepted.checked_sub(1) else { return refuse("ACK segment NO", 0) };
        let grant = Grant { connection, control, segment, accepted, limit };
        match kind {
            PACK if bits != 0 => refuse("bits of the bitmap", u64::from(bits)),
            PACK if flags > SOFT | HOLES | END => refuse("flags", u64::from(flags)),
            PACK => Ok(Self::Pack(Pack { grant, soft: flags & SOFT != 0, holes: flags & HOLES != 0, end: flags & END != 0 })),
            SNAK if flags != 0 => refuse("flags", u64::from(flags)),
            SNAK if bits == 0 || segment.is_none() => refuse("bits of the bitmap", u64::from(bits)),
            SNAK => Ok(Self::Snak(Snak { grant, request: request_of(bitmap, bits) })),
            _ => Err(input.error("type", DecodeErrorKind::UnknownType(u64::from(kind)))),
        }
    }

    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}

/// The packets that a bitmap asks for.
fn request_of(bitmap: &[u8], bits: u32) -> Bitmap {
    let mut request = Bitmap::new();
    request.reset(bits);
    for (byte, first) in bitmap.iter().zip((0..).step_by(8)) {
        for bit in (0..8).filter(|bit| byte >> (7 - bit) & 1 == 0) {
            request.set(first + bit);
        }
    }
    request
}
