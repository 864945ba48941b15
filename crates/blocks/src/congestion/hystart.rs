//! HyStart++: slow start goes on more slowly when delay grows, and ends when it stays so.
//!
//! Called by controllers whose windows begin with slow start, for each report in it. They are paced, so its limit L on what a report
//! adds is infinite (RFC 9406 4.3).
//!
//! Invariant: slow start ends at most [`CSS_ROUNDS`] rounds after delay has begun to stay longer.
//! Source: RFC 9406 4.2; the names of constants are its own.

use super::Report;
use segstream_base::Duration;

/// The growth of delay over a round that counts is an eighth of the round trip, within these bounds.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
/// Round trips that are seen in a round before anything is concluded.
const N_RTT_SAMPLE: u32 = 8;
/// How much more slowly the window grows in conservative slow start.
const CSS_GROWTH_DIVISOR: f64 = 4.0;
/// Rounds of conservative slow start before it ends.
const CSS_ROUNDS: u32 = 5;

/// The state of HyStart++.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    /// The round ends when a packet is acknowledged that left after so many bytes had been delivered.
    round_end: u64,
    samples: u32,
    shortest: Duration,
    shortest_before: Duration,
    conservative: Option<Conservative>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// The shortest round trip of the round in which it began.
    baseline: Duration,
    rounds: u32,
}

impl Default for HyStart {
    fn default() -> Self {
        Self { round_end: 0, samples: 0, shortest: Duration::MAX, shortest_before: Duration::MAX, conservative: None }
    }
}

impl HyStart {
    /// How much of what the report acknowledges the window grows by; `None` when slow start is over.
    pub(super) fn on_report(&mut self, report: &Report) -> Option<f64> {
        if report.sample.is_some_and(|sample| sample.prior_delivered >= self.round_end) {
            self.round_end = report.delivered_total;
            (self.shortest_before, self.shortest, self.samples) = (self.shortest, Duration::MAX, 0);
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds > CSS_ROUNDS {
                    return None;
                }
            }
        }
        if let Some(rtt) = report.rtt {
            self.samples = self.samples.saturating_add(1);
            self.shortest = self.shortest.min(rtt);
        }
        if self.samples >= N_RTT_SAMPLE {
            self.conclude();
        }
        Some(if self.conservative.is_some() { 1.0 / CSS_GROWTH_DIVISOR } else { 1.0 })
    }

    /// Enough of the round has been seen.
    fn conclude(&mut self) {
        match self.conservative {
            // It was jitter.
            Some(Conservative { baseline, .. }) if self.shortest < baseline => self.conservative = None,
            Some(_) => {}
            None if self.shortest_before < Duration::MAX => {
                let threshold = (self.shortest_before / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.shortest >= self.shortest_before + threshold {
                    self.conservative = Some(Conservative { baseline: self.shortest, rounds: 0 });
                }
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::DeliverySample;
    use super::*;

    fn report(round: u64, millis: u64) -> Report {
        let sample = DeliverySample { rate: None, prior_delivered: round, app_limited: false, tx_in_flight: 0, lost: 0, marked: 0 };
        Report { sample: Some(sample), rtt: Some(Duration::from_millis(millis)), delivered_total: round + 1, ..Report::default() }
    }

    /// What becomes of slow start in rounds of ten reports with these round trips.
    fn rounds(millis: &[u64]) -> Vec<Option<f64>> {
        let mut hystart = HyStart::default();
        let round = |(round, millis): (usize, &u64)| {
            let told: Vec<Option<f64>> = (0..10).map(|_| hystart.on_report(&report(round as u64, *millis))).collect();
            if told.contains(&None) { None } else { told[9] }
        };
        millis.iter().enumerate().map(round).collect()
    }

    #[test]
    fn delay_that_grows_slows_it_and_ends_it_after_five_rounds() {
        let (fast, slow) = (Some(1.0), Some(0.25));
        assert_eq!(rounds(&[40, 44, 50, 56, 60, 60, 60, 60]), [fast, fast, slow, slow, slow, slow, slow, slow]);
        assert_eq!(rounds(&[40, 50, 50, 50, 50, 50, 50, 50])[7], None);
    }

    #[test]
    fn delay_that_falls_again_was_jitter() {
        let (fast, slow) = (Some(1.0), Some(0.25));
        assert_eq!(rounds(&[40, 50, 40, 40, 40, 40, 40, 40]), [fast, slow, fast, fast, fast, fast, fast, fast]);
    }
}
