//! What has come out of sequence and is kept until the gap before it is filled.
//!
//! Called by the receivers that store (XT Table 2, 1 and 2). It is as large as the window: the ten places of the study's
//! queue in front of the receiver are those of packets that it has not looked at.
//!
//! Invariant: packets ascend and do not overlap.

use super::packet::Place;
use core::ops::Range;
use std::collections::VecDeque;

/// A packet that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// Its first sequence number.
    pub(super) start: u64,
    /// The one behind it.
    pub(super) end: u64,
    pub(super) place: Place,
    /// The message ends with it.
    pub(super) is_last: bool,
}

/// Packets by their sequence numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    /// Why no ring by number: packets are of any length. Most come behind all others, where adding one moves nothing.
    packets: VecDeque<Held>,
}

impl Store {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Keeps a packet; not when something of it is here.
    pub(super) fn insert(&mut self, packet: Held) -> bool {
        if self.packets.back().is_none_or(|last| last.end <= packet.start) {
            self.packets.push_back(packet);
            return true;
        }
        let at = self.packets.partition_point(|held| held.end <= packet.start);
        let fits = self.packets.get(at).is_none_or(|behind| behind.start >= packet.end);
        if fits {
            self.packets.insert(at, packet);
        }
        fits
    }

    /// Takes the first packet out if it begins at or before `rseq`.
    #[inline]
    pub(super) fn pop(&mut self, rseq: u64) -> Option<Held> {
        if self.packets.front()?.start > rseq {
            return None;
        }
        self.packets.pop_front()
    }

    /// The first `most` runs of packets without a gap between them.
    pub(super) fn spans(&self, most: usize) -> Vec<Range<u64>> {
        let mut spans: Vec<Range<u64>> = Vec::new();
        for held in &self.packets {
            let count = spans.len();
            match spans.last_mut() {
                Some(span) if span.end == held.start => span.end = held.end,
                _ if count == most => break,
                _ => spans.push(held.start..held.end),
            }
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(start: u64, end: u64) -> Held {
        Held { start, end, place: Place { segment: 0, offset: 0 }, is_last: false }
    }

    #[test]
    fn runs_of_packets_are_spans_whatever_the_order_in_which_they_came() {
        let mut store = Store::default();
        for (start, end) in [(10, 20), (50, 60), (30, 40), (20, 30), (70, 80)] {
            assert!(store.insert(held(start, end)));
        }
        for (start, end) in [(10, 20), (15, 25), (55, 58), (40, 51), (0, 11)] {
            assert!(!store.insert(held(start, end)), "{start} to {end} is here in part");
        }
        assert_eq!(store.spans(9), [10..40, 50..60, 70..80]);
        assert_eq!(store.spans(1), core::slice::from_ref(&(10..40)));
        assert_eq!(store.pop(9), None);
        assert_eq!((store.pop(10), store.pop(20), store.len()), (Some(held(10, 20)), Some(held(20, 30)), 3));
    }
}
