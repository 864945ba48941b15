//! Statistics as metrics: published through the `metrics` crate, to whatever recorder the application has installed.
//!
//! Called by the endpoint state each second, and when a connection ends. Feature `metrics`; switched on by
//! [`crate::Builder::metrics`], or while somebody asks by [`crate::Builder::metrics_on_demand`].
//!
//! - Totals are sums over all connections of the process, so their number does not grow with connections.
//! - Present values have the labels `connection` (a number in this process) and `peer` (its address). A recorder should forget those of
//!   connections that have ended; they are not published any more.
//!
//! Invariant: what a total has grown by is published once. Nothing is published that tells a key, a code, payload or a file name.

mod process_values;

use crate::vocabulary::{QUANTITIES, Quantity, Value};
use crate::{ConnectionId, Histogram, Received, Statistics, StreamId, Timestamp, Verdict};
use process_values::Shares;
use segstream_base::Duration;
use segstream_proto::endpoint::UnmatchedCounters;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The time between two publications.
const PERIOD: Duration = Duration::from_secs(1);

/// Connections that are there now.
pub const CONNECTIONS: &str = "segstream_connections";
/// Connections that were established.
pub const CONNECTIONS_ESTABLISHED: &str = "segstream_connections_established_total";
/// Datagrams that belong to no connection, by the label `reason`.
pub const UNMATCHED: &str = "segstream_unmatched_datagrams_total";
/// Bytes of datagrams that a connection sent in the last second.
pub const CONNECTION_SENT: &str = "segstream_connection_sent_bytes_per_second";
/// Bytes of datagrams that a connection received in the last second.
pub const CONNECTION_RECEIVED: &str = "segstream_connection_received_bytes_per_second";
/// Of the shipments of the peer in the last second those that were declared lost.
pub const CONNECTION_LOSS: &str = "segstream_connection_loss_ratio";
/// The mean length of the runs of shipments of the peer that were declared lost in the last second; 0 if none was.
pub const CONNECTION_LOSS_RUN: &str = "segstream_connection_loss_run_shipments";
/// Memory that is granted to peers for what they send.
pub const MEMORY_GRANTED: &str = "segstream_memory_granted_bytes";
/// How much memory may be granted: the budget.
pub const MEMORY_BUDGET: &str = "segstream_memory_budget_bytes";
/// Segments of a stream with a verdict since the stream began, by the labels `stream`, `direction` and `verdict`.
pub const STREAM_SEGMENTS: &str = "segstream_stream_segments";
/// Of a connection so many streams are told apart.
const STREAMS_MAX: usize = 64;

/// How often the values of this process were published: two scrapes with the same number have the same values.
pub const PUBLICATIONS: &str = "segstream_publications_total";

/// The metrics that are no quantity of [`crate::vocabulary::QUANTITIES`].
pub const OTHERS: &[&str] = &[
    CONNECTIONS,
    CONNECTIONS_ESTABLISHED,
    UNMATCHED,
    PUBLICATIONS,
    CONNECTION_SENT,
    CONNECTION_RECEIVED,
    CONNECTION_LOSS,
    CONNECTION_LOSS_RUN,
    MEMORY_GRANTED,
    MEMORY_BUDGET,
    STREAM_SEGMENTS,
];

/// The histograms, and the bounds of their buckets, for recorders that want them.
pub fn histograms() -> impl Iterator<Item = (&'static str, &'static [f64])> {
    QUANTITIES.iter().filter_map(|quantity| match quantity.value {
        Value::Histogram(_, bounds) => Some((quantity.metric, bounds)),
        _ => None,
    })
}

/// What an endpoint has published.
#[derive(Debug)]
pub(crate) struct Publisher {
    connections: BTreeMap<ConnectionId, Published>,
    unmatched: [u64; REASONS.len()],
    shares: Shares,
    due: Option<Timestamp>,
    demand: Option<Demand>,
    /// Whether somebody asked for the last publication.
    is_wanted: bool,
}

/// Whether anybody asks for metrics. Clones share the answer.
#[derive(Clone, Debug, Default)]
pub struct Demand(Arc<AtomicBool>);

