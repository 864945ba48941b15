//! The two intervals of adaptive acknowledgment against each other: a grid of pairs at one window and one loss rate.
//!
//! Called by Figs. 5 to 8 of this folder and by `flagship/report_periods`.
//!
//! Invariant: a grid that is read has all of its pairs.
//! Source: AA 3.2.2, Figs. 5 to 7.

use super::efficiency::{self, LABEL};
use super::end_system::{BEST_PAIR, WINDOW, Who};
use super::rearming;
use crate::black_box::random;
use crate::curves::Look;
use segstream_lab::figure::{Axis, Figure, Line, Marker, Scale, TextTable};
use segstream_lab::heat_map::{Cell, HeatMap, Side};
use segstream_lab::measured::Measured;
use segstream_lab::point::PointResult;
use segstream_lab::study::StudyPoint;

/// T_normal in milliseconds. Chosen: the paper names 40 alone.
pub(crate) const T_NORMAL: [u64; 8] = [5, 10, 20, 30, 40, 50, 60, 80];
/// T_error in milliseconds. Chosen: the paper names 5 alone.
pub(crate) const T_ERROR: [u64; 7] = [1, 2, 5, 10, 20, 30, 40];
/// By how many times runs are shorter than the preset's. The studies of this folder share it, and so their points.
pub(crate) const SHORTENED: u64 = 10;

/// The name of the curve over T_normal at a T_error.
fn name(window: u32, p: f64, t_error: u64) -> String {
    format!("adaptive-ack W {window} p {p:e} T_error {t_error}ms")
}

/// The name of the flagship's curve, over loss rates.
pub(crate) fn flagship_name(window: u32) -> String {
    format!("segstream W {window}")
}

/// All pairs at a window and a loss rate.
pub(crate) fn pairs(window: u32, p: f64) -> Vec<StudyPoint> {
    let at = |t_error: u64| {
        T_NORMAL.map(|t_normal| StudyPoint {
            curve: name(window, p, t_error),
            x: t_normal as f64,
            scenario: Who::AdaptiveAck(t_normal, t_error).over(window, &random(p)),
        })
    };
    T_ERROR.into_iter().flat_map(at).collect()
}

/// The flagship there.
pub(crate) fn flagship(window: u32, p: f64) -> StudyPoint {
    StudyPoint { curve: flagship_name(window), x: p, scenario: Who::Segstream.over(window, &random(p)) }
}

/// All pairs with their results.
pub(crate) struct Grid<'a> {
    /// By T_error, then by T_normal.
    cells: Vec<Vec<&'a PointResult>>,
    values: Vec<Vec<f64>>,
}

impl<'a> Grid<'a> {
    /// Those of a window and a loss rate.
    pub(crate) fn read(points: &'a Measured, window: u32, p: f64) -> Option<Self> {
        let at = |t_error: u64| {
            let curve = name(window, p, t_error);
            T_NORMAL.into_iter().map(|t_normal| points.at(&curve, t_normal as f64)).collect::<Option<Vec<_>>>()
        };
        let cells = T_ERROR.into_iter().map(at).collect::<Option<Vec<_>>>()?;
        let values = cells.iter().map(|row| row.iter().map(|result| efficiency::of(result).mean).collect()).collect();
        Some(Self { cells, values })
    }

    /// The efficiencies by T_error, then by T_normal.
    pub(crate) fn values(&self) -> &[Vec<f64>] {
        &self.values
    }

    /// Over T_normal, at a T_error of the grid.
    pub(crate) fn over_t_normal(&self, t_error: u64) -> Option<&[f64]> {
        Some(&self.values[T_ERROR.into_iter().position(|value| value == t_error)?])
    }

    /// Over T_error, at a T_normal of the grid.
    pub(crate) fn over_t_error(&self, t_normal: u64) -> Option<Vec<f64>> {
        let column = T_NORMAL.into_iter().position(|value| value == t_normal)?;
        Some(self.values.iter().map(|row| row[column]).collect())
    }

    /// The result of a pair.
    pub(crate) fn at(&self, (t_normal, t_error): (u64, u64)) -> Option<&'a PointResult> {
        let row = T_ERROR.into_iter().position(|value| value == t_error)?;
        Some(self.cells[row][T_NORMAL.into_iter().position(|value| value == t_normal)?])
    }

    /// All pairs with their results, and the efficiency of each.
    pub(crate) fn each(&self) -> impl Iterator<Item = ((u64, u64), &'a PointResult, f64)> {
        let row = move |(at, t_error): (usize, u64)| {
            T_NORMAL
                .into_iter()
                .enumerate()
                .map(move |(column, t_normal)| ((t_normal, t_error), self.cells[at][column], self.values[at][column]))
        };
        T_ERROR.into_iter().enumerate().flat_map(row)
    }

    /// The best pair, its result and its efficiency.
    pub(crate) fn best(&self) -> ((u64, u64), &'a PointResult, f64) {
        let first = (BEST_PAIR, self.cells[0][0], f64::NEG_INFINITY);
        self.each().fold(first, |best, cell| if cell.2 > best.2 { cell } else { best })
    }
}

