//! Segments cut into numbered packets, as far as these have not left.
//!
//! Called by [`crate::transmission_buffer`].
//!
//! Invariant: packets are taken in the order of submission, each segment from its first packet to its last; an empty one is
//! one packet.

use crate::numbered_packet::Place;
use segstream_base::halves::{SegmentNumber, SubmitError};
use std::collections::VecDeque;

/// A segment of which packets are still to be sent for the first time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    packets: u16,
    /// Payload of its last packet.
    last_bytes: u16,
}

impl Cut {
    /// How many packets the segment has.
    #[inline]
    pub(crate) const fn packets(self) -> u16 {
        self.packets
    }
}

/// The segments that are not wholly sent.
#[derive(Clone, Debug)]
pub(crate) struct Unsent {
    /// Payload of a full packet.
    stride: u16,
    /// The packets of the longest segment.
    segment_packets: u32,
    segments: VecDeque<Cut>,
    /// The number of the first of them, and how many of its packets have left.
    segment: u32,
    begun: u16,
    /// Packets that have not left.
    packets: u64,
}

impl Unsent {
    /// Nothing waits; full packets have a payload of `stride` bytes.
    pub(crate) const fn new(stride: u16, segment_packets: u32) -> Self {
        Self { stride, segment_packets, segments: VecDeque::new(), segment: 0, begun: 0, packets: 0 }
    }

    /// Payload of a full packet in bytes.
    #[inline]
    pub(crate) const fn stride(&self) -> u16 {
        self.stride
    }

    /// Packets that have not left.
    #[inline]
    pub(crate) const fn packets(&self) -> u64 {
        self.packets
    }

    /// What a segment of `bytes` becomes.
    ///
    /// # Errors
    /// [`SubmitError::TooLong`] when a segment may not have this many packets.
    pub(crate) fn cut(&self, bytes: u64) -> Result<Cut, SubmitError> {
        let stride = u64::from(self.stride);
        let packets = bytes.div_ceil(stride).max(1);
        let limit = u64::from(self.segment_packets);
        match u16::try_from(packets) {
            // The rest is at most one stride.
            Ok(count) if packets <= limit => Ok(Cut { packets: count, last_bytes: (bytes - (packets - 1) * stride) as u16 }),
            _ => Err(SubmitError::TooLong { units: packets, window: limit }),
        }
    }

    /// Puts a segment behind those that wait.
    pub(crate) fn push(&mut self, cut: Cut) -> SegmentNumber {
        let number = self.segment + self.segments.len() as u32;
        self.segments.push_back(cut);
        self.packets += u64::from(cut.packets);
        SegmentNumber(u64::from(number))
    }

    /// The next packet leaves: where it belongs, and how many bytes of payload it has.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Place, u16)> {
        let cut = self.segments.front()?;
        let place = Place { segment: self.segment, packet: self.begun, packets: cut.packets };
        let bytes = if place.is_last() { cut.last_bytes } else { self.stride };
        self.packets -= 1;
        self.begun += 1;
        if place.is_last() {
            self.segments.pop_front();
            self.segment += 1;
            self.begun = 0;
        }
        Some((place, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_cut_into_full_packets_and_a_rest_and_an_empty_one_into_one() {
        let mut unsent = Unsent::new(100, 3);
        for (number, bytes) in [250, 0, 100].into_iter().enumerate() {
            let cut = unsent.cut(bytes).unwrap();
            assert_eq!(unsent.push(cut), SegmentNumber(number as u64));
        }
        assert_eq!(unsent.cut(301).err(), Some(SubmitError::TooLong { units: 4, window: 3 }));
        assert_eq!(unsent.packets(), 5);
        let packets: Vec<_> =
            core::iter::from_fn(|| unsent.pop()).map(|(place, bytes)| (place.segment, place.packet, place.packets, bytes)).collect();
        assert_eq!(packets, [(0, 0, 3, 100), (0, 1, 3, 100), (0, 2, 3, 50), (1, 0, 1, 0), (2, 0, 1, 100)]);
        assert_eq!(unsent.packets(), 0);
    }
}
