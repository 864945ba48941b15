//! What follows from the model: the pacing rate, the send quantum and the window (5.6).
//!
//! Called by BBR for each report. Invariant: the window is at least one packet, and from the first report on at least four.

use super::probe_bw::{DOWN_PACING_GAIN, UP_PACING_GAIN};
use super::startup::{DRAIN_PACING_GAIN, STARTUP_PACING_GAIN};
use super::window;
use super::{Bbr, MIN_PIPE_CWND, RateSample, Report, State};
use segstream_base::Duration;

/// BBR.DefaultCwndGain, its value in ProbeBW_UP, and BBR.ProbeRTTCwndGain.
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// BBR.PacingMarginPercent: what is left to empty queues.
const PACING_MARGIN: f64 = 0.99;
/// How long a quantum takes, and its bounds: in bytes, and in packets (5.6.3).
const QUANTUM_SECONDS: f64 = 0.001;
const QUANTUM_MOST: f64 = 65_536.0;
const QUANTUM_LEAST: f64 = 2.0;
/// What a probe may have on top, in packets (5.6.4.2).
const UP_PACKETS: f64 = 2.0;

impl Bbr {
    /// BBR.pacing_gain.
    const fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => STARTUP_PACING_GAIN,
            State::Drain => DRAIN_PACING_GAIN,
            State::ProbeBwDown => DOWN_PACING_GAIN,
            State::ProbeBwUp => UP_PACING_GAIN,
            State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeRtt => 1.0,
        }
    }

    /// BBR.cwnd_gain.
    const fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::ProbeBwUp => UP_CWND_GAIN,
            State::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => CWND_GAIN,
        }
    }

    /// 5.6.2: InitPacingRate.
    pub(super) fn init_pacing_rate(&mut self, rtt: Duration) {
        if self.pacing_rate.is_none() {
            let initial = window::INITIAL * (self.units.datagram() * 8) as f64;
            self.pacing_rate = Some(STARTUP_PACING_GAIN * initial / rtt.as_secs_f64().max(QUANTUM_SECONDS));
        }
        // Not of the draft: a rate that is known in advance.
        if let Some(packets) = self.start_rate.window(&self.units) {
            let cwnd = packets * self.units.datagram() as f64;
            self.cwnd = self.cwnd.max(cwnd);
            self.pacing_rate = self.pacing_rate.map(|rate| rate.max(cwnd * 8.0 / rtt.as_secs_f64().max(QUANTUM_SECONDS)));
        }
    }

    /// Goes back to what has arrived where a rate that was known in advance has proved too high.
    pub(super) fn validate_start_rate(&mut self, report: &Report) {
        if let Some(packets) = self.start_rate.on_report(&self.units, report) {
            self.cwnd = self.cwnd.min(packets * self.units.datagram() as f64);
            self.prior_cwnd = self.prior_cwnd.min(self.cwnd);
            self.pacing_rate = Some(self.bw).filter(|bw| *bw > 0.0).or(self.pacing_rate);
        }
    }

    /// 5.6.2: SetPacingRate.
    pub(super) fn set_pacing_rate(&mut self) {
        let rate = self.pacing_gain() * self.bw * PACING_MARGIN;
        if self.bw > 0.0 && (self.full_pipe.reached || self.pacing_rate.is_none_or(|known| rate > known)) {
            self.pacing_rate = Some(rate);
        }
    }

    /// 5.6.3: SetSendQuantum.
    pub(super) fn send_quantum(&self) -> f64 {
        let in_time = self.pacing_rate.unwrap_or(0.0) / 8.0 * QUANTUM_SECONDS;
        in_time.min(QUANTUM_MOST).max(QUANTUM_LEAST * self.units.datagram() as f64)
    }

    /// 5.6.4.2: BDPMultiple at the bandwidth in force.
    pub(super) fn bdp_multiple(&self, gain: f64) -> f64 {
        self.bdp(self.bw, gain)
    }

    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        let initial = window::INITIAL * self.units.datagram() as f64;
        self.min_rtt.get().map_or(initial, |rtt| gain * bw / 8.0 * rtt.as_secs_f64())
    }

    /// 5.6.4.2: Inflight, with QuantizationBudget.
    pub(super) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantized(self.bdp(bw, gain))
    }

    /// QuantizationBudget. The offload budget is one quantum, as of QUIC (5.5.8).
    fn quantized(&self, inflight: f64) -> f64 {
        let datagram = self.units.datagram() as f64;
        let probing = if self.state == State::ProbeBwUp { UP_PACKETS * datagram } else { 0.0 };
        inflight.max(self.send_quantum()).max(MIN_PIPE_CWND * datagram) + probing
    }

    /// 5.6.4.6: SetCwnd.
    pub(super) fn set_cwnd(&mut self, rs: &RateSample) {
        let datagram = self.units.datagram() as f64;
        let max_inflight = self.quantized(self.bdp_multiple(self.cwnd_gain()) + self.extra_acked.get());
        if self.full_pipe.reached {
            self.cwnd = (self.cwnd + rs.newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || (rs.delivered_total as f64) < window::INITIAL * datagram {
            self.cwnd += rs.newly_acked;
        }
        self.cwnd = self.cwnd.max(MIN_PIPE_CWND * datagram);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// 5.6.4.5: ProbeRTTCwnd.
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(PROBE_RTT_CWND_GAIN).max(MIN_PIPE_CWND * self.units.datagram() as f64)
    }

    /// 5.6.4.7: BoundCwndForModel.
    fn bound_cwnd_for_model(&mut self) {
        let long_term = match self.state {
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.long_term.inflight,
            State::ProbeRtt | State::ProbeBwCruise => self.inflight_with_headroom(),
            State::Startup | State::Drain => None,
        };
        for cap in [long_term, self.short_term.inflight].into_iter().flatten() {
            self.cwnd = self.cwnd.min(cap.max(MIN_PIPE_CWND * self.units.datagram() as f64));
        }
    }

    /// 5.6.4.4: SaveCwnd.
    pub(super) fn save_cwnd(&mut self) {
        let modulated = self.recovering || self.state == State::ProbeRtt;
        self.prior_cwnd = if modulated { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// 5.6.4.4: RestoreCwnd.
    pub(super) const fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// 5.6.4.4: OnEnterRTO. All in flight is held lost there, so that one packet may leave; here the exchange that goes on is that
    /// packet.
    pub(super) fn on_enter_rto(&mut self) {
        self.save_cwnd();
        self.recovering = true;
        self.cwnd = self.units.datagram() as f64;
    }
}
