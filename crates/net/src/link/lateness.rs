//! How late datagrams left: the measure of an emulator.
//!
//! Called by the relay for every datagram it sends; read in the report.
//!
//! Lateness is the time from when a datagram was due to when the send call for it returned.
//!
//! Invariant: every datagram sent is counted once; none is left out for being very late.

use hdrhistogram::Histogram;
use segstream_base::Duration;
use std::fmt;

/// The lateness of all datagrams of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Lateness {
    /// How many datagrams were sent.
    pub datagrams: u64,
    /// Half of them left no later than this.
    pub p50: Duration,
    /// 99 of 100.
    pub p99: Duration,
    /// 999 of 1000.
    pub p999: Duration,
    /// The latest.
    pub max: Duration,
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { datagrams, p50, p99, p999, max } = self;
        write!(f, "{datagrams} datagrams left late by {p50} (p50), {p99} (p99), {p999} (p99.9), {max} (max)")
    }
}

/// Counts lateness in nanoseconds to three digits.
#[derive(Debug)]
pub(super) struct LatenessRecorder {
    /// `None` only if the histogram could not be made, which its constant bounds rule out.
    histogram: Option<Histogram<u64>>,
    max: Duration,
}

impl LatenessRecorder {
    /// A greater lateness counts as this in the quantiles.
    const LIMIT: Duration = Duration::from_secs(60);

    pub(super) fn new() -> Self {
        Self { histogram: Histogram::new_with_max(Self::LIMIT.as_nanos(), 3).ok(), max: Duration::ZERO }
    }

    pub(super) fn record(&mut self, lateness: Duration) {
        self.max = self.max.max(lateness);
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(lateness.as_nanos());
        }
    }

    pub(super) fn summary(&self) -> Lateness {
        let Some(histogram) = &self.histogram else { return Lateness::default() };
        let quantile = |q: f64| Duration::from_nanos(histogram.value_at_quantile(q)).min(self.max);
        Lateness { datagrams: histogram.len(), p50: quantile(0.5), p99: quantile(0.99), p999: quantile(0.999), max: self.max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_true_to_three_digits_and_the_maximum_is_exact() {
        let mut recorder = LatenessRecorder::new();
        for micros in 1..=1000 {
            recorder.record(Duration::from_micros(micros));
        }
        recorder.record(Duration::from_secs(3600));
        let summary = recorder.summary();
        let near = |value: Duration, micros: f64| (value.as_millis_f64() * 1000.0 / micros - 1.0).abs() < 2e-3;
        assert!(near(summary.p50, 501.0) && near(summary.p99, 991.0) && near(summary.p999, 1000.0), "{summary}");
        assert_eq!((summary.datagrams, summary.max), (1001, Duration::from_secs(3600)));
    }

    #[test]
    fn nothing_sent_is_never_late() {
        assert_eq!(LatenessRecorder::new().summary(), Lateness::default());
    }
}
