//! The largest delivery rate of the last rounds: what the path has carried of what we sent.
//!
//! Called by the readings for every exchange. A sample is what arrived in a round over the longer of the times in which it was
//! sent and arrived, so it is never above what was sent, and noise only lowers it (draft-ietf-ccwg-bbr 4.1.1). The largest of
//! some rounds outlives the rounds that noise has spoilt.
//!
//! Invariant: rounds in which the application was the limit take nothing out of the filter.

/// How many rounds a sample counts.
const ROUNDS: usize = 10;

/// The windowed maximum, in bytes a second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeliveryMax {
    rounds: [f64; ROUNDS],
    at: usize,
    passed: f64,
}

impl DeliveryMax {
    /// A sample at the end of an exchange that covers `alpha` of a `round`, seconds both.
    pub(super) fn on_sample(&mut self, rate: f64, alpha: f64, round: f64, limited: bool) {
        if limited {
            self.rounds[self.at] = self.rounds[self.at].max(if rate > self.get() { rate } else { 0.0 });
            return;
        }
        self.passed += alpha;
        if self.passed >= round {
            self.passed = 0.0;
            self.at = (self.at + 1) % ROUNDS;
            self.rounds[self.at] = 0.0;
        }
        self.rounds[self.at] = self.rounds[self.at].max(rate);
    }

    pub(super) fn get(&self) -> f64 {
        self.rounds.iter().copied().fold(0.0, f64::max)
    }
}
