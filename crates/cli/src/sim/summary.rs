//! What `segstream sim` prints: one object for programs, one table for people.
//!
//! Called by the verb.
//!
//! Invariant: both show the same numbers; counts are means over replications.

use segstream_lab::outcome::Outcome;
use segstream_lab::point::PointResult;
use segstream_lab::scenario;
use segstream_lab::statistics::Estimate;
use serde_json::{Map, Value, json};

/// Of more than one run.
pub(super) const OVER_REPLICATIONS: &str = "over replications";

/// The numbers of all replications.
pub(crate) struct Summary {
    /// What went wrong in the first run in which something did.
    pub(crate) trouble: Option<String>,
    /// What was run, in words.
    pub(super) head: Vec<(&'static str, Value)>,
    pub(super) rows: Vec<Row>,
    pub(super) replications: usize,
    /// How the confidence intervals are computed.
    pub(super) method: &'static str,
}

/// A number with its name.
pub(super) struct Row {
    pub(super) key: &'static str,
    pub(super) estimate: Estimate,
    /// Counts have no digits behind the point when there is one run.
    pub(super) count: bool,
}

impl Summary {
    /// Of a scenario's replications.
    pub(crate) fn of(point: &PointResult, seed: u64) -> Self {
        let scenario = &point.scenario;
        let payload_bits = 8.0 * scenario::segment_bytes(scenario) as f64 / f64::from(scenario.workload.segment_packets);
        let max = point.delay_ms_max();
        let value = |key, estimate| Row { key, estimate, count: false };
        let count =
            |key, of: fn(&Outcome) -> u64| Row { key, estimate: point.over_replications(|outcome| of(outcome) as f64), count: true };
        let exact = |mean: f64| Estimate { mean, half_width: None, samples: point.outcomes.len() as u64 };
        let rows = vec![
            value("throughput_efficiency", point.throughput_efficiency()),
            value(
                "goodput_bps",
                point.over_replications(|outcome| outcome.packets_delivered as f64 * payload_bits / (outcome.span_ns as f64 * 1e-9)),
            ),
            value("throughput_packets_per_second", point.over_replications(Outcome::throughput_packets_per_second)),
            value("delay_ms_mean", point.delay_ms_mean()),
            value("delay_ms_p99", point.delay_ms_p99()),
            value("delay_ms_max", exact(max.value)),
            Row { key: "delay_ms_max_segments", estimate: exact(max.segments as f64), count: true },
            count("packets_sent", |outcome| outcome.packets_sent),
            count("packets_retransmitted", |outcome| outcome.packets_retransmitted),
            Row { key: "spurious_retransmissions", estimate: received_again(point), count: true },
            count("packets_delivered", |outcome| outcome.packets_delivered),
            count("segments_delivered", |outcome| outcome.segments_delivered),
            count("feedback_packets", |outcome| outcome.feedback_packets),
            count("control_packets", |outcome| outcome.control_packets),
            count("packets_lost", |outcome| outcome.packets_lost),
            value("simulated_seconds", point.over_replications(|outcome| outcome.simulated_ns as f64 * 1e-9)),
            value("wall_seconds", exact(point.wall_s)),
            value("packets_per_second", exact(point.total(|outcome| outcome.packets_sent) as f64 / point.wall_s.max(1e-9))),
        ];
        Self {
            trouble: point.trouble().map(str::to_owned),
            head: vec![("scheme", json!(scenario.scheme.key())), ("seed", json!(seed))],
            rows,
            replications: point.outcomes.len(),
            method: if point.outcomes.len() > 1 { OVER_REPLICATIONS } else { "by batch means" },
        }
    }

    /// For people.
    pub(crate) fn table(&self) -> String {
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut table: String = self.head.iter().map(|(key, value)| format!("{key:<28} {}\n", word(value))).collect();
        for row in &self.rows {
            let mean = if row.count && self.replications == 1 { format!("{:.0}", row.estimate.mean) } else { readable(row.estimate.mean) };
            let half = row.estimate.half_width.map_or_else(String::new, |half| format!("  ± {}", readable(half)));
            table.push_str(&format!("{:<28} {mean}{half}\n", row.key));
        }
        table.push_str(&format!("{:<28} {} (± is the half-width of a 95 % interval {})\n", "replications", self.replications, self.method));
        table
    }
}

/// Data packets that arrived although the receiver had all of theirs; not a number where a run does not tell.
fn received_again(point: &PointResult) -> Estimate {
    point.over_replications(|outcome| outcome.packets_received_again.map_or(f64::NAN, |packets| packets as f64))
}

/// Five significant digits.
fn readable(value: f64) -> String {
    if value.abs() >= 1e5 { format!("{value:.0}") } else { segstream_lab::figure::digits(value) }
}

impl serde::Serialize for Summary {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Map::new();
        object.extend(self.head.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        for row in &self.rows {
            let mean = row.estimate.mean;
            let whole = row.count && self.replications == 1;
            object.insert(row.key.to_owned(), if whole && mean.is_finite() { json!(mean as u64) } else { number(mean) });
            if let Some(half) = row.estimate.half_width {
                object.insert(format!("{}_ci95", row.key), number(half));
            }
        }
        if self.replications > 1 {
            object.insert("replications".to_owned(), json!(self.replications));
        }
        if let Some(trouble) = &self.trouble {
            object.insert("trouble".to_owned(), json!(trouble));
        }
        object.serialize(serializer)
    }
}

/// A number, or null when there is none.
fn number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { Value::Null }
}
