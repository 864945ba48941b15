//! The report of a transfer, at each end.
//!
//! Filled by the blocking loops; printed by the laboratory and the command.
//!
//! Invariant: a value that an end cannot know is `None` and not zero.

use super::failure::Failure;
use super::peer::AdapterCounters;
use segstream_base::Duration;
use segstream_base::halves::{Probe, Verdict};
use std::net::SocketAddr;

/// A named gauge of a half at the end of a transfer; the measure comes last in the name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauge {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

/// How many segments had which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictCounts {
    /// No holes.
    pub complete: u64,
    /// Holes, all of them tolerated.
    pub within_tolerance: u64,
    /// The tolerance was not met.
    pub expired: u64,
    /// The transfer ended first; only a sender reports this.
    pub unknown: u64,
}

impl VerdictCounts {
    /// Counts a verdict.
    pub const fn count(&mut self, verdict: Verdict) {
        let counter = match verdict {
            Verdict::Complete => &mut self.complete,
            Verdict::WithinTolerance => &mut self.within_tolerance,
            Verdict::Expired => &mut self.expired,
            Verdict::Unknown => &mut self.unknown,
        };
        *counter += 1;
    }

    /// Whether every tolerance was met and every verdict is known.
    pub const fn all_met(&self) -> bool {
        self.expired == 0 && self.unknown == 0
    }
}

/// The report of a transfer by the sender.
#[derive(Clone, Debug, PartialEq)]
pub struct SendReport {
    /// The receiver.
    pub peer: SocketAddr,
    /// Application bytes of segments whose tolerance was met, including holes: the sender knows only the verdict.
    pub bytes: u64,
    /// From the first OPEN to the last verdict, in seconds.
    pub seconds: f64,
    /// `bytes` per second of `seconds`; `None` if there was nothing to measure.
    pub goodput_bps: Option<f64>,
    /// Segments that the scheme has accepted for sending.
    pub segments: u64,
    /// Data packets sent, first transmissions and retransmissions, as the half counts them.
    pub packets_sent: u64,
    /// Of them retransmissions.
    pub packets_retransmitted: u64,
    /// The minimum RTT, measured by the adapter with OPEN; `None` if nothing was answered.
    pub rtt_ms_min: Option<f64>,
    /// Verdicts.
    pub verdicts: VerdictCounts,
    /// Whether the receiver has confirmed the end. Everything judged is delivered without that too.
    pub confirmed: bool,
    /// The counters of the adapter.
    pub counters: AdapterCounters,
    /// The half's gauges at the end.
    pub gauges: Vec<Gauge>,
    /// Why the transfer failed; `None` if it did not.
    pub failure: Option<Failure>,
}

/// The report of a transfer by the receiver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReceiveReport {
    /// The sender; `None` if none connected.
    pub peer: Option<SocketAddr>,
    /// Its parameters.
    pub parameters: Option<String>,
    /// Application bytes that arrived, in segments whose tolerance was met.
    pub bytes: u64,
    /// From the first data packet to the last acceptance, in seconds.
    pub seconds: f64,
    /// `bytes` per second of `seconds`; `None` if there was nothing to measure.
    pub goodput_bps: Option<f64>,
    /// Segments judged.
    pub segments: u64,
    /// Segments of which a part arrived and that were not judged.
    pub segments_unfinished: u64,
    /// Units missing in judged segments.
    pub holes: u64,
    /// Bytes missing in judged segments.
    pub missing_bytes: u64,
    /// Verdicts.
    pub verdicts: VerdictCounts,
    /// The counters of the adapter.
    pub counters: AdapterCounters,
    /// The half's gauges at the end.
    pub gauges: Vec<Gauge>,
    /// Why the transfer failed; `None` if it did not.
    pub failure: Option<Failure>,
}

impl SendReport {
    /// Whether every tolerance was met and nothing failed.
    pub const fn is_success(&self) -> bool {
        self.failure.is_none() && self.verdicts.all_met()
    }
}

impl ReceiveReport {
    /// Whether every tolerance was met and nothing failed.
    pub const fn is_success(&self) -> bool {
        self.failure.is_none() && self.verdicts.all_met()
    }
}

/// `bytes` in `span`.
pub(super) fn goodput(bytes: u64, span: Duration) -> Option<f64> {
    (bytes > 0 && !span.is_zero()).then(|| bytes as f64 * 8.0 / span.as_secs_f64())
}

/// Collects the gauges of a half.
#[derive(Debug, Default)]
pub(super) struct Gauges(pub(super) Vec<Gauge>);

impl Probe for Gauges {
    fn gauge(&mut self, name: &'static str, value: f64) {
        self.0.push(Gauge { name, value });
    }
}
