//! The legend notes of a figure, and which of its points can be drawn.
//!
//! Called by `svg` and by `html`, so that both pictures say and leave out the same.
//!
//! Invariant: a sign that means something is explained in the figure it stands in.

use crate::figure::{Axis, Figure, Point, Scale};

/// How a point is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Showing {
    /// At its place.
    AtPlace,
    /// At the lower edge: its value is zero or less, which a logarithmic axis does not reach.
    AtEdge,
    /// Not at all: a number is missing or infinite, or its x is not on a logarithmic axis.
    LeftOut,
}

/// How `point` is shown on the axes of `figure`.
pub(super) fn showing(figure: &Figure, point: &Point) -> Showing {
    if !point.x.is_finite() || !point.y.is_finite() || !reaches(&figure.x, point.x) {
        Showing::LeftOut
    } else if reaches(&figure.y, point.y) {
        Showing::AtPlace
    } else {
        Showing::AtEdge
    }
}

/// Whether the axis has a place for the value.
fn reaches(axis: &Axis, value: f64) -> bool {
    axis.scale == Scale::Linear || value > 0.0
}

/// The explanations of the signs that occur in the figure.
pub(super) fn notes(figure: &Figure) -> Vec<&'static str> {
    let shown = || points(figure).filter(|point| showing(figure, point) != Showing::LeftOut);
    let mut notes = Vec::new();
    if shown().any(|point| point.interval.is_some()) {
        notes.push("bars: 95 % intervals");
    }
    if shown().any(|point| point.imprecise) {
        notes.push("hollow: wanted precision not reached");
    }
    if shown().any(|point| showing(figure, point) == Showing::AtEdge) {
        notes.push("\u{25bd}: zero or less, below the axis");
    }
    notes
}

/// All points of all curves.
pub(super) fn points(figure: &Figure) -> impl Iterator<Item = &Point> {
    figure.curves.iter().flat_map(|curve| &curve.points)
}

/// Made-up figures for the tests of the drawing.
#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::figure::{Curve, Line, Marker};

    pub(in crate::drawing) fn point(x: f64, y: f64) -> Point {
        Point { x, y, interval: None, imprecise: false, note: String::new() }
    }

    pub(in crate::drawing) fn curve(label: &str, points: Vec<Point>) -> Curve {
        Curve { label: label.into(), colour: "#0072b2".into(), marker: Marker::Circle, line: Line::Solid, points }
    }

    pub(in crate::drawing) fn figure(curves: Vec<Curve>) -> Figure {
        let axis = |label: &str| Axis { label: label.into(), scale: Scale::Linear, range: None };
        Figure { id: "made-up".into(), title: "Made up".into(), x: axis("across"), y: axis("up"), curves }
    }

    #[test]
    fn only_signs_that_occur_are_explained() {
        let mut made = figure(vec![curve("a", vec![point(1.0, 0.0), point(f64::NAN, 1.0)])]);
        made.curves[0].points[1].imprecise = true;
        assert!(notes(&made).is_empty());
        made.y.scale = Scale::Log;
        assert_eq!(notes(&made).len(), 1);
        made.curves[0].points[0].interval = Some((0.0, 1.0));
        made.curves[0].points[0].imprecise = true;
        assert_eq!(notes(&made).len(), 3);
    }

    #[test]
    fn zero_has_a_place_on_a_linear_axis_and_stands_at_the_edge_of_a_logarithmic_one() {
        let mut made = figure(vec![]);
        assert_eq!(showing(&made, &point(0.0, 0.0)), Showing::AtPlace);
        made.y.scale = Scale::Log;
        assert_eq!(showing(&made, &point(0.0, 0.0)), Showing::AtEdge);
        made.x.scale = Scale::Log;
        assert_eq!(showing(&made, &point(0.0, 0.0)), Showing::LeftOut);
        assert_eq!(showing(&made, &point(1.0, f64::INFINITY)), Showing::LeftOut);
    }
}
