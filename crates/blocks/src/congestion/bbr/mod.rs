//! `bbr`, version 3: a rate and a bound on what is in flight from a model of the path: its bandwidth, its round trip, and how much of
//! loss it takes.
//!
//! Called through [`Controller`] for each report. States, variables and constants have the names of the draft; numbers in comments are
//! its sections. Volumes are in bytes, rates in bits a second, both as numbers that may have fractions.
//!
//! ```text
//!  startup --> drain --> probe_bw:  DOWN --> CRUISE --> REFILL --> UP --+
//!     ^                              ^ |                   ^            |
//!     |                              | +-------------------+            |
//!     +------ probe_rtt <------------+----------------------------------+
//! ```
//!
//! - `round`: round trips by packets; `full_pipe`: whether more is delivered when more is sent.
//! - `max_bw`, `min_rtt`, `extra_acked`: the filters; `congestion`: what the last round delivered, and the short-term model;
//!   `long_term`: how much in flight the path takes.
//! - `startup` (with drain), `probe_bw`, `probe_rtt`: the states; `control`: rate, quantum and window.
//!
//! Source: draft-ietf-ccwg-bbr of August 2026.
//!
//! Invariant: in steady state at most `cwnd_gain` times the bandwidth-delay product, what is acknowledged in bursts and one quantum
//! are in flight; in startup the window grows by what is acknowledged.
//!
//! Limit: reports tell of several losses at once, so a loss is one of the newest acknowledged packet's; a report that holds some lost
//! counts as one range (5.3.1.3). Losses that came after all are not undone (5.5.11). A restart from idle (5.4) is seen with the first
//! report after it. Marks count as losses, as the draft asks of whoever claims to heed them (3.7): it has no answer of its own to them.

mod congestion;
mod control;
mod extra_acked;
mod full_pipe;
mod long_term;
mod max_bw;
mod min_rtt;
mod probe_bw;
mod probe_rtt;
mod round;
mod startup;
#[cfg(test)]
mod tests;

use super::start_rate::StartRate;
use super::window::{self, PacketUnits};
use super::{Algorithm, Bounds, Clock, CongestionEvent, Controller, Limit, Report, Silence, Start};
use congestion::{LatestDelivery, ShortTermModel};
use extra_acked::ExtraAcked;
use full_pipe::FullPipe;
use long_term::LongTermModel;
use max_bw::MaxBandwidth;
use min_rtt::MinRtt;
use probe_rtt::ProbeRtt;
use round::Round;
use segstream_base::halves::Probe;
use segstream_base::random::Random;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// The entry of the list.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "bbr",
    about: "a model of the path's bandwidth, round trip and loss (BBR version 3)",
    offered: true,
    clock: Clock::Reports,
    responds_to_ecn: true,
    start: |start| Box::new(Bbr::new(start)),
};

/// 2.5: the loss that is borne while more is asked for.
const LOSS_THRESH: f64 = 0.02;
/// 2.5: what is left after a round with loss, at least.
const BETA: f64 = 0.7;
/// 2.5: the share of `inflight_longterm` that is left to others.
const HEADROOM: f64 = 0.15;
/// 2.5: the least window, in packets.
const MIN_PIPE_CWND: f64 = 4.0;

/// 5.1: the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

/// What a report tells, as the draft's rate sample RS and connection C.
#[derive(Clone, Copy, Debug)]
struct RateSample {
    now: Instant,
    /// RS.newly_acked.
    newly_acked: f64,
    /// C.delivered.
    delivered_total: u64,
    /// P.delivered of the newest acknowledged packet; `None` when no packet is news.
    prior_delivered: Option<u64>,
    /// RS.delivered: in the round trip of that packet.
    delivered: f64,
    /// RS.delivery_rate; zero when nothing is known.
    delivery_rate: f64,
    is_app_limited: bool,
    tx_in_flight: f64,
    /// RS.lost, with what was marked.
    lost: f64,
    /// Of it what this report tells.
    newly_lost: f64,
    rtt: Option<Duration>,
    /// C.inflight.
    in_flight: f64,
    is_cwnd_limited: bool,
}

