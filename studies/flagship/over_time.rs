//! What parties got over time, and what was waiting: as curves and as numbers.
//!
//! Called by the studies of this folder.
//!
//! Invariant: a number is read off one replication; a curve is the mean of all.

use segstream_lab::figure::{Axis, Curve, Figure, Line, Marker, Point, Scale};
use segstream_lab::shared::{SharedOutcome, SharedResult};
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

/// What a party got.
pub(super) fn throughput(result: &SharedResult, party: &str, label: &str, colour: &str) -> Curve {
    line(label, colour, result.throughput_curve(party))
}

/// What waited for the link, the mean over the packets of each interval.
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

/// What a party got in Mbit/s in these intervals of one run.
pub(super) fn mbit_in(outcome: &SharedOutcome, party: &str, intervals: Range<usize>) -> f64 {
    let series = outcome.party(party).and_then(|party| party.bytes_arrived_series.get(intervals));
    series.map_or(f64::NAN, |bytes| bytes.iter().sum::<u64>() as f64 * 8e-6 * SECOND as f64 / bytes.len() as f64)
}

/// The longest wait in milliseconds of a packet in these intervals of one run.
pub(super) fn queue_ms_max(outcome: &SharedOutcome, intervals: Range<usize>) -> f64 {
    let series = outcome.queue.max_ns_series.get(intervals);
    series.map_or(f64::NAN, |waits| waits.iter().flatten().max().map_or(0.0, |nanos| *nanos as f64 * 1e-6))
}

/// The mean wait in milliseconds in each of these intervals of one run; zero where no packet came.
pub(super) fn queue_ms(outcome: &SharedOutcome, intervals: Range<usize>) -> Vec<f64> {
    let series = outcome.queue.mean_ns_series.get(intervals).unwrap_or_default();
    series.iter().map(|wait| wait.unwrap_or(0) as f64 * 1e-6).collect()
}

/// The largest value over the replications.
pub(super) fn largest(result: &SharedResult, value: impl Fn(&SharedOutcome) -> f64) -> f64 {
    result.outcomes.iter().map(value).fold(f64::NEG_INFINITY, f64::max)
}

/// The smallest value over the replications.
pub(super) fn smallest(result: &SharedResult, value: impl Fn(&SharedOutcome) -> f64) -> f64 {
    result.outcomes.iter().map(value).fold(f64::INFINITY, f64::min)
}

/// Jain's index of fairness: 1 for equal values, 1/n when one has all.
pub(super) fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), value| (sum + value, squares + value * value));
    sum * sum / (values.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_for_equal_shares_and_one_in_n_for_a_single_winner() {
        assert!((jain(&[3.0; 4]) - 1.0).abs() < 1e-12);
        assert!((jain(&[5.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
    }
}
