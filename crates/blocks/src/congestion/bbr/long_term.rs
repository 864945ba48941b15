//! The long-term model: how much in flight the path takes without more than 2 % of loss (5.5.10.2, 5.3.3.9).
//!
//! Called by BBR for each report. Invariant: it falls once for a probe, to no less than 0.7 of what is aimed at, and grows only while
//! it is what limits.

use super::{BETA, Bbr, HEADROOM, LOSS_THRESH, MIN_PIPE_CWND, RateSample, State};

/// The meaning of what is acknowledged, with respect to the probing of bandwidth: BBR.ack_phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The model, and what it needs to grow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTermModel {
    /// BBR.inflight_longterm; `None` for infinity.
    pub(super) inflight: Option<f64>,
    pub(super) ack_phase: AckPhase,
    /// BBR.is_bw_probe_sample.
    pub(super) is_bw_probe_sample: bool,
    /// BBR.prev_probe_too_high, and BBR.prev_probe_precautionary.
    pub(super) prev_probe_too_high: bool,
    pub(super) prev_probe_precautionary: bool,
    /// BBR.bw_probe_up_acked, BBR.bw_probe_up_rounds, and BBR.probe_up_acked_per_inc; `None` for infinity.
    pub(super) bw_probe_up_acked: f64,
    pub(super) bw_probe_up_rounds: u32,
    pub(super) probe_up_acked_per_inc: Option<f64>,
}

/// Rounds over which the growth of a probe doubles.
const UP_ROUNDS_MOST: u32 = 30;

impl Bbr {
    /// IsInflightTooHigh.
    pub(super) fn is_inflight_too_high(rs: &RateSample) -> bool {
        rs.lost > rs.tx_in_flight * LOSS_THRESH
    }

    /// HandleLostPacket, for all that a report holds lost.
    pub(super) fn handle_lost(&mut self, rs: &RateSample) {
        self.latest.note_loss(rs);
        if self.long_term.is_bw_probe_sample && Self::is_inflight_too_high(rs) {
            self.handle_inflight_too_high(rs, Self::inflight_at_loss(rs));
        }
    }

    /// InflightAtLoss: how much was in flight when the losses passed the threshold, somewhere within what was lost.
    fn inflight_at_loss(rs: &RateSample) -> f64 {
        let inflight_prev = (rs.tx_in_flight - rs.newly_lost).max(0.0);
        let lost_prev = (rs.lost - rs.newly_lost).max(0.0);
        let lost_prefix = (LOSS_THRESH * inflight_prev - lost_prev) / (1.0 - LOSS_THRESH);
        inflight_prev + lost_prefix.max(0.0)
    }

    /// HandleInflightTooHigh.
    fn handle_inflight_too_high(&mut self, rs: &RateSample, tx_in_flight: f64) {
        self.long_term.prev_probe_too_high = true;
        self.long_term.is_bw_probe_sample = false;
        if !rs.is_app_limited {
            self.long_term.inflight = Some(tx_in_flight.max(self.target_inflight() * BETA));
        }
        if self.state == State::ProbeBwUp {
            self.start_probe_bw_down(rs);
        }
    }

    /// AdaptLongTermModel: whether it decided on the next state.
    pub(super) fn adapt_long_term_model(&mut self, rs: &RateSample) -> bool {
        if self.long_term.ack_phase == AckPhase::ProbeStarting && self.round.start {
            self.long_term.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.long_term.ack_phase == AckPhase::ProbeStopping && self.round.start {
            self.long_term.is_bw_probe_sample = false;
            self.long_term.ack_phase = AckPhase::Init;
            if self.is_in_probe_bw() && !rs.is_app_limited {
                self.max_bw.advance();
            }
            // 5.3.3.6: acceleration, where the cautious probe went well.
            if self.is_in_probe_bw() && self.long_term.prev_probe_precautionary && !self.long_term.prev_probe_too_high {
                self.start_probe_bw_refill(rs);
                return true;
            }
        }
        if let Some(inflight) = self.long_term.inflight.filter(|_| !Self::is_inflight_too_high(rs)) {
            self.long_term.inflight = Some(inflight.max(rs.tx_in_flight));
            if self.state == State::ProbeBwUp {
                self.probe_inflight_longterm_upward(rs);
            }
        }
        false
    }

    /// ProbeInflightLongtermUpward.
    fn probe_inflight_longterm_upward(&mut self, rs: &RateSample) {
        let Some(inflight) = self.long_term.inflight else { return };
        if !rs.is_cwnd_limited || self.cwnd < inflight {
            return;
        }
        let it = &mut self.long_term;
        it.bw_probe_up_acked += rs.newly_acked;
        if let Some(each) = it.probe_up_acked_per_inc
            && it.bw_probe_up_acked >= each
        {
            let delta = libm::floor(it.bw_probe_up_acked / each);
            it.bw_probe_up_acked -= delta * each;
            it.inflight = Some(inflight + delta * self.units.datagram() as f64);
        }
        if self.round.start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// RaiseInflightLongtermSlope: twice as much in each round.
    pub(super) fn raise_inflight_longterm_slope(&mut self) {
        let growth = f64::from(1_u32 << self.long_term.bw_probe_up_rounds);
        self.long_term.bw_probe_up_rounds = (self.long_term.bw_probe_up_rounds + 1).min(UP_ROUNDS_MOST);
        self.long_term.probe_up_acked_per_inc = Some((self.cwnd / growth).max(self.units.datagram() as f64));
    }

    /// InflightWithHeadroom; `None` for infinity.
    pub(super) fn inflight_with_headroom(&self) -> Option<f64> {
        let datagram = self.units.datagram() as f64;
        let room = |inflight: f64| (inflight - (HEADROOM * inflight).max(datagram)).max(MIN_PIPE_CWND * datagram);
        self.long_term.inflight.map(room)
    }
}
