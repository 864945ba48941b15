//! The points of a figure, or the cells of a heat map, as a table of comma-separated values.
//!
//! Called by the studies, which write it beside the picture, and by the report page, which offers it.
//!
//! Invariant: every point and every cell is a row, also one that cannot be drawn; numbers are the shortest that read back as the same.
//! Source: RFC 4180, with a line feed alone at the end of a row.

use crate::figure::{Figure, Point};
use crate::heat_map::{HeatMap, Places, Side};
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

/// The head of a heat map's table.
const CELLS_HEAD: &str = "x,y,value,low,high,mark,note\n";

/// The cells of `map`, a row each, by rows: what stands at its two sides, its value and the ends of its interval (empty
/// where there is none), the words it is marked with, and the note. A missing cell has no value.
#[must_use]
pub fn heat_map_csv(map: &HeatMap) -> String {
    let mut table = String::from(CELLS_HEAD);
    for (column, row) in map.places() {
        let (x, y) = (place(&map.x, column), place(&map.y, row));
        // Not the cells that are shown alone: a number that is none is written as what it is.
        let cell = map.cells.get(row).and_then(|cells| cells.get(column)?.as_ref());
        let value = cell.map(|cell| number(cell.value)).unwrap_or_default();
        let ends = cell.and_then(|cell| cell.interval);
        let (low, high) = ends.map_or_else(Default::default, |(low, high)| (number(low), number(high)));
        let marks = map.marks.iter().filter(|mark| (mark.column, mark.row) == (column, row));
        let words: Vec<&str> = marks.map(|mark| mark.word.as_str()).collect();
        let note = cell.map_or("", |cell| cell.note.as_str());
        let _ = writeln!(table, "{x},{y},{value},{low},{high},{},{}", quoted(&words.join("; ")), quoted(note));
    }
    table
}

fn place(side: &Side, at: usize) -> String {
    match &side.places {
        Places::Names(names) => names.get(at).map(|name| quoted(name)),
        Places::Numbers(values) => values.get(at).map(|value| number(*value)),
    }
    .unwrap_or_default()
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
    fn every_cell_is_a_row_and_a_missing_one_has_no_value() {
        let sides = (Side::numbers("loss", &[1e-5, 0.5]), Side::names("scheme", ["a, b"]));
        let value = crate::figure::Axis { label: "delay".into(), scale: crate::figure::Scale::Linear, range: None };
        let mut made = HeatMap::of(("id", "title"), sides, value, |column, _| (column == 0).then_some(2.5)).marking_lowest("best");
        assert_eq!(heat_map_csv(&made), format!("{CELLS_HEAD}1e-5,\"a, b\",2.5,,,best,\n0.5,\"a, b\",,,,,\n"));
        made.cells[0][0].as_mut().unwrap().interval = Some((2.0, f64::INFINITY));
        made.cells[0][1] = Some(f64::NAN.into());
        assert_eq!(heat_map_csv(&made), format!("{CELLS_HEAD}1e-5,\"a, b\",2.5,2,inf,best,\n0.5,\"a, b\",nan,,,,\n"));
    }

    #[test]
    fn a_figure_without_points_is_a_head_alone() {
        assert_eq!(csv(&figure(vec![])), HEAD);
    }
}
