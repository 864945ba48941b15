//! What is in sequence and not read by the user yet: DSEQ, and when a DREQ is answered.
//!
//! Called by the receiver. Source: XT 2: SREQ is answered at once, DREQ when what had come before it has been delivered.
//!
//! Invariant: packets are read in order, one after the other; DSEQ never falls and is at most RSEQ; what waits lies within the window.

use segstream_base::halves::SegmentNumber;
use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// A message that ends with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) segment: SegmentNumber,
    pub(super) packets: u32,
}

/// A packet in sequence that the user has not read.
#[derive(Clone, Copy, Debug)]
struct Unread {
    /// The sequence number behind it.
    end: u64,
    /// When it will have been read.
    at: Instant,
    message: Option<Message>,
}

/// The user, as a queue with a server of its own.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    takes: Duration,
    unread: VecDeque<Unread>,
    dseq: u64,
    /// When the user will have read all that waits.
    free_at: Instant,
    /// A DREQ that is to be answered when DSEQ has reached this, and its number.
    asked: Option<(u64, u32)>,
}

impl Delivery {
    pub(super) fn new(takes: Duration) -> Self {
        Self { takes, unread: VecDeque::new(), dseq: 0, free_at: Instant::ZERO, asked: None }
    }

    /// One more than the highest byte read.
    #[inline]
    pub(super) const fn dseq(&self) -> u64 {
        self.dseq
    }

    /// How many packets wait.
    pub(super) fn len(&self) -> usize {
        self.unread.len()
    }

    /// The packet before `end` is in sequence now. The message that it completes is returned at once if the user takes no time.
    #[inline]
    pub(super) fn push(&mut self, now: Instant, end: u64, message: Option<Message>) -> Option<Message> {
        if self.takes.is_zero() {
            self.dseq = end;
            return message;
        }
        self.free_at = self.free_at.max(now) + self.takes;
        self.unread.push_back(Unread { end, at: self.free_at, message });
        None
    }

    /// What the user has read by `now`: the message that ends with it, if one does; to be asked until there is nothing.
    pub(super) fn read(&mut self, now: Instant) -> Option<Option<Message>> {
        let read = *self.unread.front().filter(|unread| unread.at <= now)?;
        self.unread.pop_front();
        self.dseq = read.end;
        Some(read.message)
    }

    /// When the user will have read something more.
    #[inline]
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.unread.front().map(|unread| unread.at)
    }

    /// A DREQ with the number `sync` has come while all up to `rseq` was in sequence.
    pub(super) fn ask(&mut self, rseq: u64, sync: u32) {
        let (before, number) = self.asked.unwrap_or_default();
        self.asked = Some((rseq.max(before), sync.max(number)));
    }

    /// The number of the DREQ that can be answered now, once.
    #[inline]
    pub(super) fn answered(&mut self) -> Option<u32> {
        let dseq = self.dseq;
        self.asked.take_if(|asked| asked.0 <= dseq).map(|asked| asked.1)
    }
}
