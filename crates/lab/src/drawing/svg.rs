//! One figure as a static picture.
//!
//! Called by the studies, and by `html` for readers without scripts and for print.
//!
//! The sheet is 820 pixels wide and 460 high, and grows downwards only: for a title of several lines, or a legend longer
//! than the plot. The legend stands beside the plot and never over it.
//!
//! Invariant: every point with finite numbers and a place on the axes is drawn; a gap in a curve's points is a gap in its line.

use crate::drawing::canvas::{Canvas, Lettering, Place, RGBColor, colour, corners, drawn};
use crate::drawing::legend::{BOLD, width, wrapped};
use crate::drawing::marks::{self, Frame};
use crate::drawing::notes::{Showing, notes, showing};
use crate::drawing::span::{Span, Tick};
use crate::figure::{Curve, Figure, Line, Marker, Point};

use plotters::style::text_anchor::HPos;

/// The sheet without what makes it grow, in pixels.
const SHEET: (f64, f64) = (820.0, 460.0);
/// The room round everything.
const EDGE: f64 = 14.0;
/// The widest a legend's text gets before it is broken: the first of these that keeps the legend as short as the plot, or the last.
const LEGEND_TEXT: [f64; 2] = [170.0, 240.0];
/// The room for a curve's mark in the legend.
const LEGEND_MARK: f64 = 40.0;
/// Letters and the height of their lines: of the title, of all other names, of numbers.
const TITLE: (f64, f64) = (15.0, 20.0);
const NAME: (f64, f64) = (13.0, 17.0);
const NUMBER: f64 = 12.0;
const LEGEND: (f64, f64) = (12.0, 15.5);
/// Room between two curves of the legend.
const LEGEND_GAP: f64 = 5.0;
/// The room below the plot for numbers and the name of the axis.
const BELOW: f64 = 44.0;
/// Length of a stroke at an axis, with and without a label.
const STROKES: (f64, f64) = (6.0, 3.5);

const INK: RGBColor = RGBColor(0x1f, 0x23, 0x2b);
const SOFT: RGBColor = RGBColor(0x5b, 0x62, 0x70);
const GRID: RGBColor = RGBColor(0xe6, 0xe8, 0xec);

/// Draws the figure. The same figure gives the same bytes.
#[must_use]
pub fn svg(figure: &Figure) -> String {
    let sheet = Sheet::of(figure);
    drawn(SHEET.0 as u32, libm::ceil(sheet.height) as u32, &figure.title, |canvas| {
        sheet.draw_axes(canvas);
        sheet.draw_frame(canvas);
        for curve in &figure.curves {
            sheet.draw_curve(canvas, curve);
        }
        for curve in &figure.curves {
            sheet.draw_signs(canvas, curve);
        }
        sheet.draw_names(canvas);
        sheet.draw_legend(canvas);
    })
}

