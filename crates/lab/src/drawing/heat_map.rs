//! One heat map as a static picture, on white paper or on a dark page.
//!
//! Called by the command line, which writes it beside the figures, and by `html`, which shows the one of the reader's theme.
//!
//! The sheet is at least 820 pixels wide, and grows with the cells: a number always fits into its cell. What a cell shows
//! besides its number is seen by pointing at it, without a script.
//!
//! Invariant: every cell has its place; a missing one has no colour of the scale, and says that it is missing.
//! Source: viridis (Smith, van der Walt 2015), whose lightness grows evenly, also for colour-blind readers and on grey
//! paper; the contrast of letters is that of WCAG 2.2, 1.4.3.

use crate::drawing::canvas::{self, Canvas, Hint, Lettering, Place, RGBColor, WHITE, corners, drawn};
use crate::drawing::legend::{BOLD, width, wrapped};
use crate::drawing::marks::{self, Frame};
use crate::drawing::span::{Span, Tick};
use crate::figure::{Line, Scale, digits};
use crate::heat_map::{Cell, HeatMap, Places};
use plotters::prelude::{ColorMap as _, ViridisRGB};
use plotters::style::text_anchor::HPos;

/// What a picture stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// White paper: files, print, a light page.
    White,
    /// The card of the report's dark page.
    Dark,
}

/// The least width of the sheet, in pixels: that of a figure.
const SHEET: f64 = 820.0;
/// The room round everything, and between the cells and the legend.
const EDGE: f64 = 14.0;
const BETWEEN: f64 = 24.0;
/// Letters and the height of their lines: of the title, of the sides' labels, of all other words.
const TITLE: (f64, f64) = (15.0, 20.0);
const NAME: (f64, f64) = (13.0, 17.0);
const WORD: (f64, f64) = (12.0, 15.5);
/// The widest words get before they are broken: beside the rows, and in the legend.
const WIDEST: f64 = 150.0;
/// What a cell measures at the most across, and at least and at the most up.
const CELL_WIDTH_MAX: f64 = 120.0;
const CELL_HEIGHT: (f64, f64) = (30.0, 46.0);
/// The height all rows share before each is at its least or most.
const ROWS: f64 = 320.0;
/// The width and the least height of the colour bar, and in how many steps it is drawn.
const BAR: (f64, f64) = (18.0, 120.0);
const BAR_STEPS: u32 = 100;
/// The room for a mark in the legend.
const SAMPLE: f64 = 30.0;
/// How marks of different words are outlined.
const OUTLINES: [Line; 3] = [Line::Solid, Line::Dashed, Line::Dotted];
/// What the legend says of a missing cell.
const MISSING: &str = "\u{2013}: missing";
const BLACK: RGBColor = RGBColor(0, 0, 0);

impl Paper {
    /// The paper, its ink, its soft ink, and the ground of a missing cell: the colours of the page.
    fn colours(self) -> [RGBColor; 4] {
        let names = match self {
            Self::White => ["#ffffff", "#1f232b", "#5b6270", "#eef0f3"],
            Self::Dark => ["#1b2029", "#e8ebf1", "#a3adbf", "#2a313d"],
        };
        names.map(canvas::colour)
    }
}

/// Draws the map. The same map gives the same bytes.
#[must_use]
pub fn heat_map_svg(map: &HeatMap, paper: Paper) -> String {
    let sheet = Sheet::of(map, paper);
    let drawn = drawn(libm::ceil(sheet.width) as u32, libm::ceil(sheet.height) as u32, &map.title, |canvas| {
        canvas.polygon(&corners((0.0, 0.0), (libm::ceil(sheet.width), libm::ceil(sheet.height))), sheet.paper);
        sheet.draw_cells(canvas);
        sheet.draw_marks(canvas);
        sheet.draw_names(canvas);
        sheet.draw_bar(canvas);
        sheet.draw_legend(canvas);
    });
    canvas::with_hints(&drawn, &sheet.hints())
}

