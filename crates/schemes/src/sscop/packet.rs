//! The PDUs of each direction: BGN, SD, POLL and END forward, BGAK, STAT, USTAT and ENDAK back.
//!
//! Called by both halves and by the endpoint adapter. The bytes are the standard's. There is neither a connection
//! identifier nor a checksum: below SSCOP stands a layer that has both, there AAL type 5, here UDP.
//!
//! ```text
//! BGN    0 24 N(SQ) 8        trailer N(MR)      SD     payload, padding    trailer N(S)
//! POLL   0 8  N(PS) 24       trailer N(S)       END    0 32                trailer 0
//! BGAK   0 32                trailer N(MR)      STAT   list, N(PS), N(MR)  trailer N(R)
//! USTAT  two elements, N(MR) trailer N(R)       ENDAK  0 32                trailer 0
//! ```
//!
//! Elements of a list are words of 24 bits: the start of a gap, the start of what arrived behind it, and so on in turn.
//!
//! Invariant: no input makes `decode` panic, and what decodes encodes to as many bytes.
//!
//! Limit: the user-to-user field of BGN, BGAK and END is not used, and refused.
//!
//! Source: Q.2110 7.1 and 7.2.

use super::pdu::{BGAK, BGN, END, ENDAK, POLL, SD, STAT, Trailer, USTAT, WORD_BYTES, opened, padding, read_word, trailer, word};
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{Packet, PayloadSpan, SegmentNumber, StreamId};

/// A PDU from sender to receiver. Numbers are 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Asks for a connection.
    Bgn {
        /// N(SQ): which attempt this is.
        n_sq: u8,
        /// N(MR): up to which SD the other side may send; our receivers send none, so 0.
        n_mr: u32,
    },
    /// Sequenced data: a segment.
    Sd {
        /// N(S): its number.
        n_s: u32,
        /// Payload bytes, without the padding behind them.
        bytes: u16,
    },
    /// Asks for the state.
    Poll {
        /// N(PS): the number of the poll.
        n_ps: u32,
        /// N(S): the number of the next SD that leaves for the first time.
        n_s: u32,
    },
    /// Releases the connection.
    End {
        /// S: not the user released it, but SSCOP itself.
        by_sscop: bool,
    },
}

/// A PDU from receiver to sender. Numbers are 24 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// The connection is set up.
    Bgak {
        /// N(MR): the first SD that may not be sent yet.
        n_mr: u32,
    },
    /// The state, as a POLL asked for it.
    Stat {
        /// The starts of gaps and of what arrived behind them, in turn, ascending. Empty when nothing is missing.
        list: Vec<u32>,
        /// N(PS) of the POLL.
        n_ps: u32,
        /// N(MR): the first SD that may not be sent yet.
        n_mr: u32,
        /// N(R): the first SD that is missing or not sent yet.
        n_r: u32,
    },
    /// A gap that has just been seen.
    Ustat {
        /// Its start, and the SD behind it.
        list: [u32; 2],
        /// N(MR): the first SD that may not be sent yet.
        n_mr: u32,
        /// N(R): the first SD that is missing.
        n_r: u32,
    },
    /// The connection is released.
    Endak,
}

impl Forward {
    /// Bytes of an SD behind its payload and padding.
    pub const OVERHEAD_BYTES: u32 = WORD_BYTES as u32;
}

impl Feedback {
    /// Bytes of a STAT behind its list.
    pub const STAT_BYTES: u32 = 3 * WORD_BYTES as u32;
}

/// Writes one word that says nothing, and the trailer.
fn encode_short(out: &mut Writer<'_>, first: u32, kind: u8, source: bool, number: u32) {
    word(out, first);
    trailer(out, kind, 0, source, number);
}

/// Reads the one word of a PDU that has no more.
fn decode_short(body: &mut Reader<'_>, field: &'static str) -> Result<u32, DecodeError> {
    let first = read_word(body, field)?;
    body.finish(field)?;
    Ok(first)
}

fn unknown<T>(body: &Reader<'_>, trailer: Trailer) -> Result<T, DecodeError> {
    Err(body.error("type", DecodeErrorKind::UnknownType(u64::from(trailer.kind))))
}

impl Packet for Forward {
    #[inline]
    fn encoded_len(&self) -> usize {
        match self {
            Self::Sd { bytes, .. } => usize::from(*bytes) + usize::from(padding(*bytes)) + WORD_BYTES,
            Self::Bgn { .. } | Self::Poll { .. } | Self::End { .. } => 2 * WORD_BYTES,
        }
    }