/// BBR.
#[derive(Clone, Debug)]
pub struct Bbr {
    units: PacketUnits,
    random: Random,
    state: State,
    round: Round,
    full_pipe: FullPipe,
    max_bw: MaxBandwidth,
    min_rtt: MinRtt,
    extra_acked: ExtraAcked,
    latest: LatestDelivery,
    short_term: ShortTermModel,
    long_term: LongTermModel,
    probe_rtt: ProbeRtt,
    /// BBR.bw.
    bw: f64,
    /// BBR.drain_start_round.
    drain_start_round: u64,
    /// BBR.cycle_stamp, and BBR.bw_probe_wait.
    cycle_stamp: Instant,
    bw_probe_wait: Duration,
    idle_restart: bool,
    /// Nothing was in flight and nothing waited after the report before.
    was_idle: bool,
    /// Samples of what left in between tell of ProbeRTT and not of the path: bytes delivered by then.
    app_limited: (u64, u64),
    recovering: bool,
    cwnd: f64,
    prior_cwnd: f64,
    /// C.pacing_rate; `None` before a round trip is known.
    pacing_rate: Option<f64>,
    start_rate: StartRate,
}

impl Bbr {
    /// 5.2.1: at the start of a connection.
    pub fn new(start: Start) -> Self {
        let start_rate = StartRate::new(start.initial);
        Self { start_rate, ..Self::with(start.now, PacketUnits::new(start.bounds), start.seed.stream("bbr")) }
    }

    fn with(now: Instant, units: PacketUnits, random: Random) -> Self {
        Self {
            units,
            random,
            state: State::Startup,
            round: Round::default(),
            full_pipe: FullPipe::default(),
            max_bw: MaxBandwidth::default(),
            min_rtt: MinRtt::new(now),
            extra_acked: ExtraAcked::new(now),
            latest: LatestDelivery::default(),
            short_term: ShortTermModel::default(),
            long_term: LongTermModel::default(),
            probe_rtt: ProbeRtt::default(),
            bw: 0.0,
            drain_start_round: 0,
            cycle_stamp: now,
            bw_probe_wait: Duration::ZERO,
            idle_restart: false,
            was_idle: false,
            app_limited: (0, 0),
            recovering: false,
            cwnd: window::INITIAL * units.datagram() as f64,
            prior_cwnd: 0.0,
            pacing_rate: None,
            start_rate: StartRate::Past,
        }
    }

    /// The bandwidth in force: BBR.bw.
    pub fn bandwidth(&self) -> Bandwidth {
        Bandwidth::from_bits_per_second(self.bw as u64)
    }

    fn rate_sample(&self, now: Instant, report: &Report) -> RateSample {
        let sample = report.sample;
        let prior = sample.map(|sample| sample.prior_delivered);
        let datagram = self.units.datagram() as f64;
        let of_probe_rtt = |prior: u64| (self.app_limited.0..self.app_limited.1).contains(&prior);
        RateSample {
            now,
            newly_acked: report.delivered as f64,
            delivered_total: report.delivered_total,
            prior_delivered: prior,
            delivered: prior.map_or(0.0, |prior| report.delivered_total.saturating_sub(prior) as f64),
            delivery_rate: sample.and_then(|sample| sample.rate).map_or(0.0, |rate| rate.bits_per_second() as f64),
            is_app_limited: sample.is_some_and(|sample| sample.app_limited || of_probe_rtt(sample.prior_delivered)),
            tx_in_flight: sample.map_or(0.0, |sample| sample.tx_in_flight as f64),
            lost: sample.map_or(0.0, |sample| sample.lost as f64 + sample.marked as f64 * datagram),
            newly_lost: report.lost as f64 + report.marked as f64 * datagram,
            rtt: report.rtt,
            in_flight: report.in_flight as f64,
            is_cwnd_limited: report.limited == Some(Limit::Cap),
        }
    }

    /// 5.6.4.4: recoveries begin and end.
    fn update_recovery(&mut self, report: &Report) {
        if report.recovered {
            self.recovering = false;
            self.restore_cwnd();
        }
        if report.event == Some(CongestionEvent::Loss) {
            self.save_cwnd();
            self.recovering = true;
        }
    }

