//! The points of a figure as a table of comma-separated values.
//!
//! Called by the studies, which write it beside the picture, and by the report page, which offers it.
//!
//! Invariant: every point is a row, also one that cannot be drawn; numbers are the shortest that read back as the same.
//! Source: RFC 4180, with a line feed alone at the end of a row.

use crate::figure::{Figure, Point};
use std::fmt::Write as _;

/// The head of the table.
const HEAD: &str = "curve,x,y,low,high,imprecise,note\n";

/// The points of `figure`, a row each, by curve: its label, x, y, the ends of the interval (empty where there is none),
/// `true` where the wanted precision was not reached, and the note.
#[must_use]
pub fn csv(figure: &Figure) -> String {
    let mut table = String::from(HEAD);
    for curve in &figure.curves {
        for point in &curve.points {
            row(&mut table, &curve.label, point);
        }
    }
    table
}

fn row(table: &mut String, label: &str, point: &Point) {
    let (low, high) = point.interval.map_or_else(Default::default, |(low, high)| (number(low), number(high)));
    let (x, y) = (number(point.x), number(point.y));
    let _ = writeln!(table, "{},{x},{y},{low},{high},{},{}", quoted(label), point.imprecise, quoted(&point.note));
}

/// A number as text: `1e-5` and not `0.00001`, `nan` and `inf` as they are.
fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && size.is_finite() && !(1e-4..1e15).contains(&size) { format!("{value:e}") } else { value.to_string().to_lowercase() }
}

/// A field, within quotation marks when it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::notes::tests::{curve, figure, point};

    #[test]
    fn every_point_is_a_row_and_a_missing_interval_is_empty() {
        let mut points = vec![point(1e-5, 90.25), point(0.5, f64::NAN)];
        points[0].interval = Some((89.0, f64::INFINITY));
        points[0].imprecise = true;
        points[1].note = "seed 1".into();
        let expected = format!("{HEAD}ideal,1e-5,90.25,89,inf,true,\nideal,0.5,nan,,,false,seed 1\n");
        assert_eq!(csv(&figure(vec![curve("ideal", points)])), expected);
    }

    #[test]
    fn commas_quotation_marks_and_line_ends_stay_within_their_field() {
        let mut noted = point(1.0, 2.0);
        noted.note = "two\nlines".into();
        let table = csv(&figure(vec![curve("a, \"b\"", vec![noted])]));
        assert_eq!(table, format!("{HEAD}\"a, \"\"b\"\"\",1,2,,,false,\"two\nlines\"\n"));
    }

    #[test]
    fn a_figure_without_points_is_a_head_alone() {
        assert_eq!(csv(&figure(vec![])), HEAD);
    }
}
