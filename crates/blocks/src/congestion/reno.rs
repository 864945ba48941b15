//! `reno`: slow start, congestion avoidance, and half a window after a loss.
//!
//! Invariant: outside recovery the window grows by one packet a round trip, or doubles below the threshold.
//! Source: RFC 5681 3.1, 3.2, RFC 6675 5; initial window RFC 6928.

use super::window::{LEAST, Window, WindowController, WindowLaw};
use super::{Algorithm, Clock, Limit, Report};
use segstream_base::Instant;

/// The entry of the list.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "reno",
    about: "half a window after a loss (RFC 5681)",
    offered: false,
    clock: Clock::Reports,
    responds_to_ecn: true,
    start: |start| Box::new(WindowController::<Reno>::new(start)),
};

/// Reno.
#[derive(Clone, Copy, Debug, Default)]
struct Reno;

/// Half of what is in flight, in packets (RFC 5681 equation 4).
fn half(window: &Window, in_flight: u64) -> f64 {
    (window.units.packets(in_flight) / 2.0).max(LEAST)
}

impl WindowLaw for Reno {
    fn on_report(&mut self, window: &mut Window, _now: Instant, report: &Report) {
        if report.event.is_some() {
            window.threshold = half(window, report.in_flight_before);
            window.size = window.threshold;
        }
        if report.recovering || report.limited != Some(Limit::Cap) {
            return;
        }
        if window.in_slow_start() {
            window.slow_start(report.delivered, 1.0);
        } else {
            window.size += window.units.packets(report.delivered) / window.size;
        }
    }

    fn on_timeout(&mut self, window: &mut Window, expiry: u32, in_flight: u64) {
        // RFC 5681 3.1: a threshold is not lowered twice for one loss.
        if expiry == 1 {
            window.threshold = half(window, in_flight);
        }
    }
}
