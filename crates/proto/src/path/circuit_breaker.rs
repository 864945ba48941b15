//! The circuit breaker of a fixed rate: ends the connection on a path that carries almost nothing of the rate (RFC 8084).
//!
//! A fixed rate does not respond to congestion, so it must not be kept on a path that does not carry it. Once a second an acknowledged
//! exchange says how much of what was sent has arrived. If that was less than a tenth for at least 5 s and ten round trips, the
//! connection ends.
//!
//! Why these numbers: RFC 8084 4 requires a measurement over many round trips and a reaction only to persistent excess. Five seconds outlast
//! short outages of a radio link or a route, during which no exchange is acknowledged. Below a tenth, everything would be sent ten times
//! or more; nobody chooses a rate for that.
//!
//! Called by the half. Invariant: only acknowledged exchanges are evaluated; silence is the matter of the idle timeout.

use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// The shortest time that is judged.
const SPAN_LEAST: Duration = Duration::from_secs(5);
/// The shortest time that is judged, in round trips.
const SPAN_ROUND_TRIPS: u64 = 10;
/// Less than one of so many bytes must have arrived.
const SHARE: u64 = 10;
/// So much must have been sent in that time: a few lost statements of an idle sender are no overload.
const SENT_LEAST: u64 = 64 * 1024;
/// Where less than one of so many bytes arrives, the sender's own states may fill the path.
const CROWDED: u64 = 2;
/// What was told, kept.
const KEPT: usize = 64;

/// What the path made of what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// IP bytes sent.
    pub sent: u64,
    /// IP bytes of them that arrived.
    pub received: u64,
    /// In how long.
    pub span: Duration,
}

/// Watches how much of what is sent arrives.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker {
    /// When an exchange left, what had left by then, and what of it had arrived.
    acked: VecDeque<(Instant, u64, u64)>,
}

impl CircuitBreaker {
    /// How often an exchange is wanted.
    pub(crate) const PERIOD: Duration = Duration::from_secs(1);

    /// Forgets everything: another rate is in force.
    pub(crate) fn reset(&mut self) {
        self.acked.clear();
    }

    /// Of `sent` bytes that had left at `at`, `received` have arrived. What to say when that is too little.
    pub(crate) fn on_acked(&mut self, at: Instant, sent: u64, received: u64, rtt: Duration) -> Option<Broken> {
        let span = SPAN_LEAST.max(rtt * SPAN_ROUND_TRIPS);
        // The youngest that is old enough stays.
        while self.acked.get(1).is_some_and(|&(before, ..)| at.since(before) >= span) || self.acked.len() >= KEPT {
            self.acked.pop_front();
        }
        self.acked.push_back((at, sent, received));
        debug_assert!(self.acked.len() <= KEPT);
        let &(from, sent_before, received_before) = self.acked.front()?;
        let (span_told, sent, received) = (at.since(from), sent - sent_before, received.saturating_sub(received_before));
        let little = sent >= SENT_LEAST && received < sent / SHARE;
        (span_told >= span && little).then_some(Broken { sent, received, span: span_told })
    }

    /// Whether less than half of what left between the last two acknowledged exchanges has arrived.
    pub(crate) fn is_crowded(&self) -> bool {
        let mut newest = self.acked.iter().rev();
        match (newest.next(), newest.next()) {
            (Some(&(_, sent, received)), Some(&(_, sent_before, received_before))) => {
                received.saturating_sub(received_before).saturating_mul(CROWDED) < sent - sent_before
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second in which the circuit breaks, when of 1 MB a second `share` per mille arrives.
    fn breaks(share: impl Fn(u64) -> u64, rtt: Duration, bytes: u64) -> Option<u64> {
        let mut breaker = CircuitBreaker::default();
        let mut received = 0;
        (0..60).find(|&second| {
            received += bytes * share(second) / 1000;
            breaker.on_acked(Instant::ZERO + Duration::from_secs(second), bytes * (second + 1), received, rtt).is_some()
        })
    }

    #[test]
    fn it_takes_five_seconds_or_ten_round_trips_of_almost_nothing() {
        let rtt = Duration::from_millis(40);
        assert_eq!(breaks(|_| 50, rtt, 1_000_000), Some(5));
        assert_eq!(breaks(|_| 50, Duration::from_secs(2), 1_000_000), Some(20));
        assert_eq!(breaks(|_| 150, rtt, 1_000_000), None);
        assert_eq!(breaks(|_| 0, rtt, 100), None, "hardly anything was sent");
    }

    #[test]
    fn a_path_is_crowded_when_half_of_the_last_second_is_lost() {
        let (mut breaker, rtt) = (CircuitBreaker::default(), Duration::from_millis(40));
        let mut told = |second, sent, received| {
            breaker.on_acked(Instant::ZERO + Duration::from_secs(second), sent, received, rtt);
            breaker.is_crowded()
        };
        let seconds = [(0, 1000, 0), (1, 2000, 499), (2, 3000, 999), (3, 4000, 1400), (4, 5000, 2400)];
        assert_eq!(seconds.map(|(second, sent, received)| told(second, sent, received)), [false, true, false, true, false]);
    }

    #[test]
    fn a_short_spell_does_not_break_it() {
        let rtt = Duration::from_millis(40);
        assert_eq!(breaks(|second| if (10..14).contains(&second) { 0 } else { 900 }, rtt, 1_000_000), None);
        assert_eq!(breaks(|second| if second >= 10 { 0 } else { 900 }, rtt, 1_000_000), Some(14));
    }
}
