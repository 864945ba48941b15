//! The rates that were paced at, and since when each.
//!
//! Called by the readings: what a packet meets depends on what was sent since it left.
//!
//! Invariant: no more than 256 are kept, and nothing is allocated once they are; of a connection that is idle only a few.

use segstream_base::Instant;
use std::collections::VecDeque;

/// Enough for the round trip with a long queue.
const KEPT: usize = 256;
/// What there is room for after a pause.
const KEPT_OVER_PAUSE: usize = 2;

/// The rates in bytes a second, newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct PacedRates(VecDeque<(Instant, f64)>);

impl PacedRates {
    /// From now on this rate is paced at.
    pub(super) fn push(&mut self, now: Instant, rate: f64) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((now, rate));
    }

    /// No exchange from now on leaves before `sent_at`.
    pub(super) fn forget_before(&mut self, sent_at: Instant) {
        while self.0.get(1).is_some_and(|(since, _)| *since <= sent_at) {
            self.0.pop_front();
        }
        self.0.shrink_to(KEPT_OVER_PAUSE);
    }

    /// How long ago `sent_at` is, and the mean rate paced at since then.
    pub(super) fn since(&self, now: Instant, sent_at: Instant) -> (f64, f64) {
        let (mut bytes, mut until) = (0.0, now);
        for &(since, rate) in self.0.iter().rev() {
            let from = since.max(sent_at);
            bytes += until.since(from).as_secs_f64() * rate;
            until = from;
            if since <= sent_at {
                break;
            }
        }
        let lag = now.since(sent_at).as_secs_f64();
        (lag, bytes / lag.max(1e-9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::Duration;

    #[test]
    fn the_mean_since_a_packet_left_counts_each_rate_for_its_time() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut rates = PacedRates::default();
        for (ms, rate) in [(0, 1000.0), (10, 2000.0), (30, 4000.0)] {
            rates.push(at(ms), rate);
        }
        // Of 40 ms since the packet 10 were at the second rate, and 10 at the third.
        for (sent_ms, lag, mean) in [(20, 0.02, 3000.0), (0, 0.04, 2250.0), (40, 0.0, 0.0)] {
            let (found_lag, found_mean) = rates.since(at(40), at(sent_ms));
            assert!((found_lag - lag).abs() < 1e-9 && (found_mean - mean).abs() < 1e-6, "{sent_ms}: {found_lag} {found_mean}");
        }
        rates.forget_before(at(20));
        assert_eq!(rates.0.len(), 2);
    }
}
