//! The packets of XTP: DATA and the sender's CNTL forward, the receiver's CNTL back.
//!
//! Called by both halves and by the endpoint adapter. The layout is that of XTP 4.0; what the fields of this transfer
//! mean where XTP leaves it to the user is said in the README. Integers are big-endian; sequence numbers count bytes.
//!
//! ```text
//! header  KEY 8  CMD 4 (options 24 bits, version 3 bits, format 5 bits)  DLEN 4  CHECK 2  SORT 2  SYNC 4  SEQ 8
//! DATA    header  BTAG 8 (SEGMENT 4  OFFSET 4)  payload
//! CNTL    header  RSEQ 8  ALLOC 8  ECHO 4
//! ECNTL   header  RSEQ 8  ALLOC 8  ECHO 4  NSPAN 4  spans (LEFT 8  RIGHT 8)
//! ```
//!
//! The receiver's CNTL has DSEQ in SEQ, for it sends no data of its own, and becomes an ECNTL when there are spans. The tag
//! is part of the data: it takes sequence numbers, so that a message without bytes has some.
//!
//! Invariant: no input makes `decode` panic; what decodes has ascending spans behind RSEQ, not touching, and its payload within the
//! length that its header says.

use super::options::Options;
use crate::checksum::Checksum;
use core::ops::Range;
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{Packet, PayloadSpan, SegmentNumber, StreamId};

/// Version 1 in the upper three bits: XTP 4.0.
const VERSION: u8 = 1 << 5;
const DATA: u8 = VERSION;
const CNTL: u8 = VERSION | 1;
const ECNTL: u8 = VERSION | 3;

/// Set in the key of what the receiver sends.
const RETURN: u64 = 1 << 63;

const HEADER_BYTES: usize = 32;
const TAG_BYTES: usize = 8;
const STATE_BYTES: usize = 20;

/// A packet from sender to receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// One packet of a message.
    Data {
        /// The connection.
        key: u64,
        /// SREQ, DREQ, EOM and WCLOSE, where they are set.
        options: Options,
        /// The number of the last question, which is this one if the packet asks.
        sync: u32,
        /// Its first sequence number.
        sequence: u64,
        /// Which bytes of which segment.
        place: Place,
        /// How many bytes of payload.
        bytes: u16,
    },
    /// A question without data.
    Control {
        /// The connection.
        key: u64,
        /// SREQ, and WCLOSE where it is set.
        options: Options,
        /// The number of the question.
        sync: u32,
        /// The sequence number behind all that has been sent.
        sequence: u64,
    },
}

/// Where the payload of a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The segment, counted from 0.
    pub segment: u32,
    /// The first byte of it.
    pub offset: u32,
}

/// The state of the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The connection.
    pub key: u64,
    /// FASTNAK and RCLOSE, where they are set.
    pub options: Options,
    /// One more than the highest byte delivered.
    pub dseq: u64,
    /// One more than the highest byte up to which all have come.
    pub rseq: u64,
    /// One more than the highest byte that may be sent.
    pub alloc: u64,
    /// The number of the last question that has come.
    pub echo: u32,
    /// What has come behind `rseq` and is kept, in ascending order. Empty when nothing is, and then nothing is allocated.
    pub spans: Vec<Range<u64>>,
}

impl Forward {
    /// Bytes of a DATA packet around its payload.
    pub const OVERHEAD_BYTES: u32 = (HEADER_BYTES + TAG_BYTES) as u32;

    /// The sequence numbers of a packet with `payload` bytes: the tag has eight.
    #[inline]
    pub(super) const fn sequence_bytes(payload: u32) -> u32 {
        payload + TAG_BYTES as u32
    }

    const DATA_OPTIONS: Options = Options::SREQ.and(Options::DREQ).and(Options::EOM).and(Options::WCLOSE);
    const CONTROL_OPTIONS: Options = Options::SREQ.and(Options::DREQ).and(Options::WCLOSE);
}

impl Feedback {
    /// Bytes of a CNTL that has spans, without them.
    pub(super) const EXTENDED_BYTES: usize = HEADER_BYTES + STATE_BYTES + 4;
    /// Bytes of a span.
    pub(super) const SPAN_BYTES: usize = 16;

    const OPTIONS: Options = Options::FASTNAK.and(Options::RCLOSE);