impl Demand {
    /// Somebody asks: metrics are published at least once more.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has asked since this was last called.
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// What was published of one connection.
#[derive(Debug)]
struct Published {
    /// The label `connection`.
    number: u64,
    totals: Vec<u64>,
    /// The phase, so that an old one can be set to 0.
    words: BTreeMap<&'static str, &'static str>,
    /// Histograms as they were published, by their names.
    histograms: BTreeMap<&'static str, Histogram>,
    traffic: Traffic,
    streams: BTreeMap<StreamKey, StreamVerdicts>,
}

/// A stream, and whether it is one of ours.
type StreamKey = (StreamId, bool);

/// How many segments of a stream had which verdict: complete, within tolerance, expired, unknown.
#[derive(Clone, Copy, Debug, Default)]
struct StreamVerdicts {
    counts: [u64; VERDICTS.len()],
    changed: bool,
}

const VERDICTS: [Verdict; 4] = [Verdict::Complete, Verdict::WithinTolerance, Verdict::Expired, Verdict::Unknown];

/// Totals of a connection when its rates were last published.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    at: Option<Timestamp>,
    sent: u64,
    received: u64,
    shipments: u64,
    lost: u64,
    runs: u64,
}

/// A reason for which a datagram was dropped or refused, and its count.
type Reason = (&'static str, fn(&UnmatchedCounters) -> u64);

const REASONS: [Reason; 12] = [
    ("not_ours", |counters| counters.not_ours),
    ("unknown_connection", |counters| counters.unknown_connection),
    ("bad_request", |counters| counters.bad_requests),
    ("rejected", |counters| counters.rejected),
    ("short_request", |counters| counters.short_requests),
    ("cookie", |counters| counters.cookies),
    ("setups_full", |counters| counters.setups_full),
    ("handshakes_refused", |counters| counters.handshakes_refused),
    ("connections_full", |counters| counters.connections_full),
    ("answers_full", |counters| counters.answers_full),
    ("reset", |counters| counters.resets),
    ("reset_refused", |counters| counters.resets_refused),
];

impl Publisher {
    /// A publisher that publishes always, or while `demand` says so.
    pub(crate) fn new(demand: Option<Demand>) -> Self {
        describe();
        Self {
            connections: BTreeMap::new(),
            unmatched: [0; REASONS.len()],
            shares: Shares::default(),
            due: None,
            is_wanted: demand.is_none(),
            demand,
        }
    }

    /// When the next publication is due; `None` while there is no connection.
    pub(crate) const fn due(&self) -> Option<Timestamp> {
        self.due
    }

    /// A connection is established, the one with this number in the process: its values are published from now on.
    pub(crate) fn on_established(&mut self, now: Timestamp, id: ConnectionId, number: u64) {
        metrics::counter!(CONNECTIONS_ESTABLISHED).increment(1);
        let published = Published {
            number,
            totals: vec![0; QUANTITIES.len()],
            words: BTreeMap::new(),
            histograms: BTreeMap::new(),
            traffic: Traffic::default(),
            streams: BTreeMap::new(),
        };
        self.connections.insert(id, published);
        self.due.get_or_insert(now);
    }

    /// Segments of ours were judged.
    pub(crate) fn on_judged(&mut self, id: ConnectionId, stream: StreamId, count: u64, verdict: Verdict) {
        if let Some(published) = self.connections.get_mut(&id) {
            published.count_verdict((stream, true), count, verdict);
        }
    }

    /// A segment was handed over.
    pub(crate) fn on_received(&mut self, id: ConnectionId, received: &Received) {
        let Some(published) = self.connections.get_mut(&id) else { return };
        published.count_verdict((received.stream, false), 1, received.verdict);
    }

    /// Publishes all connections, and how much memory is granted of which budget, if that is due.
    pub(crate) fn publish<'a>(
        &mut self,
        now: Timestamp,
        unmatched: &UnmatchedCounters,
        (granted, budget): (u64, u64),
        statistics: impl Iterator<Item = (ConnectionId, SocketAddr, Statistics)> + 'a,
    ) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        self.due = if self.connections.is_empty() { None } else { Some(now + PERIOD) };
        self.is_wanted = self.demand.as_ref().is_none_or(Demand::take);
        if !self.is_wanted {
            return;
        }
        for (id, peer, statistics) in statistics {
            self.publish_one(id, peer, &statistics);
            self.publish_traffic(now, id, peer, &statistics);
        }
        for ((reason, count), published) in REASONS.iter().zip(&mut self.unmatched) {
            let count = count(unmatched);
            metrics::counter!(UNMATCHED, "reason" => *reason).increment(count - *published);
            *published = count;
        }
        self.share_connections();
        let (granted, budget) = self.shares.set_memory(granted, budget);
        metrics::gauge!(MEMORY_GRANTED).set(granted);
        metrics::gauge!(MEMORY_BUDGET).set(budget);
        metrics::counter!(PUBLICATIONS).increment(1);
    }

    /// A connection is about to be removed: what its totals have grown by is published, and its present values no more.
    pub(crate) fn on_removed(&mut self, id: ConnectionId, peer: SocketAddr, statistics: &Statistics) {
        if self.connections.contains_key(&id) {
            self.publish_one(id, peer, statistics);
            if let Some(mut published) = self.connections.remove(&id) {
                let labels = [("connection", published.number.to_string()), ("peer", peer.to_string())];
                if self.is_wanted {
                    published.publish_streams(&labels);
                }
                // What a recorder keeps of a connection that has ended must not look like traffic.
                for rate in [CONNECTION_SENT, CONNECTION_RECEIVED, CONNECTION_LOSS, CONNECTION_LOSS_RUN] {
                    metrics::gauge!(rate, &labels).set(0.0);
                }
            }
            self.share_connections();
        }
    }

    /// Publishes how many connections the process has, with those of this endpoint.
    fn share_connections(&mut self) {
        metrics::gauge!(CONNECTIONS).set(self.shares.set_connections(self.connections.len() as u64));
    }

    /// Publishes the rates of a connection over the time since they were last published, and the verdicts of its streams.
    fn publish_traffic(&mut self, now: Timestamp, id: ConnectionId, peer: SocketAddr, statistics: &Statistics) {
        let Some(published) = self.connections.get_mut(&id) else { return };
        let labels = [("connection", published.number.to_string()), ("peer", peer.to_string())];
        let Statistics { bytes_sent: sent, bytes_received: received, shipments_received: shipments, .. } = *statistics;
        let Statistics { shipments_detected_lost: lost, shipment_runs_lost: runs, .. } = *statistics;
        let traffic = Traffic { at: Some(now), sent, received, shipments, lost, runs };
        let before = core::mem::replace(&mut published.traffic, traffic);
        if let Some(seconds) = before.at.map(|at| now.since(at).as_secs_f64()).filter(|seconds| *seconds > 0.0) {
            let lost = (traffic.lost - before.lost) as f64;
            let all = lost + (shipments - before.shipments) as f64;
            metrics::gauge!(CONNECTION_SENT, &labels).set((sent - before.sent) as f64 / seconds);
            metrics::gauge!(CONNECTION_RECEIVED, &labels).set((received - before.received) as f64 / seconds);
            metrics::gauge!(CONNECTION_LOSS, &labels).set(if all > 0.0 { lost / all } else { 0.0 });
            let runs = (traffic.runs - before.runs) as f64;
            // A run that goes on was counted when it began.
            metrics::gauge!(CONNECTION_LOSS_RUN, &labels).set(if lost > 0.0 { lost / runs.max(1.0) } else { 0.0 });
        }
        published.publish_streams(&labels);
    }

    fn publish_one(&mut self, id: ConnectionId, peer: SocketAddr, statistics: &Statistics) {
        let Some(published) = self.connections.get_mut(&id) else { return };
        let labels = [("connection", published.number.to_string()), ("peer", peer.to_string())];
        for (quantity, total) in QUANTITIES.iter().zip(&mut published.totals) {
            match quantity.value {
                Value::Total(read) => {
                    let value = read(statistics);
                    // Invariant: totals never decrease (`statistics`).
                    metrics::counter!(quantity.metric).increment(value.saturating_sub(*total));
                    *total = value;
                }
                Value::Now(read) => {
                    if let Some(value) = read(statistics) {
                        metrics::gauge!(quantity.metric, &labels).set(value);
                    }
                }
                Value::Histogram(read, bounds) => {
                    publish_histogram(quantity, published.histograms.entry(quantity.name).or_default(), read(statistics), bounds);
                }
                Value::Word(read) => {
                    let before = published.words.get(quantity.name).copied();
                    let word = read(statistics);
                    let set = |word: &'static str, value: f64| {
                        let [connection, peer] = labels.clone();
                        metrics::gauge!(quantity.metric, &[connection, peer, ("value", word.to_owned())]).set(value);
                    };
                    if let Some(before) = before.filter(|before| word != Some(*before)) {
                        set(before, 0.0);
                        published.words.remove(quantity.name);
                    }
                    if let Some(word) = word {
                        set(word, 1.0);
                        published.words.insert(quantity.name, word);
                    }
                }
            }
        }
    }
}

