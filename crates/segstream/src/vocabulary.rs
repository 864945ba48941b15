//! The vocabulary of measurements: for each quantity of [`Statistics`] its names in JSON, metrics, qlog and `segstream top`, its unit,
//! where it is counted, and its meaning.
//!
//! Read by [`crate::metrics`], by the documentation's table, by the tests that compare what the four tell, and by whoever shows statistics.
//!
//! Invariant: every field of [`Statistics`] is here once, under the name that it has in Rust and in JSON. Names of metrics follow
//! OpenMetrics: totals end with `_total`, times are in seconds, rates in bytes per second.

use crate::{Histogram, Statistics};

/// One quantity of [`Statistics`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Quantity {
    /// Its name in Rust and in JSON.
    pub name: &'static str,
    /// Its unit in Rust and in JSON; a metric has that of its name.
    pub unit: &'static str,
    /// Its name as a metric.
    pub metric: &'static str,
    /// How it follows from the events of a qlog, if it does: `sum EVENT.FIELD`, `max EVENT.FIELD`, `last EVENT.FIELD` or `count EVENT`,
    /// over all events of the name, with `where FIELD=VALUE` over some of them. Behind `.1` is the second of each pair. Of a histogram
    /// `each EVENT.FIELD`, or `each EVENT.FIELD - OTHER.FIELD`: of the events of one segment.
    pub qlog: Option<&'static str>,
    /// What `segstream top` calls it, if it shows it: totals as their growth in a second, verdicts as their number.
    pub top: Option<&'static str>,
    /// The part of the protocol that counts it.
    pub counted: &'static str,
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
    /// A distribution, and the bounds of its buckets in the unit of the metric's name.
    Histogram(fn(&Statistics) -> &Histogram, &'static [f64]),
    /// A word out of a few; as a metric it is the label `value` of a gauge that is 1.
    Word(fn(&Statistics) -> Option<&'static str>),
}

const CONNECTION: &str = "connection";
const SENDER: &str = "sending half";
const RECEIVER: &str = "receiving half";
const DETECTOR: &str = "loss detector";
const PATH: &str = "path";
const CONTROLLER: &str = "congestion controller";

impl Quantity {
    const fn new(name: &'static str, metric: &'static str, value: Value, help: &'static str) -> Self {
        Self { name, unit: "", metric, qlog: None, top: None, counted: "", help, value }
    }

    /// Its unit, and where it is counted.
    const fn of(self, unit: &'static str, counted: &'static str) -> Self {
        Self { unit, counted, ..self }
    }

    const fn qlog(self, qlog: &'static str) -> Self {
        Self { qlog: Some(qlog), ..self }
    }

    const fn top(self, top: &'static str) -> Self {
        Self { top: Some(top), ..self }
    }

    /// What one of its unit is in the unit of its metric.
    #[cfg(feature = "metrics")]
    pub(crate) fn scale(&self) -> f64 {
        // Why by the name: of a histogram, times alone have another unit as a metric.
        if self.metric.ends_with("_seconds") { 1e-3 } else { 1.0 }
    }

    /// What it is to the reader of a metric.
    const fn kind(&self) -> &'static str {
        match self.value {
            Value::Total(_) => "total",
            Value::Now(_) => "now",
            Value::Histogram(..) => "histogram",
            Value::Word(_) => "word",
        }
    }
}

const fn total(name: &'static str, metric: &'static str, value: fn(&Statistics) -> u64, help: &'static str) -> Quantity {
    Quantity::new(name, metric, Value::Total(value), help)
}

const fn now(name: &'static str, metric: &'static str, value: fn(&Statistics) -> Option<f64>, help: &'static str) -> Quantity {
    Quantity::new(name, metric, Value::Now(value), help)
}

const fn word(name: &'static str, metric: &'static str, value: fn(&Statistics) -> Option<&'static str>, help: &'static str) -> Quantity {
    Quantity::new(name, metric, Value::Word(value), help)
}

const fn times(name: &'static str, metric: &'static str, value: fn(&Statistics) -> &Histogram, help: &'static str) -> Quantity {
    Quantity::new(name, metric, Value::Histogram(value, SECONDS_BUCKETS), help)
}

const fn runs(name: &'static str, metric: &'static str, value: fn(&Statistics) -> &Histogram, help: &'static str) -> Quantity {
    Quantity::new(name, metric, Value::Histogram(value, RUN_BUCKETS), help)
}

/// Milliseconds as seconds.
fn seconds(millis: Option<f64>) -> Option<f64> {
    millis.map(|millis| millis / 1e3)
}

/// Bits as bytes.
fn bytes(bits: Option<f64>) -> Option<f64> {
    bits.map(|bits| bits / 8.0)
}