/// Where everything of a figure stands.
struct Sheet<'a> {
    figure: &'a Figure,
    height: f64,
    frame: Frame,
    across: Span,
    up: Span,
    across_ticks: Vec<Tick>,
    up_ticks: Vec<Tick>,
    title: Vec<String>,
    /// For each curve its label in lines.
    legend: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl<'a> Sheet<'a> {
    fn of(figure: &'a Figure) -> Self {
        let (across, up) = (Span::across(figure), Span::up(figure));
        let title = wrapped(&figure.title, TITLE.0 * BOLD, SHEET.0 - 2.0 * EDGE);
        let top = EDGE + TITLE.1 * title.len() as f64 + 8.0;
        let bottom = top + SHEET.1 - EDGE - TITLE.1 - 8.0 - EDGE - BELOW;
        let (legend, notes) = legend(figure, bottom - top);
        let widest = |lines: &mut dyn Iterator<Item = &String>, size: f64| lines.map(|line| width(line, size)).fold(0.0, f64::max);
        let labels = widest(&mut legend.iter().flatten(), LEGEND.0);
        let marked = if labels > 0.0 { labels + LEGEND_MARK } else { 0.0 };
        let beside = marked.max(widest(&mut notes.iter(), LEGEND.0 - 1.0));

        let up_ticks = up.ticks(((bottom - top) / 48.0) as usize);
        let numbers = widest(&mut up_ticks.iter().filter_map(|tick| tick.label.as_ref()), NUMBER);
        let left = EDGE + NAME.1 + 4.0 + numbers + STROKES.0;
        let right = SHEET.0 - EDGE - if beside > 0.0 { beside + 22.0 } else { 6.0 };
        let frame = Frame { left, top, right, bottom };
        let across_ticks = fitting_ticks(&across, frame.width());

        let height = (bottom + BELOW).max(top + legend_height(&legend, &notes)) + EDGE;
        Self { figure, height, frame, across, up, across_ticks, up_ticks, title, legend, notes }
    }

    /// Where a point stands on the sheet.
    fn place(&self, x: f64, y: f64) -> Place {
        (self.frame.left + self.across.part(x) * self.frame.width(), self.height_of(y))
    }

    fn height_of(&self, y: f64) -> f64 {
        self.frame.bottom - self.up.part(y) * self.frame.height()
    }

    /// The grid, the strokes at the axes, and their numbers.
    fn draw_axes(&self, canvas: &mut Canvas<'_>) {
        let Frame { left, top, right, bottom } = self.frame;
        let mut number = Lettering { size: NUMBER, colour: INK, bold: false, anchor: HPos::Center, upright: false };
        for (ticks, upright) in [(&self.across_ticks, false), (&self.up_ticks, true)] {
            for tick in ticks.iter().filter(|tick| tick.label.is_some()) {
                let (x, y) = self.place(tick.value, tick.value);
                let stroke = if upright { [(left, y), (right, y)] } else { [(x, top), (x, bottom)] };
                canvas.stroke(&stroke, GRID, 0.8);
            }
        }
        for tick in &self.across_ticks {
            let (x, length) = (self.place(tick.value, 0.0).0, if tick.label.is_some() { STROKES.0 } else { STROKES.1 });
            canvas.stroke(&[(x, bottom), (x, bottom + length)], INK, 1.0);
            canvas.text(tick.label.as_deref().unwrap_or_default(), (x, bottom + STROKES.0 + 9.0), &number);
        }
        number.anchor = HPos::Right;
        for tick in &self.up_ticks {
            let (y, length) = (self.height_of(tick.value), if tick.label.is_some() { STROKES.0 } else { STROKES.1 });
            canvas.stroke(&[(left - length, y), (left, y)], INK, 1.0);
            canvas.text(tick.label.as_deref().unwrap_or_default(), (left - STROKES.0 - 4.0, y), &number);
        }
    }

    /// The box round the plot.
    fn draw_frame(&self, canvas: &mut Canvas<'_>) {
        let mut places = corners((self.frame.left, self.frame.top), (self.frame.right, self.frame.bottom)).to_vec();
        places.extend_from_within(..2);
        canvas.stroke(&places, INK, 1.0);
    }

    /// The line and the error bars of a curve.
    fn draw_curve(&self, canvas: &mut Canvas<'_>, curve: &Curve) {
        let colour = colour(&curve.colour);
        let shown = |point: &Point| showing(self.figure, point);
        for piece in curve.points.split(|point| shown(point) != Showing::AtPlace) {
            let places: Vec<Place> = piece.iter().map(|point| self.place(point.x, point.y)).collect();
            marks::line(canvas, &self.frame, &places, curve.line, colour);
        }
        for point in curve.points.iter().filter(|point| shown(point) != Showing::LeftOut) {
            if let Some((low, high)) = point.interval.filter(|(low, high)| !low.is_nan() && !high.is_nan()) {
                let x = self.place(point.x, point.y).0;
                marks::bar(canvas, &self.frame, x, self.height_of(low), self.height_of(high), colour);
            }
        }
    }

    /// The signs of a curve's points, over all lines and bars.
    fn draw_signs(&self, canvas: &mut Canvas<'_>, curve: &Curve) {
        for point in &curve.points {
            let place = self.place(point.x, point.y);
            match showing(self.figure, point) {
                Showing::AtPlace if self.frame.holds(place) => {
                    marks::sign(canvas, place, sign_of(curve), point.imprecise, colour(&curve.colour));
                }
                Showing::AtEdge if self.frame.holds((place.0, self.frame.bottom)) => {
                    marks::below(canvas, (place.0, self.frame.bottom), colour(&curve.colour));
                }
                _ => {}
            }
        }
    }

    /// The title and what the axes show.
    fn draw_names(&self, canvas: &mut Canvas<'_>) {
        let Frame { left, top, right, bottom } = self.frame;
        let title = Lettering { size: TITLE.0, colour: INK, bold: true, anchor: HPos::Left, upright: false };
        for (line, text) in self.title.iter().enumerate() {
            canvas.text(text, (EDGE, EDGE + TITLE.1 * (line as f64 + 0.4)), &title);
        }
        let name = Lettering { size: NAME.0, colour: INK, bold: false, anchor: HPos::Center, upright: false };
        let across = one_line(&self.figure.x.label, right - left + 40.0);
        canvas.text(&across, ((left + right) / 2.0, bottom + STROKES.0 + 30.0), &name);
        let up = one_line(&self.figure.y.label, bottom - top + 40.0);
        canvas.text(&up, (EDGE + NAME.1 * 0.5, (top + bottom) / 2.0), &Lettering { upright: true, ..name });
        if !self.figure.curves.iter().flat_map(|curve| &curve.points).any(|point| showing(self.figure, point) != Showing::LeftOut) {
            let middle = ((left + right) / 2.0, (top + bottom) / 2.0);
            canvas.text("no points", middle, &Lettering { colour: SOFT, ..name });
        }
    }

    /// The curves' names with their marks, then what the signs mean.
    fn draw_legend(&self, canvas: &mut Canvas<'_>) {
        let left = self.frame.right + 22.0;
        let mut top = self.frame.top;
        let name = Lettering { size: LEGEND.0, colour: INK, bold: false, anchor: HPos::Left, upright: false };
        for (curve, lines) in self.figure.curves.iter().zip(&self.legend) {
            let y = top + LEGEND.1 / 2.0;
            let everywhere = Frame { left, top: 0.0, right: SHEET.0, bottom: self.height };
            let colour = colour(&curve.colour);
            marks::line(canvas, &everywhere, &[(left, y), (left + LEGEND_MARK - 8.0, y)], curve.line, colour);
            marks::sign(canvas, (left + (LEGEND_MARK - 8.0) / 2.0, y), sign_of(curve), false, colour);
            for (line, text) in lines.iter().enumerate() {
                canvas.text(text, (left + LEGEND_MARK, y + LEGEND.1 * line as f64), &name);
            }
            top += entry_height(lines);
        }
        let note = Lettering { size: LEGEND.0 - 1.0, colour: SOFT, ..name };
        for (line, text) in self.notes.iter().enumerate() {
            canvas.text(text, (left, top + 10.0 + LEGEND.1 * (line as f64 + 0.5)), &note);
        }
    }
}

