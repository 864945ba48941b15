//! The eight packets of HTPNET (HT 3.2, HT Fig 2, HT Table 2).
//!
//! Called by the processes, which make and take them as values, and by the adapter that encodes them.
//!
//! ```text
//! DT   0  CI 1  TI 1  SEQ 2  DATA                                                                             CRC 2
//! TXS  1  CI 1  TI 1  SYNC 2   TIME 2   LSEQ 2   CLASS 1  RATE 2                                              CRC 2
//! RXS  2  CI 1  TI 1  ESYNC 2  ETIME 2  SPGAP 2  CLASS 1  RATE 2  CAACK 2  RANGE 16 or 32  CREDIT 2           CRC 2
//! CR   3  CI 1  TI 1  CLASS 1  RATE 2  CREDIT 2  PAIRS 1                                                      CRC 2
//! CC   4  as CR
//! DR   5  CI 1  TI 1  LSEQ 2  SEGMENTS 4                                                                      CRC 2
//! DC   6  CI 1  TI 1  STEP 1                                                                                  CRC 2
//! RJ   7  CI 1  TI 1  REASON 1                                                                                CRC 2
//! ```
//! Integers are big-endian. The first three are HT's to the byte; the numbers and fields of the others are ours. DATA
//! begins with eight bytes that say which piece of which segment it is, of which HT knows nothing: SEGMENT 4, PACKET 2
//! with the last one of a segment marked in its top bit, ROOM 2, the payload of a full packet.
//!
//! Invariant: what `encode` writes, `decode` reads back equal; what is cut short or damaged in its fields is refused, and
//! nothing panics.
//!
//! The CRC covers all bytes before it. The payload of a DT is filled in after `encode`, which takes the CRC over zeros in its place;
//! [`Packet::seal`] takes it anew when the payload is there.

mod control;
mod state;

pub use control::{Control, Reason, Release, Step, Terms};
pub use state::{Coverage, Pairs, RangeList, ReceiverState, TransmitterState};

use super::checksum::crc16;
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{Packet, PayloadSpan, SegmentNumber, StreamId};

/// Bytes around the payload of a DT: CI, TI, SEQ, the place of the piece, and CRC.
pub(super) const DATA_OVERHEAD_BYTES: u32 = (DATA_HEADER_BYTES + CRC_BYTES) as u32;
const DATA_HEADER_BYTES: usize = 12;
const CRC_BYTES: usize = 2;
/// The longest packet that is not data.
const CONTROL_BYTES_MAX: usize = 49;
/// The bit of PACKET that marks the last packet of a segment.
const LAST: u16 = 0x8000;

pub(super) const DT: u8 = 0;
pub(super) const TXS: u8 = 1;
pub(super) const RXS: u8 = 2;
pub(super) const CR: u8 = 3;
pub(super) const CC: u8 = 4;
pub(super) const DR: u8 = 5;
pub(super) const DC: u8 = 6;
pub(super) const RJ: u8 = 7;

/// A data packet (DT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// CI.
    pub connection: u8,
    /// SEQ: packets count from 0 through all segments, and wrap.
    pub seq: u16,
    /// The segment, from 0.
    pub segment: u32,
    /// Which packet of it, from 0; below 32768.
    pub packet: u16,
    /// Whether it is the last packet of its segment.
    pub last: bool,
    /// Payload bytes of a full packet.
    pub room: u16,
    /// Payload bytes of this one.
    pub bytes: u16,
}

/// From transmitter to receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// DT.
    Data(Data),
    /// TXS.
    State(TransmitterState),
    /// Set-up and release.
    Control(Control),
}

/// From receiver to transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// RXS.
    State(ReceiverState),
    /// Set-up and release.
    Control(Control),
}

impl Forward {
    /// CI.
    pub const fn connection(&self) -> u8 {
        match self {
            Self::Data(data) => data.connection,
            Self::State(state) => state.connection,
            Self::Control(control) => control.connection(),
        }
    }
}

impl Feedback {
    /// CI.
    pub const fn connection(&self) -> u8 {
        match self {
            Self::State(state) => state.connection,
            Self::Control(control) => control.connection(),
        }
    }
}

/// Writes `fields` and their CRC behind them.
fn seal(out: &mut Writer<'_>, fields: impl FnOnce(&mut Writer<'_>)) {
    let from = out.position();
    fields(out);
    let crc = crc16(out.written(from));
    out.u16(crc);
}

/// Checks that the packet that fills `input` ends with the CRC of what is before, and cuts it off. Returns CI and TI too.
fn unseal<'a>(input: &mut Reader<'a>) -> Result<(Reader<'a>, u8, u8), DecodeError> {
    let Some(count) = input.remaining().checked_sub(CRC_BYTES) else {
        return Err(input.error("CRC", DecodeErrorKind::UnexpectedEnd));
    };
    if count > CONTROL_BYTES_MAX {
        return Err(input.error("CRC", DecodeErrorKind::TrailingBytes(count - CONTROL_BYTES_MAX)));
    }
    let body = input.bytes(count, "packet")?;
    if input.u16("CRC")? != crc16(body) {
        return Err(input.error("packet", DecodeErrorKind::BadChecksum));
    }
    let mut fields = Reader::new(body);
    let (connection, kind) = (fields.u8("CI")?, fields.u8("TI")?);
    Ok((fields, connection, kind))
}

