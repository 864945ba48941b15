//! Startup doubles the rate each round until the pipe is full or too much is lost; drain empties the queue that it has made (5.3.1,
//! 5.3.2).
//!
//! Called by BBR for each report. Invariant: drain lasts three rounds at most.

use super::{Bbr, RateSample, State};

/// BBR.StartupPacingGain, and BBR.DrainPacingGain.
pub(super) const STARTUP_PACING_GAIN: f64 = 2.77;
pub(super) const DRAIN_PACING_GAIN: f64 = 0.5;
/// BBRStartupFullLossCnt: the reports of a round that must tell of loss.
const FULL_LOSSES: u32 = 6;
/// Rounds after which drain is over anyway.
const DRAIN_ROUNDS: u64 = 3;

impl Bbr {
    /// CheckStartupDone.
    pub(super) fn check_startup_done(&mut self, rs: &RateSample) {
        self.check_startup_high_loss(rs);
        if self.state == State::Startup && self.full_pipe.reached {
            self.state = State::Drain;
            self.drain_start_round = self.round.count;
        }
    }

    /// 5.3.1.3: CheckStartupHighLoss. A round is over that began with the first loss, so recovery has lasted one.
    fn check_startup_high_loss(&mut self, rs: &RateSample) {
        let lost_much = self.latest.losses_in_round >= FULL_LOSSES && Self::is_inflight_too_high(rs);
        if self.state == State::Startup && self.latest.loss_round_start && lost_much {
            self.full_pipe.conclude();
            self.long_term.inflight = Some(self.bdp_multiple(1.0).max(self.latest.inflight));
        }
    }

    /// CheckDrainDone.
    pub(super) fn check_drain_done(&mut self, rs: &RateSample) {
        let drained = rs.in_flight <= self.inflight(self.bw, 1.0) || self.round.count > self.drain_start_round + DRAIN_ROUNDS;
        if self.state == State::Drain && drained {
            self.start_probe_bw_down(rs);
        }
    }
}
