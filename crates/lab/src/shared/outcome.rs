//! The outcome of one run over a shared link: counts, times and series of integers.
//!
//! Made by [`super::run`], kept by [`crate::store`], joined over replications by [`super::SharedResult`].
//!
//! Invariant: nothing in an outcome depends on the machine. Totals cover the time after the warm-up, series the whole run.

use segstream_base::Duration;
use serde::{Deserialize, Serialize};

/// The interval of all series.
pub const SAMPLE: Duration = Duration::from_millis(100);

/// The outcome of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedOutcome {
    /// Why the run ended early, if it did.
    pub trouble: Option<String>,
    /// Packets sent over the link in the whole run.
    pub link_packets_sent: u64,
    /// Those of them that the full queue dropped.
    pub link_dropped_queue: u64,
    /// Those that queue management dropped.
    pub link_dropped_aqm: u64,
    /// Those it marked.
    pub link_marked: u64,
    /// The queueing delay of the link.
    pub queue: QueueOutcome,
    /// The flows, in the order of the scenario.
    #[serde(rename = "parties")]
    pub flows: Vec<FlowOutcome>,
}

/// The queueing delay of the link, over packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct QueueOutcome {
    /// The mean.
    pub mean_ns: u64,
    /// The 95th percentile.
    pub p95_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The mean in each interval of [`SAMPLE`]; none where no packet entered.
    pub mean_ns_series: Vec<Option<u64>>,
    /// The longest in each.
    pub max_ns_series: Vec<Option<u64>>,
}

/// The outcome of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct FlowOutcome {
    /// Its name.
    pub name: String,
    /// How long it was active after the warm-up.
    pub present_ns: u64,
    /// Bytes of its packets that arrived.
    pub bytes_arrived: u64,
    /// Bytes of its application that were delivered, each once, in segments whose promise was kept. For TCP in order.
    pub bytes_delivered: u64,
    /// Bytes of its packets that it sent.
    pub bytes_sent: u64,
    /// Packets it sent.
    pub packets_sent: u64,
    /// Retransmitted packets.
    pub packets_retransmitted: u64,
    /// Packets the link dropped.
    pub packets_dropped: u64,
    /// Packets its own path lost or dropped.
    pub packets_lost: u64,
    /// Packets that arrived marked.
    pub packets_marked: u64,
    /// Bytes that arrived in each interval of [`SAMPLE`].
    pub bytes_arrived_series: Vec<u64>,
    /// From a segment's first transmission to its acceptance; of schemes alone.
    pub delays: Times,
    /// From when a segment was due, or submitted, to its acceptance; of schemes alone.
    pub latencies: Times,
    /// Segments that the sender knows to be accepted; of schemes alone.
    #[serde(default)]
    pub segments_accepted: u64,
    /// Segments that the sender knows to have expired, or whose verdict it will not learn; of schemes alone.
    #[serde(default)]
    pub segments_expired: u64,
}

/// Times of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Times {
    /// Of how many.
    pub segments: u64,
    /// The mean; zero without segments, as all that follows.
    pub mean_ns: u64,
    /// The 95th percentile.
    pub p95_ns: u64,
    /// The 99th percentile.
    #[serde(default)]
    pub p99_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

impl SharedOutcome {
    /// The flow with this name.
    pub fn flow(&self, name: &str) -> Option<&FlowOutcome> {
        self.flows.iter().find(|flow| flow.name == name)
    }
}

impl FlowOutcome {
    /// Throughput in bit/s while it was active, whole packets counted.
    pub fn throughput_bps(&self) -> f64 {
        self.bytes_arrived as f64 * 8e9 / self.present_ns as f64
    }

    /// Goodput in bit/s while it was active.
    pub fn goodput_bps(&self) -> f64 {
        self.bytes_delivered as f64 * 8e9 / self.present_ns as f64
    }

    /// The part of its segments that were accepted, of those that the sender has a verdict of; `None` without any.
    pub fn accepted_share(&self) -> Option<f64> {
        let judged = self.segments_accepted + self.segments_expired;
        (judged > 0).then(|| self.segments_accepted as f64 / judged as f64)
    }

    /// The loss rate of its packets, on the link and its own path.
    pub fn loss_share(&self) -> f64 {
        (self.packets_dropped + self.packets_lost) as f64 / self.packets_sent as f64
    }
}
