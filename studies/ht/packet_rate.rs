//! Packets a second as curves and numbers.
//!
//! Called by the studies of this folder.
//!
//! Invariant: a number read here is one of a point that was run and ended well.

use crate::curves::{self, Look};
use segstream_lab::figure::{Axis, Curve, Figure, Scale};
use segstream_lab::measured::Measured;
use segstream_lab::outcome::{Batch, Outcome};
use segstream_lab::point::PointResult;
use segstream_lab::statistics::ratio::ratio;
use segstream_lab::statistics::{Confidence, Estimate};

/// The name of the axis.
pub(super) const LABEL: &str = "throughput (packets/s)";
/// The horizontal axis under errors.
pub(super) const ERRORS: &str = "packet error rate";

/// The batches of a run that are counted: not the first quarter, in which a sender finds its pace, nor the last eighth, in
/// which no more new packets come.
fn counted(outcome: &Outcome) -> &[Batch] {
    let batches = &outcome.batches;
    &batches[batches.len() / 4..batches.len() - batches.len() / 8]
}

/// Packets delivered a second, each once, in the middle of a run.
pub(super) fn of(result: &PointResult) -> Estimate {
    let of_run = |outcome: &Outcome| {
        let sum = |value: fn(&Batch) -> u64| counted(outcome).iter().map(value).sum::<u64>() as f64;
        sum(|batch| batch.packets) * 1e9 / sum(|batch| batch.span_ns)
    };
    if let [only] = &result.outcomes[..] {
        let carried: Vec<f64> = counted(only).iter().map(|batch| batch.packets as f64).collect();
        let taken: Vec<f64> = counted(only).iter().map(|batch| batch.span_ns as f64 * 1e-9).collect();
        let mean = of_run(only);
        return ratio(&carried, &taken, Confidence::P95).map_or(Estimate::single(mean), |by_batches| Estimate { mean, ..by_batches });
    }
    result.over_replications(of_run)
}

/// The value of `estimate` in other measures.
fn scaled(estimate: Estimate, by: f64) -> Estimate {
    Estimate { mean: estimate.mean * by, half_width: estimate.half_width.map(|half| half * by), ..estimate }
}

/// The rate at a point.
pub(super) fn at(points: &Measured, curve: &str, x: f64) -> Option<f64> {
    points.at(curve, x).map(|result| of(result).mean)
}

/// Each of `xs`.
pub(super) fn row(points: &Measured, curve: &str, xs: &[f64]) -> Option<Vec<f64>> {
    xs.iter().map(|x| at(points, curve, *x)).collect()
}

/// The curve called `name`, in packets a second times `by`.
pub(super) fn curve(points: &Measured, name: &str, label: &str, look: Look, by: f64) -> Curve {
    curves::valued(points, name, label, look, |result| {
        let estimate = scaled(of(result), by);
        (estimate.mean, estimate.interval())
    })
}

/// A picture over `x`.
pub(super) fn figure(id: &str, title: &str, x: (&str, Scale), y: &str, curves: Vec<Curve>) -> Figure {
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        x: Axis { label: x.0.to_owned(), scale: x.1, range: None },
        y: Axis { label: y.to_owned(), scale: Scale::Linear, range: None },
        curves,
    }
}

/// Data packets that arrived although they were there, over all runs; `None` where that is not known.
pub(super) fn received_again(result: &PointResult) -> Option<u64> {
    result.outcomes.iter().map(|outcome: &Outcome| outcome.packets_received_again).sum()
}