/// The bounds of the buckets of histograms of times, in seconds.
pub const SECONDS_BUCKETS: &[f64] = &[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0];
/// The bounds of the buckets of histograms of runs, in shipments.
pub const RUN_BUCKETS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1024.0];

/// All quantities of [`Statistics`], in the order of its fields.
#[rustfmt::skip]
pub const QUANTITIES: &[Quantity] = &[
    total("shipments_sent", "segstream_shipments_sent_total", |s| s.shipments_sent, "Datagrams sent; each is one shipment.")
        .of("shipments", CONNECTION).qlog("sum shipments_sent.count"),
    total("bytes_sent", "segstream_sent_bytes_total", |s| s.bytes_sent, "Bytes of datagrams sent, without IP and UDP headers.")
        .of("bytes", CONNECTION).qlog("sum shipments_sent.bytes").top("SENT"),
    total("shipments_received", "segstream_shipments_received_total", |s| s.shipments_received, "Authenticated datagrams received.")
        .of("shipments", CONNECTION).qlog("sum shipments_received.count"),
    total("bytes_received", "segstream_received_bytes_total", |s| s.bytes_received, "Bytes of authenticated datagrams received.")
        .of("bytes", CONNECTION).qlog("sum shipments_received.bytes").top("RECEIVED"),
    total("units_sent", "segstream_units_sent_total", |s| s.units_sent, "Units sent, first transmissions and retransmissions.")
        .of("units", SENDER).qlog("sum shipments_sent.parts.count"),
    total("units_retransmitted", "segstream_units_retransmitted_total", |s| s.units_retransmitted, "Units retransmitted.")
        .of("units", SENDER).qlog("sum shipments_sent.parts.count where retransmission=true"),
    total("payload_bytes_sent", "segstream_payload_sent_bytes_total", |s| s.payload_bytes_sent, "Payload bytes sent, first transmissions and retransmissions.")
        .of("bytes", SENDER).qlog("sum shipments_sent.parts.payload_bytes"),
    total("state_shipments_sent", "segstream_state_shipments_sent_total", |s| s.state_shipments_sent, "State shipments (TXS) sent.")
        .of("shipments", SENDER).qlog("sum shipments_sent.count where kind=TXS"),
    total("report_shipments_sent", "segstream_report_shipments_sent_total", |s| s.report_shipments_sent, "Report shipments (RXS) sent.")
        .of("shipments", RECEIVER).qlog("sum shipments_sent.count where kind=RXS"),
    total("segments_skipped", "segstream_segments_skipped_total", |s| s.segments_skipped, "Segments of ours abandoned because their lifetime had passed.")
        .of("segments", SENDER),
    total("segments_repaired", "segstream_segments_repaired_total", |s| s.segments_repaired, "Segments of ours of which any unit was retransmitted or restored on request.")
        .of("segments", SENDER),
    total("segments_durable", "segstream_segments_durable_total", |s| s.segments_durable, "Segments of ours that the peer's application has confirmed.")
        .of("segments", SENDER),
    total("repair_units_sent", "segstream_repair_units_sent_total", |s| s.repair_units_sent, "Repair units sent.")
        .of("units", SENDER).qlog("sum shipments_sent.repair.count"),
    total("repair_units_ahead", "segstream_repair_units_ahead_total", |s| s.repair_units_ahead, "Repair units sent ahead, before anything was asked for.")
        .of("units", SENDER),
    now("units_buffered", "segstream_buffered_units", |s| Some(s.units_buffered as f64), "Units of ours kept until the verdict on their segment comes.")
        .of("units", SENDER),
    times("verdict_ms", "segstream_segment_verdict_seconds", |s| &s.verdict_ms, "From the source's time of a segment of ours to when its verdict was known.")
        .of("ms", SENDER).qlog("each verdict_received.time - segment_submitted.source_ms"),
    total("units_received", "segstream_units_received_total", |s| s.units_received, "Units received for the first time.")
        .of("units", RECEIVER),
    total("repair_units_received", "segstream_repair_units_received_total", |s| s.repair_units_received, "Repair units received and kept.")
        .of("units", RECEIVER),
    total("units_restored", "segstream_units_restored_total", |s| s.units_restored, "Units that repair units restored.")
        .of("units", RECEIVER),
    total("segments_restored", "segstream_segments_restored_total", |s| s.segments_restored, "Segments of the peer of which any unit was restored.")
        .of("segments", RECEIVER),
    total("round_trips_saved", "segstream_round_trips_saved_total", |s| s.round_trips_saved, "Segments of the peer that were restored without a round trip, by repair units sent ahead.")
        .of("segments", RECEIVER),
    total("units_duplicate", "segstream_units_duplicate_total", |s| s.units_duplicate, "Duplicate units received.")
        .of("units", RECEIVER),
    total("units_detected_lost", "segstream_units_detected_lost_total", |s| s.units_detected_lost, "Units declared lost, those repaired later included.")
        .of("units", RECEIVER).qlog("sum segment_judged.units_lost"),
    total("units_tolerated", "segstream_units_tolerated_total", |s| s.units_tolerated, "Holes that the tolerance allowed to stay.")
        .of("units", RECEIVER).qlog("sum segment_judged.holes.1 where verdict=within_tolerance"),
    total("parts_refused", "segstream_parts_refused_total", |s| s.parts_refused, "Parts outside the window or contradicting earlier ones.")
        .of("parts", RECEIVER),
    total("segments_complete", "segstream_segments_complete_total", |s| s.segments_complete, "Segments of the peer judged complete.")
        .of("segments", RECEIVER).qlog("count segment_judged where verdict=complete").top("complete"),
    total("segments_within_tolerance", "segstream_segments_within_tolerance_total", |s| s.segments_within_tolerance, "Segments of the peer judged within tolerance.")
        .of("segments", RECEIVER).qlog("count segment_judged where verdict=within_tolerance").top("within tolerance"),
    total("segments_expired", "segstream_segments_expired_total", |s| s.segments_expired, "Segments of the peer judged expired.")
        .of("segments", RECEIVER).qlog("count segment_judged where verdict=expired").top("expired"),
    now("holes_longest_run", "segstream_holes_longest_run_units", |s| Some(f64::from(s.holes_longest_run)), "The longest run of missing units in any judged segment of the peer.")
        .of("units", RECEIVER).qlog("max segment_judged.holes.1"),
    total("segments_confirmed", "segstream_segments_confirmed_total", |s| s.segments_confirmed, "Segments of the peer that the application has confirmed.")
        .of("segments", RECEIVER),
    times("assembly_ms", "segstream_segment_assembly_seconds", |s| &s.assembly_ms, "From the arrival of the first unit or repair unit of an accepted segment of the peer to its verdict: what repair costs.")
        .of("ms", RECEIVER).qlog("each segment_judged.assembly_ms"),
    times("delay_over_least_ms", "segstream_segment_delay_over_least_seconds", |s| &s.delay_over_least_ms, "From the source's time of an accepted segment of the peer to its verdict, less the least of its connection so far: the two clocks need not agree.")
        .of("ms", RECEIVER).qlog("each segment_judged.delay_over_least_ms"),
    total("shipments_detected_lost", "segstream_shipments_detected_lost_total", |s| s.shipments_detected_lost, "Shipments of the peer declared lost, spurious losses included.")
        .of("shipments", DETECTOR).qlog("sum shipments_lost.count").top("LOSS"),
    total("shipment_runs_lost", "segstream_shipment_runs_lost_total", |s| s.shipment_runs_lost, "Runs of consecutive shipments of the peer that were declared lost: the lost shipments by it are the mean length of a burst.")
        .of("runs", DETECTOR).qlog("count shipments_lost").top("in runs of"),
    runs("loss_run_shipments", "segstream_loss_run_shipments", |s| &s.loss_run_shipments, "The lengths of the runs of consecutive shipments of the peer that were declared lost, once they have ended.")
        .of("shipments", DETECTOR).qlog("each shipments_lost.count"),
    total("shipments_late", "segstream_shipments_late_total", |s| s.shipments_late, "Shipments of the peer that came after a higher number.")
        .of("shipments", DETECTOR),
    total("authentication_failures", "segstream_authentication_failures_total", |s| s.authentication_failures, "Datagrams that failed authentication.")
        .of("datagrams", CONNECTION).qlog("count datagram_dropped where cause=authentication"),
    total("shipments_duplicate", "segstream_shipments_duplicate_total", |s| s.shipments_duplicate, "Datagrams with a number seen before.")
        .of("datagrams", CONNECTION).qlog("count datagram_dropped where cause=duplicate"),
    total("shipments_malformed", "segstream_shipments_malformed_total", |s| s.shipments_malformed, "Authenticated datagrams that could not be decoded.")
        .of("datagrams", CONNECTION).qlog("count datagram_dropped where cause=malformed"),
    total("peer_migrations", "segstream_peer_migrations_total", |s| s.peer_migrations, "Moves of the peer to another address that was validated.")
        .of("moves", CONNECTION).qlog("count peer_migrated"),
    now("reordering_threshold_shipments", "segstream_reordering_threshold_shipments", |s| Some(f64::from(s.reordering_threshold_shipments)), "The reordering threshold in force.")
        .of("shipments", DETECTOR).qlog("last shipments_sent.report.reordering_threshold_shipments"),
    now("rtt_ms_min", "segstream_rtt_min_seconds", |s| seconds(s.rtt_ms_min), "The smallest round trip of the last ten seconds.")
        .of("ms", PATH).qlog("last path_updated.rtt_ms_min"),
    now("rtt_ms_smoothed", "segstream_rtt_smoothed_seconds", |s| seconds(s.rtt_ms_smoothed), "The smoothed round trip.")
        .of("ms", PATH).qlog("last path_updated.rtt_ms_smoothed").top("RTT"),
    now("rate_bps", "segstream_rate_bytes_per_second", |s| bytes(s.rate_bps.map(|rate| rate as f64)), "The rate in force in our direction, in whole IP packets.")
        .of("bit/s", CONTROLLER).qlog("last path_updated.rate_bps"),
    now("in_flight_bytes", "segstream_in_flight_bytes", |s| s.in_flight_bytes.map(|bytes| bytes as f64), "Bytes in flight in our direction, in whole IP packets.")
        .of("bytes", CONTROLLER).qlog("last path_updated.in_flight_bytes"),
    now("in_flight_cap_bytes", "segstream_in_flight_cap_bytes", |s| s.in_flight_cap_bytes.map(|bytes| bytes as f64), "How many bytes may be in flight: the congestion window.")
        .of("bytes", CONTROLLER).qlog("last path_updated.in_flight_cap_bytes"),
    now("queue_ms", "segstream_queue_seconds", |s| seconds(s.queue_ms), "The standing queue on the path in our direction.")
        .of("ms", CONTROLLER).qlog("last path_updated.queue_ms").top("QUEUE"),
    now("rho", "segstream_traffic_intensity", |s| s.rho, "The spacing of state shipments where they arrive over their spacing where they left; above 1 a queue grows.")
        .of("ratio", CONTROLLER).qlog("last path_updated.rho"),
    now("delivery_bps", "segstream_delivery_bytes_per_second", |s| bytes(s.delivery_bps), "The delivery rate of our direction, in whole IP packets.")
        .of("bit/s", CONTROLLER).qlog("last path_updated.delivery_bps"),
    word("phase", "segstream_controller_phase", |s| s.phase, "The phase of the congestion controller, as the label value.")
        .of("word", CONTROLLER).qlog("last path_updated.phase").top("phase"),
    now("datagram_bytes", "segstream_datagram_bytes", |s| Some(s.datagram_bytes as f64), "The datagram size in use.")
        .of("bytes", PATH),
    now("class", "segstream_class", |s| Some(f64::from(s.class)), "The class in force in our direction: error control 4, flow control 2, rate control 1.")
        .of("class", CONNECTION),
];

