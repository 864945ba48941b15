//! The retransmission queue: what was requested and has not left again, each packet once, and when a packet may be requested again.
//!
//! Called by the sender. Source: AA 2 (packets gap-in to gap-out - 1 are put into the retransmission queue, which goes before
//! new data). The paper does not say what happens when a packet is named that waits already, or that left a moment ago and cannot
//! have arrived when the status was made; taken at its word, it would send each of them twice and more at a high loss.
//!
//! A request for a packet that has left again is regarded from one round trip after that on: an acknowledgment that comes
//! then was made when the packet could have been there. To wait for one status more would be safer and slower: at a loss of
//! 0.1 a packet lost twice would hold the window for two periods instead of one.
//! The round trip is the smallest age that the newest packet of an acknowledgment had when that arrived.
//!
//! Invariant: the caller pushes no packet that is in the queue; nothing below the last `release` is in it.

use super::Config;
use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// The queue, and the round trip.
#[derive(Clone, Debug)]
pub(super) struct Retransmission {
    queue: VecDeque<u32>,
    t_error: Duration,
    /// Believed until there is a sample.
    rtt_first: Duration,
    rtt: Option<Duration>,
}

impl Retransmission {
    /// An empty queue.
    pub(super) const fn new(config: &Config) -> Self {
        Self { queue: VecDeque::new(), t_error: config.t_error, rtt_first: config.rtt, rtt: None }
    }

    /// Whether a gap that is named at `now` may speak of a packet that left again at `left`.
    #[inline]
    pub(super) fn may_speak_of(&self, now: Instant, left: Instant) -> bool {
        now.since(left) >= self.believed_rtt()
    }

    /// Whether a status that comes at `now` and names no gap may speak of a packet that left at `left`. One T_error more than
    /// a round trip, since no packet behind it proves that it is lost.
    #[inline]
    pub(super) fn is_overdue(&self, now: Instant, left: Instant) -> bool {
        now.since(left) >= self.t_error + self.believed_rtt()
    }

    fn believed_rtt(&self) -> Duration {
        self.rtt.unwrap_or(self.rtt_first)
    }

    /// The newest packet of an acknowledgment left `age` ago, for the only time.
    #[inline]
    pub(super) fn on_sample(&mut self, age: Duration) {
        self.rtt = Some(self.rtt.map_or(age, |smallest| smallest.min(age)));
    }

    /// The smallest sample.
    pub(super) const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Puts a packet behind those that wait.
    #[inline]
    pub(super) fn push(&mut self, sequence: u32) {
        self.queue.push_back(sequence);
    }

    /// Takes the packet that has waited longest.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<u32> {
        self.queue.pop_front()
    }

    /// Everything below `base` is acknowledged.
    #[inline]
    pub(super) fn release(&mut self, base: u32) {
        if !self.queue.is_empty() {
            self.queue.retain(|sequence| *sequence >= base);
        }
    }

    /// How many wait.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether none waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