    /// Whether DSEQ, RSEQ, the spans and ALLOC follow each other as they must.
    pub fn is_consistent(&self) -> bool {
        let mut end = self.rseq;
        let ascending = self.spans.iter().all(|span| {
            let behind = span.start > end && span.end > span.start;
            end = span.end;
            behind
        });
        ascending && self.dseq <= self.rseq && end <= self.alloc
    }

    /// One more than the highest byte that has come and is kept.
    #[inline]
    pub fn hseq(&self) -> u64 {
        self.spans.last().map_or(self.rseq, |span| span.end)
    }
}

/// The fields that every packet begins with.
struct Header {
    key: u64,
    options: Options,
    kind: u8,
    length: u32,
    sync: u32,
    sequence: u64,
}

impl Header {
    fn bytes(&self, check: u16) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut out = Writer::new(&mut bytes);
        out.u64(self.key);
        out.u32(self.options.bits() << 8 | u32::from(self.kind));
        out.u32(self.length);
        out.u16(check);
        out.u16(0);
        out.u32(self.sync);
        out.u64(self.sequence);
        bytes
    }

    /// Writes it with the checksum of itself and `covered`.
    fn write(&self, out: &mut Writer<'_>, covered: &[u8]) {
        let check = Checksum::default().with(&self.bytes(0)).with(covered).finish();
        out.bytes(&self.bytes(check));
    }

    /// Reads it; the checksum must be right and the length that of the rest.
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut whole = input.clone();
        let header = whole.bytes(HEADER_BYTES, "header")?;
        let rest = whole.bytes(whole.remaining(), "body")?;
        let key = input.u64("key")?;
        let command = input.u32("command")?;
        let length = input.u32("length")?;
        if length as usize != rest.len() {
            return Err(input.error("length", DecodeErrorKind::OutOfRange(u64::from(length))));
        }
        let bits = command >> 8;
        let is_header_alone = bits & Options::NOCHECK.bits() != 0;
        let covered = if is_header_alone { &[] } else { rest };
        // Why zero: a sum that includes its own complement is all ones, whose complement is none.
        if Checksum::default().with(header).with(covered).finish() != 0 {
            return Err(input.error("checksum", DecodeErrorKind::BadChecksum));
        }
        input.u16("checksum")?;
        let sort = input.u16("sort")?;
        if sort != 0 {
            return Err(input.error("sort", DecodeErrorKind::OutOfRange(u64::from(sort))));
        }
        let (sync, sequence) = (input.u32("sync")?, input.u64("sequence")?);
        let kind = (command & 0xff) as u8;
        let known = match kind {
            DATA => Forward::DATA_OPTIONS.and(Options::BTAG).and(Options::NOCHECK),
            _ if key & RETURN != 0 => Feedback::OPTIONS,
            _ => Forward::CONTROL_OPTIONS,
        };
        let options = Options::known(bits, known).ok_or_else(|| input.error("options", DecodeErrorKind::OutOfRange(u64::from(bits))))?;
        Ok(Self { key, options, kind, length, sync, sequence })
    }
}

impl Packet for Forward {
    #[inline]
    fn encoded_len(&self) -> usize {
        match self {
            Self::Data { bytes, .. } => HEADER_BYTES + TAG_BYTES + usize::from(*bytes),
            Self::Control { .. } => HEADER_BYTES + STATE_BYTES,
        }
    }

