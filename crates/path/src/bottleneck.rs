//! The bottleneck: packets serialised at a bandwidth behind one drop-tail queue.
//!
//! Called by [`crate::Path`] once for each packet that is not lost before it.
//!
//! The departure of a packet follows from the one before it (the recursion of Lindley, Proc. Camb. Phil.
//! Soc. 48, 1952): it starts when it has arrived and the link is free, and leaves when its last bit has.
//! What waits is found by forgetting every packet whose transmission has begun, so an idle link costs
//! nothing and no event is needed to empty the queue.
//!
//! Invariant: departures never go backward, and a train of packets without a gap leaves in exactly the
//! time its bits take, to the nanosecond, however long it is.
//!
//! Invariant: the packet being transmitted has left the queue and does not count against its limit.

use crate::spec_error::SpecError;
use segstream_base::quantity::Remainder;
use segstream_base::{Bandwidth, Bytes, Instant};
use std::collections::VecDeque;

/// How much may wait for the link, the packet being transmitted not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// So many bytes. A packet that would exceed them is dropped.
    Bytes(Bytes),
    /// So many packets, whatever their length.
    Packets(u64),
}

impl QueueLimit {
    /// Nothing is ever dropped. The queue then takes 16 bytes of memory for each packet that waits.
    pub const UNLIMITED: Self = Self::Packets(u64::MAX);
}

/// A packet that waits: when its transmission begins, and its length.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    starts: Instant,
    bytes: Bytes,
}

/// A link of limited bandwidth with its queue.
#[derive(Clone, Debug)]
pub struct Bottleneck {
    bandwidth: Bandwidth,
    limit: QueueLimit,
    waiting: VecDeque<Waiting>,
    waiting_bytes: Bytes,
    free_at: Instant,
    remainder: Remainder,
}

impl Bottleneck {
    /// An idle link.
    ///
    /// # Errors
    /// [`SpecError::ZeroBandwidth`] when nothing would ever pass.
    pub fn new(bandwidth: Bandwidth, limit: QueueLimit) -> Result<Self, SpecError> {
        if bandwidth.is_zero() {
            return Err(SpecError::ZeroBandwidth);
        }
        Ok(Self {
            bandwidth,
            limit,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            free_at: Instant::ZERO,
            remainder: Remainder::default(),
        })
    }

    /// Takes a packet that arrives at `now`, which must not go backward. Returns when its last bit leaves,
    /// or `None` when the queue drops it.
    pub fn accept(&mut self, now: Instant, bytes: Bytes) -> Option<Instant> {
        self.forget_started(now);
        if self.free_at > now {
            // Why: a packet of no bytes would otherwise wait without a limit.
            let counted = bytes.max(Bytes::new(1));
            if !self.has_room(counted) {
                return None;
            }
            self.waiting.push_back(Waiting { starts: self.free_at, bytes: counted });
            self.waiting_bytes += counted;
        } else if self.free_at < now {
            // Why: the link stood idle, so the fraction of a nanosecond it was busy beyond `free_at` is past.
            self.free_at = now;
            self.remainder = Remainder::default();
        }
        let time = self.bandwidth.transmit_time(bytes, &mut self.remainder);
        self.free_at += time;
        Some(self.free_at)
    }

    /// When the link will have sent everything it has accepted.
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// The bytes that wait at `now`.
    pub fn waiting_bytes(&mut self, now: Instant) -> Bytes {
        self.forget_started(now);
        self.waiting_bytes
    }

    /// The packets that wait at `now`.
    pub fn waiting_packets(&mut self, now: Instant) -> u64 {
        self.forget_started(now);
        self.waiting.len() as u64
    }

    fn has_room(&self, bytes: Bytes) -> bool {
        match self.limit {
            QueueLimit::Bytes(limit) => self.waiting_bytes + bytes <= limit,
            QueueLimit::Packets(limit) => (self.waiting.len() as u64) < limit,
        }
    }