/// Where everything of a map stands.
struct Sheet<'a> {
    map: &'a HeatMap,
    paper: RGBColor,
    ink: RGBColor,
    soft: RGBColor,
    ground: RGBColor,
    width: f64,
    height: f64,
    /// The cells.
    frame: Frame,
    /// What the colours cover, and the bar that shows them.
    colours: Span,
    bar: Frame,
    ticks: Vec<Tick>,
    title: Vec<String>,
    /// The names of the columns, of the rows and of what the cells show, each in lines.
    columns: Vec<Vec<String>>,
    rows: Vec<Vec<String>>,
    value: Vec<String>,
    /// The words of the marks, each in lines.
    words: Vec<(&'a str, Vec<String>)>,
    notes: Vec<&'static str>,
}

impl<'a> Sheet<'a> {
    fn of(map: &'a HeatMap, paper: Paper) -> Self {
        let [paper, ink, soft, ground] = paper.colours();
        let colours = Span::of(&map.value, map.shown().map(|(_, _, cell)| cell.value));
        let rows: Vec<Vec<String>> = (0..map.y.count()).map(|row| wrapped(&map.y.name(row), WORD.0, WIDEST)).collect();
        let value = wrapped(&map.value.label, WORD.0, WIDEST);
        let words: Vec<(&str, Vec<String>)> = map.words().into_iter().map(|word| (word, wrapped(word, WORD.0, WIDEST - SAMPLE))).collect();
        let notes = notes(map, &colours);

        let title = wrapped(&map.title, TITLE.0 * BOLD, SHEET - 2.0 * EDGE);
        let top = EDGE + TITLE.1 * title.len() as f64 + 8.0;
        let left = EDGE + NAME.1 + 4.0 + widest(rows.iter().flatten()) + 8.0;
        // Ticks are as wide whatever the height of the bar, except for how many they are.
        let ticks_widest = widest(colours.ticks(8).iter().filter_map(|tick| tick.label.as_ref())) + BAR.0 + 10.0;
        let marked = widest(words.iter().flat_map(|(_, lines)| lines)) + SAMPLE;
        let noted = notes.iter().map(|note| width(note, WORD.0)).fold(0.0, f64::max);
        let beside = ticks_widest.max(widest(&value)).max(marked).max(noted);

        let numbers = widest(map.shown().map(|(_, _, cell)| short(cell.value)).collect::<Vec<_>>().iter());
        let room = SHEET - left - BETWEEN - beside - EDGE;
        let cell_width = (room / map.x.count().max(1) as f64).min(CELL_WIDTH_MAX).max(numbers + 10.0);
        let tallest = rows.iter().map(Vec::len).max().unwrap_or(0) as f64 * WORD.1 + 4.0;
        let cell_height = (ROWS / map.y.count().max(1) as f64).clamp(CELL_HEIGHT.0, CELL_HEIGHT.1).max(tallest);
        let right = left + cell_width * map.x.count() as f64;
        let frame = Frame { left, top, right, bottom: top + cell_height * map.y.count() as f64 };
        let columns: Vec<Vec<String>> = (0..map.x.count()).map(|at| wrapped(&map.x.name(at), WORD.0, cell_width - 4.0)).collect();

        let bar_top = top + WORD.1 * value.len() as f64 + 8.0;
        let below_bar = legend_height(&words, &notes);
        let bar_height = (frame.bottom - bar_top - below_bar).max(BAR.1);
        let bar_left = right + BETWEEN;
        let bar = Frame { left: bar_left, top: bar_top, right: bar_left + BAR.0, bottom: bar_top + bar_height };
        let ticks = colours.ticks(((bar_height / 36.0) as usize).min(8));

        let named = columns.iter().map(Vec::len).max().unwrap_or(0) as f64 * WORD.1;
        let height = (frame.bottom + 8.0 + named + NAME.1 + 4.0).max(bar.bottom + below_bar) + EDGE;
        let width = SHEET.max(bar_left + beside + EDGE);
        Self { map, paper, ink, soft, ground, width, height, frame, colours, bar, ticks, title, columns, rows, value, words, notes }
    }

