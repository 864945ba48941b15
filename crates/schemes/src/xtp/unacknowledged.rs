//! The packets that have left and are not below RSEQ: found by sequence number, kept by packet number.
//!
//! Called by the sender. Packets are counted from 0 in the order of their first transmission; sequence numbers count
//! bytes (XT 2), so that packets of different length are found by a search.
//!
//! Invariant: the packets follow each other without a gap; a packet is forgotten when RSEQ has passed its last byte.

use super::packet::{Forward, Place};
use core::ops::Range;
use segstream_base::Instant;
use std::collections::VecDeque;

/// A packet that has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Its first sequence number.
    pub(super) start: u64,
    pub(super) place: Place,
    pub(super) bytes: u16,
    /// The message ends with it.
    pub(super) is_last: bool,
    /// When it left last.
    pub(super) at: Instant,
}

impl Sent {
    /// The sequence number behind it.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(Forward::sequence_bytes(u32::from(self.bytes)))
    }
}

/// The packets that have left and are not released, in a ring.
#[derive(Clone, Debug, Default)]
pub(super) struct Unacknowledged {
    packets: VecDeque<Sent>,
    /// The number of the first of them.
    first: u64,
}

impl Unacknowledged {
    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The number of the first packet, which is that of the next one when there is none.
    #[inline]
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// The number behind the last packet.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// A packet leaves for the first time.
    #[inline]
    pub(super) fn push(&mut self, sent: Sent) {
        self.packets.push_back(sent);
    }

    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<&Sent> {
        self.packets.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Sent> {
        self.packets.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The first packet, if it lies below `rseq` as a whole, is forgotten.
    #[inline]
    pub(super) fn release(&mut self, rseq: u64) -> Option<Sent> {
        if self.packets.front()?.end() > rseq {
            return None;
        }
        self.first += 1;
        self.packets.pop_front()
    }

    /// The numbers of the packets that have a byte in `bytes`.
    pub(super) fn overlapping(&self, bytes: Range<u64>) -> Range<u64> {
        let from = self.packets.partition_point(|sent| sent.end() <= bytes.start);
        let to = self.packets.partition_point(|sent| sent.start < bytes.end).max(from);
        self.first + from as u64..self.first + to as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_by_their_bytes_and_released_whole() {
        let mut sent = Unacknowledged::default();
        let mut start = 0;
        for bytes in [100, 0, 50, 100] {
            let packet = Sent { start, place: Place { segment: 0, offset: 0 }, bytes, is_last: false, at: Instant::ZERO };
            start = packet.end();
            sent.push(packet);
        }
        // The ends: 108, 116, 174, 282.
        assert_eq!(sent.overlapping(0..282), 0..4);
        assert_eq!(sent.overlapping(107..108), 0..1);
        assert_eq!(sent.overlapping(108..117), 1..3);
        assert_eq!(sent.overlapping(174..174), 3..3);
        assert!(sent.release(107).is_none(), "its last byte is missing");
        assert!(sent.release(116).is_some());
        assert!(sent.release(116).is_some());
        assert!(sent.release(116).is_none());
        assert_eq!((sent.first(), sent.end(), sent.overlapping(116..200)), (2, 4, 2..4));
        assert!(sent.get(1).is_none());
        assert_eq!(sent.get(3).map(|packet| packet.start), Some(174));
    }
}
