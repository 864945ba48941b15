//! Round trips counted by packets (5.5.1): one is over when a packet is acknowledged that left after the last one was.
//!
//! Called by BBR for each report. Invariant: the count never falls.

use super::RateSample;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// BBR.round_count.
    pub(super) count: u64,
    /// BBR.round_start: this report begins a round.
    pub(super) start: bool,
    /// BBR.next_round_delivered.
    next_delivered: u64,
    /// BBR.rounds_since_probe_up.
    pub(super) since_probe_up: u64,
}

impl Round {
    /// UpdateRound.
    pub(super) fn update(&mut self, rs: &RateSample) {
        self.start = rs.prior_delivered.is_some_and(|prior| prior >= self.next_delivered);
        if self.start {
            self.restart(rs);
            self.count += 1;
            self.since_probe_up += 1;
        }
    }

    /// StartRound.
    pub(super) const fn restart(&mut self, rs: &RateSample) {
        self.next_delivered = rs.delivered_total;
    }
}
