//! Values of shared runs over a setting, as curves.
//!
//! Called by the studies of this folder and by `fc/loss_load`.
//!
//! Invariant: a curve shows every point that was run and ended well, with its interval over replications.

use crate::curves::Look;
use segstream_lab::figure::{Axis, Curve, Figure, Line, Marker, Point, Scale};
use segstream_lab::measured::Measured;
use segstream_lab::shared::SharedResult;
use segstream_lab::statistics::Estimate;

/// The shared points of `name` with a value of each.
pub(crate) fn curve(points: &Measured, name: &str, label: &str, look: Look, value: impl Fn(&SharedResult) -> Estimate) -> Curve {
    let drawn = points.shared_curve(name).filter(|point| point.result.trouble().is_none()).map(|point| {
        let estimate = value(&point.result);
        let note = format!("{} runs of {}", point.result.outcomes.len(), point.result.scenario.duration);
        Point { x: point.x, y: estimate.mean, interval: estimate.interval(), imprecise: false, note }
    });
    Curve { label: label.to_owned(), colour: look.colour.to_owned(), marker: look.marker, line: look.line, points: drawn.collect() }
}

/// A target as a dotted line over a range.
pub(crate) fn level(label: &str, colour: &'static str, range: (f64, f64), y: f64) -> Curve {
    let look = Look { colour, marker: Marker::None, line: Line::Dotted };
    crate::curves::closed_form(label, look, [range.0, range.1], |_| y)
}

/// A figure of parts of a whole over a setting.
pub(crate) fn shares(id: &str, title: &str, x: (&str, Scale), y: &str, curves: Vec<Curve>) -> Figure {
    let mut figure = figure(id, title, x, (y, Scale::Linear), curves);
    figure.y.range = Some((0.0, 1.0));
    figure
}

/// A figure of curves over a setting.
pub(crate) fn figure(id: &str, title: &str, x: (&str, Scale), y: (&str, Scale), curves: Vec<Curve>) -> Figure {
    let axis = |(label, scale): (&str, Scale)| Axis { label: label.to_owned(), scale, range: None };
    Figure { id: id.to_owned(), title: title.to_owned(), x: axis(x), y: axis(y), curves }
}
