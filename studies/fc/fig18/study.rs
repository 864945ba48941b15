//! FC Fig. 18: hard against soft ACK, throughput.
//!
//! Called through [`super::STUDIES`]. The claims are in `claims.rs` beside this file.
//!
//! Invariant: hard and soft ACK differ in the receiver alone, and meet the same losses.
//! Source: FC 4.3.1 and 4.3.3, Fig. 18.

mod claims;

use super::buffer_sweep::{self, DECADES, READ_OTHERWISE, SMALL_BUFFERS, Setting};
use crate::curves::Measure;
use crate::paired::with_differences;
use segstream_lab::claim::Claim;
use segstream_lab::figure::{Figure, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, StudyPoint};
use segstream_path::LossSpec;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "fc/fig18",
    title: "Hard against soft acknowledgment: throughput",
    source: "FC 4.3.1 and 4.3.3, Fig. 18",
    summary: "The window stays at 36 segments while the receiver buffers B. With hard ACK it takes only what surely fits; with soft ACK it \
              takes what comes and gives up the latest segments when earlier ones need their place.\n\n\
              The paper does not say when a segment given up is asked for again. Only if that waits until the segment is the next to be \
              delivered does soft ACK collapse as the paper found; asked for at once (triangles), soft ACK is near hard ACK.\n\n\
              In further runs one packet is lost and no other: what throughput is left long after tells whether the state heals.",
    parameters: &[
        ("round trip, bandwidth", "60 ms, 500 Mbit/s (chosen: not stated)"),
        ("window", "2.5 w_a = 36 segments (stated)"),
        ("buffers", "0.25, 0.5, 1, 2.5 w_a (stated) = 4, 7, 14, 36 segments (rounded)"),
        ("loss probabilities", "1e-5 to 1e-1 (the ends are named; steps chosen)"),
        ("segment given up", "asked for when it comes to be the next (chosen: not stated); at once beside it"),
        (
            "discard",
            "hard ACK by group: \"segments\" (FC 4.3.1, 2.5); soft ACK by packet, as its algorithm is written; the other ways beside them",
        ),
        ("one loss", "the 10,000th data packet and no other (chosen)"),
        ("run length", "10 million packets (stated); shorter in the smaller presets"),
    ],
    points,
    at_whole_length: true,
    figures,
    tables: |points| with_differences(tables(points), points),
    claims: &[
        Claim {
            id: "FC-C6",
            text: "With a buffer as large as the window hard and soft ACK perform exactly the same (FC 4.3.3).",
            check: claims::same_at_full_buffer,
        },
        Claim {
            id: "FC-C7",
            text: "As the buffer shrinks soft ACK loses dramatically, most when the buffer is reduced to 0.5 w_a (FC 4.3.3).",
            check: claims::collapse,
        },
        Claim {
            id: "FC-C8",
            text: "The difference stays significant until p nears 1e-1, where hard ACK does as badly as soft ACK (FC 4.3.3).",
            check: claims::difference,
        },
        Claim {
            id: "FC-C11",
            text: "One loss can bring soft ACK into a state of saving and discarding that lasts without further loss (FC 4.3.3).",
            check: claims::lasting_state,
        },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// What is run with one loss.
const ONE_LOSS: [Setting; 12] = [
    Setting::Hard,
    Setting::SoftLazy,
    Setting::SoftEager,
    READ_OTHERWISE[0],
    READ_OTHERWISE[1],
    READ_OTHERWISE[2],
    READ_OTHERWISE[3],
    READ_OTHERWISE[4],
    READ_OTHERWISE[5],
    Setting::FullHard,
    Setting::FullSoftLazy,
    Setting::Segstream,
];

/// The packet that is lost then: late enough for the window to be full, within the first segments of every preset.
const LOST_PACKET: u64 = 10_000;

fn one_loss_curve(setting: Setting) -> String {
    format!("one loss, {}", setting.label())
}

fn points() -> Vec<StudyPoint> {
    let loss = LossSpec::List(vec![LOST_PACKET]);
    let one_loss = |setting: &Setting, buffer: &u32| StudyPoint {
        curve: one_loss_curve(*setting),
        x: f64::from(*buffer),
        // The return path loses nothing: one packet is lost in all.
        scenario: setting.scenario(*buffer, &loss).with(|it| it.black_box.loss_back = LossSpec::None),
    };
    let mut points = buffer_sweep::hard_and_soft();
    points.extend(ONE_LOSS.iter().flat_map(|setting| SMALL_BUFFERS.iter().map(move |buffer| one_loss(setting, buffer))));
    points
}

fn figures(points: &Measured) -> Vec<Figure> {
    let measure = Measure::ThroughputEfficiency;
    vec![
        buffer_sweep::figure_of_soft("fc-fig18", points, measure),
        buffer_sweep::figure_of_readings("fc-fig18-readings", points, measure),
        buffer_sweep::figure_of_full("fc-fig18-full", points, measure),
    ]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let text = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
    let settings = [Setting::Hard, Setting::SoftLazy, Setting::SoftEager, Setting::FullHard, Setting::Segstream];
    let mut rows = Vec::new();
    for buffer in SMALL_BUFFERS {
        for p in DECADES {
            let mut row = vec![buffer.to_string(), format!("{p:e}")];
            row.extend(settings.map(|setting| text(setting.efficiency(points, buffer, p))));
            rows.push(row);
        }
    }
    let head = |first: &[&str], settings: &[Setting]| -> Vec<String> {
        first.iter().copied().chain(settings.iter().map(|setting| setting.label())).map(str::to_owned).collect()
    };
    let lasting = ONE_LOSS.iter().map(|setting| {
        let mut row = vec![setting.label().to_owned()];
        row.extend(SMALL_BUFFERS.map(|buffer| text(claims::efficiency_long_after(points, *setting, buffer))));
        row
    });
    vec![
        TextTable { title: "Throughput efficiency, window 36".to_owned(), columns: head(&["buffer", "p"], &settings), rows },
        TextTable {
            title: "Throughput efficiency of the last quarter of a run in which one packet was lost near its beginning".to_owned(),
            columns: ["", "B = 4", "B = 7", "B = 14"].map(str::to_owned).to_vec(),
            rows: lasting.collect(),
        },
        buffer_sweep::table_of_readings("Throughput efficiency by reading, window 36", |setting, buffer, p| {
            setting.efficiency(points, buffer, p).map(|value| format!("{value:.3}"))
        }),
    ]
}
