//! A receiver that serves fewer packets a burst than come in one (FC 3.3: bursts match how segments are produced and consumed).
//!
//! Called by [`super::STUDY`].
//!
//! Invariant: nothing is lost on the path, and the user works for L / (m F) on each segment, so that it serves m packets a burst.

use super::{PER_SECOND, SEGMENT, TWO, figure, greedy, listed};
use crate::black_box::Who;
use crate::curves::{Look, SHADES, closed_form, valued};
use segstream_base::{Duration, Instant};
use segstream_blocks::user::Slowdown;
use segstream_lab::claim::{Finding, Part};
use segstream_lab::figure::{Curve, Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::outcome::Outcome;
use segstream_lab::point::PointResult;
use segstream_lab::statistics::Estimate;
use segstream_lab::study::StudyPoint;

/// m, packets of a burst that are served.
const SERVED: [u32; 5] = [64, 128, 192, 240, 256];
/// Segments of the receiver's buffer; the window is 36 with either.
const BUFFERS: [u32; 2] = [36, 7];
/// F m / L holds when it is this near.
const NEAR: f64 = 0.01;

fn name(who: Who, buffer: u32) -> String {
    format!("{} m b{buffer}", who.name())
}

/// The user, who serves `packets` a burst.
fn serves(packets: u32) -> Slowdown {
    let takes = 1e9 * f64::from(SEGMENT) / (f64::from(packets) * f64::from(PER_SECOND));
    Slowdown { from: Instant::ZERO, until: Instant::FAR_FUTURE, takes: Duration::from_nanos(takes.round() as u64) }
}

pub(super) fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for who in TWO {
        for buffer in BUFFERS {
            points.extend(SERVED.map(|packets| {
                let scenario = greedy(who, PER_SECOND).with(|it| {
                    it.workload.slowdown = Some(serves(packets));
                    it.workload.buffer = (buffer < it.workload.window).then_some(buffer);
                });
                StudyPoint { curve: name(who, buffer), x: f64::from(packets), scenario }
            }));
        }
    }
    points
}

/// Segments a second over F, in the second half of a run. Why not all of it: the first window comes at once, however slow the user is.
fn over_f(result: &PointResult) -> Estimate {
    let rate = |outcome: &Outcome| {
        let half = &outcome.batches[outcome.batches.len() / 2..];
        let (segments, nanos) = half.iter().fold((0, 0), |(segments, nanos), it| (segments + it.segments, nanos + it.span_ns));
        segments as f64 * 1e9 / (nanos as f64 * f64::from(PER_SECOND))
    };
    result.over_replications(rate)
}

/// Packets sent for each that was accepted.
fn sent_per_packet(result: &PointResult) -> Estimate {
    result.over_replications(|outcome| outcome.packets_sent as f64 / outcome.packets_accepted as f64)
}

fn curves(points: &Measured, value: fn(&PointResult) -> Estimate) -> Vec<Curve> {
    let curve = |who: Who, buffer: u32| {
        let look = Look {
            colour: if who == Who::Segstream { SHADES[1] } else { SHADES[2] },
            marker: who.marker(),
            line: if buffer == BUFFERS[0] { Line::Solid } else { Line::Dashed },
        };
        let label = format!("{}, buffer {buffer}", who.label());
        valued(points, &name(who, buffer), &label, look, |result| (value(result).mean, value(result).interval()))
    };
    TWO.iter().flat_map(|who| BUFFERS.map(|buffer| curve(*who, buffer))).collect()
}

pub(super) fn figures(points: &Measured) -> Vec<Figure> {
    let form = Look { colour: SHADES[0], marker: Marker::None, line: Line::Dotted };
    let form = closed_form("closed form, m / L", form, SERVED.map(f64::from), |served| served / f64::from(SEGMENT));
    let x = ("m (packets served a burst)", Scale::Linear);
    let rates = [curves(points, over_f), vec![form]].concat();
    vec![
        figure("served", "A receiver that serves m packets of each burst of 256", x, "segments a second / F", rates),
        figure("served-sent", "Packets sent for each accepted", x, "packets sent for each accepted", curves(points, sent_per_packet)),
    ]
}

pub(super) fn tables(points: &Measured) -> Vec<TextTable> {
    let text = |who: Who, buffer: u32, served: u32| {
        let result = points.at(&name(who, buffer), f64::from(served));
        result.map_or_else(String::new, |it| format!("{:.3}, {:.2}", over_f(it).mean, sent_per_packet(it).mean))
    };
    let each: Vec<(Who, u32)> = TWO.iter().flat_map(|who| BUFFERS.map(|buffer| (*who, buffer))).collect();
    let row = |served: u32| {
        let form = format!("{:.3}", f64::from(served) / f64::from(SEGMENT));
        let values = each.iter().map(|(who, buffer)| text(*who, *buffer, served)).collect();
        [vec![served.to_string(), form], values].concat()
    };
    let named = each.iter().map(|(who, buffer)| format!("{}, buffer {buffer}", who.label())).collect();
    vec![TextTable {
        title: "A receiver that serves m packets a burst: segments a second over F, and packets sent for each accepted".to_owned(),
        columns: [vec!["m".to_owned(), "m / L".to_owned()], named].concat(),
        rows: SERVED.map(row).to_vec(),
    }]
}

/// A row over m.
fn row(points: &Measured, who: Who, buffer: u32, value: fn(&PointResult) -> Estimate) -> Option<Vec<f64>> {
    SERVED.iter().map(|served| Some(value(points.at(&name(who, buffer), f64::from(*served))?).mean)).collect()
}

pub(super) fn gets_what_it_serves(points: &Measured) -> Option<Finding> {
    let follows =
        |row: &[f64]| row.iter().zip(SERVED).all(|(rate, served)| (rate * f64::from(SEGMENT) / f64::from(served) - 1.0).abs() <= NEAR);
    let (mut of_window, mut in_vain, mut of_less, mut told) = (true, false, true, Vec::new());
    for who in TWO {
        for buffer in BUFFERS {
            let (rates, sent) = (row(points, who, buffer, over_f)?, row(points, who, buffer, sent_per_packet)?);
            if buffer == BUFFERS[0] {
                of_window &= follows(&rates);
                in_vain |= sent.iter().any(|sent| *sent > 1.0);
            } else {
                of_less &= follows(&rates);
            }
            told.push(format!(
                "{}, buffer {buffer}: {} of F, {} packets sent for each accepted",
                who.label(),
                listed(&rates, 3),
                listed(&sent, 2)
            ));
        }
    }
    let parts = [
        Part::point("F m / L with a buffer of the window", of_window),
        Part::also("and none is sent in vain", !in_vain),
        Part::also("with a smaller buffer too", of_less),
    ];
    Some(Finding::of(parts, format!("m = 64 / 128 / 192 / 240 / 256 of L = 256: {}", told.join("; "))))
}
