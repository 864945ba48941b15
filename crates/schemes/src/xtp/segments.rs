//! The messages that wait for their first transmission, cut into packets as they leave.
//!
//! Called by the sender. Source: XT 3.1: a message of any length becomes packets of a fixed one.
//!
//! Invariant: segments leave in the order of submission, each from its first byte to its last; an empty one is one packet.

use super::packet::Place;
use std::collections::VecDeque;

/// A packet that has not left yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fresh {
    pub(super) place: Place,
    pub(super) bytes: u16,
    /// The message ends with it.
    pub(super) is_last: bool,
}

/// The segments of which something has not left.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    /// The lengths of the segments from `first` on.
    lengths: VecDeque<u32>,
    first: u32,
    /// How much of the first has left.
    offset: u32,
    /// Payload of a full packet.
    stride: u16,
    packets: u64,
}

impl Segments {
    pub(super) fn new(stride: u16) -> Self {
        Self { lengths: VecDeque::new(), first: 0, offset: 0, stride, packets: 0 }
    }

    /// How many packets `bytes` become.
    pub(super) fn packets_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(u64::from(self.stride)).max(1)
    }

    /// The number that the next segment gets; `None` when there are no more numbers.
    pub(super) fn next_number(&self) -> Option<u32> {
        let number = u32::try_from(self.lengths.len()).ok().and_then(|waiting| self.first.checked_add(waiting));
        // Why below the maximum: the number after the last segment must exist.
        number.filter(|number| *number < u32::MAX)
    }

    pub(super) fn push(&mut self, bytes: u32) {
        self.packets += self.packets_of(u64::from(bytes));
        self.lengths.push_back(bytes);
    }

    /// Packets that have not left.
    #[inline]
    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    /// The next packet.
    #[inline]
    pub(super) fn peek(&self) -> Option<Fresh> {
        let left = self.lengths.front()? - self.offset;
        let stride = u32::from(self.stride);
        // What is left is at most a stride when it is the last packet.
        let bytes = if left <= stride { left as u16 } else { self.stride };
        Some(Fresh { place: Place { segment: self.first, offset: self.offset }, bytes, is_last: left <= stride })
    }

    /// The next packet leaves.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Fresh> {
        let fresh = self.peek()?;
        self.packets -= 1;
        self.offset += u32::from(fresh.bytes);
        if fresh.is_last {
            self.lengths.pop_front();
            self.first += 1;
            self.offset = 0;
        }
        Some(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_into_full_packets_and_a_rest_and_an_empty_one_into_one() {
        let mut segments = Segments::new(100);
        for bytes in [250, 0, 100] {
            segments.push(bytes);
        }
        assert_eq!((segments.packets(), segments.next_number()), (5, Some(3)));
        let cut: Vec<_> = core::iter::from_fn(|| segments.pop())
            .map(|fresh| (fresh.place.segment, fresh.place.offset, fresh.bytes, fresh.is_last))
            .collect();
        assert_eq!(cut, [(0, 0, 100, false), (0, 100, 100, false), (0, 200, 50, true), (1, 0, 0, true), (2, 0, 100, true)]);
        assert_eq!((segments.packets(), segments.next_number()), (0, Some(3)));
    }
}
