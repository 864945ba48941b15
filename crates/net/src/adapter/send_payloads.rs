//! The send buffer: the bytes of every segment that has no verdict yet.
//!
//! Called by [`super::SendingEndpoint`].
//!
//! Invariant: bytes are copied once, into the datagram, and freed with the verdict.

use segstream_base::halves::{Packet, PayloadSpan, SegmentNumber, StreamId};
use std::collections::BTreeMap;

/// The bytes of segments without a verdict.
#[derive(Debug, Default)]
pub(super) struct SendPayloads {
    segments: BTreeMap<(StreamId, SegmentNumber), Vec<u8>>,
    bytes: u64,
}

impl SendPayloads {
    pub(super) fn insert(&mut self, stream: StreamId, segment: SegmentNumber, bytes: Vec<u8>) {
        self.bytes += bytes.len() as u64;
        if let Some(before) = self.segments.insert((stream, segment), bytes) {
            self.bytes -= before.len() as u64;
        }
    }

    /// Removes a segment. Returns its length if it was there.
    pub(super) fn remove(&mut self, stream: StreamId, segment: SegmentNumber) -> Option<u64> {
        let length = self.segments.remove(&(stream, segment))?.len() as u64;
        self.bytes -= length;
        debug_assert!(!self.segments.is_empty() || self.bytes == 0, "{} bytes of no segment", self.bytes);
        Some(length)
    }

    /// Removes the first segment. Returns its stream, number and length.
    pub(super) fn pop(&mut self) -> Option<(StreamId, SegmentNumber, u64)> {
        let ((stream, segment), bytes) = self.segments.pop_first()?;
        self.bytes -= bytes.len() as u64;
        debug_assert!(!self.segments.is_empty() || self.bytes == 0, "{} bytes of no segment", self.bytes);
        Some((stream, segment, bytes.len() as u64))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The number of bytes in it.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The low 16 bits of the length of the segment that the first piece of `packet` belongs to.
    pub(super) fn length_detail<P: Packet>(&self, packet: &P) -> u16 {
        let of = |span: PayloadSpan| self.segments.get(&(span.stream, span.segment));
        packet.payload(0).and_then(of).map_or(0, |bytes| bytes.len() as u16)
    }

    /// Copies the payload of `packet` into its encoding and seals it. Bytes that the buffer does not have stay zero: padding after the end of a
    /// segment, or a segment that is judged.
    pub(super) fn fill<P: Packet>(&self, packet: &P, encoding: &mut [u8]) {
        for span in (0..).map_while(|index| packet.payload(index)) {
            let Some(segment) = self.segments.get(&(span.stream, span.segment)) else { continue };
            let from = usize::try_from(span.offset).unwrap_or(usize::MAX);
            let Some(source) = segment.get(from..) else { continue };
            let Some(room) = span.at.checked_add(span.bytes).and_then(|end| encoding.get_mut(span.at..end)) else { continue };
            for (to, from) in room.iter_mut().zip(source) {
                *to = *from;
            }
        }
        packet.seal(encoding);
    }
}
