//! FC Fig. 17: what granting more than the buffer gains.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: at B = W the two ways are one scenario.
//! Source: FC 4.3.2, Fig. 17.

use super::buffer_sweep::{self, BUFFERS, DECADES, PROBABILITIES, READ_OTHERWISE, SMALL_BUFFERS, Setting, WINDOW};
use crate::curves::Measure;
use crate::paired::with_differences;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Figure, Line, Marker, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::standing::Quality;
use segstream_lab::study::{Study, StudyPoint};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "fc/fig17",
    title: "A window larger than the receiver's buffer",
    source: "FC 4.3.2, Fig. 17",
    summary: "The receiver buffers B segments. Either it grants that many (signs), or it grants 36 and discards what does not fit: hard \
              ACK (lines). Nearly all segments come in order and never wait in the buffer, so granting more pays at every loss \
              probability.\n\n\
              The second picture has control on the path: SSTP with everything on, and Segstream. Both grant 36 and drop what does not \
              fit; Segstream frees the place of every accepted segment at once, whatever comes before it.",
    parameters: &[
        ("round trip, bandwidth", "60 ms, 500 Mbit/s (chosen: not stated; at 100 Mbit/s 0.25 w_a is less than a segment)"),
        ("window", "2.5 w_a = 36 segments (stated)"),
        ("buffers", "0.25, 0.5, 1, 2.5 w_a (stated) = 4, 7, 14, 36 segments (rounded)"),
        (
            "discard",
            "by group: \"segments\" (FC 4.3.1), buffers \"on a segment basis\" (FC 2.5); by packet, and without pre-emption, beside it",
        ),
        ("loss probabilities", "1e-5 to 1e-1 (the ends are named; steps chosen)"),
        ("run length", "10 million packets (stated); shorter in the smaller presets"),
    ],
    points,
    at_whole_length: true,
    figures,
    tables: |points| with_differences(tables(points), points),
    claims: &[
        Claim {
            id: "FC-C4",
            text: "A window of 2.5 w_a gives significantly more throughput than W = B, for every buffer down to 0.25 w_a and every loss \
                   probability (FC 4.3.2).",
            check: larger_window_wins,
        },
        Claim {
            id: "FC-C5",
            text: "With a buffer of 0.25 w_a and p = 1e-5 the large window gives over 70 % more throughput (FC 4.3.2).",
            check: seventy_percent,
        },
    ],
    standings: |points| buffer_sweep::standings(points, Quality::Throughput),
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

fn points() -> Vec<StudyPoint> {
    [buffer_sweep::common(), Setting::Narrow.points(&BUFFERS, &PROBABILITIES), buffer_sweep::otherwise()].concat()
}

fn figures(points: &Measured) -> Vec<Figure> {
    let measure = Measure::ThroughputEfficiency;
    let curves = [
        Setting::Hard.curves(points, &BUFFERS, measure, Marker::None, Line::Solid),
        Setting::Narrow.curves(points, &BUFFERS, measure, Marker::Square, Line::None),
    ];
    let title = "A window of 36 with hard ACK (lines) and W = B (signs), ideal feedback";
    let read: Vec<_> = [Setting::Hard]
        .into_iter()
        .chain(READ_OTHERWISE.into_iter().take(2))
        .zip([Line::Solid, Line::Dotted, Line::Dashed])
        .flat_map(|(setting, line)| setting.curves(points, &SMALL_BUFFERS, measure, Marker::Circle, line))
        .collect();
    let readings = "A window of 36 with hard ACK that discards by group, by packet (dotted), and without pre-emption (dashed)";
    vec![
        buffer_sweep::figure("fc-fig17", title, measure, curves.concat()),
        buffer_sweep::figure("fc-fig17-readings", readings, measure, read),
        buffer_sweep::figure_of_full("fc-fig17-full", points, measure),
    ]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let columns = ["buffer", "p", "W = 36", "W = B", "ratio", "SSTP full", "Segstream"];
    let mut rows = Vec::new();
    for buffer in BUFFERS {
        for p in DECADES {
            let of = |setting: Setting| setting.efficiency(points, buffer, p);
            let text = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
            let ratio = of(Setting::Hard).zip(of(Setting::Narrow)).map(|(wide, narrow)| wide / narrow);
            let mut row = vec![buffer.to_string(), format!("{p:e}")];
            row.extend([of(Setting::Hard), of(Setting::Narrow), ratio, of(Setting::FullHard), of(Setting::Segstream)].map(text));
            rows.push(row);
        }
    }
    let columns = columns.map(str::to_owned).to_vec();
    vec![TextTable { title: "Throughput efficiency with hard ACK".to_owned(), columns, rows }]
}

fn larger_window_wins(points: &Measured) -> Option<Finding> {
    let (mut least, mut at, mut within_error) = (f64::INFINITY, (0, 0.0), 0);
    for buffer in SMALL_BUFFERS {
        for p in PROBABILITIES {
            let wide = Setting::Hard.at(points, buffer, p)?.throughput_efficiency();
            let narrow = Setting::Narrow.at(points, buffer, p)?.throughput_efficiency();
            let error = wide.half_width.unwrap_or(0.0) + narrow.half_width.unwrap_or(0.0);
            within_error += u32::from((wide.mean - narrow.mean).abs() <= error);
            if wide.mean / narrow.mean < least {
                (least, at) = (wide.mean / narrow.mean, (buffer, p));
            }
        }
    }
    let parts = [Part::point("more at every point", least > 1.0), Part::also("by more than the intervals", within_error == 0)];
    let row = |setting: Setting, p: f64| buffer_sweep::over_buffers(|buffer| setting.efficiency(points, buffer, p));
    let mut said = Vec::new();
    for p in [1e-5, 1e-3, 1e-1] {
        let (wide, narrow) = (row(Setting::Hard, p)?, row(Setting::Narrow, p)?);
        said.push(format!("p = {p:e}: {} against {}", buffer_sweep::listed(&wide, 3), buffer_sweep::listed(&narrow, 3)));
    }
    let measured = format!(
        "B = 4 / 7 / 14, W = {WINDOW} against W = B: {}; least ratio {least:.2} (B = {}, p = {:e}); {within_error} of 27 differences \
         within their intervals",
        said.join("; "),
        at.0,
        at.1
    );
    Some(Finding::of(parts, measured))
}

fn seventy_percent(points: &Measured) -> Option<Finding> {
    let wide = Setting::Hard.efficiency(points, 4, 1e-5)?;
    let narrow = Setting::Narrow.efficiency(points, 4, 1e-5)?;
    let ratio = wide / narrow;
    let parts = [
        Part::point("more", ratio > 1.0),
        // "Over 70 %" as a difference: 70 points, within one. As a ratio any reading is far above it.
        Part::also("70 points of efficiency more", (0.69..0.80).contains(&(wide - narrow))),
    ];
    let [packet, waiting, ..] = READ_OTHERWISE.map(|setting| setting.efficiency(points, 4, 1e-5));
    let measured = format!(
        "{wide:.3} against {narrow:.3}: {:.1} points more, {:.0} % more as a ratio; discarding by packet {:.3}, by group without \
         pre-emption {:.3}",
        (wide - narrow) * 100.0,
        (ratio - 1.0) * 100.0,
        packet?,
        waiting?
    );
    Some(Finding::of(parts, measured).because(
        "Read as a difference on the figure's axis, which the group reading gives; as a ratio no reading is near 70 %. Which reading is \
         taken rests on FC 2.5 and 4.3.1, which speak of segments, and not on this claim.",
    ))
}
