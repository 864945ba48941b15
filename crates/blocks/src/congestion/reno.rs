//! `reno`: slow start, congestion avoidance, and half a window after a loss.
//!
//! Invariant: outside recovery the window grows by one packet a round trip, or doubles below the threshold.
//! Source: RFC 5681 3.1, 3.2, RFC 6675 5; initial window RFC 6928.

use super::window::{self, Measure};
use super::{Algorithm, Bounds, Clock, Controller, Limit, Report, Silence};
use segstream_base::halves::Probe;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// The entry of the list.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "reno",
    about: "half a window after a loss (RFC 5681)",
    offered: false,
    clock: Clock::Reports,
    heeds_marks: true,
    start: |start| Box::new(Reno::new(start.bounds)),
};

/// Reno.
#[derive(Clone, Copy, Debug)]
pub struct Reno {
    measure: Measure,
    window: f64,
    threshold: f64,
}

impl Reno {
    /// At the start of a connection. The floor and the peak are the sender's to keep.
    pub fn new(bounds: Bounds) -> Self {
        Self { measure: Measure::new(bounds), window: window::INITIAL, threshold: f64::INFINITY }
    }

    fn half(&self, in_flight: u64) -> f64 {
        (self.measure.packets(in_flight) / 2.0).max(window::LEAST)
    }
}

impl Controller for Reno {
    fn set_bounds(&mut self, _now: Instant, bounds: Bounds) {
        self.measure.set_bounds(bounds);
    }

    fn on_round_trip(&mut self, _now: Instant, rtt: Duration) {
        self.measure.on_round_trip(rtt);
    }

    fn on_report(&mut self, _now: Instant, report: &Report) {
        self.measure.on_report(report);
        if report.event.is_some() {
            self.threshold = self.half(report.in_flight_before);
            self.window = self.threshold;
        }
        if report.recovering || report.limited != Some(Limit::Cap) {
            return;
        }
        let packets = self.measure.packets(report.delivered);
        if self.window < self.threshold {
            self.window = (self.window + packets).min(self.threshold);
        } else {
            self.window += packets / self.window;
        }
    }

    fn on_silence(&mut self, _now: Instant, silence: &Silence) {
        let Some(expiry) = silence.timeout else { return };
        // RFC 5681 3.1: a threshold is not lowered twice for one loss.
        if expiry == 1 {
            self.threshold = self.half(silence.in_flight);
        }
        self.window = 1.0;
    }

    fn on_path_change(&mut self, _now: Instant) {
        self.measure.forget_path();
        *self = Self { measure: self.measure, window: window::INITIAL, threshold: f64::INFINITY };
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
