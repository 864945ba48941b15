//! The outcome of one run: counts and sums of integers, and the largest delays.
//!
//! Made by [`crate::run`], kept by [`crate::store`], joined over replications by [`crate::point`].
//!
//! Invariant: nothing in an outcome depends on the machine; the time it took is told beside it.

use crate::statistics::Largest;
use segstream_base::halves::Verdict;
use serde::{Deserialize, Serialize};

/// How many of the largest delays are kept.
pub const LARGEST_KEPT: usize = 16;
/// Into how many batches of equal segments a run is divided.
pub const BATCHES: u64 = 64;

/// The outcome of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How the run ended, when it was not by delivering everything.
    pub trouble: Option<String>,
    /// Segments the receiver judged.
    pub segments_delivered: u64,
    /// Segments by verdict: complete, within tolerance, expired.
    pub verdicts: (u64, u64, u64),
    /// Packets of accepted segments, tolerated holes included.
    pub packets_accepted: u64,
    /// Packets of accepted segments that arrived.
    pub packets_delivered: u64,
    /// Data packets that left, repetitions included.
    pub packets_sent: u64,
    /// Data packets that left again.
    pub packets_retransmitted: u64,
    /// Packets the path lost on their way to the receiver, control that shares the path included.
    pub packets_lost: u64,
    /// Data packets that arrived although the receiver had all of theirs; `None` where that is not known, because a
    /// segment was accepted without all of its packets.
    pub packets_received_again: Option<u64>,
    /// Control packets of the sender.
    pub control_packets: u64,
    /// Packets of the receiver.
    pub feedback_packets: u64,
    /// From the first transmission to the last acceptance, less half a round trip.
    pub span_ns: u64,
    /// The time that was simulated.
    pub simulated_ns: u64,
    /// Delays of segments, from first transmission to acceptance.
    pub delays: Delays,
    /// Of a source with even intervals: from when a segment was due to acceptance. What waited for the window or for packets sent again
    /// counts there, and does not in `delays`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_due: Option<Quantiles>,
    /// The run in batches of equal segments, in order of acceptance; the last may be missing.
    pub batches: Vec<Batch>,
}

/// The delays of a run's segments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Default)]
pub struct Delays {
    /// Their sum.
    pub sum_ns: u64,
    /// The sum of their squares, in square microseconds.
    #[serde(default)]
    pub squares_us2: u64,
    /// The median.
    pub median_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The largest in nanoseconds, and of how many.
    pub largest: Largest<LARGEST_KEPT>,
}

/// Quantiles of the delays of segments, without those due in the first two seconds: the window opens then, and an end that measures the
/// path knows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Quantiles {
    /// Over how many segments.
    pub segments: u64,
    /// The median.
    pub median_ns: u64,
    /// The 95th percentile.
    pub p95_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
}

/// A run of segments accepted one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Batch {
    /// How many.
    pub segments: u64,
    /// Packets of those accepted, tolerated holes included.
    pub packets: u64,
    /// The sum of their delays.
    pub delay_sum_ns: u64,
    /// The time from the last acceptance before them to the last among them.
    pub span_ns: u64,
}

impl Quantiles {
    /// Of these delays, in any order; `None` without any.
    pub(crate) fn of(delays_ns: &mut [u64]) -> Option<Self> {
        delays_ns.sort_unstable();
        let at = |share| quantile(delays_ns, share);
        (!delays_ns.is_empty()).then(|| Self { segments: delays_ns.len() as u64, median_ns: at(0.5), p95_ns: at(0.95), p99_ns: at(0.99) })
    }
}

/// The smallest of these values, in ascending order, that at least `share` of all do not exceed; zero without any.
pub(crate) fn quantile(ascending: &[u64], share: f64) -> u64 {
    let rank = libm::ceil(share * ascending.len() as f64) as usize;
    ascending.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

impl Outcome {
    /// Segments with this verdict.
    pub const fn count(&self, verdict: Verdict) -> u64 {
        match verdict {
            Verdict::Complete => self.verdicts.0,
            Verdict::WithinTolerance => self.verdicts.1,
            Verdict::Expired => self.verdicts.2,
            Verdict::Unknown => 0,
        }
    }

    /// EC 5: packets of accepted segments times packet time over the span.
    pub fn throughput_efficiency(&self, packet_time_s: f64) -> f64 {
        self.packets_accepted as f64 * packet_time_s / (self.span_ns as f64 * 1e-9)
    }

    /// HT 6: packets of accepted segments a second of the span.
    pub fn throughput_packets_per_second(&self) -> f64 {
        self.packets_accepted as f64 / (self.span_ns as f64 * 1e-9)
    }

    /// The standard deviation of the delay of a segment in milliseconds.
    pub fn delay_ms_deviation(&self) -> f64 {
        let square = self.delays.squares_us2 as f64 * 1e-6 / self.segments_delivered as f64;
        let mean = self.delay_ms_mean();
        libm::sqrt((square - mean * mean).max(0.0))
    }

    /// The mean delay of a segment in milliseconds.
    pub fn delay_ms_mean(&self) -> f64 {
        self.delays.sum_ns as f64 * 1e-6 / self.segments_delivered as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_so_many_do_not_exceed() {
        let mut delays: Vec<u64> = (1..=200).rev().collect();
        assert_eq!(Quantiles::of(&mut delays), Some(Quantiles { segments: 200, median_ns: 100, p95_ns: 190, p99_ns: 198 }));
        assert_eq!(Quantiles::of(&mut []), None);
    }
}
