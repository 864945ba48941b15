//! EC Fig. 13: throughput efficiency of SSTP and of SNR under bursts of loss.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: both schemes have ideal control in the paper's picture, and meet the same bad states.
//! Source: EC 5.3.

use super::against_loss::{BAD_STATE_LOSS, efficiency, list, picture, with_run_length};
use super::fig12::BAD_STATE_LOSSES;
use crate::black_box::{Who, bursty};
use crate::curves::{self, Look, Measure, SHADES};
use crate::paired::with_differences;
use crate::standings::{self as standing, Pair};
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Curve, Figure, Line, Marker, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::standing::{Quality, Standing};
use segstream_lab::study::{Study, StudyPoint};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ec/fig13",
    title: "Throughput efficiency of SSTP and SNR under bursts of loss",
    source: "EC 5.3, Figure 13",
    summary: "SSTP repeats packets, SNR whole blocks, here of a segment's length; both have control that costs nothing and is never \
              lost, as the paper assumes. The two are alike where little is lost, since little is repeated, and where a bad state \
              loses everything, since all of it must be repeated either way.\n\nThe second picture has SSTP with everything on and \
              Segstream under the shortest and the longest bad states.",
    parameters: &[
        ("mean bad states", "15, 60, 120, 180 ms (chosen: EC 5.3 names 15 and 180 for Figure 12; four are drawn)"),
        ("mean good state", "1620 ms (chosen, as in Figure 12)"),
        ("SNR's T_in", "5 ms at a round trip of 60 ms (EC 5.3)"),
        ("SNR's block", "a segment, 256 packets (chosen; EC Table 1 sets segment beside block)"),
        ("bandwidth, window", "500 Mbit/s, 36 segments (chosen, as in Figure 11)"),
        ("tolerance", "none"),
    ],
    points,
    figures,
    tables: |points| with_differences(tables(points), points),
    claims: CLAIMS,
    standings,
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// Mean durations of the bad state in milliseconds.
const BAD_STATES_MS: [u32; 4] = [15, 60, 120, 180];

fn name(who: Who, bad_ms: u32) -> String {
    format!("{} {bad_ms}ms", who.name())
}

fn bad_states(who: Who) -> &'static [u32] {
    if matches!(who, Who::SstpIdeal | Who::Snr) { &BAD_STATES_MS } else { &[BAD_STATES_MS[0], BAD_STATES_MS[3]] }
}

fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for who in [Who::SstpIdeal, Who::Snr, Who::SstpFull, Who::Segstream] {
        for bad_ms in bad_states(who) {
            points.extend(BAD_STATE_LOSSES.iter().map(|p| StudyPoint {
                curve: name(who, *bad_ms),
                x: *p,
                scenario: who.over(&bursty(*bad_ms, *p)),
            }));
        }
    }
    points
}

fn figures(points: &Measured) -> Vec<Figure> {
    let paper = [(Who::SstpIdeal, Line::Solid, false), (Who::Snr, Line::None, true)];
    let on_the_path = [(Who::SstpFull, Line::Solid, true), (Who::Segstream, Line::Dashed, true)];
    let of = |cases: &[(Who, Line, bool)]| -> Vec<Curve> {
        cases.iter().flat_map(|(who, line, marked)| drawn(points, *who, *line, *marked)).collect()
    };
    let measure = Measure::ThroughputEfficiency;
    vec![
        picture("ec-fig13", "Throughput efficiency under bursts: SSTP and SNR", BAD_STATE_LOSS, measure, of(&paper)),
        picture("ec-fig13-full", "Throughput efficiency under bursts: everything on the path", BAD_STATE_LOSS, measure, of(&on_the_path)),
    ]
}