    fn encode(&self, out: &mut Writer<'_>) {
        match *self {
            Self::Data { key, options, sync, sequence, place, bytes } => {
                let options = options.and(Options::BTAG).and(Options::NOCHECK);
                let length = TAG_BYTES as u32 + u32::from(bytes);
                Header { key, options, kind: DATA, length, sync, sequence }.write(out, &[]);
                out.u32(place.segment);
                out.u32(place.offset);
                if let Some(room) = out.reserve(usize::from(bytes)) {
                    room.fill(0);
                }
            }
            Self::Control { key, options, sync, sequence } => {
                // Why zeros: the sender receives no data, so its half of the state is empty.
                let state = [0; STATE_BYTES];
                Header { key, options, kind: CNTL, length: STATE_BYTES as u32, sync, sequence }.write(out, &state);
                out.bytes(&state);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let Header { key, options, kind, length, sync, sequence } = Header::read(input)?;
        if key & RETURN != 0 {
            return Err(input.error("key", DecodeErrorKind::OutOfRange(key)));
        }
        match kind {
            DATA => decode_data(input, key, options, length, sync, sequence),
            CNTL => {
                if input.bytes(STATE_BYTES, "state")?.iter().any(|byte| *byte != 0) {
                    return Err(input.error("state", DecodeErrorKind::OutOfRange(1)));
                }
                input.finish("control")?;
                Ok(Self::Control { key, options, sync, sequence })
            }
            other => Err(input.error("format", DecodeErrorKind::UnknownType(u64::from(other)))),
        }
    }

    #[inline]
    fn is_data(&self) -> bool {
        matches!(self, Self::Data { .. })
    }

    fn payload(&self, index: usize) -> Option<PayloadSpan> {
        match *self {
            Self::Data { place, bytes, .. } if index == 0 && bytes > 0 => Some(PayloadSpan {
                at: HEADER_BYTES + TAG_BYTES,
                bytes: usize::from(bytes),
                stream: StreamId(0),
                segment: SegmentNumber(u64::from(place.segment)),
                offset: u64::from(place.offset),
            }),
            _ => None,
        }
    }
}

fn decode_data(input: &mut Reader<'_>, key: u64, options: Options, length: u32, sync: u32, sequence: u64) -> Result<Forward, DecodeError> {
    let always = Options::BTAG.and(Options::NOCHECK);
    if !options.has(always) {
        return Err(input.error("options", DecodeErrorKind::OutOfRange(u64::from(options.bits()))));
    }
    let place = Place { segment: input.u32("segment")?, offset: input.u32("offset")? };
    let bytes = u16::try_from(input.remaining()).map_err(|_| input.error("length", DecodeErrorKind::OutOfRange(u64::from(length))))?;
    input.bytes(usize::from(bytes), "payload")?;
    Ok(Forward::Data { key, options: options.without(always), sync, sequence, place, bytes })
}

impl Packet for Feedback {
    #[inline]
    fn encoded_len(&self) -> usize {
        if self.spans.is_empty() { HEADER_BYTES + STATE_BYTES } else { Self::EXTENDED_BYTES + Self::SPAN_BYTES * self.spans.len() }
    }

    fn encode(&self, out: &mut Writer<'_>) {
        let (kind, length) = (if self.spans.is_empty() { CNTL } else { ECNTL }, self.encoded_len() - HEADER_BYTES);
        // Why a second buffer: the checksum stands in front of what it covers. Spans are few, and only there after loss.
        let mut state = vec![0; length];
        let mut body = Writer::new(&mut state);
        body.u64(self.rseq);
        body.u64(self.alloc);
        body.u32(self.echo);
        if !self.spans.is_empty() {
            body.u32(self.spans.len() as u32);
        }
        for span in &self.spans {
            body.u64(span.start);
            body.u64(span.end);
        }
        let header = Header { key: self.key | RETURN, options: self.options, kind, length: length as u32, sync: 0, sequence: self.dseq };
        header.write(out, &state);
        out.bytes(&state);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let Header { key, options, kind, sequence, .. } = Header::read(input)?;
        if key & RETURN == 0 {
            return Err(input.error("key", DecodeErrorKind::OutOfRange(key)));
        }
        let (rseq, alloc, echo) = (input.u64("rseq")?, input.u64("alloc")?, input.u32("echo")?);
        let spans = match kind {
            CNTL => Vec::new(),
            ECNTL => decode_spans(input)?,
            other => return Err(input.error("format", DecodeErrorKind::UnknownType(u64::from(other)))),
        };
        input.finish("state")?;
        let state = Self { key: key & !RETURN, options, dseq: sequence, rseq, alloc, echo, spans };
        if state.is_consistent() { Ok(state) } else { Err(input.error("state", DecodeErrorKind::OutOfRange(rseq))) }
    }

    #[inline]
    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}

fn decode_spans(input: &mut Reader<'_>) -> Result<Vec<Range<u64>>, DecodeError> {
    let count = input.u32("spans")?;
    // Allocates for the bytes that are present, whatever the count says.
    if count == 0 || count as usize != input.remaining() / Feedback::SPAN_BYTES {
        return Err(input.error("spans", DecodeErrorKind::OutOfRange(u64::from(count))));
    }
    (0..count).map(|_| Ok(input.u64("span")?..input.u64("span")?)).collect()
}
