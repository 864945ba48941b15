//! The marks of a curve: its line, its error bars, its signs.
//!
//! Called by `svg`, for the plot and for the legend.
//!
//! Invariant: nothing is drawn outside the frame; a bar that leaves it ends at the edge, without a cap.

use crate::drawing::canvas::{Canvas, Place, RGBColor, WHITE};
use crate::figure::{Line, Marker};

/// The size of a sign: the radius of its disc in pixels.
const RADIUS: f64 = 3.6;
/// The width of the stroke of a hollow sign.
const RIM: f64 = 1.4;
/// The width of a curve's line.
const LINE: f64 = 1.5;
/// The width of an error bar's stroke.
const BAR: f64 = 1.1;
/// Half the width of an error bar's cap.
const CAP: f64 = 3.2;

/// The part of the sheet the curves may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Frame {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// Whether a sign at this place is drawn; one on the edge is.
    pub(super) fn holds(&self, (x, y): Place) -> bool {
        (self.left - 0.05..=self.right + 0.05).contains(&x) && (self.top - 0.05..=self.bottom + 0.05).contains(&y)
    }

    /// The part of the stroke from `a` to `b` inside the frame (Liang and Barsky 1984).
    fn cut(&self, a: Place, b: Place) -> Option<(Place, Place)> {
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let (mut enters, mut leaves) = (0.0_f64, 1.0_f64);
        for (step, room) in [(-dx, a.0 - self.left), (dx, self.right - a.0), (-dy, a.1 - self.top), (dy, self.bottom - a.1)] {
            if step == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if step < 0.0 {
                enters = enters.max(room / step);
            } else {
                leaves = leaves.min(room / step);
            }
        }
        let at = |part: f64| (a.0 + part * dx, a.1 + part * dy);
        (enters < leaves).then(|| (at(enters), at(leaves)))
    }
}

/// The line through these places, cut at the frame.
pub(super) fn line(canvas: &mut Canvas<'_>, frame: &Frame, places: &[Place], line: Line, colour: RGBColor) {
    let (on, off) = match line {
        Line::None => return,
        Line::Solid => (f64::INFINITY, 0.0),
        Line::Dashed => (7.0, 4.0),
        Line::Dotted => (1.6, 2.8),
    };
    for piece in inside(frame, places) {
        for dash in dashes(&piece, on, off) {
            canvas.stroke(&dash, colour, LINE);
        }
    }
}

/// The pieces of a line inside the frame.
fn inside(frame: &Frame, places: &[Place]) -> Vec<Vec<Place>> {
    let mut pieces: Vec<Vec<Place>> = Vec::new();
    for pair in places.windows(2) {
        let Some((from, to)) = frame.cut(pair[0], pair[1]) else { continue };
        match pieces.last_mut() {
            Some(piece) if piece.last() == Some(&from) => piece.push(to),
            _ => pieces.push(vec![from, to]),
        }
    }
    pieces
}

/// A line as strokes of length `on` with gaps of length `off`.
fn dashes(places: &[Place], on: f64, off: f64) -> Vec<Vec<Place>> {
    if on.is_infinite() {
        return vec![places.to_vec()];
    }
    let (mut dashes, mut dash) = (Vec::new(), places.first().copied().into_iter().collect::<Vec<Place>>());
    let (mut drawing, mut left) = (true, on);
    for pair in places.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let length = libm::hypot(to.0 - from.0, to.1 - from.1);
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let at = (from.0 + (to.0 - from.0) * done / length, from.1 + (to.1 - from.1) * done / length);
            dash.push(at);
            if drawing {
                dashes.push(std::mem::take(&mut dash));
            } else {
                dash = vec![at];
            }
            drawing = !drawing;
            left = if drawing { on } else { off };
        }
        left -= length - done;
        dash.push(to);
    }
    if drawing {
        dashes.push(dash);
    }
    dashes
}

/// An error bar at `x` from `low` to `high`, given as heights on the sheet; each may lie outside the frame.
pub(super) fn bar(canvas: &mut Canvas<'_>, frame: &Frame, x: f64, low: f64, high: f64, colour: RGBColor) {
    if !(frame.left..=frame.right).contains(&x) {
        return;
    }
    // An end at an infinite distance, which zero is on a logarithmic axis, is cut like any other.
    let within = |y: f64| y.clamp(frame.top, frame.bottom);
    if within(low) != within(high) {
        canvas.stroke(&[(x, within(low)), (x, within(high))], colour, BAR);
    }
    for end in [low, high].into_iter().filter(|&end| within(end) == end) {
        canvas.stroke(&[(x - CAP, end), (x + CAP, end)], colour, BAR);
    }
}

/// The sign of a point.
pub(super) fn sign(canvas: &mut Canvas<'_>, at: Place, marker: Marker, hollow: bool, colour: RGBColor) {
    match marker {
        Marker::None => {}
        Marker::Circle if hollow => {
            canvas.disc(at, RADIUS, WHITE);
            canvas.ring(at, RADIUS - RIM / 2.0, colour, RIM);
        }
        Marker::Circle => canvas.disc(at, RADIUS, colour),
        other => shape(canvas, at, &outline(other), hollow, colour),
    }
}

