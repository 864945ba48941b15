//! Reno: slow start, congestion avoidance, and half a window after a loss.
//!
//! Called by [`super::Sender`].
//!
//! Invariant: outside recovery the window grows by one packet a round trip, or doubles below the threshold.
//! Source: RFC 5681 3.1, 3.2, RFC 6675 5; initial window RFC 6928.

use super::congestion::{Acknowledged, Congestion};
use segstream_base::Instant;

/// The window a connection starts with, in packets (RFC 6928).
pub(super) const INITIAL_WINDOW: f64 = 10.0;
/// The least a window is reduced to after a loss (RFC 5681 equation 4).
pub(super) const WINDOW_MIN: f64 = 2.0;

/// Reno.
#[derive(Clone, Copy, Debug)]
pub struct Reno {
    window: f64,
    threshold: f64,
}

impl Default for Reno {
    fn default() -> Self {
        Self { window: INITIAL_WINDOW, threshold: f64::INFINITY }
    }
}

impl Congestion for Reno {
    const NAME: &'static str = "reno";

    fn on_ack(&mut self, ack: &Acknowledged) {
        if ack.recovering || !ack.window_limited {
            return;
        }
        let packets = ack.packets as f64;
        if self.window < self.threshold {
            self.window = (self.window + packets).min(self.threshold);
        } else {
            self.window += packets / self.window;
        }
    }

    fn on_congestion(&mut self, _now: Instant, in_flight: u64) {
        self.threshold = (in_flight as f64 / 2.0).max(WINDOW_MIN);
        self.window = self.threshold;
    }

    fn on_recovered(&mut self, _now: Instant) {}

    fn on_timeout(&mut self, _now: Instant, in_flight: u64, again: bool) {
        if !again {
            self.threshold = (in_flight as f64 / 2.0).max(WINDOW_MIN);
        }
        self.window = 1.0;
    }

    fn window(&self) -> f64 {
        self.window
    }
}
