//! The metrics of a link: its report while it runs, by direction.
//!
//! Called by the metrics server when it is asked. Invariant: a total here is the field of the same meaning in the JSON object that the link
//! prints at its end.

use segstream_net::link::{LinkReport, LinkWatch, Queueing, RelayCounters};
use segstream_path::PathCounters;

/// What a link does, as metrics.
#[derive(Clone, Debug)]
pub(crate) struct LinkMetrics(LinkWatch);

/// A total of one direction: its metric, its label `reason`, how it is read, and what it is.
#[derive(Clone, Copy)]
struct Total {
    metric: &'static str,
    reason: Option<&'static str>,
    read: fn(&PathCounters, &RelayCounters) -> u64,
    help: &'static str,
}

const fn total(metric: &'static str, help: &'static str, read: fn(&PathCounters, &RelayCounters) -> u64) -> Total {
    Total { metric, reason: None, read, help }
}

const fn because(reason: &'static str, total: Total) -> Total {
    Total { reason: Some(reason), ..total }
}

const DROPPED: &str = "segstream_link_packets_dropped_total";
const DROPPED_HELP: &str = "Packets that the emulated path dropped, by the label reason.";
const UNRELAYED: &str = "segstream_link_datagrams_dropped_total";
const UNRELAYED_HELP: &str = "Datagrams that the path delivered and the relay could not send, by the label reason.";

/// The totals of a direction.
#[rustfmt::skip]
const TOTALS: &[Total] = &[
    total("segstream_link_packets_entered_total", "Packets that entered the path.", |path, _| path.sent),
    total("segstream_link_packets_lost_total", "Packets that the loss process took.", |path, _| path.lost),
    because("queue", total(DROPPED, DROPPED_HELP, |path, _| path.dropped_queue)),
    because("aqm", total(DROPPED, DROPPED_HELP, |path, _| path.dropped_aqm)),
    because("policer", total(DROPPED, DROPPED_HELP, |path, _| path.dropped_policer)),
    total("segstream_link_packets_marked_total", "Packets that were marked (ECN).", |path, _| path.marked),
    total("segstream_link_packets_duplicated_total", "Packets that arrived twice.", |path, _| path.duplicated),
    total("segstream_link_packets_corrupted_total", "Packets in which a bit was flipped.", |path, _| path.corrupted),
    total("segstream_link_packets_reordered_total", "Packets that were delayed behind later ones.", |path, _| path.reordered),
    total("segstream_link_datagrams_sent_total", "Datagrams that were sent on.", |_, relayed| relayed.sent),
    because("limit", total(UNRELAYED, UNRELAYED_HELP, |_, relayed| relayed.dropped_limit)),
    because("send_buffer", total(UNRELAYED, UNRELAYED_HELP, |_, relayed| relayed.dropped_send_buffer)),
    because("refused", total(UNRELAYED, UNRELAYED_HELP, |_, relayed| relayed.dropped_refused)),
    because("client_gone", total(UNRELAYED, UNRELAYED_HELP, |_, relayed| relayed.dropped_client_gone)),
];

const ON_THE_WAY: &str = "segstream_link_datagrams_on_the_way";
const QUEUEING: &str = "segstream_link_queueing_seconds";
const LATENESS: &str = "segstream_link_lateness_seconds";
const STOLEN: &str = "segstream_link_stolen_seconds";
const CLIENTS: &str = "segstream_link_clients_total";
const UNROUTABLE: &str = "segstream_link_unroutable_datagrams_total";
const RECEIVE_BUFFER: &str = "segstream_link_receive_buffer_dropped_datagrams_total";
const KEPT_UP: &str = "segstream_link_kept_up";
const SECONDS: &str = "segstream_link_running_seconds";

/// The names of all metrics of a link.
#[cfg(test)]
pub(crate) fn names() -> Vec<&'static str> {
    let others = [ON_THE_WAY, QUEUEING, LATENESS, STOLEN, CLIENTS, UNROUTABLE, RECEIVE_BUFFER, KEPT_UP, SECONDS];
    TOTALS.iter().map(|total| total.metric).chain(others).collect()
}

impl LinkMetrics {
    /// The metrics of the link that is watched.
    pub(crate) fn of(watch: LinkWatch) -> Self {
        for total in TOTALS {
            metrics::describe_counter!(total.metric, total.help);
        }
        metrics::describe_gauge!(ON_THE_WAY, "Datagrams on their way.");
        metrics::describe_gauge!(QUEUEING, "How long packets have waited in the queue so far, by the label statistic.");
        metrics::describe_gauge!(LATENESS, "How long after their due time datagrams have left so far, by the label statistic.");
        metrics::describe_gauge!(STOLEN, "How long the host of this virtual machine has kept its processors from running.");
        metrics::describe_counter!(CLIENTS, "Clients seen.");
        metrics::describe_counter!(UNROUTABLE, "Datagrams that entered no path.");
        metrics::describe_counter!(RECEIVE_BUFFER, "Datagrams that the system dropped before the link could read them.");
        metrics::describe_gauge!(KEPT_UP, "1 if the emulation has been exact so far, else 0.");
        metrics::describe_gauge!(SECONDS, "How long the link has run.");
        Self(watch)
    }

    /// Publishes what the link has done so far.
    pub(crate) fn publish(&self) {
        let Some(report) = self.0.report() else { return };
        publish_direction("forward", &report.forward, &report.forward_relayed, &report.forward_queueing);
        publish_direction("back", &report.back, &report.back_relayed, &report.back_queueing);
        let LinkReport { lateness, clients, unroutable, receive_buffer_drops, kept_up, ran, .. } = report;
        for (statistic, lateness) in [("p50", lateness.p50), ("p99", lateness.p99), ("p999", lateness.p999), ("max", lateness.max)] {
            metrics::gauge!(LATENESS, "statistic" => statistic).set(lateness.as_secs_f64());
        }
        if let Some(stolen) = lateness.stolen {
            metrics::gauge!(STOLEN).set(stolen.as_secs_f64());
        }
        metrics::counter!(CLIENTS).absolute(clients);
        metrics::counter!(UNROUTABLE).absolute(unroutable);
        if let Some(drops) = receive_buffer_drops {
            metrics::counter!(RECEIVE_BUFFER).absolute(drops);
        }
        metrics::gauge!(KEPT_UP).set(f64::from(u8::from(kept_up)));
        metrics::gauge!(SECONDS).set(ran.as_secs_f64());
    }
}

fn publish_direction(direction: &'static str, path: &PathCounters, relayed: &RelayCounters, queueing: &Queueing) {
    for Total { metric, reason, read, .. } in TOTALS {
        let labels = [("direction", direction)].into_iter().chain(reason.map(|reason| ("reason", reason)));
        let labels: Vec<(&'static str, &'static str)> = labels.collect();
        metrics::counter!(*metric, &labels).absolute(read(path, relayed));
    }
    metrics::gauge!(ON_THE_WAY, "direction" => direction).set(relayed.unsent as f64);
    for (statistic, waited) in [("mean", queueing.mean), ("p95", queueing.p95), ("max", queueing.max)] {
        metrics::gauge!(QUEUEING, "direction" => direction, "statistic" => statistic).set(waited.as_secs_f64());
    }
}
