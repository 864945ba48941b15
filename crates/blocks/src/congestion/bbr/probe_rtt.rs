//! ProbeRTT: every five seconds half as much is in flight for 200 ms, so that the round trip without a queue is seen (5.3.4).
//!
//! Called by BBR for each report. Invariant: it lasts a round and 200 ms from where what is in flight has fallen, and what was delivered
//! then says nothing of the bandwidth.

use super::long_term::AckPhase;
use super::{Bbr, RateSample, State};
use segstream_base::{Duration, Instant};

/// BBR.ProbeRTTDuration.
const DURATION: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// BBR.probe_rtt_done_stamp.
    done_stamp: Option<Instant>,
    /// BBR.probe_rtt_round_done.
    round_done: bool,
}

impl Bbr {
    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, rs: &RateSample) {
        if self.state != State::ProbeRtt && self.min_rtt.probe_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt = ProbeRtt::default();
            self.long_term.ack_phase = AckPhase::ProbeStopping;
            self.round.restart(rs);
            self.app_limited.0 = rs.delivered_total;
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(rs);
        }
        if rs.newly_acked > 0.0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT.
    fn handle_probe_rtt(&mut self, rs: &RateSample) {
        // MarkConnectionAppLimited.
        self.app_limited.1 = rs.delivered_total.saturating_add(rs.in_flight as u64);
        if self.probe_rtt.done_stamp.is_none() {
            if rs.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt = ProbeRtt { done_stamp: Some(rs.now + DURATION), round_done: false };
                self.round.restart(rs);
            }
            return;
        }
        self.probe_rtt.round_done |= self.round.start;
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(rs);
        }
    }

    /// CheckProbeRTTDone.
    pub(super) fn check_probe_rtt_done(&mut self, rs: &RateSample) {
        if self.probe_rtt.done_stamp.is_some_and(|done| rs.now > done) {
            self.min_rtt.schedule_next(rs.now);
            self.restore_cwnd();
            self.exit_probe_rtt(rs);
        }
    }

    /// 5.3.4.4: ExitProbeRTT.
    fn exit_probe_rtt(&mut self, rs: &RateSample) {
        self.short_term = Default::default();
        if self.full_pipe.reached {
            self.start_probe_bw_down(rs);
            self.state = State::ProbeBwCruise;
        } else {
            self.state = State::Startup;
        }
    }
}