    fn encode(&self, out: &mut Writer<'_>) {
        match *self {
            Self::Bgn { n_sq, n_mr } => encode_short(out, u32::from(n_sq), BGN, false, n_mr),
            Self::Sd { n_s, bytes } => {
                if let Some(room) = out.reserve(usize::from(bytes) + usize::from(padding(bytes))) {
                    room.fill(0);
                }
                trailer(out, SD, padding(bytes), false, n_s);
            }
            Self::Poll { n_ps, n_s } => encode_short(out, n_ps, POLL, false, n_s),
            Self::End { by_sscop } => encode_short(out, 0, END, by_sscop, 0),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (mut body, trailer) = opened(input)?;
        match trailer.kind {
            BGN => Ok(Self::Bgn { n_sq: decode_short(&mut body, "N(SQ)")? as u8, n_mr: trailer.number }),
            SD => match u16::try_from(body.remaining()) {
                Ok(bytes) => Ok(Self::Sd { n_s: trailer.number, bytes }),
                Err(_) => Err(body.error("payload", DecodeErrorKind::OutOfRange(body.remaining() as u64))),
            },
            POLL => Ok(Self::Poll { n_ps: decode_short(&mut body, "N(PS)")?, n_s: trailer.number }),
            END => decode_short(&mut body, "END").map(|_| Self::End { by_sscop: trailer.source }),
            _ => unknown(&body, trailer),
        }
    }

    #[inline]
    fn is_data(&self) -> bool {
        matches!(self, Self::Sd { .. })
    }

    fn payload(&self, index: usize) -> Option<PayloadSpan> {
        match *self {
            Self::Sd { n_s, bytes } if index == 0 && bytes > 0 => Some(PayloadSpan {
                at: 0,
                bytes: usize::from(bytes),
                stream: StreamId(0),
                // A sender stops before its numbers wrap.
                segment: SegmentNumber(u64::from(n_s)),
                offset: 0,
            }),
            _ => None,
        }
    }
}

impl Packet for Feedback {
    #[inline]
    fn encoded_len(&self) -> usize {
        match self {
            Self::Stat { list, .. } => Self::STAT_BYTES as usize + WORD_BYTES * list.len(),
            Self::Ustat { .. } => 4 * WORD_BYTES,
            Self::Bgak { .. } | Self::Endak => 2 * WORD_BYTES,
        }
    }

    fn encode(&self, out: &mut Writer<'_>) {
        match self {
            Self::Bgak { n_mr } => encode_short(out, 0, BGAK, false, *n_mr),
            Self::Stat { list, n_ps, n_mr, n_r } => {
                for number in list.iter().chain([n_ps, n_mr]) {
                    word(out, *number);
                }
                trailer(out, STAT, 0, false, *n_r);
            }
            Self::Ustat { list, n_mr, n_r } => {
                for number in list.iter().chain([n_mr]) {
                    word(out, *number);
                }
                trailer(out, USTAT, 0, false, *n_r);
            }
            Self::Endak => encode_short(out, 0, ENDAK, false, 0),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (mut body, trailer) = opened(input)?;
        match trailer.kind {
            BGAK => decode_short(&mut body, "BGAK").map(|_| Self::Bgak { n_mr: trailer.number }),
            STAT => {
                // Two words stand behind the list; where they do not, reading them says so.
                let elements = (body.remaining() / WORD_BYTES).saturating_sub(2);
                let list = (0..elements).map(|_| read_word(&mut body, "list element")).collect::<Result<_, _>>()?;
                let (n_ps, n_mr) = (read_word(&mut body, "N(PS)")?, read_word(&mut body, "N(MR)")?);
                body.finish("STAT")?;
                Ok(Self::Stat { list, n_ps, n_mr, n_r: trailer.number })
            }
            USTAT => {
                let list = [read_word(&mut body, "list element")?, read_word(&mut body, "list element")?];
                let n_mr = decode_short(&mut body, "N(MR)")?;
                Ok(Self::Ustat { list, n_mr, n_r: trailer.number })
            }
            ENDAK => decode_short(&mut body, "ENDAK").map(|_| Self::Endak),
            _ => unknown(&body, trailer),
        }
    }

    #[inline]
    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}
