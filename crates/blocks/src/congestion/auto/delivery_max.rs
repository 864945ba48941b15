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
        if limited && rate <= self.get() {
            return;
        }
        if !limited {
            self.passed += alpha;
            if self.passed >= round {
                self.passed = 0.0;
                self.at = (self.at + 1) % ROUNDS;
                self.rounds[self.at] = 0.0;
            }
        }
        let newest = &mut self.rounds[self.at];
        *newest = newest.max(rate);
    }

    pub(super) fn get(&self) -> f64 {
        self.rounds.iter().copied().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_counts_for_ten_rounds_and_what_the_application_limits_takes_nothing_out() {
        let mut best = DeliveryMax::default();
        best.on_sample(5e6, 0.1, 0.1, false);
        for _ in 0..100 {
            best.on_sample(1e6, 0.1, 0.1, true);
        }
        assert_eq!(best.get(), 5e6);
        best.on_sample(6e6, 0.1, 0.1, true);
        assert_eq!(best.get(), 6e6);
        for round in 1..=10 {
            best.on_sample(1e6, 0.1, 0.1, false);
            assert_eq!(best.get(), if round < 10 { 6e6 } else { 1e6 });
        }
    }
}
