//! What the PDUs of Q.2110 share: a trailer instead of a header, sixteen types, numbers of 24 bits.
//!
//! Called by `packet` for the bytes, by both halves for the numbers.
//!
//! ```text
//! words of 32 bits, big-endian; the last is the trailer
//! bits 31-30  PL: how many bytes of padding stand behind the payload (SD)
//! bit  28     S: the source of an END, 0 the user, 1 SSCOP itself
//! bits 27-24  the type
//! bits 23-0   N(S), N(R) or N(MR)
//! ```
//!
//! Inside the halves numbers are 64 bits wide and never wrap; [`expand`] rebuilds them from what is expected.
//!
//! Invariant: no input makes [`opened`] panic.
//!
//! Source: Q.2110 7.2.

use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::sequence;

pub(super) const BGN: u8 = 0x1;
pub(super) const BGAK: u8 = 0x2;
pub(super) const END: u8 = 0x3;
pub(super) const ENDAK: u8 = 0x4;
pub(super) const SD: u8 = 0x8;
pub(super) const POLL: u8 = 0xa;
pub(super) const STAT: u8 = 0xb;
pub(super) const USTAT: u8 = 0xc;

/// Bits of a number.
const BITS: u32 = 24;
const NUMBER: u32 = (1 << BITS) - 1;
/// PDUs are whole words.
pub(super) const WORD_BYTES: usize = 4;
/// S, in the first byte of the trailer.
const SOURCE: u8 = 0x10;
const TYPE: u8 = 0x0f;

/// The number that travels for `number`.
#[inline]
pub(super) const fn truncated(number: u64) -> u32 {
    number as u32 & NUMBER
}

/// The number nearest to `expected` that travels as `number`.
#[inline]
pub(super) const fn expand(number: u32, expected: u64) -> u64 {
    sequence::expand(number as u64, BITS, expected)
}

/// How many bytes of padding a payload of `bytes` needs.
#[inline]
pub(super) const fn padding(bytes: u16) -> u8 {
    (bytes.wrapping_neg() & 3) as u8
}

/// Writes a word in front of the trailer: a number, below eight reserved bits.
pub(super) fn word(out: &mut Writer<'_>, number: u32) {
    out.u32(number & NUMBER);
}

/// Writes a trailer.
pub(super) fn trailer(out: &mut Writer<'_>, kind: u8, padding: u8, source: bool, number: u32) {
    let first = padding << 6 | if source { SOURCE } else { 0 } | kind;
    out.u32(u32::from(first) << BITS | (number & NUMBER));
}

/// Reads a word in front of the trailer.
pub(super) fn read_word(input: &mut Reader<'_>, field: &'static str) -> Result<u32, DecodeError> {
    Ok(input.u32(field)? & NUMBER)
}

/// What a trailer says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trailer {
    pub(super) kind: u8,
    pub(super) source: bool,
    pub(super) number: u32,
}

/// What stands in front of the trailer and of the padding, and the trailer.
///
/// # Errors
/// A PDU that is not whole words, or has more padding than payload.
pub(super) fn opened<'a>(input: &mut Reader<'a>) -> Result<(Reader<'a>, Trailer), DecodeError> {
    if !input.remaining().is_multiple_of(WORD_BYTES) {
        return Err(input.error("PDU", DecodeErrorKind::OutOfRange(input.remaining() as u64)));
    }
    let body = input.bytes(input.remaining().saturating_sub(WORD_BYTES), "PDU")?;
    let last = input.u32("trailer")?;
    let first = (last >> BITS) as u8;
    let padding = usize::from(first >> 6);
    let Some(body) = body.len().checked_sub(padding).and_then(|bytes| body.get(..bytes)) else {
        return Err(input.error("pad length", DecodeErrorKind::OutOfRange(padding as u64)));
    };
    Ok((Reader::new(body), Trailer { kind: first & TYPE, source: first & SOURCE != 0, number: last & NUMBER }))
}
