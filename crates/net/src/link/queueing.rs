//! How long packets waited in the emulated queue of one direction.
//!
//! Called by the relays for every packet that the path delivers; read in the report.
//!
//! The wait is the time from the arrival at the queue to the start of the transmission, without delay and jitter.
//!
//! Invariant: every packet that the path delivers is counted once, without its copies; none is left out for waiting very long.

use hdrhistogram::Histogram;
use segstream_base::Duration;
use std::fmt;

/// The waits of the packets that one direction has carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Queueing {
    /// How many packets were carried.
    pub packets: u64,
    /// Their mean wait.
    pub mean: Duration,
    /// 95 of 100 waited no longer than this.
    pub p95: Duration,
    /// The longest wait.
    pub max: Duration,
}

impl fmt::Display for Queueing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "waited {} (mean), {} (p95), {} (max)", self.mean, self.p95, self.max)
    }
}

/// Counts waits in nanoseconds to three digits; the mean and the maximum are exact.
#[derive(Debug)]
pub(super) struct QueueingRecorder {
    /// `None` only if the histogram could not be made, which its constant bounds rule out.
    histogram: Option<Histogram<u64>>,
    sum_nanos: u128,
    max: Duration,
}

impl QueueingRecorder {
    /// A longer wait counts as this in the quantile alone.
    const LIMIT: Duration = Duration::from_secs(60);

    pub(super) fn new() -> Self {
        Self { histogram: Histogram::new_with_max(Self::LIMIT.as_nanos(), 3).ok(), sum_nanos: 0, max: Duration::ZERO }
    }

    pub(super) fn record(&mut self, waited: Duration) {
        self.sum_nanos += u128::from(waited.as_nanos());
        self.max = self.max.max(waited);
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(waited.as_nanos());
        }
    }

    pub(super) fn summary(&self) -> Queueing {
        let Some(histogram) = &self.histogram else { return Queueing::default() };
        let mean = self.sum_nanos.checked_div(u128::from(histogram.len())).unwrap_or(0);
        Queueing {
            packets: histogram.len(),
            mean: Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)),
            p95: Duration::from_nanos(histogram.value_at_quantile(0.95)).min(self.max),
            max: self.max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_and_the_maximum_are_exact_and_the_quantile_is_true_to_three_digits() {
        let mut recorder = QueueingRecorder::new();
        assert_eq!(recorder.summary(), Queueing::default());
        for micros in 0..=1000 {
            recorder.record(Duration::from_micros(micros));
        }
        let summary = recorder.summary();
        assert_eq!((summary.packets, summary.mean, summary.max), (1001, Duration::from_micros(500), Duration::from_micros(1000)));
        assert!((summary.p95.as_millis_f64() / 0.95 - 1.0).abs() < 3e-3, "{summary}");
        recorder.record(Duration::from_secs(3600));
        assert_eq!(recorder.summary().max, Duration::from_secs(3600));
    }
}
