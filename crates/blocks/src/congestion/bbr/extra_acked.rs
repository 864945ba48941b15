//! How much more is acknowledged at once than the bandwidth explains (5.5.9): what the window needs on top where acknowledgments come in
//! bursts.
//!
//! Called by BBR for each report. Here reports are fewer than acknowledgments, sixteen a round trip, so a burst of a sixteenth of the
//! bandwidth-delay product is the rule.
//!
//! Invariant: it is at most a window, and falls out after its rounds.

use super::RateSample;
use crate::congestion::windowed_max::WindowedMax;
use segstream_base::Instant;

/// BBR.ExtraAckedFilterLen, in rounds.
pub(super) const FILTER_LEN: u64 = 10;

#[derive(Clone, Debug)]
pub(super) struct ExtraAcked {
    /// BBR.extra_acked_interval_start, and BBR.extra_acked_delivered.
    start: Instant,
    delivered: f64,
    /// The largest of recent rounds.
    max: WindowedMax<f64>,
}

impl ExtraAcked {
    pub(super) const fn new(now: Instant) -> Self {
        Self { start: now, delivered: 0.0, max: WindowedMax::new() }
    }

    /// BBR.extra_acked.
    pub(super) fn get(&self) -> f64 {
        self.max.get().unwrap_or(0.0)
    }

    /// What comes from here on counts anew (5.4).
    pub(super) const fn restart(&mut self, start: Instant) {
        self.start = start;
        self.delivered = 0.0;
    }

    /// UpdateACKAggregation at the bandwidth `bw` and the window `cwnd`, in round `(round, rounds)` of which so many count.
    pub(super) fn update(&mut self, rs: &RateSample, bw: f64, cwnd: f64, (round, rounds): (u64, u64)) {
        let mut expected = bw / 8.0 * rs.now.since(self.start).as_secs_f64();
        if self.delivered <= expected {
            self.restart(rs.now);
            expected = 0.0;
        }
        self.delivered += rs.newly_acked;
        self.max.update(round, rounds, (self.delivered - expected).min(cwnd));
    }
}
