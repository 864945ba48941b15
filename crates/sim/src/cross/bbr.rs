//! BBR, version 1: a rate and a window from the measured bottleneck bandwidth and round trip, whatever is lost.
//!
//! Called by [`super::Sender`].
//!
//! Invariant: packets leave at a gain times the largest delivery rate of the last ten rounds; in steady state at most
//! twice the bandwidth-delay product is under way.
//! Source: draft-cardwell-iccrg-bbr-congestion-control-00, section 4.

use super::congestion::{Acknowledged, Congestion};
use super::packet::DATA_BYTES;
use super::reno::INITIAL_WINDOW;
use segstream_base::random::{Random, Seed};
use segstream_base::{Bandwidth, Duration, Instant};
use std::collections::VecDeque;

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
/// How long the path is drained to measure the round trip (4.3.5).
const DRAINED_TIME: Duration = Duration::from_millis(200);
/// The window then, and the least ever (4.2.3: BBRMinPipeCwnd).
const WINDOW_MIN: f64 = 4.0;
/// Packets that may be under way above the gain, as Linux adds for bursts of the sender's host.
const SLACK: f64 = 3.0;

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
    mode: Mode,
    window: f64,
    /// The window before a recovery or a drained path, to return to.
    window_before: f64,
    /// The largest rates of recent rounds, with the round, falling.
    rates: VecDeque<(u64, Bandwidth)>,
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
    /// At the start of a connection. The first phase of a cycle is drawn from `seed`.
    pub fn new(seed: Seed) -> Self {
        Self {
            mode: Mode::Startup,
            window: INITIAL_WINDOW,
            window_before: INITIAL_WINDOW,
            rates: VecDeque::new(),
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
            random: seed.stream("bbr"),
        }
    }

    /// The bottleneck's bandwidth, as far as it is known.
    pub fn bandwidth(&self) -> Bandwidth {
        self.rates.front().map_or(Bandwidth::ZERO, |(_, rate)| *rate)
    }

    /// The path's bandwidth-delay product times `gain`, in packets; `None` before anything is known.
    fn product(&self, gain: f64) -> Option<f64> {
        let bandwidth = self.bandwidth();
        if bandwidth.is_zero() {
            return None;
        }
        let packets = bandwidth.bits_per_second() as f64 * self.rtt_min?.as_secs_f64() / (DATA_BYTES * 8) as f64;
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

    fn update_round(&mut self, ack: &Acknowledged) {
        self.round_starts = ack.rtt.is_some() && ack.delivered_before >= self.round_end;
        if self.round_starts {
            self.round_end = ack.delivered;
            self.round += 1;
            self.conserving = self.conserving.filter(|until| self.round < *until);
        }
    }

    fn update_bandwidth(&mut self, ack: &Acknowledged) {
        let Some(rate) = ack.rate else { return };
        if ack.source_limited && rate < self.bandwidth() {
            return;
        }
        while self.rates.back().is_some_and(|(_, known)| *known <= rate) {
            self.rates.pop_back();
        }
        self.rates.push_back((self.round, rate));
        while self.rates.front().is_some_and(|(round, _)| round + BANDWIDTH_ROUNDS <= self.round) {
            self.rates.pop_front();
        }
    }

    /// 4.3.2: three rounds without a quarter more means that the pipe is full.
    fn check_full(&mut self, ack: &Acknowledged) {
        if self.filled || !self.round_starts || ack.source_limited {
            return;
        }
        let bandwidth = self.bandwidth();
        if bandwidth.bits_per_second() >= self.full_rate.bits_per_second() / 4 * 5 {
            self.full_rate = bandwidth;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= 3;
    }

    fn check_drained(&mut self, ack: &Acknowledged) {
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && self.product(1.0).is_none_or(|product| ack.in_flight as f64 <= product) {
            self.probe_bandwidth(ack.now);
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
    fn advance_cycle(&mut self, ack: &Acknowledged) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let elapsed = ack.now.since(self.phase_at) > self.rtt_min.unwrap_or(Duration::ZERO);
        let before = ack.in_flight_before as f64;
        let gain = self.pacing_gain();
        let over = if gain > 1.0 {
            elapsed && (ack.lost > 0 || self.product(gain).is_none_or(|product| before >= product))
        } else if gain < 1.0 {
            elapsed || self.product(1.0).is_none_or(|product| before <= product)
        } else {
            elapsed
        };
        if over {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_at = ack.now;
        }
    }

    /// 4.1.2.3 and 4.3.5: when the shortest round trip has become old, the path is drained to see it again.
    fn update_rtt(&mut self, ack: &Acknowledged) {
        let expired = ack.now.since(self.rtt_min_at) > RTT_TIME;
        if let Some(rtt) = ack.rtt
            && (expired || self.rtt_min.is_none_or(|min| rtt <= min))
        {
            self.rtt_min = Some(rtt);
            self.rtt_min_at = ack.now;
        }
        if expired && self.mode != Mode::ProbeRtt {
            self.window_before = self.keep_window();
            self.mode = Mode::ProbeRtt;
            self.drained_at = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.drain(ack);
        }
    }

    fn drain(&mut self, ack: &Acknowledged) {
        let Some(until) = self.drained_at else {
            if ack.in_flight as f64 <= WINDOW_MIN {
                self.drained_at = Some(ack.now + DRAINED_TIME);
                self.drained_round = false;
                self.round_end = ack.delivered;
            }
            return;
        };
        self.drained_round |= self.round_starts;
        if self.drained_round && ack.now > until {
            self.rtt_min_at = ack.now;
            self.window = self.window.max(self.window_before);
            if self.filled { self.probe_bandwidth(ack.now) } else { self.mode = Mode::Startup }
        }
    }

    fn keep_window(&self) -> f64 {
        if self.recovering || self.mode == Mode::ProbeRtt { self.window.max(self.window_before) } else { self.window }
    }

    /// 4.2.3.
    fn set_window(&mut self, ack: &Acknowledged) {
        let packets = ack.packets as f64;
        let in_flight = ack.in_flight as f64;
        if ack.lost > 0 {
            self.window = (self.window - ack.lost as f64).max(1.0);
        }
        if self.conserving.is_some() {
            self.window = self.window.max(in_flight + packets);
        } else {
            match self.product(self.window_gain()).map(|product| product + SLACK) {
                Some(target) if self.filled => self.window = (self.window + packets).min(target),
                Some(target) if self.window >= target && ack.delivered >= INITIAL_WINDOW as u64 => {}
                _ => self.window += packets,
            }
            self.window = self.window.max(WINDOW_MIN);
        }
        if self.mode == Mode::ProbeRtt {
            self.window = self.window.min(WINDOW_MIN);
        }
    }
}

impl Congestion for Bbr {
    const NAME: &'static str = "bbr";

    fn on_ack(&mut self, ack: &Acknowledged) {
        self.update_round(ack);
        self.update_bandwidth(ack);
        self.check_full(ack);
        self.check_drained(ack);
        self.advance_cycle(ack);
        self.update_rtt(ack);
        self.set_window(ack);
    }

    fn on_congestion(&mut self, _now: Instant, in_flight: u64) {
        self.window_before = self.keep_window();
        self.recovering = true;
        self.conserving = Some(self.round + 1);
        self.window = in_flight as f64;
    }

    /// Version 1 does not know marks.
    fn on_mark(&mut self, _now: Instant, _in_flight: u64) {}

    fn on_recovered(&mut self, _now: Instant) {
        self.recovering = false;
        self.conserving = None;
        self.window = self.window.max(self.window_before);
    }

    fn on_timeout(&mut self, _now: Instant, _in_flight: u64, _again: bool) {
        self.window_before = self.keep_window();
        self.recovering = true;
        self.conserving = None;
        self.window = 1.0;
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn pacing(&self) -> Option<Bandwidth> {
        let bandwidth = self.bandwidth();
        // Before the first sample the window alone limits; its ten packets leave at once, as Linux's first pacing rate of a
        // millisecond's round trip lets them.
        (!bandwidth.is_zero()).then(|| {
            let rate = self.pacing_gain() * bandwidth.bits_per_second() as f64;
            Bandwidth::from_bits_per_second(rate as u64)
        })
    }
}
