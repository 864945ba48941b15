//! An end that closes when it has heard nothing for a while, which keep-alive packets are to prevent (EC 4.1, type 1).
//!
//! Called by both halves. The papers say that a receiver closes and not when, nor what the sender does then: the time is a setting,
//! and the sender, which hears nothing from a closed receiver, closes after as long.
//!
//! Invariant: a closed end sends nothing, takes nothing, and has no deadline.

use segstream_base::{Duration, Instant};

/// The clock of an end that may close.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    after: Option<Duration>,
    /// When it closes; far in the future before the first packet, and where it never does.
    at: Instant,
    is_closed: bool,
}

impl Closing {
    pub(super) const fn new(after: Option<Duration>) -> Self {
        Self { after, at: Instant::FAR_FUTURE, is_closed: false }
    }

    /// A packet of the other end came, or the first one left.
    #[inline]
    pub(super) fn restart(&mut self, now: Instant) {
        if let Some(after) = self.after {
            self.at = now + after;
        }
    }

    /// The first packet left: from now on an answer is waited for.
    #[inline]
    pub(super) fn start(&mut self, now: Instant) {
        if self.at == Instant::FAR_FUTURE {
            self.restart(now);
        }
    }

    /// There is nothing to wait for any more.
    pub(super) const fn settle(&mut self) {
        (self.after, self.at) = (None, Instant::FAR_FUTURE);
    }

    /// When it closes.
    #[inline]
    pub(super) const fn at(&self) -> Instant {
        self.at
    }

    #[inline]
    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Closes if it is time to. `true` when it has just closed.
    pub(super) fn close_if_due(&mut self, now: Instant) -> bool {
        let closes = !self.is_closed && now >= self.at;
        if closes {
            self.is_closed = true;
            self.settle();
        }
        closes
    }
}
