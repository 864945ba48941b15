//! A heat map as a value: one number for each pair of two parameters, before anything is drawn.
//!
//! Made by the studies, drawn by [`crate::drawing`], and written as CSV and JSON beside the drawing. The second kind of
//! picture, beside [`crate::figure::Figure`]: for what depends on two parameters at once.
//!
//! Invariant: every cell comes from a run or a closed form; a cell that has no finite number is missing, never zero.

use crate::figure::{Axis, digits};
use crate::statistics::Estimate;
use serde::Serialize;

/// The places along one side of a heat map.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Places {
    /// Categories. Those of the vertical side are read from the top down.
    Names(Vec<String>),
    /// Values of a parameter, in steps of equal size whatever they are. Those of the vertical side grow upwards.
    Numbers(Vec<f64>),
}

/// One side of a heat map.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// What it shows, with its measure: "round trip (ms)".
    pub label: String,
    /// Its places, in the order of the cells.
    pub places: Places,
}

impl Side {
    /// A side of categories.
    pub fn names<N: Into<String>>(label: &str, names: impl IntoIterator<Item = N>) -> Self {
        Self { label: label.to_owned(), places: Places::Names(names.into_iter().map(Into::into).collect()) }
    }

    /// A side of values, in growing order.
    pub fn numbers(label: &str, values: &[f64]) -> Self {
        Self { label: label.to_owned(), places: Places::Numbers(values.to_vec()) }
    }

    /// How many places it has.
    pub fn count(&self) -> usize {
        match &self.places {
            Places::Names(names) => names.len(),
            Places::Numbers(values) => values.len(),
        }
    }

    /// What stands at a place: its name, or its value (`0.25`, `1e-5` where it is small); nothing beyond the last.
    pub fn name(&self, place: usize) -> String {
        match &self.places {
            Places::Names(names) => names.get(place).cloned(),
            Places::Numbers(values) => {
                values.get(place).map(|value| if value.abs() < 1e-3 && *value != 0.0 { format!("{value:e}") } else { digits(*value) })
            }
        }
        .unwrap_or_default()
    }
}

/// The number of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The number.
    pub value: f64,
    /// The ends of the 95 % interval; `None` where there is none.
    pub interval: Option<(f64, f64)>,
    /// What a reader sees when pointing at it, besides the numbers: run length, scenario.
    pub note: String,
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self { value, interval: None, note: String::new() }
    }
}

impl From<Estimate> for Cell {
    fn from(estimate: Estimate) -> Self {
        Self { value: estimate.mean, interval: estimate.interval(), note: String::new() }
    }
}

/// A cell that stands out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CellMark {
    /// Its place on the horizontal side.
    pub column: usize,
    /// Its place on the vertical side.
    pub row: usize,
    /// What it is, as the legend says: "shortest delay". The cells of one word have one outline.
    pub word: String,
}

/// One heat map.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeatMap {
    /// Unique in a report, also among figures, safe in a file name: `ec-fig11-grid`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The horizontal side.
    pub x: Side,
    /// The vertical side.
    pub y: Side,
    /// What the cells show, with its measure, and how the colours are divided; `range` is what the colours cover, and a
    /// number beyond it has the colour of the nearer end.
    pub value: Axis,
    /// The cells: a row for each place of `y`, in it one for each place of `x`. One that is `None`, or not there, is missing.
    pub cells: Vec<Vec<Option<Cell>>>,
    /// The cells that stand out, by the order of the legend.
    pub marks: Vec<CellMark>,
}

impl HeatMap {
    /// A map with the cells that `cell` gives for each column and row.
    pub fn of<C: Into<Cell>>(
        (id, title): (&str, &str),
        (x, y): (Side, Side),
        value: Axis,
        cell: impl Fn(usize, usize) -> Option<C>,
    ) -> Self {
        let row = |row: usize| (0..x.count()).map(|column| cell(column, row).map(Into::into)).collect();
        let cells = (0..y.count()).map(row).collect();
        Self { id: id.to_owned(), title: title.to_owned(), x, y, value, cells, marks: Vec::new() }
    }

    /// Marks the cell with the lowest number, and those equal to it.
    #[must_use]
    pub fn marking_lowest(self, word: &str) -> Self {
        self.marking_least(word, |value| value)
    }