/// The sign of a value below the axis: an open triangle that points down.
pub(super) fn below(canvas: &mut Canvas<'_>, at: Place, colour: RGBColor) {
    shape(canvas, (at.0, at.1 - 5.0), &[(-4.2, -3.2), (4.2, -3.2), (0.0, 4.2)], true, colour);
}

fn shape(canvas: &mut Canvas<'_>, at: Place, outline: &[Place], hollow: bool, colour: RGBColor) {
    let mut corners: Vec<Place> = outline.iter().map(|(dx, dy)| (at.0 + dx, at.1 + dy)).collect();
    canvas.polygon(&corners, if hollow { WHITE } else { colour });
    if hollow {
        // The closing stroke runs on along the first side, so that the corner is whole.
        corners.extend_from_within(..2);
        canvas.stroke(&corners, colour, RIM);
    }
}

/// The corners of a sign round its place; all signs look equally large.
fn outline(marker: Marker) -> Vec<Place> {
    const R: f64 = RADIUS;
    match marker {
        Marker::None | Marker::Circle => vec![],
        Marker::Square => vec![(-0.88 * R, -0.88 * R), (0.88 * R, -0.88 * R), (0.88 * R, 0.88 * R), (-0.88 * R, 0.88 * R)],
        Marker::Triangle => vec![(0.0, -1.25 * R), (1.12 * R, 0.75 * R), (-1.12 * R, 0.75 * R)],
        Marker::Diamond => vec![(0.0, -1.3 * R), (1.15 * R, 0.0), (0.0, 1.3 * R), (-1.15 * R, 0.0)],
        Marker::Cross => {
            // The upright plus, turned by an eighth of a circle.
            plus(1.05 * R, 0.36 * R).into_iter().map(|(x, y)| ((x - y) * 0.85, (x + y) * 0.85)).collect()
        }
        Marker::Plus => plus(1.3 * R, 0.4 * R),
        Marker::Hexagon => {
            let corner = |number: u32| {
                let (sin, cos) = libm::sincos(f64::from(number) * core::f64::consts::PI / 3.0);
                (1.1 * R * sin, -1.1 * R * cos)
            };
            (0..6).map(corner).collect()
        }
        Marker::Star => {
            let corner = |number: u32| {
                let (sin, cos) = libm::sincos(f64::from(number) * core::f64::consts::PI / 5.0);
                let reach = if number.is_multiple_of(2) { 1.4 * R } else { 0.62 * R };
                (reach * sin, -reach * cos)
            };
            (0..10).map(corner).collect()
        }
    }
}

/// A plus of four arms.
fn plus(arm: f64, thick: f64) -> Vec<Place> {
    let half = [(thick, thick), (thick, arm), (-thick, arm), (-thick, thick), (-arm, thick), (-arm, -thick)];
    half.into_iter().chain(half.map(|(x, y)| (-x, -y))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::canvas::drawn;

    const FRAME: Frame = Frame { left: 0.0, top: 0.0, right: 100.0, bottom: 50.0 };

    #[test]
    fn a_line_is_cut_at_the_frame_and_comes_back() {
        let pieces = inside(&FRAME, &[(-10.0, 10.0), (10.0, 10.0), (10.0, 90.0), (20.0, 90.0), (20.0, 10.0)]);
        assert_eq!(pieces, [vec![(0.0, 10.0), (10.0, 10.0), (10.0, 50.0)], vec![(20.0, 50.0), (20.0, 10.0)]]);
    }

    #[test]
    fn dashes_go_on_round_a_corner() {
        let path = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0)];
        let dashes = dashes(&path, 8.0, 4.0);
        assert_eq!(dashes, [vec![(0.0, 0.0), (8.0, 0.0)], vec![(10.0, 2.0), (10.0, 10.0)]]);
    }

    #[test]
    fn a_bar_that_reaches_beyond_the_frame_is_cut_and_never_lost() {
        let strokes =
            |low: f64, high: f64| drawn(100, 50, "", |canvas| bar(canvas, &FRAME, 50.0, low, high, WHITE)).matches("<polyline").count();
        assert_eq!(strokes(40.0, 10.0), 3, "a stroke and two caps");
        assert_eq!(strokes(f64::INFINITY, 10.0), 2, "a stroke and one cap");
        assert_eq!(strokes(f64::INFINITY, f64::NEG_INFINITY), 1, "a stroke from edge to edge");
        assert_eq!(strokes(20.0, 20.0), 2, "an interval of no length is two caps");
    }

    #[test]
    fn every_sign_differs_filled_and_hollow() {
        let mut seen = Vec::new();
        for marker in
            [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross, Marker::Star, Marker::Plus, Marker::Hexagon]
        {
            for hollow in [false, true] {
                let drawn = drawn(10, 10, "", |canvas| sign(canvas, (5.0, 5.0), marker, hollow, RGBColor(0, 0, 0)));
                assert!(!seen.contains(&drawn), "{marker:?} {hollow}");
                seen.push(drawn);
            }
        }
    }
}
