//! Throughput of flows and queueing delay over time, as curves and numbers.
//!
//! Called by the studies of this folder.
//!
//! Invariant: a number is read off one replication; a curve is the mean of all.

use segstream_lab::figure::{Axis, Curve, Figure, Line, Marker, Point, Scale};
use segstream_lab::shared::{SAMPLE, SharedOutcome, SharedResult};
use std::ops::Range;

/// Intervals of a series in a second.
pub(super) const SECOND: usize = 10;

/// A figure over the run's time in seconds.
pub(super) fn figure(id: &str, title: &str, up: &str, curves: Vec<Curve>) -> Figure {
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        x: Axis { label: "time (s)".to_owned(), scale: Scale::Linear, range: None },
        y: Axis { label: up.to_owned(), scale: Scale::Linear, range: None },
        curves,
    }
}

/// The throughput of a flow over time.
pub(super) fn throughput(result: &SharedResult, flow: &str, label: &str, colour: &str) -> Curve {
    line(label, colour, result.throughput_curve(flow))
}

/// The queueing delay of the link, the mean over the packets of each interval.
pub(super) fn queue(result: &SharedResult, label: &str, colour: &str) -> Curve {
    line(label, colour, result.queue_curve())
}

/// The same by whole seconds, the mean of their intervals, where intervals are too many to be told apart.
pub(super) fn by_second(curve: Curve) -> Curve {
    let mean = |points: &[Point]| {
        let y = points.iter().map(|point| point.y).sum::<f64>() / points.len() as f64;
        points.last().map(|last| Point { y, ..last.clone() })
    };
    Curve { points: curve.points.chunks(SECOND).filter_map(mean).collect(), ..curve }
}

fn line(label: &str, colour: &str, points: Vec<Point>) -> Curve {
    Curve { label: label.to_owned(), colour: colour.to_owned(), marker: Marker::None, line: Line::Solid, points }
}

/// The name of an axis of throughput.
pub(super) const THROUGHPUT: &str = "throughput (Mbit/s)";
/// The name of an axis of queueing delay.
pub(super) const QUEUE: &str = "queueing delay, mean (ms)";

/// The throughput of a flow in Mbit/s in these intervals of one run.
pub(super) fn mbit_in(outcome: &SharedOutcome, flow: &str, intervals: Range<usize>) -> f64 {
    let series = outcome.flow(flow).and_then(|flow| flow.bytes_arrived_series.get(intervals));
    series.map_or(f64::NAN, |bytes| bytes.iter().sum::<u64>() as f64 * 8e-6 * SECOND as f64 / bytes.len() as f64)
}

/// The longest queueing delay in milliseconds in these intervals of one run.
pub(super) fn queue_ms_max(outcome: &SharedOutcome, intervals: Range<usize>) -> f64 {
    let series = outcome.queue.max_ns_series.get(intervals);
    series.map_or(f64::NAN, |waits| waits.iter().flatten().max().map_or(0.0, |nanos| *nanos as f64 * 1e-6))
}

/// The mean queueing delay in milliseconds in each of these intervals of one run.
pub(super) fn queue_ms(outcome: &SharedOutcome, intervals: Range<usize>) -> Vec<f64> {
    waits_ms(outcome.queue.mean_ns_series.get(intervals).unwrap_or_default())
}

/// The waits of a series in nanoseconds. Where no packet entered, the queue of the interval before has become shorter by the interval.
fn waits_ms(series: &[Option<u64>]) -> Vec<f64> {
    let next = |before: &mut f64, wait: &Option<u64>| {
        *before = wait.map_or((*before - SAMPLE.as_secs_f64() * 1e3).max(0.0), |nanos| nanos as f64 * 1e-6);
        Some(*before)
    };
    series.iter().scan(0.0, next).collect()
}

/// The largest value over the replications.
pub(super) fn largest(result: &SharedResult, value: impl Fn(&SharedOutcome) -> f64) -> f64 {
    result.outcomes.iter().map(value).fold(f64::NEG_INFINITY, f64::max)
}

/// The smallest value over the replications.
pub(super) fn smallest(result: &SharedResult, value: impl Fn(&SharedOutcome) -> f64) -> f64 {
    result.outcomes.iter().map(value).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_packet_enters_the_queue_drains_by_the_time_that_passes() {
        let series = [Some(250), None, None, Some(30), None, None].map(|ms: Option<u64>| ms.map(|ms| ms * 1_000_000));
        assert_eq!(waits_ms(&series), [250.0, 150.0, 50.0, 30.0, 0.0, 0.0]);
    }
}