/// The table of the documentation, in Markdown: every quantity under its names.
pub fn markdown() -> String {
    let mut text =
        String::from("| Rust, JSON | unit | metric | kind | qlog | `top` | counted by | meaning |\n|---|---|---|---|---|---|---|---|\n");
    for quantity in QUANTITIES {
        let Quantity { name, unit, metric, qlog, top, counted, help, .. } = quantity;
        let qlog = qlog.map_or("–".to_owned(), |qlog| format!("`{qlog}`"));
        let (kind, top) = (quantity.kind(), top.unwrap_or("–"));
        text.push_str(&format!("| `{name}` | {unit} | `{metric}` | {kind} | {qlog} | {top} | {counted} | {help} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_field_of_the_statistics_has_one_quantity_in_its_order() {
        // The names of the fields, in their order; those of a field's own fields are indented further.
        let shown = format!("{:#?}", Statistics::default());
        let own = shown.lines().filter_map(|line| line.strip_prefix("    ").filter(|line| line.starts_with(char::is_alphabetic)));
        let fields: Vec<&str> = own.map(|line| line.split(':').next().unwrap()).collect();
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
    fn every_quantity_has_a_unit_and_whoever_counts_it_and_is_said_of_events_that_the_schema_knows() {
        let schema = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/qlog.schema.json")).unwrap();
        for Quantity { name, unit, counted, qlog, .. } in QUANTITIES {
            assert!(!unit.is_empty() && !counted.is_empty(), "{name}");
            let Some(qlog) = qlog else { continue };
            let (told, condition) = qlog.split_once(" where ").map_or((*qlog, ""), |(told, condition)| (told, condition));
            let (how, path) = told.split_once(' ').unwrap();
            assert!(["sum", "max", "last", "count", "each"].contains(&how), "{qlog}");
            for path in path.split(" - ") {
                let (event, fields) = path.split_once('.').unwrap_or((path, ""));
                assert!(schema.contains(&format!("\"const\": \"segstream:{event}\"")), "{qlog}");
                for field in fields.split('.').chain(condition.split('=').take(1)).filter(|field| !["", "1"].contains(field)) {
                    assert!(schema.contains(&format!("\"{field}\": {{")), "{field} of {qlog} is not in the schema");
                }
            }
        }
    }

    #[test]
    fn the_documentation_has_the_same_table() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/OBSERVING.md")).unwrap();
        assert!(page.contains(&markdown()), "docs/OBSERVING.md needs this table:\n{}", markdown());
    }
}