    /// Marks the cell with the highest number, and those equal to it.
    #[must_use]
    pub fn marking_highest(self, word: &str) -> Self {
        self.marking_least(word, |value| -value)
    }

    fn marking_least(mut self, word: &str, order: fn(f64) -> f64) -> Self {
        let least = self.shown().map(|(_, _, cell)| order(cell.value)).fold(f64::INFINITY, f64::min);
        let of_least = self.shown().filter(|(_, _, cell)| order(cell.value) <= least);
        let marks: Vec<CellMark> = of_least.map(|(column, row, _)| CellMark { column, row, word: word.to_owned() }).collect();
        self.marks.extend(marks);
        self
    }

    /// A cell; `None` when it is missing or its number is none.
    pub fn cell(&self, column: usize, row: usize) -> Option<&Cell> {
        self.cells.get(row)?.get(column)?.as_ref().filter(|cell| cell.value.is_finite())
    }

    /// The cells that are not missing, row by row: column, row and cell.
    pub fn shown(&self) -> impl Iterator<Item = (usize, usize, &Cell)> {
        self.places().filter_map(|(column, row)| Some((column, row, self.cell(column, row)?)))
    }

    /// All places of cells, row by row: column and row.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let columns = self.x.count();
        (0..self.y.count()).flat_map(move |row| (0..columns).map(move |column| (column, row)))
    }

    /// The words of the marks, each once, in the order of the legend.
    pub fn words(&self) -> Vec<&str> {
        let mut words: Vec<&str> = Vec::new();
        for mark in &self.marks {
            if !words.contains(&mark.word.as_str()) {
                words.push(&mark.word);
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Scale;

    fn map(cell: impl Fn(usize, usize) -> Option<f64>) -> HeatMap {
        let sides = (Side::numbers("loss", &[1e-5, 1e-4]), Side::names("scheme", ["a", "b", "c"]));
        HeatMap::of(("made-up", "Made up"), sides, Axis { label: "delay (ms)".into(), scale: Scale::Linear, range: None }, cell)
    }

    #[test]
    fn the_best_is_marked_with_those_equal_to_it_and_never_one_that_is_missing() {
        let made = map(|column, row| [[Some(3.0), None], [Some(1.0), Some(f64::NAN)], [Some(f64::NEG_INFINITY), Some(1.0)]][row][column]);
        let marked: Vec<(usize, usize)> = made.clone().marking_lowest("best").marks.iter().map(|mark| (mark.column, mark.row)).collect();
        assert_eq!(marked, [(0, 1), (1, 2)]);
        let both = made.marking_highest("worst").marking_lowest("best");
        assert_eq!((both.marks[0].column, both.marks[0].row, both.words()), (0, 0, vec!["worst", "best"]));
        assert!(map(|_, _| None).marking_lowest("best").marks.is_empty());
    }

    #[test]
    fn a_row_that_is_too_short_has_missing_cells() {
        let mut made = map(|column, row| Some((column + row) as f64));
        made.cells[0].pop();
        made.cells.pop();
        assert_eq!(made.shown().map(|(column, row, _)| (column, row)).collect::<Vec<_>>(), [(0, 0), (0, 1), (1, 1)]);
        assert_eq!(made.places().count(), 6);
    }

    #[test]
    fn an_estimate_brings_its_interval_and_a_number_has_none() {
        let estimate = Estimate { mean: 4.0, half_width: Some(1.0), samples: 9 };
        assert_eq!(Cell::from(estimate).interval, Some((3.0, 5.0)));
        assert_eq!((Cell::from(4.0).interval, Side::numbers("", &[1e-5]).name(0)), (None, "1e-5".to_owned()));
        assert_eq!(Side::names("", ["a"]).name(1), "");
    }

    #[test]
    fn its_json_has_missing_cells_as_null() {
        let json = serde_json::to_value(map(|column, _| (column == 0).then_some(2.5))).unwrap();
        assert_eq!((&json["cells"][0][0]["value"], &json["cells"][0][1]), (&2.5.into(), &serde_json::Value::Null));
        assert_eq!((&json["x"]["places"][0], &json["y"]["places"][2]), (&1e-5.into(), &"c".into()));
    }
}
