//! A picture as a value, before anything is drawn.
//!
//! Made by the studies, drawn by [`crate::drawing`], and written as CSV and JSON beside the drawing.
//!
//! Invariant: every point of a picture comes from a run or a closed form; nothing is smoothed or invented.

use serde::Serialize;

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Even steps.
    Linear,
    /// Decades.
    Log,
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// What it shows, with its measure: "delay, max (ms)".
    pub label: String,
    /// How it is divided.
    pub scale: Scale,
    /// What it covers; `None` for what the points need.
    pub range: Option<(f64, f64)>,
}

/// The sign at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Marker {
    /// No sign.
    None,
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A triangle standing on its side.
    Triangle,
    /// A square standing on its corner.
    Diamond,
    /// Two crossed strokes.
    Cross,
    /// A star of five points.
    Star,
    /// An upright and a level stroke.
    Plus,
    /// Six even sides, two of them upright.
    Hexagon,
}

/// The line between points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// No line.
    None,
    /// Unbroken.
    Solid,
    /// Long strokes.
    Dashed,
    /// Short strokes.
    Dotted,
}

/// One point with its interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Where on the horizontal axis.
    pub x: f64,
    /// Where on the vertical axis.
    pub y: f64,
    /// The ends of the 95 % interval; `None` where there is none (a closed form, a single maximum).
    pub interval: Option<(f64, f64)>,
    /// The wanted precision was not reached: the sign is drawn hollow.
    pub imprecise: bool,
    /// What a reader sees when pointing at it, besides the numbers: run length, scenario.
    pub note: String,
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Its name in the legend.
    pub label: String,
    /// Its colour as `#rrggbb`.
    pub colour: String,
    /// The sign at its points.
    pub marker: Marker,
    /// The line between them.
    pub line: Line,
    /// Its points, by growing x.
    pub points: Vec<Point>,
}

/// One picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Unique in a report, safe in a file name: `ec-fig11`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Its curves, in the order of the legend.
    pub curves: Vec<Curve>,
}

/// A table of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextTable {
    /// Its title.
    pub title: String,
    /// The heads of its columns.
    pub columns: Vec<String>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}

/// Six significant digits, without trailing zeros; nothing for what is not known.
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return String::new();
    }
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    rounded.to_string()
}