impl Data {
    fn encode(&self, out: &mut Writer<'_>) {
        let from = out.position();
        out.u8(self.connection);
        out.u8(DT);
        out.u16(self.seq);
        out.u32(self.segment);
        out.u16(self.packet & !LAST | if self.last { LAST } else { 0 });
        out.u16(self.room);
        if let Some(payload) = out.reserve(usize::from(self.bytes)) {
            payload.fill(0);
        }
        let crc = crc16(out.written(from));
        out.u16(crc);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let covered = input.remaining().saturating_sub(CRC_BYTES);
        let crc = crc16(input.clone().bytes(covered, "packet")?);
        let header = input.bytes(DATA_HEADER_BYTES, "header")?;
        let mut fields = Reader::new(header);
        let connection = fields.u8("CI")?;
        fields.u8("TI")?;
        let (seq, segment) = (fields.u16("SEQ")?, fields.u32("SEGMENT")?);
        let (packet, room) = (fields.u16("PACKET")?, fields.u16("ROOM")?);
        let Some(bytes) = input.remaining().checked_sub(CRC_BYTES).and_then(|bytes| u16::try_from(bytes).ok()) else {
            return Err(input.error("DATA", DecodeErrorKind::UnexpectedEnd));
        };
        input.bytes(usize::from(bytes), "DATA")?;
        if input.u16("CRC")? != crc {
            return Err(input.error("packet", DecodeErrorKind::BadChecksum));
        }
        let last = packet & LAST != 0;
        // Only the last packet of a segment may be short.
        if bytes > room || (bytes < room && !last) {
            return Err(input.error("ROOM", DecodeErrorKind::OutOfRange(u64::from(room))));
        }
        Ok(Self { connection, seq, segment, packet: packet & !LAST, last, room, bytes })
    }
}

/// The TI of the packet that fills `input`.
fn kind_of(input: &Reader<'_>) -> Result<u8, DecodeError> {
    let mut peek = input.clone();
    peek.u8("CI")?;
    peek.u8("TI")
}

impl Packet for Forward {
    #[inline]
    fn encoded_len(&self) -> usize {
        match self {
            Self::Data(data) => DATA_OVERHEAD_BYTES as usize + usize::from(data.bytes),
            Self::State(_) => TransmitterState::BYTES,
            Self::Control(control) => control.bytes(),
        }
    }

    fn encode(&self, out: &mut Writer<'_>) {
        match self {
            Self::Data(data) => data.encode(out),
            Self::State(state) => seal(out, |out| state.encode(out)),
            Self::Control(control) => seal(out, |out| control.encode(out)),
        }
    }

    fn seal(&self, encoding: &mut [u8]) {
        if let Some((covered, field)) = encoding.split_last_chunk_mut::<CRC_BYTES>() {
            *field = crc16(covered).to_be_bytes();
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if kind_of(input)? == DT {
            return Data::decode(input).map(Self::Data);
        }
        let (mut fields, connection, kind) = unseal(input)?;
        match kind {
            TXS => TransmitterState::decode(connection, &mut fields).map(Self::State),
            RXS => Err(fields.error("TI", DecodeErrorKind::UnknownType(u64::from(kind)))),
            _ => Control::decode(connection, kind, &mut fields).map(Self::Control),
        }
    }

    #[inline]
    fn is_data(&self) -> bool {
        matches!(self, Self::Data(_))
    }

    fn payload(&self, index: usize) -> Option<PayloadSpan> {
        match self {
            Self::Data(data) if index == 0 && data.bytes > 0 => Some(PayloadSpan {
                at: DATA_HEADER_BYTES,
                bytes: usize::from(data.bytes),
                stream: StreamId(0),
                segment: SegmentNumber(u64::from(data.segment)),
                offset: u64::from(data.packet) * u64::from(data.room),
            }),
            _ => None,
        }
    }
}

impl Packet for Feedback {
    fn encoded_len(&self) -> usize {
        match self {
            Self::State(state) => state.bytes(),
            Self::Control(control) => control.bytes(),
        }
    }

    fn encode(&self, out: &mut Writer<'_>) {
        match self {
            Self::State(state) => seal(out, |out| state.encode(out)),
            Self::Control(control) => seal(out, |out| control.encode(out)),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (mut fields, connection, kind) = unseal(input)?;
        match kind {
            RXS => ReceiverState::decode(connection, &mut fields).map(Self::State),
            DT | TXS => Err(fields.error("TI", DecodeErrorKind::UnknownType(u64::from(kind)))),
            _ => Control::decode(connection, kind, &mut fields).map(Self::Control),
        }
    }

    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}
