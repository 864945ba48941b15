//! CUBIC: a window that grows as the cube of the time since the last loss, and leaves slow start when delay grows.
//!
//! Called by [`super::Sender`].
//!
//! Invariant: in an epoch the window follows W(t) = C (t - K)^3 + W_max, or Reno's where that is larger.
//! Source: RFC 9438 4; the delay exit as in Linux's `tcp_cubic` (HyStart, Ha and Rhee 2011).

use super::congestion::{Acknowledged, Congestion};
use super::reno::{INITIAL_WINDOW, WINDOW_MIN};
use segstream_base::{Duration, Instant};

/// C, in packets a cubic second (RFC 9438 4.1).
const C: f64 = 0.4;
/// What is left of the window after a loss (RFC 9438 4.6).
const BETA: f64 = 0.7;
/// Reno's growth a round trip that gives the same mean with this factor (RFC 9438 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC.
#[derive(Clone, Copy, Debug)]
pub struct Cubic {
    window: f64,
    threshold: f64,
    /// The window before the last reduction, lowered by fast convergence.
    window_max: f64,
    /// The window at the last reduction itself.
    window_prior: f64,
    epoch: Option<Epoch>,
    /// The last acknowledgment that found the window unused; the epoch does not count that time.
    unused_since: Option<Instant>,
    exit: DelayExit,
}

/// A period of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Seconds until the window is back at its maximum.
    k: f64,
    origin: f64,
    /// What Reno's window would be.
    reno: f64,
}

impl Default for Cubic {
    fn default() -> Self {
        Self {
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            window_max: 0.0,
            window_prior: 0.0,
            epoch: None,
            unused_since: None,
            exit: DelayExit::default(),
        }
    }
}

impl Cubic {
    fn begin_epoch(&self, now: Instant) -> Epoch {
        let (origin, k) = if self.window < self.window_max {
            (self.window_max, libm::cbrt((self.window_max - self.window) / C))
        } else {
            (self.window, 0.0)
        };
        Epoch { start: now, k, origin, reno: self.window }
    }

    fn avoid_congestion(&mut self, ack: &Acknowledged) {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(ack.now));
        if let Some(since) = self.unused_since.take() {
            epoch.start += ack.now.since(since.max(epoch.start));
        }
        let packets = ack.packets as f64;
        let rtt = ack.rtt_min.as_secs_f64();
        let at = |seconds: f64| {
            let from_k = seconds - epoch.k;
            C * from_k * from_k * from_k + epoch.origin
        };
        let t = ack.now.since(epoch.start).as_secs_f64();
        let target = at(t + rtt).clamp(self.window, 1.5 * self.window);
        let alpha = if epoch.reno >= self.window_prior { 1.0 } else { ALPHA };
        epoch.reno += alpha * packets / self.window;
        self.window =
            if at(t) < epoch.reno { self.window.max(epoch.reno) } else { self.window + (target - self.window) / self.window * packets };
        self.epoch = Some(epoch);
    }

    fn reduce(&mut self) {
        self.epoch = None;
        self.unused_since = None;
        self.window_prior = self.window;
        // RFC 9438 4.7: a flow that lost below its last maximum leaves room to others.
        self.window_max = if self.window < self.window_max { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.threshold = (self.window * BETA).max(WINDOW_MIN);
    }
}

impl Congestion for Cubic {
    const NAME: &'static str = "cubic";

    fn on_ack(&mut self, ack: &Acknowledged) {
        if ack.recovering {
            return;
        }
        if !ack.window_limited {
            self.unused_since.get_or_insert(ack.now);
            return;
        }
        if self.window < self.threshold {
            self.window = (self.window + ack.packets as f64).min(self.threshold);
            if self.exit.shall_leave(ack, self.window) {
                self.threshold = self.window;
            }
        } else {
            self.avoid_congestion(ack);
        }
    }

    fn on_congestion(&mut self, _now: Instant, _in_flight: u64) {
        self.reduce();
        self.window = self.threshold;
    }

    fn on_recovered(&mut self, _now: Instant) {}

    fn on_timeout(&mut self, _now: Instant, _in_flight: u64, again: bool) {
        if !again {
            self.reduce();
        }
        self.window = 1.0;
        self.exit = DelayExit::default();
    }

    fn window(&self) -> f64 {
        self.window
    }
}

/// Leaves slow start when the first round trips of a round are longer than the shortest ever.
#[derive(Clone, Copy, Debug)]
struct DelayExit {
    /// The round ends when a packet is acknowledged that was sent after this many had been delivered.
    round_end: u64,
    samples: u32,
    shortest: Duration,
}

impl Default for DelayExit {
    fn default() -> Self {
        Self { round_end: 0, samples: 0, shortest: Duration::MAX }
    }
}

impl DelayExit {
    /// Below this window nothing is concluded.
    const WINDOW_MIN: f64 = 16.0;
    /// Round trips that are looked at in a round.
    const SAMPLES: u32 = 8;

    fn shall_leave(&mut self, ack: &Acknowledged, window: f64) -> bool {
        if ack.delivered_before >= self.round_end {
            *self = Self { round_end: ack.delivered, ..Self::default() };
        }
        let Some(rtt) = ack.rtt.filter(|_| self.samples < Self::SAMPLES) else { return false };
        self.samples += 1;
        self.shortest = self.shortest.min(rtt);
        let margin = (ack.rtt_min / 8).clamp(Duration::from_millis(4), Duration::from_millis(16));
        self.samples == Self::SAMPLES && window >= Self::WINDOW_MIN && self.shortest >= ack.rtt_min + margin
    }
}
