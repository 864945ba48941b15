//! The replications of one shared scenario, joined.
//!
//! Made by [`crate::runner`]; read by studies.
//!
//! Invariant: every number is a mean over replications with its interval; a series is of one replication, or their mean.

use super::outcome::{FlowOutcome, SAMPLE, SharedOutcome};
use super::scenario::SharedScenario;
use crate::experiment::Repeated;
use crate::figure::Point;
use crate::statistics::{Estimate, over_replications};

/// The replications of one shared scenario.
pub type SharedResult = Repeated<SharedScenario>;

impl SharedResult {
    /// What went wrong in the first run in which something did.
    pub fn trouble(&self) -> Option<&str> {
        self.outcomes.iter().find_map(|outcome| outcome.trouble.as_deref())
    }

    /// A value of each run as mean and interval over replications.
    pub fn over_replications(&self, value: impl Fn(&SharedOutcome) -> f64) -> Estimate {
        over_replications(&self.outcomes.iter().map(value).collect::<Vec<_>>())
    }

    /// A value of a flow in each run; not a number for an unknown flow.
    pub fn of_flow(&self, flow: &str, value: impl Fn(&FlowOutcome) -> f64) -> Estimate {
        self.over_replications(|outcome| outcome.flow(flow).map_or(f64::NAN, &value))
    }

    /// Throughput of a flow in bit/s while it was active, whole packets counted.
    pub fn throughput_bps(&self, flow: &str) -> Estimate {
        self.of_flow(flow, FlowOutcome::throughput_bps)
    }

    /// The share of a flow of all bytes that arrived after the warm-up.
    pub fn share(&self, flow: &str) -> Estimate {
        self.over_replications(|outcome| {
            let all: u64 = outcome.flows.iter().map(|flow| flow.bytes_arrived).sum();
            outcome.flow(flow).map_or(f64::NAN, |flow| flow.bytes_arrived as f64 / all as f64)
        })
    }

    /// The utilization of the link after the warm-up, at its nominal bandwidth.
    pub fn utilisation(&self) -> Estimate {
        self.over_replications(|outcome| self.utilisation_in(outcome))
    }

    /// The same of one run.
    pub fn utilisation_in(&self, outcome: &SharedOutcome) -> f64 {
        let seconds = self.scenario.duration.saturating_sub(self.scenario.warm_up).as_secs_f64();
        let capacity = self.scenario.bandwidth.bits_per_second() as f64 * seconds;
        outcome.flows.iter().map(|flow| flow.bytes_arrived).sum::<u64>() as f64 * 8.0 / capacity
    }

    /// The mean queueing delay in milliseconds, over packets.
    pub fn queue_ms_mean(&self) -> Estimate {
        self.over_replications(|outcome| outcome.queue.mean_ns as f64 * 1e-6)
    }

    /// The 95th percentile of the queueing delay in milliseconds.
    pub fn queue_ms_p95(&self) -> Estimate {
        self.over_replications(|outcome| outcome.queue.p95_ns as f64 * 1e-6)
    }

    /// The throughput of a flow in Mbit/s over time in seconds, mean over replications: points of a curve.
    pub fn throughput_curve(&self, flow: &str) -> Vec<Point> {
        let factor = 8e-6 / SAMPLE.as_secs_f64();
        self.curve(|outcome, at| outcome.flow(flow)?.bytes_arrived_series.get(at).map(|bytes| *bytes as f64 * factor))
    }

    /// The mean queueing delay in milliseconds over time in seconds, mean over replications: points of a curve.
    pub fn queue_curve(&self) -> Vec<Point> {
        self.curve(|outcome, at| outcome.queue.mean_ns_series.get(at).copied().flatten().map(|nanos| nanos as f64 * 1e-6))
    }

    /// A value of each interval, mean over the replications that have one, at the end of the interval.
    pub fn curve(&self, value: impl Fn(&SharedOutcome, usize) -> Option<f64>) -> Vec<Point> {
        let intervals = (self.scenario.duration.as_nanos() / SAMPLE.as_nanos()) as usize;
        let mut points = Vec::new();
        for at in 0..intervals {
            let values: Vec<f64> = self.outcomes.iter().filter_map(|outcome| value(outcome, at)).collect();
            if values.is_empty() {
                continue;
            }
            let y = values.iter().sum::<f64>() / values.len() as f64;
            // Why: by nanoseconds, so that 0.3 s is not 0.30000000000000004 s.
            let x = (SAMPLE * (at as u64 + 1)).as_secs_f64();
            points.push(Point { x, y, interval: None, imprecise: false, note: String::new() });
        }
        points
    }
}
