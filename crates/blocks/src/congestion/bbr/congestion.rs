//! What the path delivered in the last round, and the short-term model that follows it down while nothing is probed (5.5.10.3).
//!
//! Called by BBR for each report. Invariant: a round with loss lowers the model once, and to no less than what that round delivered.

use super::{BETA, Bbr, RateSample, State};

/// The delivery of the last round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatestDelivery {
    /// BBR.bw_latest, and BBR.inflight_latest.
    pub(super) bw: f64,
    pub(super) inflight: f64,
    /// BBR.loss_round_delivered, and BBR.loss_round_start.
    loss_round_delivered: u64,
    pub(super) loss_round_start: bool,
    /// BBR.is_loss_in_round, and how many reports told of it.
    pub(super) is_loss_in_round: bool,
    pub(super) losses_in_round: u32,
}

/// The short-term model; nothing of it holds after a refill.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShortTermModel {
    /// BBR.bw_shortterm.
    pub(super) bw: Option<f64>,
    /// BBR.inflight_shortterm.
    pub(super) inflight: Option<f64>,
}

impl LatestDelivery {
    /// UpdateLatestDeliverySignals.
    pub(super) fn update(&mut self, rs: &RateSample) {
        self.bw = self.bw.max(rs.delivery_rate);
        self.inflight = self.inflight.max(rs.delivered);
        self.loss_round_start = rs.prior_delivered.is_some_and(|prior| prior >= self.loss_round_delivered);
        if self.loss_round_start {
            self.loss_round_delivered = rs.delivered_total;
        }
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) const fn advance(&mut self, rs: &RateSample) {
        if self.loss_round_start {
            self.bw = rs.delivery_rate;
            self.inflight = rs.delivered;
            self.losses_in_round = 0;
        }
    }

    /// ResetCongestionSignals.
    pub(super) const fn reset(&mut self) {
        self.is_loss_in_round = false;
        self.bw = 0.0;
        self.inflight = 0.0;
    }

    /// NoteLoss. The report tells of a loss.
    pub(super) const fn note_loss(&mut self, rs: &RateSample) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = rs.delivered_total;
        }
        self.is_loss_in_round = true;
        self.losses_in_round = self.losses_in_round.saturating_add(1);
    }
}

impl Bbr {
    /// UpdateCongestionSignals.
    pub(super) fn update_congestion_signals(&mut self, rs: &RateSample) {
        self.round.update(rs);
        self.max_bw.update(rs);
        if !self.latest.loss_round_start {
            return;
        }
        if self.latest.is_loss_in_round && !self.is_probing_bw() {
            self.lower_short_term_model();
        }
        self.latest.is_loss_in_round = false;
    }

    /// InitLowerBounds and LossLowerBounds.
    fn lower_short_term_model(&mut self) {
        let bw = self.short_term.bw.unwrap_or(self.max_bw.get());
        let inflight = self.short_term.inflight.unwrap_or(self.cwnd);
        self.short_term.bw = Some(self.latest.bw.max(BETA * bw));
        self.short_term.inflight = Some(self.latest.inflight.max(BETA * inflight));
    }

    /// IsProbingBW.
    const fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::ProbeBwRefill | State::ProbeBwUp)
    }
}
