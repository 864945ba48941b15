//! Every figure and table of the papers, one folder each: `studies/<paper>/<figure>/study.rs`.
//!
//! Called by the command line. A study is a value: points to run, pictures to draw, claims to judge; the
//! laboratory runs all of them together.
//!
//! Invariant: the identifier of a study is its folder.

pub mod black_box;
pub mod curves;
mod ec;
mod fc;
pub mod paired;
pub mod processing_cost;
pub mod window_sweep;

use segstream_lab::study::Study;

/// All studies, in the order of the report.
pub fn all() -> Vec<&'static Study> {
    [ec::STUDIES, fc::STUDIES].concat()
}

/// The study with this identifier.
pub fn find(id: &str) -> Option<&'static Study> {
    all().into_iter().find(|study| study.id == id)
}
