//! The byte codec: a reader that cannot run past the end and a writer that cannot overflow.
//!
//! Called by every wire format. Integers are big-endian. A *varint* has the length of its encoding in
//! the top two bits of the first byte (RFC 9000 16): 1, 2, 4 or 8 bytes, values up to 2^62 - 1.
//!
//! Invariant: no input makes a [`Reader`] panic, and a failed read says at which byte and in which
//! field it failed.

use core::fmt;

/// The largest value a varint can carry.
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// Why bytes could not be decoded: a fault of whoever sent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The offset in the input at which decoding failed.
    pub at: usize,
    /// The field that was being read.
    pub field: &'static str,
    /// What was wrong with it.
    pub kind: DecodeErrorKind,
}

/// What was wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The input ends inside the field.
    UnexpectedEnd,
    /// The value is outside what the field allows.
    OutOfRange(u64),
    /// The type is not known to this version.
    UnknownType(u64),
    /// The text is not UTF-8.
    NotUtf8,
    /// The integrity check failed.
    BadChecksum,
    /// Bytes are left after the last field.
    TrailingBytes(usize),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, field, kind } = self;
        match kind {
            DecodeErrorKind::UnexpectedEnd => write!(f, "the input ends inside {field} at byte {at}"),
            DecodeErrorKind::OutOfRange(value) => write!(f, "{field} at byte {at} has the value {value}, which is not allowed"),
            DecodeErrorKind::UnknownType(value) => write!(f, "{field} at byte {at} is of the unknown type {value}"),
            DecodeErrorKind::NotUtf8 => write!(f, "{field} at byte {at} is not UTF-8"),
            DecodeErrorKind::BadChecksum => write!(f, "the integrity check of {field} at byte {at} failed"),
            DecodeErrorKind::TrailingBytes(count) => write!(f, "{count} bytes are left after {field} at byte {at}"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Reads fields from a byte slice, front to back.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `input`.
    pub const fn new(input: &'a [u8]) -> Self {
        Self { input, at: 0 }
    }

    /// How many bytes have been read.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// What has not been read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    /// How many bytes are left.
    pub const fn remaining(&self) -> usize {
        self.input.len() - self.at
    }

    /// Whether everything has been read.
    pub const fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// An error of `kind` about `field` at the present position.
    pub const fn error(&self, field: &'static str, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { at: self.at, field, kind }
    }

    /// The next `count` bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        match self.input.get(self.at..).and_then(|rest| rest.get(..count)) {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => Err(self.error(field, DecodeErrorKind::UnexpectedEnd)),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let bytes = self.bytes(N, field)?;
        Ok(core::array::from_fn(|i| bytes[i]))
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(field)?[0])
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array(field)?))
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array(field)?))
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array(field)?))
    }

    /// A varint of 1, 2, 4 or 8 bytes.
    #[inline]
    pub fn varint(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        let Some(&first) = self.input.get(self.at) else {
            return Err(self.error(field, DecodeErrorKind::UnexpectedEnd));
        };
        match first >> 6 {
            0 => {
                self.at += 1;
                Ok(u64::from(first & 0x3f))
            }
            1 => Ok(u64::from(self.u16(field)? & 0x3fff)),
            2 => Ok(u64::from(self.u32(field)? & 0x3fff_ffff)),
            _ => Ok(self.u64(field)? & VARINT_MAX),
        }
    }

    /// A varint that must not exceed `max`.
    #[inline]
    pub fn varint_up_to(&mut self, max: u64, field: &'static str) -> Result<u64, DecodeError> {
        let at = self.at;
        let value = self.varint(field)?;
        if value > max {
            return Err(DecodeError { at, field, kind: DecodeErrorKind::OutOfRange(value) });
        }
        Ok(value)
    }

    /// A text with its length in bytes before it, at most `max` bytes.
    pub fn text(&mut self, max: usize, field: &'static str) -> Result<&'a str, DecodeError> {
        let count = self.varint_up_to(max as u64, field)? as usize;
        let at = self.at;
        core::str::from_utf8(self.bytes(count, field)?).map_err(|_| DecodeError { at, field, kind: DecodeErrorKind::NotUtf8 })
    }

    /// Checks that nothing is left after `field`.
    pub fn finish(&self, field: &'static str) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            count => Err(self.error(field, DecodeErrorKind::TrailingBytes(count))),
        }
    }
}

/// The buffer handed to a [`Writer`] was too small: a fault of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferFull {
    /// How many bytes the write would have needed in all.
    pub needed: usize,
    /// How many bytes the buffer has.
    pub available: usize,
}

impl fmt::Display for BufferFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the packet needs {} bytes but the buffer has {}", self.needed, self.available)
    }
}

impl core::error::Error for BufferFull {}

