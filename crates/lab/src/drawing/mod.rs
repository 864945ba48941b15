//! Figures and reports as SVG, HTML and CSV.
//!
//! Called by the studies and by the command line with the values of [`crate::figure`]; [`browser`] is called by tests.
//!
//! - [`svg()`]: one figure as a static picture, for documents and for print;
//! - [`page`]: a whole report as one file with interactive figures, which needs nothing from a network;
//! - [`csv()`]: the points of a figure as a table;
//! - [`browser`]: opens a page in a headless browser and says what its scripts did.
//!
//! Invariant: the same value gives the same bytes on every platform, and no text of a figure is read as markup.

pub mod browser;
mod canvas;
mod csv;
mod html;
mod legend;
mod marks;
mod notes;
mod span;
mod svg;

pub use csv::csv;
pub use html::page;
pub use svg::svg;

/// A text that stands for itself in HTML and XML, in an attribute too. Characters XML forbids are left out.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars().filter(|&letter| is_printed(letter)) {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// Whether XML 1.0 allows the character.
fn is_printed(letter: char) -> bool {
    matches!(letter, '\t' | '\n') || (letter >= ' ' && !matches!(letter, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'))
}
