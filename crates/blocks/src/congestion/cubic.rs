//! `cubic`: a window that grows as the cube of the time since the last loss, and leaves slow start when delay grows.
//!
//! Invariant: in an epoch the window follows W(t) = C (t - K)^3 + W_max, or Reno's where that is larger.
//! Source: RFC 9438 4; the delay exit as in Linux's `tcp_cubic` (HyStart, Ha and Rhee 2011).

use super::window::{self, Measure};
use super::{Algorithm, Bounds, Clock, Controller, Limit, Report, Silence};
use segstream_base::halves::Probe;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// The entry of the list.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "cubic",
    about: "a window that grows as the cube of the time since the last loss (RFC 9438)",
    offered: false,
    clock: Clock::Reports,
    heeds_marks: true,
    start: |start| Box::new(Cubic::new(start.bounds)),
};

/// C, in packets a cubic second (RFC 9438 4.1).
const C: f64 = 0.4;
/// What is left of the window after a loss (RFC 9438 4.6).
const BETA: f64 = 0.7;
/// Reno's growth a round trip that gives the same mean with this factor (RFC 9438 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC.
#[derive(Clone, Copy, Debug)]
pub struct Cubic {
    measure: Measure,
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

impl Cubic {
    /// At the start of a connection. The floor and the peak are the sender's to keep.
    pub fn new(bounds: Bounds) -> Self {
        Self::with(Measure::new(bounds))
    }

    fn with(measure: Measure) -> Self {
        Self {
            measure,
            window: window::INITIAL,
            threshold: f64::INFINITY,
            window_max: 0.0,
            window_prior: 0.0,
            epoch: None,
            unused_since: None,
            exit: DelayExit::default(),
        }
    }

    fn begin_epoch(&self, now: Instant) -> Epoch {
        let (origin, k) = if self.window < self.window_max {
            (self.window_max, libm::cbrt((self.window_max - self.window) / C))
        } else {
            (self.window, 0.0)
        };
        Epoch { start: now, k, origin, reno: self.window }
    }

    fn avoid_congestion(&mut self, now: Instant, report: &Report) {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(now));
        if let Some(since) = self.unused_since.take() {
            epoch.start += now.since(since.max(epoch.start));
        }
        let packets = self.measure.packets(report.delivered);
        let rtt = report.rtt_min.as_secs_f64();
        let at = |seconds: f64| {
            let from_k = seconds - epoch.k;
            C * from_k * from_k * from_k + epoch.origin
        };
        let t = now.since(epoch.start).as_secs_f64();
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
        self.threshold = (self.window * BETA).max(window::LEAST);
    }
}

impl Controller for Cubic {
    fn set_bounds(&mut self, _now: Instant, bounds: Bounds) {
        self.measure.set_bounds(bounds);
    }

    fn on_round_trip(&mut self, _now: Instant, rtt: Duration) {
        self.measure.on_round_trip(rtt);
    }

    fn on_report(&mut self, now: Instant, report: &Report) {
        self.measure.on_report(report);
        if report.event.is_some() {
            self.reduce();
            self.window = self.threshold;
        }
        if report.recovering {
            return;
        }
        if report.limited != Some(Limit::Cap) {
            self.unused_since.get_or_insert(now);
            return;
        }
        if self.window < self.threshold {
            self.window = (self.window + self.measure.packets(report.delivered)).min(self.threshold);
            if self.exit.shall_leave(report, self.window) {
                self.threshold = self.window;
            }
        } else {
            self.avoid_congestion(now, report);
        }
    }

    fn on_silence(&mut self, _now: Instant, silence: &Silence) {
        let Some(expiry) = silence.timeout else { return };
        if expiry == 1 {
            self.reduce();
        }
        self.window = 1.0;
        self.exit = DelayExit::default();
    }

    fn on_path_change(&mut self, _now: Instant) {
        self.measure.forget_path();
        *self = Self::with(self.measure);
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        None
    }

    fn in_flight_cap(&self) -> Bytes {
        self.measure.cap(self.window)
    }

    fn exchange_period(&self) -> Duration {
        self.measure.exchange_period(self.window)
    }

    fn phase(&self) -> &'static str {
        if self.window < self.threshold { "slow_start" } else { "congestion_avoidance" }
    }

    /// Gauge: `window_packets`.
    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("window_packets", self.window);
    }
}

/// Leaves slow start when the first round trips of a round are longer than the shortest ever.
#[derive(Clone, Copy, Debug)]
struct DelayExit {
    /// The round ends when a packet is acknowledged that was sent after this many bytes had been delivered.
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

    fn shall_leave(&mut self, report: &Report, window: f64) -> bool {
        if report.sample.map_or(0, |sample| sample.prior_delivered) >= self.round_end {
            *self = Self { round_end: report.delivered_total, ..Self::default() };
        }
        let Some(rtt) = report.rtt.filter(|_| self.samples < Self::SAMPLES) else { return false };
        self.samples += 1;
        self.shortest = self.shortest.min(rtt);
        let margin = (report.rtt_min / 8).clamp(Duration::from_millis(4), Duration::from_millis(16));
        self.samples == Self::SAMPLES && window >= Self::WINDOW_MIN && self.shortest >= report.rtt_min + margin
    }
}