/// Writes fields into a byte slice, front to back.
///
/// After the first write that does not fit, nothing more is written and [`Writer::finish`] reports how
/// much room would have been needed, so callers need not check every field.
#[derive(Debug)]
pub struct Writer<'a> {
    output: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// A writer at the start of `output`.
    pub const fn new(output: &'a mut [u8]) -> Self {
        Self { output, at: 0 }
    }

    /// How many bytes have been written, or would have been.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// How many bytes still fit.
    pub const fn remaining(&self) -> usize {
        self.output.len().saturating_sub(self.at)
    }

    /// What has been written from the offset `from` on; nothing when less has been written.
    pub fn written(&self, from: usize) -> &[u8] {
        self.output.get(from..self.position()).unwrap_or_default()
    }

    /// Writes `bytes` as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        if let Some(room) = self.reserve(bytes.len()) {
            room.copy_from_slice(bytes);
        }
    }

    /// Room for `count` bytes to be filled by the caller; `None` when they do not fit.
    #[inline]
    pub fn reserve(&mut self, count: usize) -> Option<&mut [u8]> {
        let start = self.at;
        self.at = self.at.saturating_add(count);
        self.output.get_mut(start..self.at)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    /// A varint; values above [`VARINT_MAX`] are written as [`VARINT_MAX`].
    #[inline]
    pub fn varint(&mut self, value: u64) {
        match value {
            0..0x40 => self.u8(value as u8),
            0x40..0x4000 => self.u16(0x4000 | value as u16),
            0x4000..0x4000_0000 => self.u32(0x8000_0000 | value as u32),
            _ => self.u64(0xc000_0000_0000_0000 | value.min(VARINT_MAX)),
        }
    }

    /// A text with its length in bytes before it.
    pub fn text(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    /// The number of bytes written.
    pub const fn finish(self) -> Result<usize, BufferFull> {
        if self.at > self.output.len() {
            return Err(BufferFull { needed: self.at, available: self.output.len() });
        }
        Ok(self.at)
    }
}

/// How many bytes [`Writer::varint`] takes for `value`.
#[inline]
pub const fn varint_len(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// How many bytes [`Writer::text`] takes for `text`.
pub const fn text_len(text: &str) -> usize {
    varint_len(text.len() as u64) + text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_write_that_does_not_fit_is_reported_with_the_room_it_needs() {
        let mut buffer = [0u8; 3];
        let mut writer = Writer::new(&mut buffer);
        writer.u16(1);
        writer.u32(2);
        assert_eq!(writer.finish(), Err(BufferFull { needed: 6, available: 3 }));
    }

    #[test]
    fn a_failed_read_names_the_field_and_the_byte() {
        let mut reader = Reader::new(&[0x40]);
        assert_eq!(reader.varint("segment"), Err(DecodeError { at: 0, field: "segment", kind: DecodeErrorKind::UnexpectedEnd }));
        let mut reader = Reader::new(&[2, 0xff, 0xfe]);
        assert_eq!(reader.text(9, "label"), Err(DecodeError { at: 1, field: "label", kind: DecodeErrorKind::NotUtf8 }));
    }

    #[test]
    fn a_varint_takes_the_next_length_exactly_where_the_last_one_ends() {
        for (value, length) in [(0x3f, 1), (0x40, 2), (0x3fff, 2), (0x4000, 4), (0x3fff_ffff, 4), (0x4000_0000, 8), (VARINT_MAX, 8)] {
            let mut buffer = [0u8; 8];
            let mut writer = Writer::new(&mut buffer);
            writer.varint(value);
            assert_eq!((writer.finish(), varint_len(value)), (Ok(length), length), "{value:#x}");
            assert_eq!(Reader::new(&buffer[..length]).varint("value"), Ok(value));
            assert!(Reader::new(&buffer[..length - 1]).varint("value").is_err(), "{value:#x} cut short");
        }
    }

    #[test]
    fn a_text_longer_than_allowed_is_refused() {
        let text = [3, b'a', b'b', b'c'];
        assert_eq!(Reader::new(&text).text(3, "label"), Ok("abc"));
        assert_eq!(Reader::new(&text).text(2, "label"), Err(DecodeError { at: 0, field: "label", kind: DecodeErrorKind::OutOfRange(3) }));
        assert!(Reader::new(&text[..3]).text(3, "label").is_err(), "the input ends inside it");
    }

    proptest! {
        #[test]
        fn every_varint_comes_back_in_the_length_announced(value in 0u64..=VARINT_MAX) {
            let mut buffer = [0u8; 8];
            let mut writer = Writer::new(&mut buffer);
            writer.varint(value);
            let count = writer.finish().unwrap();
            prop_assert_eq!(count, varint_len(value));
            prop_assert_eq!(Reader::new(&buffer[..count]).varint("value"), Ok(value));
        }

        #[test]
        fn no_input_makes_the_reader_panic(input in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader::new(&input);
            while reader.varint("value").is_ok() {}
            let _ = reader.text(20, "text");
            prop_assert!(reader.position() <= input.len());
        }
    }
}
