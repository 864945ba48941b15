//! The vocabulary of measurements: for each quantity of [`Statistics`] its name in metrics, its unit and its meaning.
//!
//! Read by [`crate::metrics`], by the documentation's table, and by whoever shows statistics.
//!
//! Invariant: every field of [`Statistics`] is here once, under the name that it has in Rust and in JSON. Names of metrics follow
//! OpenMetrics: totals end with `_total`, times are in seconds, rates in bytes per second.

use crate::Statistics;

/// One quantity of [`Statistics`].
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// Its name in Rust and in JSON.
    pub name: &'static str,
    /// Its name as a metric.
    pub metric: &'static str,
    /// What it is, in a sentence.
    pub help: &'static str,
    /// How it is read.
    pub value: Value,
}

/// How a quantity behaves, and how it is read.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Value {
    /// A total since the connection began; over all connections it is their sum.
    Total(fn(&Statistics) -> u64),
    /// A present value in the unit of the metric's name; `None` while it is not known.
    Now(fn(&Statistics) -> Option<f64>),
    /// A word out of a few; as a metric it is the label `value` of a gauge that is 1.
    Word(fn(&Statistics) -> Option<&'static str>),
}

const fn total(name: &'static str, metric: &'static str, value: fn(&Statistics) -> u64, help: &'static str) -> Quantity {
    Quantity { name, metric, help, value: Value::Total(value) }
}

const fn now(name: &'static str, metric: &'static str, value: fn(&Statistics) -> Option<f64>, help: &'static str) -> Quantity {
    Quantity { name, metric, help, value: Value::Now(value) }
}

/// Milliseconds as seconds.
fn seconds(millis: Option<f64>) -> Option<f64> {
    millis.map(|millis| millis / 1e3)
}

/// Bits as bytes.
fn bytes(bits: Option<f64>) -> Option<f64> {
    bits.map(|bits| bits / 8.0)
}

/// All quantities of [`Statistics`], in the order of its fields.
#[rustfmt::skip]
pub const QUANTITIES: &[Quantity] = &[
    total("shipments_sent", "segstream_shipments_sent_total", |s| s.shipments_sent, "Datagrams sent; each is one shipment."),
    total("bytes_sent", "segstream_sent_bytes_total", |s| s.bytes_sent, "Bytes of datagrams sent, without IP and UDP headers."),
    total("shipments_received", "segstream_shipments_received_total", |s| s.shipments_received, "Authenticated datagrams received."),
    total("bytes_received", "segstream_received_bytes_total", |s| s.bytes_received, "Bytes of authenticated datagrams received."),
    total("units_sent", "segstream_units_sent_total", |s| s.units_sent, "Units sent, first transmissions and retransmissions."),
    total("units_retransmitted", "segstream_units_retransmitted_total", |s| s.units_retransmitted, "Units retransmitted."),
    total("payload_bytes_sent", "segstream_payload_sent_bytes_total", |s| s.payload_bytes_sent, "Payload bytes sent, first transmissions and retransmissions."),
    total("state_shipments_sent", "segstream_state_shipments_sent_total", |s| s.state_shipments_sent, "State shipments (TXS) sent."),
    total("report_shipments_sent", "segstream_report_shipments_sent_total", |s| s.report_shipments_sent, "Report shipments (RXS) sent."),
    total("segments_skipped", "segstream_segments_skipped_total", |s| s.segments_skipped, "Segments of ours abandoned because their lifetime had passed."),
    total("segments_repaired", "segstream_segments_repaired_total", |s| s.segments_repaired, "Segments of ours of which any unit was retransmitted or restored on request."),
    total("segments_durable", "segstream_segments_durable_total", |s| s.segments_durable, "Segments of ours that the peer's application has confirmed."),
    total("repair_units_sent", "segstream_repair_units_sent_total", |s| s.repair_units_sent, "Repair units sent."),
    total("repair_units_ahead", "segstream_repair_units_ahead_total", |s| s.repair_units_ahead, "Repair units sent ahead, before anything was asked for."),
    now("units_buffered", "segstream_buffered_units", |s| Some(s.units_buffered as f64), "Units of ours kept until the verdict on their segment comes."),
    total("units_received", "segstream_units_received_total", |s| s.units_received, "Units received for the first time."),
    total("repair_units_received", "segstream_repair_units_received_total", |s| s.repair_units_received, "Repair units received and kept."),
    total("units_restored", "segstream_units_restored_total", |s| s.units_restored, "Units that repair units restored."),
    total("segments_restored", "segstream_segments_restored_total", |s| s.segments_restored, "Segments of the peer of which any unit was restored."),
    total("round_trips_saved", "segstream_round_trips_saved_total", |s| s.round_trips_saved, "Segments of the peer that were restored without a round trip, by repair units sent ahead."),
    total("units_duplicate", "segstream_units_duplicate_total", |s| s.units_duplicate, "Duplicate units received."),
    total("units_detected_lost", "segstream_units_detected_lost_total", |s| s.units_detected_lost, "Units declared lost, those repaired later included."),
    total("units_tolerated", "segstream_units_tolerated_total", |s| s.units_tolerated, "Holes that the tolerance allowed to stay."),
    total("parts_refused", "segstream_parts_refused_total", |s| s.parts_refused, "Parts outside the window or contradicting earlier ones."),
    total("segments_complete", "segstream_segments_complete_total", |s| s.segments_complete, "Segments of the peer judged complete."),
    total("segments_within_tolerance", "segstream_segments_within_tolerance_total", |s| s.segments_within_tolerance, "Segments of the peer judged within tolerance."),
    total("segments_expired", "segstream_segments_expired_total", |s| s.segments_expired, "Segments of the peer judged expired."),
    now("holes_longest_run", "segstream_holes_longest_run_units", |s| Some(f64::from(s.holes_longest_run)), "The longest run of missing units in any judged segment of the peer."),
    total("segments_confirmed", "segstream_segments_confirmed_total", |s| s.segments_confirmed, "Segments of the peer that the application has confirmed."),
    total("shipments_detected_lost", "segstream_shipments_detected_lost_total", |s| s.shipments_detected_lost, "Shipments of the peer declared lost, spurious losses included."),
    total("shipments_late", "segstream_shipments_late_total", |s| s.shipments_late, "Shipments of the peer that came after a higher number."),
    total("authentication_failures", "segstream_authentication_failures_total", |s| s.authentication_failures, "Datagrams that failed authentication."),
    total("shipments_duplicate", "segstream_shipments_duplicate_total", |s| s.shipments_duplicate, "Datagrams with a number seen before."),
    total("shipments_malformed", "segstream_shipments_malformed_total", |s| s.shipments_malformed, "Authenticated datagrams that could not be decoded."),
    now("reordering_threshold_shipments", "segstream_reordering_threshold_shipments", |s| Some(f64::from(s.reordering_threshold_shipments)), "The reordering threshold in force."),
    now("rtt_ms_min", "segstream_rtt_min_seconds", |s| seconds(s.rtt_ms_min), "The smallest round trip of the last ten seconds."),
    now("rtt_ms_smoothed", "segstream_rtt_smoothed_seconds", |s| seconds(s.rtt_ms_smoothed), "The smoothed round trip."),
    now("rate_bps", "segstream_rate_bytes_per_second", |s| bytes(s.rate_bps.map(|rate| rate as f64)), "The rate in force in our direction, in whole IP packets."),
    now("queue_ms", "segstream_queue_seconds", |s| seconds(s.queue_ms), "The standing queue on the path in our direction."),
    now("rho", "segstream_traffic_intensity", |s| s.rho, "The spacing of state shipments where they arrive over their spacing where they left; above 1 a queue grows."),
    now("delivery_bps", "segstream_delivery_bytes_per_second", |s| bytes(s.delivery_bps), "The delivery rate of our direction, in whole IP packets."),
    Quantity { name: "phase", metric: "segstream_controller_phase", help: "The phase of the congestion controller, as the label value.", value: Value::Word(|s| s.phase) },
    now("datagram_bytes", "segstream_datagram_bytes", |s| Some(s.datagram_bytes as f64), "The datagram size in use."),
    now("class", "segstream_class", |s| Some(f64::from(s.class)), "The class in force in our direction: error control 4, flow control 2, rate control 1."),
];

