//! `bbr1`: version 1 of BBR, as Linux has it: a rate and a window from the measured bottleneck bandwidth and round trip, whatever
//! is lost. For the cross traffic of simulations; [`super::bbr`] is what users can choose.
//!
//! Invariant: packets leave at a gain times the largest delivery rate of the last ten rounds; in steady state at most
//! twice the bandwidth-delay product is in flight.
//! Source: draft-cardwell-iccrg-bbr-congestion-control-00, section 4.

use super::window::{self, PacketUnits};
use super::windowed_max::WindowedMax;
use super::{Algorithm, Bounds, Clock, CongestionEvent, Controller, Report, Silence};
use segstream_base::halves::Probe;
use segstream_base::random::{Random, Seed};
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// The entry of the list.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "bbr1",
    about: "the measured bandwidth and round trip, whatever is lost (version 1, as Linux has it)",
    offered: false,
    clock: Clock::Reports,
    // Version 1 does not respond to ECN.
    responds_to_ecn: false,
    start: |start| Box::new(Bbr::new(start.bounds, start.seed)),
};

/// 2 / ln 2: doubles the rate each round (4.1.1: BBRHighGain).
const HIGH_GAIN: f64 = 2.885;
/// The window's gain in steady state.
const WINDOW_GAIN: f64 = 2.0;
/// The pacing gains of a cycle, a shortest round trip each (4.3.4).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Over how many rounds the largest delivery rate counts (4.1.1.4).
const BANDWIDTH_ROUNDS: u64 = 10;
/// How long the shortest round trip counts (4.1.2.3).
const RTT_TIME: Duration = Duration::from_secs(10);
/// How long ProbeRTT drains the path (4.3.5).
const DRAINED_TIME: Duration = Duration::from_millis(200);
/// The window then, and the least ever (4.2.3: BBRMinPipeCwnd).
const WINDOW_MIN: f64 = 4.0;
/// Packets that may be in flight above the gain, as Linux adds for bursts of the sender's host.
const SLACK: f64 = 3.0;
/// How long a send quantum takes at the pacing rate, and its bounds (4.2.2).
const QUANTUM_TIME: Duration = Duration::from_millis(1);
const QUANTUM_MOST: Bytes = Bytes::new(64 * 1024);
/// Below these rates the quantum is one packet, and two.
const QUANTUM_ONE: Bandwidth = Bandwidth::from_bits_per_second(1_200_000);
const QUANTUM_TWO: Bandwidth = Bandwidth::from_bits_per_second(24_000_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// BBR.
#[derive(Clone, Debug)]
pub struct Bbr {
    units: PacketUnits,
    mode: Mode,
    window: f64,
    /// The window before a recovery or a drained path, to return to.
    window_before: f64,
    /// The largest delivery rate of recent rounds.
    rate_max: WindowedMax<Bandwidth>,
    round: u64,
    round_end: u64,
    round_starts: bool,
    rtt_min: Option<Duration>,
    rtt_min_at: Instant,
    full_rate: Bandwidth,
    full_rounds: u32,
    filled: bool,
    phase: usize,
    phase_at: Instant,
    drained_at: Option<Instant>,
    drained_round: bool,
    /// The first round of a recovery sends what is acknowledged and no more.
    conserving: Option<u64>,
    recovering: bool,
    random: Random,
}

impl Bbr {
    /// At the start of a connection. The first phase of a cycle is drawn from `seed`. The floor and the peak are the sender's to
    /// keep.
    pub fn new(bounds: Bounds, seed: Seed) -> Self {
        Self::with(PacketUnits::new(bounds), seed.stream("bbr"))
    }

    fn with(units: PacketUnits, random: Random) -> Self {
        Self {
            units,
            mode: Mode::Startup,
            window: window::INITIAL,
            window_before: window::INITIAL,
            rate_max: WindowedMax::new(),
            round: 0,
            round_end: 0,
            round_starts: false,
            rtt_min: None,
            rtt_min_at: Instant::ZERO,
            full_rate: Bandwidth::ZERO,
            full_rounds: 0,
            filled: false,
            phase: 2,
            phase_at: Instant::ZERO,
            drained_at: None,
            drained_round: false,
            conserving: None,
            recovering: false,
            random,
        }
    }

    /// The bottleneck's bandwidth, as far as it is known.
    pub fn bandwidth(&self) -> Bandwidth {
        self.rate_max.get().unwrap_or(Bandwidth::ZERO)
    }

    /// The path's bandwidth-delay product times `gain`, in packets; `None` before anything is known.
    fn product(&self, gain: f64) -> Option<f64> {
        let bandwidth = self.bandwidth();
        if bandwidth.is_zero() {
            return None;
        }
        let packets = bandwidth.bits_per_second() as f64 * self.rtt_min?.as_secs_f64() / (self.units.datagram() * 8) as f64;
        Some(gain * packets)
    }

    const fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => 1.0 / HIGH_GAIN,
            Mode::ProbeBandwidth => CYCLE[self.phase % CYCLE.len()],
            Mode::ProbeRtt => 1.0,
        }
    }

    const fn window_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBandwidth => WINDOW_GAIN,
            Mode::ProbeRtt => 1.0,
        }
    }

    fn update_round(&mut self, report: &Report) {
        self.round_starts = report.sample.is_some_and(|sample| sample.prior_delivered >= self.round_end);
        if self.round_starts {
            self.round_end = report.delivered_total;
            self.round += 1;
            self.conserving = self.conserving.filter(|until| self.round < *until);
        }
    }

    fn update_bandwidth(&mut self, report: &Report) {
        let Some(rate) = report.sample.and_then(|sample| sample.rate) else { return };
        if is_app_limited(report) && rate < self.bandwidth() {
            return;
        }
        self.rate_max.update(self.round, BANDWIDTH_ROUNDS, rate);
    }

    /// 4.3.2: three rounds without a quarter more means that the pipe is full.
    fn check_full(&mut self, report: &Report) {
        if self.filled || !self.round_starts || is_app_limited(report) {
            return;
        }
        let bandwidth = self.bandwidth();
        if bandwidth.bits_per_second() >= (self.full_rate.bits_per_second() / 4).saturating_mul(5) {
            self.full_rate = bandwidth;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= 3;
    }

    fn check_drained(&mut self, now: Instant, report: &Report) {
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && self.product(1.0).is_none_or(|product| self.units.packets(report.in_flight) <= product) {
            self.probe_bandwidth(now);
        }
    }

    fn probe_bandwidth(&mut self, now: Instant) {
        self.mode = Mode::ProbeBandwidth;
        // 4.3.4.3: any phase but the one that drains.
        let drawn = self.random.below(CYCLE.len() as u64 - 1) as usize;
        self.phase = if drawn == 0 { 0 } else { drawn + 1 };
        self.phase_at = now;
    }

    /// 4.3.4.4.
    fn advance_cycle(&mut self, now: Instant, report: &Report) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let elapsed = now.since(self.phase_at) > self.rtt_min.unwrap_or(Duration::ZERO);
        let before = self.units.packets(report.in_flight_before);
        let gain = self.pacing_gain();
        let over = if gain > 1.0 {
            elapsed && (report.lost > 0 || self.product(gain).is_none_or(|product| before >= product))
        } else if gain < 1.0 {
            elapsed || self.product(1.0).is_none_or(|product| before <= product)
        } else {
            elapsed
        };
        if over {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_at = now;
        }
    }

    /// 4.1.2.3 and 4.3.5: when the shortest round trip has become old, the path is drained to see it again.
    fn update_rtt(&mut self, now: Instant, report: &Report) {
        let expired = now.since(self.rtt_min_at) > RTT_TIME;
        if let Some(rtt) = report.rtt
            && (expired || self.rtt_min.is_none_or(|min| rtt <= min))
        {
            self.rtt_min = Some(rtt);
            self.rtt_min_at = now;
        }
        if expired && self.mode != Mode::ProbeRtt {
            self.window_before = self.keep_window();
            self.mode = Mode::ProbeRtt;
            self.drained_at = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.drain(now, report);
        }
    }

    fn drain(&mut self, now: Instant, report: &Report) {
        let Some(until) = self.drained_at else {
            if self.units.packets(report.in_flight) <= WINDOW_MIN {
                self.drained_at = Some(now + DRAINED_TIME);
                self.drained_round = false;
                self.round_end = report.delivered_total;
            }
            return;
        };
        self.drained_round |= self.round_starts;
        if self.drained_round && now > until {
            self.rtt_min_at = now;
            self.window = self.window.max(self.window_before);
            if self.filled { self.probe_bandwidth(now) } else { self.mode = Mode::Startup }
        }
    }

    fn keep_window(&self) -> f64 {
        if self.recovering || self.mode == Mode::ProbeRtt { self.window.max(self.window_before) } else { self.window }
    }

    /// 4.2.3.
    fn set_window(&mut self, report: &Report) {
        let packets = self.units.packets(report.delivered);
        let in_flight = self.units.packets(report.in_flight);
        if report.lost > 0 {
            self.window = (self.window - self.units.packets(report.lost)).max(1.0);
        }
        if self.conserving.is_some() {
            self.window = self.window.max(in_flight + packets).max(1.0);
        } else {
            match self.product(self.window_gain()).map(|product| product + SLACK) {
                Some(target) if self.filled => self.window = (self.window + packets).min(target),
                Some(target) if self.window >= target && self.units.packets(report.delivered_total) >= window::INITIAL => {}
                _ => self.window += packets,
            }
            self.window = self.window.max(WINDOW_MIN);
        }
        if self.mode == Mode::ProbeRtt {
            self.window = self.window.min(WINDOW_MIN);
        }
    }

    fn recover(&mut self, conserving: Option<u64>, window: f64) {
        self.window_before = self.keep_window();
        self.recovering = true;
        self.conserving = conserving;
        self.window = window;
    }
}