/// A curve's sign. A curve with neither sign nor line would not be seen at all.
pub(super) fn sign_of(curve: &Curve) -> Marker {
    let alone = curve.points.len() == 1 || curve.line == Line::None;
    if curve.marker == Marker::None && alone { Marker::Circle } else { curve.marker }
}

/// The curves' names and what the signs mean, each in lines.
fn legend(figure: &Figure, room: f64) -> (Vec<Vec<String>>, Vec<String>) {
    let broken_at = |most: f64| {
        let names: Vec<Vec<String>> = figure.curves.iter().map(|curve| wrapped(&curve.label, LEGEND.0, most)).collect();
        let notes = notes(figure).into_iter().flat_map(|note| wrapped(note, LEGEND.0 - 1.0, most + LEGEND_MARK));
        (names, notes.collect::<Vec<String>>())
    };
    let [narrow, wide] = LEGEND_TEXT;
    let (names, notes) = broken_at(narrow);
    if legend_height(&names, &notes) <= room { (names, notes) } else { broken_at(wide) }
}

fn legend_height(names: &[Vec<String>], notes: &[String]) -> f64 {
    names.iter().map(|lines| entry_height(lines)).sum::<f64>() + LEGEND.1 * notes.len() as f64 + 14.0
}

/// The height of a curve's entry in the legend.
fn entry_height(lines: &[String]) -> f64 {
    LEGEND.1 * lines.len().max(1) as f64 + LEGEND_GAP
}

