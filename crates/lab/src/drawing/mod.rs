//! Figures and reports as SVG, HTML and CSV.
//!
//! Called by the studies and by the command line with the values of [`crate::figure`] and [`crate::heat_map`];
//! [`browser`] is called by tests.
//!
//! - [`svg()`]: one figure as a static picture, for documents and for print;
//! - [`heat_map_svg`]: one heat map as a static picture, on white paper or on a dark page;
//! - [`page`]: a whole report as one file with interactive figures, which needs nothing from a network;
//! - [`csv()`], [`heat_map_csv`]: the points of a figure and the cells of a heat map as a table;
//! - [`template`]: what every page needs, the demonstration's too;
//! - [`browser`]: opens a page in a headless browser and says what its scripts did.
//!
//! Invariant: the same value gives the same bytes on every platform, and no text of a figure is read as markup.

pub mod browser;
mod canvas;
mod csv;
mod heat_map;
mod html;
mod legend;
mod marks;
mod notes;
mod span;
mod svg;
pub mod template;

pub use csv::{csv, heat_map_csv};
pub use heat_map::{Paper, heat_map_svg};
pub use html::page;
pub use svg::svg;
