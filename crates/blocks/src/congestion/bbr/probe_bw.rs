//! ProbeBW: slower to empty the queue, as fast as is delivered, full again, then faster to find more (5.3.3).
//!
//! Called by BBR for each report. Invariant: more is asked for no more often than a Reno flow would find its window again in at most 63
//! rounds, or every two to three seconds (5.3.3.8).

use super::long_term::AckPhase;
use super::{Bbr, RateSample, State};
use segstream_base::Duration;

/// The pacing gains of DOWN and UP (5.3.3.1, 5.3.3.5).
pub(super) const DOWN_PACING_GAIN: f64 = 0.90;
pub(super) const UP_PACING_GAIN: f64 = 1.25;
/// Between two probes there is this long at least, and up to a second more.
const WAIT_LEAST: Duration = Duration::from_secs(2);
const WAIT_DRAWN: u64 = 1_000_000_000;
/// Rounds after which a Reno flow of any size is waited for no longer.
const RENO_ROUNDS: f64 = 63.0;

impl Bbr {
    /// IsInAProbeBWState.
    pub(super) const fn is_in_probe_bw(&self) -> bool {
        matches!(self.state, State::ProbeBwDown | State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeBwUp)
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw_cycle_phase(&mut self, rs: &RateSample) {
        if !self.full_pipe.reached || self.adapt_long_term_model(rs) {
            return;
        }
        let goes_down = self.state == State::ProbeBwUp && self.is_time_to_go_down(rs);
        match self.state {
            State::ProbeBwDown | State::ProbeBwCruise if self.is_time_to_probe_bw(rs) => self.start_probe_bw_refill(rs),
            State::ProbeBwDown if self.is_time_to_cruise(rs) => self.state = State::ProbeBwCruise,
            State::ProbeBwRefill if self.round.start => {
                self.long_term.is_bw_probe_sample = true;
                self.start_probe_bw_up(rs);
            }
            State::ProbeBwUp if goes_down => {
                self.long_term.prev_probe_too_high = false;
                self.start_probe_bw_down(rs);
            }
            _ => {}
        }
    }

    pub(super) fn start_probe_bw_down(&mut self, rs: &RateSample) {
        self.latest.reset();
        self.long_term.probe_up_acked_per_inc = None;
        // PickProbeWait.
        self.round.since_probe_up = self.random.below(2);
        self.bw_probe_wait = WAIT_LEAST + Duration::from_nanos(self.random.below(WAIT_DRAWN));
        self.cycle_stamp = rs.now;
        self.long_term.ack_phase = AckPhase::ProbeStopping;
        self.round.restart(rs);
        self.state = State::ProbeBwDown;
    }

    pub(super) fn start_probe_bw_refill(&mut self, rs: &RateSample) {
        self.short_term = Default::default();
        self.long_term.bw_probe_up_rounds = 0;
        self.long_term.bw_probe_up_acked = 0.0;
        self.long_term.prev_probe_precautionary = false;
        self.long_term.ack_phase = AckPhase::Refilling;
        self.round.restart(rs);
        self.state = State::ProbeBwRefill;
    }

    fn start_probe_bw_up(&mut self, rs: &RateSample) {
        self.long_term.ack_phase = AckPhase::ProbeStarting;
        self.round.restart(rs);
        self.full_pipe.reset(rs.delivery_rate);
        self.state = State::ProbeBwUp;
        self.raise_inflight_longterm_slope();
    }

    /// IsTimeToProbeBW.
    fn is_time_to_probe_bw(&self, rs: &RateSample) -> bool {
        let reno_rounds = (self.target_inflight() / self.units.datagram() as f64).min(RENO_ROUNDS);
        rs.now.since(self.cycle_stamp) > self.bw_probe_wait || self.round.since_probe_up as f64 >= reno_rounds
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, rs: &RateSample) -> bool {
        let has_room = self.inflight_with_headroom().is_none_or(|inflight| rs.in_flight <= inflight);
        has_room && rs.in_flight <= self.inflight(self.max_bw.get(), 1.0)
    }

    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self, rs: &RateSample) -> bool {
        let Some(longterm) = self.long_term.inflight else { return self.full_pipe.now };
        if self.long_term.prev_probe_too_high && rs.in_flight >= longterm {
            // 5.3.3.6: deceleration, before what went wrong last time.
            self.long_term.prev_probe_precautionary = true;
            return true;
        }
        if rs.is_cwnd_limited && self.cwnd >= longterm {
            self.full_pipe.reset(rs.delivery_rate);
            return false;
        }
        self.full_pipe.now
    }

    /// TargetInflight.
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp_multiple(1.0).min(self.cwnd)
    }
}
