//! How late datagrams left: the measure of an emulator.
//!
//! Called by the relay for every datagram it sends; read in the report.
//!
//! Lateness is the time from when a datagram was due to when the send call for it returned.
//!
//! Invariant: every datagram sent is counted once; none is left out for being very late.

use super::stolen_time;
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
    /// How long the host of a virtual machine has kept its processors, all together, from running since the link was made; `None` if the
    /// system does not report it. A relay is late then whatever its priority.
    pub stolen: Option<Duration>,
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { datagrams, p50, p99, p999, max, stolen } = self;
        write!(f, "{datagrams} datagrams left late by {p50} (p50), {p99} (p99), {p999} (p99.9), {max} (max)")?;
        match stolen {
            Some(stolen) if !stolen.is_zero() => write!(f, "; the host of this virtual machine took {stolen} from its processors"),
            _ => Ok(()),
        }
    }
}

/// Counts lateness in nanoseconds to three digits.
#[derive(Debug)]
pub(super) struct LatenessRecorder {
    /// `None` only if the histogram could not be made, which its constant bounds rule out.
    histogram: Option<Histogram<u64>>,
    max: Duration,
    stolen_before: Option<Duration>,
}

impl LatenessRecorder {
    /// A greater lateness counts as this in the quantiles.
    const LIMIT: Duration = Duration::from_secs(60);

    pub(super) fn new() -> Self {
        let histogram = Histogram::new_with_max(Self::LIMIT.as_nanos(), 3).ok();
        Self { histogram, max: Duration::ZERO, stolen_before: stolen_time::stolen() }
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
        let stolen = stolen_time::stolen().zip(self.stolen_before).map(|(now, before)| now.saturating_sub(before));
        Lateness { datagrams: histogram.len(), p50: quantile(0.5), p99: quantile(0.99), p999: quantile(0.999), max: self.max, stolen }
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
    fn what_the_host_took_is_told_where_it_took_any() {
        let told = |stolen| Lateness { stolen, ..Lateness::default() }.to_string();
        assert!(told(Some(Duration::from_millis(40))).ends_with("; the host of this virtual machine took 40ms from its processors"));
        assert!(told(Some(Duration::ZERO)).ends_with("(max)") && told(None).ends_with("(max)"));
    }

    #[test]
    fn nothing_sent_is_never_late() {
        assert_eq!(Lateness { stolen: None, ..LatenessRecorder::new().summary() }, Lateness::default());
    }
}
