//! What FC 3.3 and 3.4 say of bursts and of the window above them, judged.
//!
//! Called through [`super::STUDY`].
//!
//! Invariant: the tolerances stand here as numbers and were written down before the first run.

use super::{ALL, Length, PER_SECOND, PROBABILITIES, TWO, WINDOWS, acknowledgment_window, delay_ms_median, listed, over_f, over_window};
use crate::black_box::Who;
use segstream_lab::claim::{Finding, Part};
use segstream_lab::measured::Measured;

/// F is kept when this much of it arrives, and a closed form holds when it is this near.
const NEAR: f64 = 0.005;

fn row(points: &Measured, who: Who, length: Length) -> Option<Vec<f64>> {
    PROBABILITIES.iter().map(|p| Some(over_f(points.at(&length.curve(who), *p)?).mean)).collect()
}

fn rows(points: &Measured, length: Length) -> Option<Vec<(Who, Vec<f64>)>> {
    ALL.into_iter().map(|who| Some((who, row(points, who, length)?))).collect()
}

fn in_words(rows: &[(Who, Vec<f64>)]) -> String {
    let parts: Vec<String> = rows.iter().map(|(who, row)| format!("{}: {}", who.label(), listed(row, 4))).collect();
    format!("at p = 1e-4 / 1e-3 / 1e-2 / 3e-2 / 1e-1, segments a second over F: {}", parts.join("; "))
}

pub(super) fn room_for_repeats_keeps_f(points: &Measured) -> Option<Finding> {
    let rows = rows(points, Length::SegmentAndRepeats)?;
    let keeps = |row: &[f64]| row.iter().filter(|value| **value >= 1.0 - NEAR).count();
    let kept: usize = rows.iter().map(|(_, row)| keeps(row)).sum();
    // The paper speaks of SSTP.
    let of_sstp = rows.iter().filter(|(who, _)| who.scheme() == "sstp").all(|(_, row)| keeps(row) == row.len());
    let parts = [Part::point("somewhere", kept > 0), Part::also("SSTP at every loss probability", of_sstp)];
    Some(Finding::of(parts, in_words(&rows)))
}

pub(super) fn without_room_repeats_cost_segments(points: &Measured) -> Option<Finding> {
    let rows = rows(points, Length::Segment)?;
    let off =
        |row: &[f64]| row.iter().zip(PROBABILITIES).map(|(value, p)| (value - Length::Segment.predicted(p)).abs()).fold(0.0, f64::max);
    let worst = rows.iter().map(|(_, row)| off(row)).fold(0.0, f64::max);
    let falls = rows.iter().all(|(_, row)| row.is_sorted_by(|a, b| a >= b) && row.last().is_some_and(|last| *last < 1.0 - NEAR));
    let parts = [Part::also("as the closed form has it", worst <= NEAR), Part::also("less at each step", falls)];
    Some(Finding::of(parts, format!("{}; furthest from 1 - p: {worst:.4}", in_words(&rows))))
}

pub(super) fn delivered_in_one_burst(points: &Measured) -> Option<Finding> {
    // Where a segment expects more than two repetitions: below, most segments repeat nothing, whatever L is.
    let probabilities = [1e-2, 3e-2, 1e-1];
    let median = |length: Length| -> Option<Vec<f64>> {
        probabilities.iter().map(|p| Some(delay_ms_median(points.at(&length.curve(Who::SstpIdeal), *p)?).mean)).collect()
    };
    let (alone, with_room) = (median(Length::Segment)?, median(Length::SegmentAndRepeats)?);
    let period = 1e3 / f64::from(PER_SECOND);
    // A segment of which something is lost waits a round trip for it; one that is spread over two bursts waits a period more.
    let gained: Vec<f64> = alone.iter().zip(&with_room).map(|(alone, room)| alone - room).collect();
    let parts = [
        Part::point("sooner", gained.iter().all(|gain| *gain > 0.0)),
        Part::also("by half a period", gained.iter().all(|gain| *gain >= period / 2.0)),
    ];
    Some(Finding::of(
        parts,
        format!(
            "SSTP with ideal feedback, delay of half of the segments at p = 1e-2 / 3e-2 / 1e-1: {} ms with L = s + X, {} ms with L = s; \
             a period is {period} ms",
            listed(&with_room, 1),
            listed(&alone, 1)
        ),
    ))
}

pub(super) fn least_window(points: &Measured) -> Option<Finding> {
    let row = |who: Who| -> Option<Vec<f64>> {
        WINDOWS.iter().map(|window| Some(over_f(points.at(&over_window(who), f64::from(*window))?).mean)).collect()
    };
    let least = 1.0 + acknowledgment_window();
    let mut told = Vec::new();
    let (mut kept, mut idle) = (true, true);
    for who in TWO {
        let row = row(who)?;
        for (window, value) in WINDOWS.iter().zip(&row) {
            let keeps = *value >= 1.0 - NEAR;
            if f64::from(*window) >= least.floor() { kept &= keeps } else { idle &= !keeps }
        }
        told.push(format!("{}: {}", who.label(), listed(&row, 3)));
    }
    let parts = [Part::also("1 + w_a keeps F", kept), Part::also("a smaller one does not", idle)];
    Some(Finding::of(
        parts,
        format!("1 + w_a = {least:.2} segments; with windows of 3 / 4 / 5 / 6 / 7 / 8 / 10, segments a second over F: {}", told.join("; ")),
    ))
}
