//! The result of a transfer with `--scheme`: the same keys as any other transfer, and the half's gauges.
//!
//! Filled by `send` and `recv` from what the adapter reports.
//!
//! Invariant: what a scheme does not know is null. Its packets are counted as units, its datagrams as shipments.

use crate::json;
use crate::transfer_report::{FileReport, TransferReport, Verdicts};
use anyhow::Result;
use segstream_net::adapter::{Gauge, ReceiveReport, SendReport, VerdictCounts};
use serde_json::{Map, Value};

/// What no scheme says of itself at either end.
const UNKNOWN: &[&str] = &[
    "segments_repaired",
    "repair_units_sent",
    "repair_units_ahead",
    "repair_units_received",
    "units_restored",
    "round_trips_saved",
    "units_duplicate",
    "hash_agrees",
];
/// What is known to the receiver only: a sender is told verdicts, not holes.
const UNKNOWN_TO_SENDER: &[&str] = &["holes", "units_received"];

/// The result at one end.
#[derive(Debug)]
pub(crate) struct SchemeReport {
    scheme: &'static str,
    pub(crate) report: TransferReport,
    gauges: Vec<Gauge>,
    unknown: &'static [&'static str],
}

impl SchemeReport {
    /// Of the sending end; `file` is what was read.
    pub(crate) fn of_sender(scheme: &'static str, sent: SendReport, file: FileReport) -> Self {
        let mut report = TransferReport {
            bytes: sent.bytes,
            seconds: sent.seconds,
            goodput_bps: sent.goodput_bps,
            segments: sent.segments,
            shipments_sent: sent.counters.datagrams_sent,
            units_sent: sent.packets_sent,
            units_retransmitted: sent.packets_retransmitted,
            rtt_ms_min: sent.rtt_ms_min,
            verdicts: verdicts(sent.verdicts),
            shipments_received: sent.counters.datagrams_received,
            address: Some(sent.peer.to_string()),
            error: sent.failure.map(|failure| failure.to_string()),
            ..TransferReport::default()
        };
        report.add_file(file);
        Self { scheme, report: told(report), gauges: sent.gauges, unknown: UNKNOWN_TO_SENDER }
    }

    /// Of the receiving end; what was written is to be added.
    pub(crate) fn of_receiver(scheme: &'static str, received: ReceiveReport) -> Self {
        let report = TransferReport {
            bytes: received.bytes,
            seconds: received.seconds,
            goodput_bps: received.goodput_bps,
            segments: received.segments,
            shipments_sent: received.counters.datagrams_sent,
            verdicts: verdicts(received.verdicts),
            holes: received.holes,
            shipments_received: received.counters.datagrams_received,
            units_received: received.counters.data_received,
            address: received.peer.map(|peer| peer.to_string()),
            error: received.failure.map(|failure| failure.to_string()),
            ..TransferReport::default()
        };
        Self { scheme, report: told(report), gauges: received.gauges, unknown: &[] }
    }

    /// As one JSON object on standard output, or on standard error when that carries data.
    pub(crate) fn print(&self, to_standard_error: bool) -> Result<()> {
        let mut object = serde_json::to_value(&self.report)?;
        if let Value::Object(keys) = &mut object {
            for key in UNKNOWN.iter().chain(self.unknown) {
                keys.insert((*key).to_owned(), Value::Null);
            }
            let gauges: Map<String, Value> = self.gauges.iter().map(|gauge| (gauge.name.to_owned(), gauge.value.into())).collect();
            keys.insert("scheme".to_owned(), self.scheme.into());
            keys.insert("gauges".to_owned(), gauges.into());
        }
        if to_standard_error { json::print_to_standard_error(&object) } else { json::print(&object) }
    }
}

/// With the error that expired segments are.
fn told(mut report: TransferReport) -> TransferReport {
    report.fail_if_expired();
    report
}

const fn verdicts(counts: VerdictCounts) -> Verdicts {
    let VerdictCounts { complete, within_tolerance, expired, unknown } = counts;
    Verdicts { complete, within_tolerance, expired, unknown }
}