    /// The corners of a cell: upper left and lower right.
    fn cell(&self, column: usize, row: usize) -> (Place, Place) {
        let (columns, rows) = (self.map.x.count() as f64, self.map.y.count() as f64);
        // Names are read from the top down, and numbers grow upwards.
        let from_top = if matches!(self.map.y.places, Places::Names(_)) { row } else { self.map.y.count() - 1 - row };
        let (across, up) = (self.frame.width() / columns, self.frame.height() / rows);
        let (left, top) = (self.frame.left + across * column as f64, self.frame.top + up * from_top as f64);
        ((left, top), (left + across, top + up))
    }

    /// The colour of a number.
    fn colour(&self, value: f64) -> RGBColor {
        of_scale(self.colours.part(value))
    }

    /// The cells, with their numbers.
    fn draw_cells(&self, canvas: &mut Canvas<'_>) {
        for (column, row) in self.map.places() {
            let (low, high) = self.cell(column, row);
            let cell = self.map.cell(column, row);
            let (ground, colour) =
                cell.map_or((self.ground, self.soft), |cell| (self.colour(cell.value), readable(self.colour(cell.value))));
            canvas.polygon(&corners((low.0 + 0.7, low.1 + 0.7), (high.0 - 0.7, high.1 - 0.7)), ground);
            let number = cell.map_or_else(|| "\u{2013}".to_owned(), |cell| short(cell.value));
            canvas.text(
                &number,
                middle(low, high),
                &Lettering { colour, bold: is_marked(self.map, column, row), ..self.word(HPos::Center) },
            );
        }
    }

    /// The outlines of the cells that stand out.
    fn draw_marks(&self, canvas: &mut Canvas<'_>) {
        for (at, (word, _)) in self.words.iter().enumerate() {
            // Outlines of several words at one cell lie within each other.
            let inset = 2.2 + 4.0 * at as f64;
            for mark in self.map.marks.iter().filter(|mark| mark.word == *word) {
                if mark.column < self.map.x.count() && mark.row < self.map.y.count() {
                    let (low, high) = self.cell(mark.column, mark.row);
                    self.outline(canvas, (low.0 + inset, low.1 + inset), (high.0 - inset, high.1 - inset), at);
                }
            }
        }
    }

    /// The outline of the word at this place in the legend: black on white, so that it is seen on every colour.
    fn outline(&self, canvas: &mut Canvas<'_>, low: Place, high: Place, word: usize) {
        let mut around = corners(low, high).to_vec();
        // A little beyond where it began, so that the last corner is closed too.
        around.extend([low, (low.0 + 2.0, low.1)]);
        canvas.stroke(&around, WHITE, 4.0);
        let everywhere = Frame { left: 0.0, top: 0.0, right: self.width, bottom: self.height };
        marks::line(canvas, &everywhere, &around, OUTLINES[word % OUTLINES.len()], BLACK);
    }