    /// 5.4: the first report after the application had nothing and all was acknowledged.
    fn check_restart_from_idle(&mut self, rs: &RateSample, report: &Report) {
        if core::mem::take(&mut self.was_idle) {
            self.idle_restart = true;
            self.extra_acked.restart(rs.now - rs.rtt.unwrap_or(Duration::ZERO));
            if self.state == State::ProbeRtt {
                self.check_probe_rtt_done(rs);
            }
        }
        self.was_idle = report.in_flight == 0 && report.limited == Some(Limit::Application);
    }

    /// 5.2.3: UpdateModelAndState.
    fn update_model_and_state(&mut self, rs: &RateSample) {
        self.latest.update(rs);
        self.update_congestion_signals(rs);
        let (bw, cwnd, rounds) = (self.bw, self.cwnd, if self.full_pipe.reached { extra_acked::FILTER_LEN } else { 1 });
        self.extra_acked.update(rs, bw, cwnd, (self.round.count, rounds));
        self.full_pipe.check(rs, self.round.start);
        self.check_startup_done(rs);
        self.check_drain_done(rs);
        self.update_probe_bw_cycle_phase(rs);
        self.min_rtt.update(rs);
        self.check_probe_rtt(rs);
        self.latest.advance(rs);
        self.bound_bw_for_model();
    }

    /// 5.5.10.3: BoundBWForModel.
    fn bound_bw_for_model(&mut self) {
        self.bw = self.short_term.bw.map_or(self.max_bw.get(), |bw| bw.min(self.max_bw.get()));
    }
}

impl Controller for Bbr {
    fn set_bounds(&mut self, _now: Instant, bounds: Bounds) {
        self.units.set_bounds(bounds);
    }

    fn on_round_trip(&mut self, now: Instant, rtt: Duration) {
        self.units.on_round_trip(rtt);
        self.min_rtt.begin(now, rtt);
        self.init_pacing_rate(rtt);
    }

    fn on_report(&mut self, now: Instant, report: &Report) {
        self.units.on_report(report);
        if let Some(rtt) = report.rtt.filter(|_| self.pacing_rate.is_none()) {
            self.init_pacing_rate(rtt);
        }
        self.update_recovery(report);
        let rs = self.rate_sample(now, report);
        self.check_restart_from_idle(&rs, report);
        if rs.newly_lost > 0.0 {
            self.handle_lost(&rs);
        }
        self.update_model_and_state(&rs);
        self.set_pacing_rate();
        let before = self.cwnd;
        self.set_cwnd(&rs);
        if self.start_rate.is_unvalidated() {
            self.cwnd = self.cwnd.min(before);
        }
        self.validate_start_rate(report);
    }

    fn on_silence(&mut self, _now: Instant, silence: &Silence) {
        if silence.timeout.is_some() {
            self.on_enter_rto();
        }
    }

    fn on_path_change(&mut self, now: Instant) {
        self.units.forget_path();
        *self = Self::with(now, self.units, self.random.clone());
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        self.pacing_rate.map(|rate| self.units.bounded(rate))
    }

    fn in_flight_cap(&self) -> Bytes {
        self.units.cap(self.cwnd / self.units.datagram() as f64)
    }

    fn quantum(&self) -> Option<Bytes> {
        self.pacing_rate.map(|_| Bytes::new(self.send_quantum() as u64))
    }

    fn exchange_period(&self) -> Duration {
        self.units.exchange_period(self.cwnd / self.units.datagram() as f64)
    }

    fn phase(&self) -> &'static str {
        match self.state {
            State::Startup => "startup",
            State::Drain => "drain",
            State::ProbeBwDown => "probe_bw_down",
            State::ProbeBwCruise => "probe_bw_cruise",
            State::ProbeBwRefill => "probe_bw_refill",
            State::ProbeBwUp => "probe_bw_up",
            State::ProbeRtt => "probe_rtt",
        }
    }

    /// Gauges: `window_packets`, `bandwidth_bps`, and `inflight_longterm_packets`, which is not a number while there is none.
    fn probe(&self, out: &mut dyn Probe) {
        let datagram = self.units.datagram() as f64;
        out.gauge("window_packets", self.cwnd / datagram);
        out.gauge("bandwidth_bps", self.bw);
        out.gauge("inflight_longterm_packets", self.long_term.inflight.map_or(f64::NAN, |inflight| inflight / datagram));
    }
}
