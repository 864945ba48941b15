//! Measured points as curves of a picture, and closed forms as lines.
//!
//! Called by the studies' pictures.
//!
//! Invariant: a curve shows every point that was run and ended well, with its interval.

use segstream_lab::figure::{Curve, Line, Marker, Point};
use segstream_lab::measured::Measured;
use segstream_lab::point::PointResult;

/// What is drawn upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Throughput efficiency.
    ThroughputEfficiency,
    /// The mean delay of a segment in milliseconds.
    DelayMean,
    /// The largest delay of a segment in milliseconds.
    DelayMax,
}

impl Measure {
    /// Its name on an axis.
    pub const fn label(self) -> &'static str {
        match self {
            Self::ThroughputEfficiency => "throughput efficiency",
            Self::DelayMean => "segment delay, mean (ms)",
            Self::DelayMax => "segment delay, largest (ms)",
        }
    }

    /// Its value at a point, with the interval.
    pub fn of(self, result: &PointResult) -> (f64, Option<(f64, f64)>) {
        let estimate = match self {
            Self::ThroughputEfficiency => result.throughput_efficiency(),
            Self::DelayMean => result.delay_ms_mean(),
            Self::DelayMax => {
                let max = result.delay_ms_max();
                return (max.value, Some(max.interval));
            }
        };
        (estimate.mean, estimate.interval())
    }
}

/// How a curve looks.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// `#rrggbb`.
    pub colour: &'static str,
    /// The sign at its points.
    pub marker: Marker,
    /// The line between them.
    pub line: Line,
}

/// Colours for values of a parameter, dark to light, that colour-blind readers can tell apart.
pub const SHADES: [&str; 6] = ["#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"];

/// The curve called `name` of the study, as `label` in the legend.
pub fn measured(points: &Measured, name: &str, label: &str, measure: Measure, look: Look) -> Curve {
    drawn(points, name, label, look, |result| measure.of(result), |result| note(result, measure))
}

/// The same, with another value drawn upwards, and its interval.
pub fn valued(points: &Measured, name: &str, label: &str, look: Look, value: impl Fn(&PointResult) -> (f64, Option<(f64, f64)>)) -> Curve {
    drawn(points, name, label, look, value, |result| {
        let scenario = &result.scenario;
        let (runs, packets) = (result.outcomes.len(), scenario.workload.packets);
        format!("{runs} runs of {packets} packets, window {} packets, loss {}", scenario.window_packets(), scenario.black_box.loss)
    })
}

fn drawn(
    points: &Measured,
    name: &str,
    label: &str,
    look: Look,
    value: impl Fn(&PointResult) -> (f64, Option<(f64, f64)>),
    note: impl Fn(&PointResult) -> String,
) -> Curve {
    let points = points
        .curve(name)
        .filter(|point| point.result.trouble().is_none())
        .map(|point| {
            let (y, interval) = value(&point.result);
            Point { x: point.x, y, interval, imprecise: !point.result.is_precise(), note: note(&point.result) }
        })
        .collect();
    Curve { label: label.to_owned(), colour: look.colour.to_owned(), marker: look.marker, line: look.line, points }
}

/// A closed form as a line through `xs`.
pub fn closed_form(label: &str, look: Look, xs: impl IntoIterator<Item = f64>, form: impl Fn(f64) -> f64) -> Curve {
    let points = xs.into_iter().map(|x| Point { x, y: form(x), interval: None, imprecise: false, note: String::new() }).collect();
    Curve { label: label.to_owned(), colour: look.colour.to_owned(), marker: look.marker, line: look.line, points }
}

fn note(result: &PointResult, measure: Measure) -> String {
    let scenario = &result.scenario;
    let of = match measure {
        Measure::DelayMax => format!("largest of {} segments, ", result.delay_ms_max().segments),
        Measure::ThroughputEfficiency | Measure::DelayMean => String::new(),
    };
    format!(
        "{of}{} runs of {} packets, window {}, buffer {}, tolerance {}, loss {}",
        result.outcomes.len(),
        scenario.workload.packets,
        scenario.workload.window,
        scenario.workload.buffer_segments(),
        scenario.workload.tolerance,
        scenario.black_box.loss
    )
}