    /// The title, and what stands at the sides.
    fn draw_names(&self, canvas: &mut Canvas<'_>) {
        let Frame { left, top, right, bottom } = self.frame;
        let title = Lettering { size: TITLE.0, bold: true, ..self.word(HPos::Left) };
        lines(canvas, &self.title, (EDGE, EDGE + TITLE.1 * 0.4), TITLE.1, &title);
        for (column, names) in self.columns.iter().enumerate() {
            let (low, high) = self.cell(column, 0);
            lines(canvas, names, (middle(low, high).0, bottom + 6.0 + WORD.1 / 2.0), WORD.1, &self.word(HPos::Center));
        }
        for (row, names) in self.rows.iter().enumerate() {
            let (low, high) = self.cell(0, row);
            let first = middle(low, high).1 - WORD.1 * (names.len() as f64 - 1.0) / 2.0;
            lines(canvas, names, (left - 8.0, first), WORD.1, &self.word(HPos::Right));
        }
        let name = Lettering { size: NAME.0, ..self.word(HPos::Center) };
        let named = self.columns.iter().map(Vec::len).max().unwrap_or(0) as f64 * WORD.1;
        canvas.text(&self.map.x.label, ((left + right) / 2.0, bottom + 10.0 + named + NAME.1 / 2.0), &name);
        canvas.text(&self.map.y.label, (EDGE + NAME.1 / 2.0, (top + bottom) / 2.0), &Lettering { upright: true, ..name });
    }

    /// What the cells show, and the bar of its colours.
    fn draw_bar(&self, canvas: &mut Canvas<'_>) {
        let Frame { left, top, right, bottom } = self.bar;
        let word = self.word(HPos::Left);
        lines(canvas, &self.value, (left, self.frame.top + WORD.1 / 2.0), WORD.1, &word);
        let step = self.bar.height() / f64::from(BAR_STEPS);
        // Each step reaches down to the end and lies over those above it, so that no paper is seen between them.
        for at in (0..BAR_STEPS).rev() {
            let high = (bottom - step * f64::from(at + 1)).max(top);
            canvas.polygon(&corners((left, high), (right, bottom)), of_scale((f64::from(at) + 0.5) / f64::from(BAR_STEPS)));
        }
        for tick in &self.ticks {
            let Some(label) = &tick.label else { continue };
            let y = bottom - self.colours.part(tick.value) * self.bar.height();
            canvas.stroke(&[(right, y), (right + 4.0, y)], self.ink, 1.0);
            canvas.text(label, (right + 8.0, y), &word);
        }
    }

    /// The words of the marks with their outlines, then what the signs mean.
    fn draw_legend(&self, canvas: &mut Canvas<'_>) {
        let (left, mut top) = (self.bar.left, self.bar.bottom + 14.0);
        for (at, (_, words)) in self.words.iter().enumerate() {
            let box_middle = top + WORD.1 / 2.0;
            canvas.polygon(&corners((left, box_middle - 7.0), (left + 20.0, box_middle + 7.0)), of_scale(0.6));
            self.outline(canvas, (left + 2.0, box_middle - 5.0), (left + 18.0, box_middle + 5.0), at);
            lines(canvas, words, (left + SAMPLE, box_middle), WORD.1, &self.word(HPos::Left));
            top += entry_height(words);
        }
        let note = Lettering { colour: self.soft, ..self.word(HPos::Left) };
        for (line, text) in self.notes.iter().enumerate() {
            canvas.text(text, (left, top + WORD.1 * (line as f64 + 0.5)), &note);
        }
    }

    fn word(&self, anchor: HPos) -> Lettering {
        Lettering { size: WORD.0, colour: self.ink, bold: false, anchor, upright: false }
    }

    /// What a reader sees when pointing at a cell.
    fn hints(&self) -> Vec<Hint> {
        let hint = |(column, row)| {
            let (low, high) = self.cell(column, row);
            Hint { low, high, text: hint(self.map, column, row) }
        };
        self.map.places().map(hint).collect()
    }
}

/// Whether a cell stands out.
fn is_marked(map: &HeatMap, column: usize, row: usize) -> bool {
    map.marks.iter().any(|mark| (mark.column, mark.row) == (column, row))
}

