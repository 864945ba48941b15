//! AA Fig. 5: the two intervals at a loss rate of 1e-4.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the claims on Figs. 5 and 6 are judged in [`super::fig6`], which has the points of both.
//! Source: AA 3.2.2, Fig. 5.

use super::end_system::WINDOW;
use super::intervals::{self, PARAMETERS, SHORTENED};
use segstream_lab::study::{Study, StudyPoint};

/// The loss rate: bit errors of 1e-8.
pub(super) const LOSS: f64 = 1e-4;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "aa/fig5",
    title: "The two intervals at a loss rate of 1e-4",
    source: "AA 3.2.2, Figure 5",
    summary: "Throughput efficiency of adaptive acknowledgment over T_normal, for seven T_error. Each acknowledgment takes time of both \
              processors, so fewer of them are better, until the window is full before the next one comes: 400 packets of 121.2 us take \
              48.5 ms. T_error counts for what little time something is missing.\n\n\
              Segstream has no such interval; its receiver reports when the window needs it.",
    parameters: PARAMETERS,
    points,
    shortened: SHORTENED,
    figures: |points| vec![intervals::figure(points, "aa-fig5", LOSS)],
    heat_maps: |points| intervals::heat_map(points, "aa-fig5-map", LOSS),
    tables: |points| intervals::table(points, LOSS),
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// The grid, and the flagship.
pub(super) fn points() -> Vec<StudyPoint> {
    let mut points = intervals::pairs(WINDOW, LOSS);
    points.push(intervals::flagship(WINDOW, LOSS));
    points
}
