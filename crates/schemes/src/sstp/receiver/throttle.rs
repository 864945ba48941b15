//! A user who is slow for a while, and what the receiver does about it (FC 3.4, window control strategy).
//!
//! Called by the receiving half when R_l could move, and by its timer.
//!
//! Invariant: R_l passes a segment when the user has done with it, so the window follows the user; W is smaller than agreed on only while
//! the user is slow.

use super::{Ask, Config, Receiver};
use crate::sstp::Throttle;
use segstream_base::Instant;
use segstream_blocks::user::{Slowdown, User};

/// The user, and the window while it is slow.
#[derive(Clone, Debug)]
pub(super) struct Throttled {
    user: User,
    /// When the window changes, and to what; the next first.
    changes: Vec<(Instant, u32)>,
    is_ever_slow: bool,
}

impl Throttled {
    pub(super) fn new(config: &Config) -> Self {
        let resize = config.slowdown.filter(|_| config.throttle == Throttle::Resize);
        let changes = resize.map_or_else(Vec::new, |slow| vec![(slow.until, config.window), (slow.from, smaller(config, slow))]);
        Self { user: User::new(config.slowdown), changes, is_ever_slow: config.slowdown.is_some() }
    }

    /// Nobody reads any more.
    pub(super) fn close(&mut self) {
        self.changes.clear();
        self.is_ever_slow = false;
    }

    /// Whether the user has done with the first segment, which is ready.
    #[inline]
    pub(super) fn takes(&mut self, now: Instant) -> bool {
        !self.is_ever_slow || self.user.take(now)
    }
}

/// W_1 = (F_1 / F) W_0 (FC 3.4), at least one segment; F is that of the rate.
fn smaller(config: &Config, slow: Slowdown) -> u32 {
    let share = config.segment_time().as_secs_f64() / slow.takes.as_secs_f64().max(f64::MIN_POSITIVE);
    // Between 1 and the window.
    ((f64::from(config.window) * share).ceil() as u32).clamp(1, config.window)
}

impl Receiver {
    /// When the user has done with a segment, or the window changes.
    #[inline]
    pub(super) fn throttled_until(&self) -> Instant {
        if !self.throttled.is_ever_slow {
            return Instant::FAR_FUTURE;
        }
        let taken = self.throttled.user.done_at().unwrap_or(Instant::FAR_FUTURE);
        self.throttled.changes.last().map_or(taken, |change| taken.min(change.0))
    }

    /// The user takes what it can, and the sender is told of the window.
    pub(super) fn on_throttle(&mut self, now: Instant) {
        while let Some((_, window)) = self.throttled.changes.pop_if(|change| change.0 <= now) {
            self.resize_window(window);
        }
        let before = self.edges();
        let head_asked_for = self.advance(now);
        if self.edges() != before {
            let below = self.slots.low().checked_sub(1);
            self.acks.pack(now, below, self.edges(), false, self.below_holes, self.ended);
        }
        if head_asked_for {
            self.check(now, self.slots.low(), Ask::Once);
        }
    }
}