/// T_normal and T_error as a text: `40/5 ms`.
pub(crate) fn pair_text((t_normal, t_error): (u64, u64)) -> String {
    format!("{t_normal}/{t_error} ms")
}

/// The picture over T_normal at the window of 400, a curve a T_error, and the flagship's level.
pub(super) fn figure(points: &Measured, id: &str, p: f64) -> Figure {
    let mut curves = Vec::new();
    for (at, t_error) in T_ERROR.into_iter().enumerate() {
        let label = format!("T_error {t_error} ms");
        curves.push(efficiency::curve(points, &name(WINDOW, p, t_error), &label, look(at)));
    }
    let places = T_NORMAL.map(|t_normal| t_normal as f64);
    let ours = points.at(&flagship_name(WINDOW), p);
    let who = Who::Segstream;
    curves.extend(ours.map(|result| efficiency::level(result, &who.label(), who.look(Line::Solid), &places)));
    let title = format!("Adaptive acknowledgment over its two intervals, window 400, loss rate {p:e}");
    efficiency::figure(id, &title, ("T_normal (ms)", Scale::Linear), LABEL, curves)
}

/// The same as a heat map, the best pair marked.
pub(super) fn heat_map(points: &Measured, id: &str, p: f64) -> Vec<HeatMap> {
    let Some(grid) = Grid::read(points, WINDOW, p) else { return Vec::new() };
    let sides =
        (Side::numbers("T_normal (ms)", &T_NORMAL.map(|ms| ms as f64)), Side::numbers("T_error (ms)", &T_ERROR.map(|ms| ms as f64)));
    let title = format!("The two intervals, window 400, loss rate {p:e}");
    // Why: what falls far, where T_normal is too long for the window, would leave the rest in one colour.
    let most = grid.best().2;
    let value = Axis { label: LABEL.to_owned(), scale: Scale::Linear, range: Some((most - SHOWN, most)) };
    let cell = |column: usize, row: usize| {
        let result = grid.at((T_NORMAL[column], T_ERROR[row]))?;
        let note = format!("{} runs of {} packets", result.outcomes.len(), result.scenario.workload.packets);
        Some(Cell { note, ..Cell::from(efficiency::of(result)) })
    };
    vec![HeatMap::of((id, &title), sides, value, cell).marking_highest("the best pair")]
}

/// How much of the efficiency below the best a heat map tells apart.
const SHOWN: f64 = 0.05;

/// A colour for each T_error, from dark to light; the flagship's blue is not among them.
fn look(at: usize) -> Look {
    const COLOURS: [&str; 7] = ["#000000", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#777777"];
    const SIGNS: [Marker; 7] =
        [Marker::Diamond, Marker::Triangle, Marker::Star, Marker::Square, Marker::Cross, Marker::Plus, Marker::Diamond];
    Look { colour: COLOURS[at % 7], marker: SIGNS[at % 7], line: if at < 3 { Line::Solid } else { Line::Dashed } }
}

/// The numbers of the picture.
pub(super) fn table(points: &Measured, p: f64) -> Vec<TextTable> {
    let Some(grid) = Grid::read(points, WINDOW, p) else { return Vec::new() };
    let row = |(t_error, values): (u64, &Vec<f64>)| {
        let mut row = vec![t_error.to_string()];
        row.extend(values.iter().map(|value| format!("{value:.4}")));
        row
    };
    let mut columns = vec!["T_error (ms)".to_owned()];
    columns.extend(T_NORMAL.map(|t_normal| format!("T_normal {t_normal} ms")));
    let title = format!("Throughput efficiency, window 400, loss rate {p:e}");
    vec![TextTable { title, columns, rows: T_ERROR.into_iter().zip(grid.values()).map(row).collect() }]
}

/// What the figures over the intervals say of their parameters.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    ("window", "400 packets (stated)"),
    ("T_normal", "5 to 80 ms (chosen; 40 stated as the best)"),
    ("T_error", "1 to 40 ms (chosen; 5 stated as the best)"),
    ("loss", "each data packet alone, acknowledgments not at all (chosen: the paper speaks of data)"),
    rearming::PARAMETER,
    ("run length", "a tenth of the preset's packets, between the first eighth and the last; AA's 1000 / p where that is less"),
];