/// The table of the documentation, in Markdown: every quantity under its names.
pub fn markdown() -> String {
    let mut text = String::from("| Rust, JSON | metric | kind | meaning |\n|---|---|---|---|\n");
    for Quantity { name, metric, help, value } in QUANTITIES {
        let kind = match value {
            Value::Total(_) => "total",
            Value::Now(_) => "now",
            Value::Word(_) => "word",
        };
        text.push_str(&format!("| `{name}` | `{metric}` | {kind} | {help} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_field_of_the_statistics_has_one_quantity_in_its_order() {
        // The names of the fields, in their order, as serde writes them.
        let shown = format!("{:?}", Statistics::default());
        let inner = shown.trim_start_matches("Statistics { ").trim_end_matches(" }");
        let fields: Vec<&str> = inner.split(", ").map(|field| field.split(':').next().unwrap()).collect();
        let names: Vec<&str> = QUANTITIES.iter().map(|quantity| quantity.name).collect();
        assert_eq!(names, fields);
    }

    #[test]
    fn metrics_are_named_once_and_as_openmetrics_asks() {
        let metrics: BTreeSet<&str> = QUANTITIES.iter().map(|quantity| quantity.metric).collect();
        assert_eq!(metrics.len(), QUANTITIES.len());
        for Quantity { metric, value, help, .. } in QUANTITIES {
            assert!(metric.starts_with("segstream_") && help.ends_with('.'), "{metric}");
            assert_eq!(metric.ends_with("_total"), matches!(value, Value::Total(_)), "{metric}");
            for unit in ["_ms", "_bps", "_bits", "millis"] {
                assert!(!metric.contains(unit), "{metric}");
            }
        }
    }

    #[test]
    fn the_documentation_has_the_same_table() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/OBSERVING.md")).unwrap();
        assert!(page.contains(&markdown()), "docs/OBSERVING.md needs this table:\n{}", markdown());
    }
}
