//! Throughput efficiency as AA measures it, as curves and numbers, and the difference of two on the same losses.
//!
//! Called by the studies of this folder and by `flagship/report_periods`.
//!
//! Invariant: a number read here is one of a point that was run and ended well.
//! Source: AA 3.2.1.

use crate::curves::{self, Look};
use segstream_lab::figure::{Axis, Curve, Figure, Point, Scale};
use segstream_lab::measured::Measured;
use segstream_lab::outcome::{Batch, Outcome};
use segstream_lab::point::PointResult;
use segstream_lab::statistics::ratio::ratio;
use segstream_lab::statistics::{Confidence, Estimate, Paired};

/// The name of the axis.
pub(crate) const LABEL: &str = "throughput efficiency";
/// The horizontal axis under losses.
pub(crate) const LOSSES: &str = "packet loss rate";

/// The batches of a run that are counted: not the first eighth and not the last, in which no more new packets come and a lost
/// tail is waited for. AA's stream has no end.
fn counted(outcome: &Outcome) -> &[Batch] {
    let batches = &outcome.batches;
    &batches[batches.len() / 8..batches.len() - batches.len() / 8]
}

/// The throughput of batches as a part of the largest.
fn part(batches: &[Batch], packet_time_s: f64) -> f64 {
    let sum = |value: fn(&Batch) -> u64| batches.iter().map(value).sum::<u64>() as f64;
    sum(|batch| batch.packets) * packet_time_s * 1e9 / sum(|batch| batch.span_ns)
}

/// The actual throughput as a part of that without errors (AA 3.2.1), which is what a processor does: 1 / 121.2 us.
pub(crate) fn of(result: &PointResult) -> Estimate {
    let time = result.scenario.reference_time_s();
    let of_run = |outcome: &Outcome| part(counted(outcome), time);
    if let [only] = &result.outcomes[..] {
        let carried: Vec<f64> = counted(only).iter().map(|batch| batch.packets as f64 * time).collect();
        let taken: Vec<f64> = counted(only).iter().map(|batch| batch.span_ns as f64 * 1e-9).collect();
        let mean = of_run(only);
        return ratio(&carried, &taken, Confidence::P95).map_or(Estimate::single(mean), |by_batches| Estimate { mean, ..by_batches });
    }
    result.over_replications(of_run)
}

/// The efficiency of `ours` less that of `theirs`: run by run where there are several, batch by batch where there is one.
pub(crate) fn difference(ours: &PointResult, theirs: &PointResult) -> Estimate {
    let mean = of(ours).mean - of(theirs).mean;
    let values = |result: &PointResult| -> Vec<f64> {
        let time = result.scenario.reference_time_s();
        match &result.outcomes[..] {
            [only] => counted(only).iter().map(|batch| part(std::slice::from_ref(batch), time)).collect(),
            several => several.iter().map(|outcome| part(counted(outcome), time)).collect(),
        }
    };
    let (mut ours, mut theirs) = (values(ours), values(theirs));
    // A preset that goes on until it is precise may give one of them more runs.
    let pairs = ours.len().min(theirs.len());
    ours.truncate(pairs);
    theirs.truncate(pairs);
    Paired::new(&ours, &theirs, Confidence::P95).map_or(Estimate::single(mean), |paired| Estimate { mean, ..paired.difference })
}

/// The efficiency at a point.
pub(crate) fn at(points: &Measured, curve: &str, x: f64) -> Option<f64> {
    points.at(curve, x).map(|result| of(result).mean)
}

/// Packets of the receiver for each 1000 segments delivered.
pub(crate) fn feedback_per_1000(result: &PointResult) -> f64 {
    let delivered = result.total(|outcome| outcome.segments_delivered);
    1e3 * result.total(|outcome| outcome.feedback_packets) as f64 / delivered.max(1) as f64
}

/// The curve called `name`.
pub(crate) fn curve(points: &Measured, name: &str, label: &str, look: Look) -> Curve {
    curves::valued(points, name, label, look, |result| {
        let estimate = of(result);
        (estimate.mean, estimate.interval())
    })
}

/// A result that does not depend on the horizontal axis, as a level through `xs`.
pub(crate) fn level(result: &PointResult, label: &str, look: Look, xs: &[f64]) -> Curve {
    let estimate = of(result);
    let note = format!("{} runs of {} packets, the same at every place", result.outcomes.len(), result.scenario.workload.packets);
    let point =
        |x: &f64| Point { x: *x, y: estimate.mean, interval: estimate.interval(), imprecise: !result.is_precise(), note: note.clone() };
    Curve {
        label: label.to_owned(),
        colour: look.colour.to_owned(),
        marker: look.marker,
        line: look.line,
        points: xs.iter().map(point).collect(),
    }
}

/// A picture over `x`.
pub(crate) fn figure(id: &str, title: &str, x: (&str, Scale), y: &str, curves: Vec<Curve>) -> Figure {
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        x: Axis { label: x.0.to_owned(), scale: x.1, range: None },
        y: Axis { label: y.to_owned(), scale: Scale::Linear, range: None },
        curves,
    }
}

/// The place of the largest; the first of equals. `None` of nothing.
pub(crate) fn largest(values: &[f64]) -> Option<usize> {
    (0..values.len()).reduce(|best, at| if values[at] > values[best] { at } else { best })
}

/// The largest less the smallest.
pub(crate) fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most - values.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_and_the_spread_are_those_of_the_values() {
        assert_eq!(largest(&[0.2, 0.9, 0.9, 0.1]), Some(1));
        assert_eq!(largest(&[]), None);
        assert!((spread(&[0.2, 0.9, 0.4]) - 0.7).abs() < 1e-15);
    }
}