    #[inline]
    fn forget_started(&mut self, now: Instant) {
        while let Some(front) = self.waiting.front()
            && front.starts <= now
        {
            self.waiting_bytes = self.waiting_bytes - front.bytes;
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(bits: u64, limit: QueueLimit) -> Bottleneck {
        Bottleneck::new(Bandwidth::from_bits_per_second(bits), limit).unwrap()
    }

    #[test]
    fn a_train_without_gaps_leaves_to_the_nanosecond() {
        // 333,333,333 bit/s: no packet takes a whole number of nanoseconds.
        let mut link = link(333_333_333, QueueLimit::UNLIMITED);
        for count in 1..=100_000u128 {
            let exact = count * 1052 * 8 * 1_000_000_000 / 333_333_333;
            assert_eq!(link.accept(Instant::ZERO, Bytes::new(1052)), Some(Instant::from_nanos(exact as u64)));
        }
    }

    #[test]
    fn an_idle_link_starts_at_once_and_keeps_no_remainder() {
        let mut link = link(333_333_333, QueueLimit::UNLIMITED);
        let alone = 1052 * 8 * 1_000_000_000u64 / 333_333_333;
        for start in (0..1000u64).map(|i| i * 1_000_000) {
            assert_eq!(link.accept(Instant::from_nanos(start), Bytes::new(1052)), Some(Instant::from_nanos(start + alone)));
        }
    }

    #[test]
    fn the_queue_drops_exactly_when_its_bytes_would_be_exceeded() {
        // 8 Mbit/s: 1000 bytes take 1 ms. The first is on the link, three more fill 3000 bytes.
        let mut link = link(8_000_000, QueueLimit::Bytes(Bytes::new(3000)));
        for count in 1..=4 {
            assert_eq!(link.accept(Instant::ZERO, Bytes::new(1000)), Some(Instant::from_nanos(count * 1_000_000)));
        }
        assert_eq!(link.waiting_bytes(Instant::ZERO), Bytes::new(3000));
        assert_eq!(link.accept(Instant::ZERO, Bytes::new(1)), None);
        // One nanosecond before the second packet starts nothing has changed; when it starts, it makes room.
        assert_eq!(link.accept(Instant::from_nanos(999_999), Bytes::new(1)), None);
        assert_eq!(link.accept(Instant::from_nanos(1_000_000), Bytes::new(1001)), None);
        assert_eq!(link.accept(Instant::from_nanos(1_000_000), Bytes::new(1000)), Some(Instant::from_nanos(5_000_000)));
        assert_eq!(link.waiting_packets(Instant::from_nanos(1_000_000)), 3);
    }

    #[test]
    fn a_queue_in_packets_counts_packets_whatever_their_length() {
        let mut link = link(8_000_000, QueueLimit::Packets(2));
        assert!(link.accept(Instant::ZERO, Bytes::new(1500)).is_some());
        assert!(link.accept(Instant::ZERO, Bytes::new(1500)).is_some());
        assert!(link.accept(Instant::ZERO, Bytes::new(1)).is_some());
        assert_eq!(link.accept(Instant::ZERO, Bytes::new(1)), None);
    }

    #[test]
    fn a_queue_of_nothing_is_a_pure_loss_system() {
        let mut link = link(8_000_000, QueueLimit::Bytes(Bytes::ZERO));
        assert!(link.accept(Instant::ZERO, Bytes::new(1000)).is_some());
        assert_eq!(link.accept(Instant::from_nanos(999_999), Bytes::new(1000)), None);
        assert!(link.accept(Instant::from_nanos(1_000_000), Bytes::new(1000)).is_some());
    }

    #[test]
    fn empty_packets_cannot_fill_the_memory() {
        let mut link = link(1, QueueLimit::Bytes(Bytes::new(10)));
        let accepted = (0..1000)
            .filter(|_| link.accept(Instant::ZERO, Bytes::new(0)).is_some() || link.accept(Instant::ZERO, Bytes::new(1)).is_none());
        assert!(accepted.count() > 0);
        assert!(link.waiting_packets(Instant::ZERO) <= 10);
    }

    #[test]
    fn a_link_that_lets_nothing_pass_is_refused() {
        let error = Bottleneck::new(Bandwidth::ZERO, QueueLimit::UNLIMITED).map(|_| ()).unwrap_err();
        assert_eq!(error, SpecError::ZeroBandwidth);
    }
}
