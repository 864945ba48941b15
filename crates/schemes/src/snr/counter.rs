//! The repetition counters of all blocks: SNR's clock is the arrival of the receiver's states.
//!
//! Called by the sender when the last packet of a block has left and when a state arrives.
//! Source: HT 4 (each state decrements every pending counter by k, the intervals since the state before)
//! and EC 5. The counter of a block starts at the number of states that cannot show the block yet, and
//! one: with RTD = 60 ms and T_in = 5 ms, 12 states arrive within a round trip, so it starts at 13.
//!
//! Instead of decrementing the counter of every block, what has been counted is kept as one number that
//! grows, and a block keeps the value at which its counter is used up. That is the same and costs nothing.
//!
//! Invariant: without loss of states and with the round trip as configured, a counter is used up by the
//! first state that can show the block.

use super::Config;
use core::cmp::Ordering;
use segstream_base::sequence::serial_cmp;
use segstream_base::{Duration, Instant};

/// What has been counted, and from when on intervals are uncounted.
#[derive(Clone, Debug)]
pub(super) struct IntervalCounter {
    period: Duration,
    /// What a counter starts at: just over RTD / T_in.
    initial: u64,
    /// Whether a state counts the intervals of lost ones before it.
    covers_lost: bool,
    counted: u64,
    /// The interval number of the newest state.
    heard: Option<u32>,
    /// When that one arrived; before there is one, the start.
    heard_at: Instant,
}

impl IntervalCounter {
    pub(super) fn new(config: &Config, now: Instant) -> Self {
        Self {
            period: config.status_period,
            initial: config.rtt.as_nanos().div_ceil(config.status_period.as_nanos().max(1)).saturating_add(1),
            covers_lost: config.count_intervals,
            counted: 0,
            heard: None,
            heard_at: now,
        }
    }

    /// A state has arrived. `false`, and nothing is counted, when it is not newer than one before.
    pub(super) fn on_state(&mut self, now: Instant, interval: u32) -> bool {
        let k = match self.heard {
            Some(newest) if serial_cmp(interval, newest, 32) != Some(Ordering::Greater) => return false,
            Some(newest) if self.covers_lost => u64::from(interval.wrapping_sub(newest)),
            Some(_) => 1,
            // Why the own clock: when the receiver started is not known, and until its first state is here
            // half a round trip passes without any. Rounded down, no counter is used up too early.
            None => self.expected_by(now),
        };
        self.counted = self.counted.saturating_add(k);
        (self.heard, self.heard_at) = (Some(interval), now);
        true
    }

    /// The count at which the counter of a block is used up whose last packet, handed out at `now`, has
    /// left completely at `left`.
    ///
    /// States of intervals that ended before the block had left do not count for it, though they will be
    /// counted: those still expected until then and, where they will be covered, those that should have
    /// arrived by now.
    pub(super) fn used_up_at(&self, now: Instant, left: Instant) -> u64 {
        let before = self.expected_by(left);
        let covered = self.covers_lost || self.heard.is_none();
        let never_counted = if covered { 0 } else { self.expected_by(now - Duration::from_nanos(1)) };
        self.counted.saturating_add(before.saturating_sub(never_counted)).saturating_add(self.initial)
    }

    /// Whether a counter that is used up at `count` is.
    pub(super) const fn is_used_up(&self, count: u64) -> bool {
        self.counted >= count
    }

    /// How many states are expected after the newest one until `at`.
    fn expected_by(&self, at: Instant) -> u64 {
        at.since(self.heard_at).as_nanos() / self.period.as_nanos().max(1)
    }
}
