//! A sheet to draw on: strokes, areas and letters in tenths of a pixel, as SVG.
//!
//! Called by `svg`, `heat_map` and `marks`. It stands on the SVG backend of `plotters`, whose coordinates are whole numbers: the sheet
//! is drawn ten times as large and shown at its size.
//!
//! Invariant: drawing into a string cannot fail, so no operation here has an error.

pub(super) use plotters::prelude::RGBColor;
use plotters::prelude::{DrawingBackend, IntoTextStyle as _, SVGBackend, ShapeStyle, TextStyle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, FontTransform};
use std::fmt::Debug;

/// Fine steps of a pixel.
const STEPS: f64 = 10.0;
/// The letters: the first of these the reader's machine has.
const LETTERS: &str = "Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif";
/// What the backend divides the size of letters by.
const BACKEND_DIVISOR: f64 = 1.24;

/// A place on the sheet in pixels from its upper left corner.
pub(super) type Place = (f64, f64);

/// How a text stands.
#[derive(Clone, Copy)]
pub(super) struct Lettering {
    /// The height of the letters in pixels.
    pub size: f64,
    pub colour: RGBColor,
    pub bold: bool,
    /// Which part of the text is at its place; up and down it is always the middle.
    pub anchor: HPos,
    /// Read from below.
    pub upright: bool,
}

/// The sheet.
pub(super) struct Canvas<'a> {
    backend: SVGBackend<'a>,
}

/// Draws a sheet of this size in pixels: `draw` fills it, and the SVG comes back.
pub(super) fn drawn(width: u32, height: u32, title: &str, draw: impl FnOnce(&mut Canvas<'_>)) -> String {
    let fine = |pixels: u32| pixels * STEPS as u32;
    let mut text = String::new();
    let mut canvas = Canvas { backend: SVGBackend::with_string(&mut text, (fine(width), fine(height))) };
    canvas.polygon(&corners((0.0, 0.0), (f64::from(width), f64::from(height))), WHITE);
    draw(&mut canvas);
    cannot_fail(&canvas.backend.present());
    drop(canvas);
    // The sheet is shown at its size, and says what it is to those who cannot see it.
    let large = format!("width=\"{}\" height=\"{}\"", fine(width), fine(height));
    let shown = format!("width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\"", super::template::escaped(title));
    text.replacen(&large, &shown, 1)
}

/// What a reader sees when pointing at an area of the sheet.
pub(super) struct Hint {
    /// The upper left corner of the area.
    pub low: Place,
    /// Its lower right corner.
    pub high: Place,
    pub text: String,
}

/// The drawn sheet with areas that say more when pointed at. They lie over everything, and are not seen.
pub(super) fn with_hints(sheet: &str, hints: &[Hint]) -> String {
    let area = |hint: &Hint| {
        let ((left, top), (right, bottom)) = (fine(hint.low), fine(hint.high));
        let (width, height, text) = (right - left, bottom - top, super::template::escaped(&hint.text));
        format!(
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"none\" pointer-events=\"all\"><title>{text}</title></rect>\n"
        )
    };
    let areas: String = hints.iter().map(area).collect();
    let end = sheet.rfind("</svg>").unwrap_or(sheet.len());
    format!("{}{areas}{}", &sheet[..end], &sheet[end..])
}

/// The paper.
pub(super) const WHITE: RGBColor = RGBColor(255, 255, 255);

impl Canvas<'_> {
    /// A stroke through these places.
    pub(super) fn stroke(&mut self, places: &[Place], colour: RGBColor, width: f64) {
        if places.len() > 1 {
            cannot_fail(&self.backend.draw_path(places.iter().copied().map(fine), &ink(colour, width)));
        }
    }

    /// A filled area with these corners.
    pub(super) fn polygon(&mut self, corners: &[Place], colour: RGBColor) {
        cannot_fail(&self.backend.fill_polygon(corners.iter().copied().map(fine), &ink(colour, 0.0)));
    }

    /// A filled disc.
    pub(super) fn disc(&mut self, centre: Place, radius: f64, colour: RGBColor) {
        cannot_fail(&self.backend.draw_circle(fine(centre), steps(radius) as u32, &ink(colour, 0.0), true));
    }

    /// A circle.
    pub(super) fn ring(&mut self, centre: Place, radius: f64, colour: RGBColor, width: f64) {
        cannot_fail(&self.backend.draw_circle(fine(centre), steps(radius) as u32, &ink(colour, width), false));
    }

    /// A line of text.
    pub(super) fn text(&mut self, text: &str, at: Place, lettering: &Lettering) {
        let font = if lettering.bold { FontStyle::Bold } else { FontStyle::Normal };
        let turn = if lettering.upright { FontTransform::Rotate270 } else { FontTransform::None };
        let size = lettering.size * STEPS * BACKEND_DIVISOR;
        let style: TextStyle<'_> = (LETTERS, size, font, &lettering.colour).into_text_style(&self.backend.get_size());
        let style = style.transform(turn).pos(Pos::new(lettering.anchor, VPos::Center));
        let printed: String = text.chars().filter(|&letter| super::template::is_printed(letter)).collect();
        cannot_fail(&self.backend.draw_text(&printed, &style, fine(at)));
    }
}

/// The corners of a rectangle.
pub(super) fn corners((left, top): Place, (right, bottom): Place) -> [Place; 4] {
    [(left, top), (right, top), (right, bottom), (left, bottom)]
}

fn fine((x, y): Place) -> (i32, i32) {
    (steps(x), steps(y))
}

fn steps(pixels: f64) -> i32 {
    libm::round(pixels * STEPS) as i32
}

fn ink(colour: RGBColor, width: f64) -> ShapeStyle {
    ShapeStyle { color: colour.into(), filled: false, stroke_width: steps(width) as u32 }
}

fn cannot_fail<E: Debug>(result: &Result<(), E>) {
    debug_assert!(result.is_ok(), "drawing into a string failed: {result:?}");
}

/// The colour called `#rrggbb`, dark grey for anything else.
pub(super) fn colour(name: &str) -> RGBColor {
    let digits = name.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let Some(value) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) else { return RGBColor(0x44, 0x44, 0x44) };
    let [_, red, green, blue] = value.to_be_bytes();
    RGBColor(red, green, blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_six_digits_or_grey() {
        assert_eq!(colour("#0072b2"), RGBColor(0, 0x72, 0xb2));
        for wrong in ["", "#fff", "#+072b2", "red", "#00é0b"] {
            assert_eq!(colour(wrong), RGBColor(0x44, 0x44, 0x44), "{wrong}");
        }
    }

    #[test]
    fn the_sheet_is_shown_at_its_size_and_names_itself() {
        let sheet = drawn(80, 50, "a < \"b\"", |canvas| canvas.disc((1.25, 2.0), 3.0, WHITE));
        assert!(
            sheet.starts_with("<svg width=\"80\" height=\"50\" role=\"img\" aria-label=\"a &lt; &quot;b&quot;\" viewBox=\"0 0 800 500\"")
        );
        assert!(sheet.contains("cx=\"13\"") && sheet.trim_end().ends_with("</svg>"));
    }
}