fn is_app_limited(report: &Report) -> bool {
    report.sample.is_some_and(|sample| sample.app_limited)
}

impl Controller for Bbr {
    fn set_bounds(&mut self, _now: Instant, bounds: Bounds) {
        self.units.set_bounds(bounds);
    }

    fn on_round_trip(&mut self, _now: Instant, rtt: Duration) {
        self.units.on_round_trip(rtt);
    }

    fn on_report(&mut self, now: Instant, report: &Report) {
        self.units.on_report(report);
        if report.recovered {
            self.recovering = false;
            self.conserving = None;
            self.window = self.window.max(self.window_before);
        }
        if report.event == Some(CongestionEvent::Loss) {
            self.recover(Some(self.round + 1), self.units.packets(report.in_flight_before));
        }
        self.update_round(report);
        self.update_bandwidth(report);
        self.check_full(report);
        self.check_drained(now, report);
        self.advance_cycle(now, report);
        self.update_rtt(now, report);
        self.set_window(report);
    }

    fn on_silence(&mut self, _now: Instant, silence: &Silence) {
        if silence.timeout.is_some() {
            self.recover(None, 1.0);
        }
    }

    fn on_path_change(&mut self, now: Instant) {
        self.units.forget_path();
        *self = Self { rtt_min_at: now, ..Self::with(self.units, self.random.clone()) };
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        let bandwidth = self.bandwidth();
        // Before the first sample the window alone limits; its ten packets leave at once, as Linux's first pacing rate of a
        // millisecond's round trip lets them.
        (!bandwidth.is_zero()).then(|| {
            let rate = self.pacing_gain() * bandwidth.bits_per_second() as f64;
            Bandwidth::from_bits_per_second(rate as u64)
        })
    }

    fn in_flight_cap(&self) -> Bytes {
        self.units.cap(self.window)
    }

    fn quantum(&self) -> Option<Bytes> {
        let rate = self.pacing_rate()?;
        let packets = |count| Bytes::new(count * self.units.datagram());
        Some(if rate < QUANTUM_ONE {
            packets(1)
        } else if rate < QUANTUM_TWO {
            packets(2)
        } else {
            rate.bytes_in(QUANTUM_TIME).min(QUANTUM_MOST)
        })
    }

    fn exchange_period(&self) -> Duration {
        self.units.exchange_period(self.window)
    }

    fn phase(&self) -> &'static str {
        match self.mode {
            Mode::Startup => "start_up",
            Mode::Drain => "drain",
            Mode::ProbeBandwidth => "probe_bandwidth",
            Mode::ProbeRtt => "probe_rtt",
        }
    }

    /// Gauges: `window_packets` and `bandwidth_bps`.
    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("window_packets", self.window);
        out.gauge("bandwidth_bps", self.bandwidth().bits_per_second() as f64);
    }
}
