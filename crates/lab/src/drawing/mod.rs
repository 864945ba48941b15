//! Figures and reports as SVG, HTML and CSV.
//!
//! Called by the studies and by the command line with the values of [`crate::figure`]; [`browser`] is called by tests.
//!
//! - [`svg()`]: one figure as a static picture, for documents and for print;
//! - [`page`]: a whole report as one file with interactive figures, which needs nothing from a network;
//! - [`csv()`]: the points of a figure as a table;
//! - [`template`]: what every page needs, the demonstration's too;
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
pub mod template;

pub use csv::csv;
pub use html::page;
pub use svg::svg;