impl Published {
    /// Publishes the verdicts of its streams that have changed.
    fn publish_streams(&mut self, labels: &[(&'static str, String); 2]) {
        for ((stream, ours), verdicts) in self.streams.iter_mut().filter(|(_, verdicts)| verdicts.changed) {
            verdicts.changed = false;
            for (verdict, count) in VERDICTS.iter().zip(verdicts.counts) {
                let [connection, peer] = labels.clone();
                let direction = if *ours { "sent" } else { "received" };
                let stream = ("stream", stream.to_string());
                let of = [connection, peer, stream, ("direction", direction.to_owned()), ("verdict", verdict.name().to_owned())];
                metrics::gauge!(STREAM_SEGMENTS, &of).set(count as f64);
            }
        }
    }

    /// Limit: of a connection with more streams than [`STREAMS_MAX`] the ones that were opened first are not told apart any more.
    fn count_verdict(&mut self, stream: StreamKey, count: u64, verdict: Verdict) {
        let verdicts = self.streams.entry(stream).or_default();
        if let Some(place) = VERDICTS.iter().position(|one| *one == verdict) {
            verdicts.counts[place] += count;
            verdicts.changed = true;
        }
        if self.streams.len() > STREAMS_MAX {
            self.streams.pop_first();
        }
    }
}

/// Publishes what a histogram has grown by since it was as `before`.
fn publish_histogram(quantity: &Quantity, before: &mut Histogram, histogram: &Histogram, bounds: &[f64]) {
    if before.count() == histogram.count() {
        return;
    }
    let published = metrics::histogram!(quantity.metric);
    for (value, count) in histogram.since(before).values(bounds, quantity.scale()) {
        published.record_many(value, count);
    }
    *before = *histogram;
}

/// Tells the recorder what each metric means.
fn describe() {
    for quantity in QUANTITIES {
        match quantity.value {
            Value::Total(_) => metrics::describe_counter!(quantity.metric, quantity.help),
            Value::Now(_) | Value::Word(_) => metrics::describe_gauge!(quantity.metric, quantity.help),
            Value::Histogram(..) => metrics::describe_histogram!(quantity.metric, quantity.help),
        }
    }
    metrics::describe_gauge!(CONNECTIONS, "Connections that are established now.");
    metrics::describe_counter!(CONNECTIONS_ESTABLISHED, "Connections that were established.");
    metrics::describe_counter!(UNMATCHED, "Datagrams that belong to no connection, by what was done with them.");
    metrics::describe_counter!(PUBLICATIONS, "How often the values of this process were published.");
    metrics::describe_gauge!(CONNECTION_SENT, "Bytes of datagrams that a connection sent in the last second.");
    metrics::describe_gauge!(CONNECTION_RECEIVED, "Bytes of datagrams that a connection received in the last second.");
    metrics::describe_gauge!(CONNECTION_LOSS, "Of the shipments of the peer in the last second those that were declared lost.");
    metrics::describe_gauge!(
        CONNECTION_LOSS_RUN,
        "The mean length of the runs of shipments of the peer that were declared lost in the last second."
    );
    metrics::describe_gauge!(MEMORY_GRANTED, "Memory that is granted to peers for what they send.");
    metrics::describe_gauge!(MEMORY_BUDGET, "How much memory may be granted to peers.");
    metrics::describe_gauge!(STREAM_SEGMENTS, "Segments of a stream with a verdict since the stream began.");
}