/// The curves of `who`: the colour tells the length of the bad state.
fn drawn(points: &Measured, who: Who, line: Line, marked: bool) -> Vec<Curve> {
    let colour = |bad_ms: u32| BAD_STATES_MS.iter().position(|one| *one == bad_ms).map_or(SHADES[0], |at| SHADES[at]);
    let marker = if marked { who.marker() } else { Marker::None };
    let one = |bad_ms: &u32| {
        let look = Look { colour: colour(*bad_ms), marker, line };
        curves::measured(points, &name(who, *bad_ms), &format!("{}, {bad_ms} ms", who.label()), Measure::ThroughputEfficiency, look)
    };
    bad_states(who).iter().map(one).collect()
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let cell = |who, bad_ms, p| efficiency(points, &name(who, bad_ms), p).map_or_else(String::new, |found| format!("{found:.4}"));
    let mut rows = Vec::new();
    for bad_ms in BAD_STATES_MS {
        for p in BAD_STATE_LOSSES {
            let mut row = vec![bad_ms.to_string(), p.to_string()];
            row.extend([Who::SstpIdeal, Who::Snr, Who::SstpFull, Who::Segstream].map(|who| cell(who, bad_ms, p)));
            rows.push(row);
        }
    }
    let columns = ["bad state (ms)", "p_b", "SSTP ideal", "SNR", "SSTP full", "Segstream"].map(str::to_owned).to_vec();
    vec![TextTable { title: "Throughput efficiency".to_owned(), columns, rows }]
}

const CLAIMS: &[Claim] = &[Claim {
    id: "EC-C9",
    text: "SSTP and SNR are alike below p_b = 1e-3; SSTP's advantage then rises to a maximum, shrinks as p_b approaches 1, and grows with \
           the length of the bad state (EC 5.3)",
    check: advantage,
}];

/// Whether one row of advantages over p_b rises from nearly nothing to a maximum within and falls back.
fn rises_and_falls(row: &[f64]) -> bool {
    // "Little difference" is put at a hundredth of throughput efficiency.
    const LITTLE: f64 = 0.01;
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (first, last) = (row[0], row[row.len() - 1]);
    first.abs() <= LITTLE && most > first && last < most && last.abs() <= LITTLE.max(most / 2.0)
}

fn advantage(points: &Measured) -> Option<Finding> {
    let row = |bad_ms: &u32| -> Option<Vec<f64>> {
        let of = |who, p| efficiency(points, &name(who, *bad_ms), p);
        BAD_STATE_LOSSES.iter().map(|p| Some(of(Who::SstpIdeal, *p)? - of(Who::Snr, *p)?)).collect()
    };
    let rows: Vec<Vec<f64>> = BAD_STATES_MS.iter().map(row).collect::<Option<_>>()?;
    let most: Vec<f64> = rows.iter().map(|row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max)).collect();
    let grows = most.windows(2).all(|pair| pair[1] > pair[0]);
    let shaped = rows.iter().filter(|row| rises_and_falls(row)).count();
    let parts = [
        Part::point("rise and fall at most lengths", shaped >= 3),
        Part::also("rise and fall at every length", shaped == 4),
        Part::also("larger with longer bad states", grows),
    ];
    let measured = format!(
        "SSTP less SNR for p_b = 1e-4 to 1, bad states of 180 ms: {}; the largest for 15 / 60 / 120 / 180 ms: {}; rise and fall at \
         {shaped} of 4 lengths",
        list(&rows[3], 3),
        list(&most, 3)
    );
    let why = "A block of SNR that lost one packet is repeated whole: 256 packets for one.";
    Some(Finding::of(parts, measured).because(with_run_length(points, why)))
}

/// The flagship beside SSTP with everything on.
fn standings(points: &Measured) -> Vec<Standing> {
    let pair = |bad_ms: &u32| Pair {
        ours: name(Who::Segstream, *bad_ms),
        theirs: name(Who::SstpFull, *bad_ms),
        curve: format!("bad states of {bad_ms} ms, p_b"),
    };
    let pairs: Vec<Pair> = bad_states(Who::Segstream).iter().map(pair).collect();
    standing::of(points, "SSTP, full", Quality::Throughput, &pairs, standing::efficiency)
}