/// All that is known of a cell, in lines.
fn hint(map: &HeatMap, column: usize, row: usize) -> String {
    let cell = map.cell(column, row);
    let value = cell.map_or_else(|| "missing".to_owned(), |cell| digits(cell.value));
    let mut said = vec![
        format!("{}: {}", map.x.label, map.x.name(column)),
        format!("{}: {}", map.y.label, map.y.name(row)),
        format!("{}: {value}", map.value.label),
    ];
    if let Some(Cell { interval: Some((low, high)), .. }) = cell {
        said.push(format!("95 % interval: {} to {}", digits(*low), digits(*high)));
    }
    said.extend(map.marks.iter().filter(|mark| (mark.column, mark.row) == (column, row)).map(|mark| mark.word.clone()));
    said.extend(cell.filter(|cell| !cell.note.is_empty()).map(|cell| cell.note.clone()));
    said.join("\n")
}

/// The explanations of the signs that occur in the map.
fn notes(map: &HeatMap, colours: &Span) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if map.places().any(|(column, row)| map.cell(column, row).is_none()) {
        notes.push(MISSING);
    }
    if map.value.scale == Scale::Log && map.shown().any(|(_, _, cell)| cell.value <= 0.0) {
        notes.push("zero or less: lowest colour");
    } else if map.shown().any(|(_, _, cell)| !(-1e-9..=1.0 + 1e-9).contains(&colours.part(cell.value))) {
        notes.push("beyond the scale: its end");
    }
    notes
}

/// The height of the legend below the bar.
fn legend_height(words: &[(&str, Vec<String>)], notes: &[&str]) -> f64 {
    let entries: f64 = words.iter().map(|(_, lines)| entry_height(lines)).sum();
    if words.is_empty() && notes.is_empty() { 0.0 } else { 14.0 + entries + WORD.1 * notes.len() as f64 }
}

fn entry_height(lines: &[String]) -> f64 {
    WORD.1 * lines.len().max(1) as f64 + 6.0
}

/// Lines of text, the first at this place.
fn lines(canvas: &mut Canvas<'_>, lines: &[String], (x, y): Place, height: f64, lettering: &Lettering) {
    for (line, text) in lines.iter().enumerate() {
        canvas.text(text, (x, y + height * line as f64), lettering);
    }
}

fn widest<'t>(words: impl IntoIterator<Item = &'t String>) -> f64 {
    words.into_iter().map(|word| width(word, WORD.0)).fold(0.0, f64::max)
}

fn middle(low: Place, high: Place) -> Place {
    ((low.0 + high.0) / 2.0, (low.1 + high.1) / 2.0)
}

/// The colour at this part of the scale; below and above it that of the nearer end.
fn of_scale(part: f64) -> RGBColor {
    ViridisRGB.get_color(if part.is_nan() { 0.0 } else { part.clamp(0.0, 1.0) })
}

/// Black or white, whichever is read better on this colour.
fn readable(ground: RGBColor) -> RGBColor {
    if contrast(ground, BLACK) >= contrast(ground, WHITE) { BLACK } else { WHITE }
}

/// The contrast of two colours, from 1 to 21 (WCAG 2.2, contrast ratio).
fn contrast(a: RGBColor, b: RGBColor) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// How light a colour is, from 0 to 1 (WCAG 2.2, relative luminance).
fn luminance(RGBColor(red, green, blue): RGBColor) -> f64 {
    let linear = |part: u8| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { libm::pow((part + 0.055) / 1.055, 2.4) }
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

/// A number as a cell has room for: three digits that count, whole numbers below 100 000 as they are, others with a power of ten.
fn short(value: f64) -> String {
    let size = value.abs();
    let text = if size != 0.0 && !(1e-3..1e5).contains(&size) {
        format!("{value:.1e}")
    } else if value.fract() == 0.0 || size >= 999.5 {
        format!("{value:.0}")
    } else {
        // Rounded first: 9.996 is 10.0 and not 10.00.
        let rounded: f64 = format!("{size:.2e}").parse().unwrap_or(size);
        format!("{value:.*}", (2.0 - libm::floor(libm::log10(rounded))).clamp(0.0, 5.0) as usize)
    };
    text.replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests;