/// The ticks of the horizontal axis, so few that their numbers stand apart.
fn fitting_ticks(span: &Span, room: f64) -> Vec<Tick> {
    for most in (2..=9).rev() {
        let ticks = span.ticks(most);
        let labelled: Vec<&Tick> = ticks.iter().filter(|tick| tick.label.is_some()).collect();
        let half = |tick: &Tick| width(tick.label.as_deref().unwrap_or_default(), NUMBER) / 2.0;
        let apart = |pair: &[&Tick]| (span.part(pair[1].value) - span.part(pair[0].value)) * room > half(pair[0]) + half(pair[1]) + 8.0;
        if labelled.windows(2).all(apart) {
            return ticks;
        }
    }
    span.ticks(1)
}

/// The first line of a name that fits, with an ellipsis when there is more.
fn one_line(text: &str, room: f64) -> String {
    let mut lines = wrapped(text, NAME.0, room).into_iter();
    let first = lines.next().unwrap_or_default();
    if lines.next().is_some() { first + "\u{2026}" } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::notes::tests::{curve, figure, point};
    use crate::figure::Scale;

    fn signs(drawn: &str) -> usize {
        // A disc a point, and one in the legend.
        drawn.matches("<circle").count()
    }

    #[test]
    fn every_finite_point_has_a_sign_and_no_other() {
        let points = [1.0, f64::NAN, 3.0, f64::INFINITY, 5.0].iter().enumerate().map(|(x, &y)| point(x as f64, y)).collect();
        let made = figure(vec![curve("a", points)]);
        assert_eq!(signs(&svg(&made)), 3 + 1);
        assert!(!svg(&made).contains("NaN") && !svg(&made).contains("inf"));
    }

    #[test]
    fn a_line_does_not_cross_a_point_that_is_left_out() {
        let lines = |ys: &[f64]| {
            let points = ys.iter().enumerate().map(|(x, &y)| point(x as f64, y)).collect();
            svg(&figure(vec![curve("a", points)])).matches("#0072B2\" stroke-width=\"15\"").count()
        };
        assert_eq!(lines(&[1.0, 2.0, 3.0, 4.0]), 1 + 1, "the curve, and its sample in the legend");
        assert_eq!(lines(&[1.0, 2.0, f64::NAN, 3.0, 4.0]), 2 + 1);
    }

    #[test]
    fn a_bar_that_touches_zero_is_drawn_on_a_logarithmic_axis() {
        let bars = |interval| {
            let mut made = figure(vec![curve("a", vec![point(1.0, 1e-3), point(2.0, 1e-2)])]);
            made.y.scale = Scale::Log;
            made.curves[0].points[0].interval = interval;
            svg(&made).matches("stroke-width=\"11\"").count()
        };
        assert_eq!(bars(None), 0);
        assert_eq!(bars(Some((5e-4, 2e-3))), 3);
        assert_eq!(bars(Some((0.0, 2e-3))), 2);
        assert_eq!(bars(Some((-1e-3, 2e-3))), 2);
    }

    #[test]
    fn a_long_legend_makes_the_sheet_longer_and_leaves_the_plot_alone() {
        let curves = |count: usize| (0..count).map(|at| curve(&format!("curve {at} {}", "of many words ".repeat(6)), vec![])).collect();
        let (few, many) = (figure(curves(2)), figure(curves(30)));
        let (few, many) = (Sheet::of(&few), Sheet::of(&many));
        assert!(many.height > few.height && many.frame.bottom == few.frame.bottom);
        assert!(many.frame.width() > 400.0);
        for lines in many.legend.iter().flatten() {
            assert!(many.frame.right + 22.0 + LEGEND_MARK + width(lines, LEGEND.0) <= SHEET.0 - EDGE + 1e-6);
        }
    }

    #[test]
    fn names_are_escaped_and_the_same_figure_is_the_same_bytes() {
        let made = figure(vec![curve("</svg><script>&\u{1}", vec![point(1.0, 1.0)])]);
        let drawn = svg(&made);
        assert!(!drawn.contains("<script") && !drawn.contains('\u{1}') && drawn.matches("</svg>").count() == 1);
        assert_eq!(drawn, svg(&made.clone()));
    }

    #[test]
    fn a_figure_of_nothing_says_so() {
        assert!(svg(&figure(vec![])).contains("no points"));
        assert!(!svg(&figure(vec![curve("a", vec![point(0.0, 0.0)])])).contains("no points"));
    }
}
