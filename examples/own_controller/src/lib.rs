//! A congestion controller in a crate of its own: MulTCP (Crowcroft and Oechslin, ACM CCR 28(3), 1998), one flow that takes the share of
//! two Reno flows. It depends on the facade alone. `tests/laboratory.rs` studies it beside Reno, and runs it over sockets.
//!
//! Invariant: the window is never below two packets.

use segstream::congestion::exchange_period;
use segstream::congestion::{Algorithm, Bandwidth, Bounds, Bytes, Clock, Controller, Duration, Instant, Limit, Probe, Report, Silence};

/// As how many flows it behaves.
const FLOWS: f64 = 2.0;

/// What a configuration names: `Config::default().with_congestion(&MULTCP)`.
pub static MULTCP: Algorithm = Algorithm {
    name: "multcp",
    about: "two Reno flows in one",
    offered: false,
    clock: Clock::Reports,
    responds_to_ecn: true,
    start: |start| Box::new(MulTcp { packet: start.bounds.datagram.get(), window: 10.0 * FLOWS, threshold: f64::INFINITY, rtt: None }),
};

#[derive(Debug)]
struct MulTcp {
    packet: u64,
    /// In packets; below `threshold` it doubles in a round trip.
    window: f64,
    threshold: f64,
    rtt: Option<Duration>,
}

impl Controller for MulTcp {
    fn set_bounds(&mut self, _now: Instant, bounds: Bounds) {
        self.packet = bounds.datagram.get();
    }

    fn on_round_trip(&mut self, _now: Instant, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    fn on_report(&mut self, _now: Instant, report: &Report) {
        self.rtt = report.rtt.or(self.rtt);
        let packets = report.delivered as f64 / self.packet as f64;
        if report.event.is_some() {
            // One of the flows halves its share.
            self.threshold = (self.window * (1.0 - 0.5 / FLOWS)).max(2.0);
            self.window = self.threshold;
        } else if report.limited == Some(Limit::Cap) && !report.recovering {
            self.window += if self.window < self.threshold { packets } else { FLOWS * packets / self.window };
        }
    }

    fn on_silence(&mut self, _now: Instant, silence: &Silence) {
        if silence.timeout.is_some() {
            (self.threshold, self.window) = ((self.window / 2.0).max(2.0), 2.0);
        }
    }

    fn on_path_change(&mut self, _now: Instant) {
        (self.window, self.threshold, self.rtt) = (10.0 * FLOWS, f64::INFINITY, None);
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        None
    }

    fn in_flight_cap(&self) -> Bytes {
        Bytes::new(self.window as u64 * self.packet)
    }

    fn exchange_period(&self) -> Duration {
        exchange_period(self.rtt, self.rtt.map_or(0.2, Duration::as_secs_f64) / self.window)
    }

    fn phase(&self) -> &'static str {
        if self.window < self.threshold { "start-up" } else { "avoidance" }
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("window_packets", self.window);
    }
}
