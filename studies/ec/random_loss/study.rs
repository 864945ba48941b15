//! EC 5.3, without a figure: SSTP and SNR under random loss.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: largest delays are compared over the same number of segments.
//! Source: EC 5.3 ("Comparison with SNR Scheme").

use super::against_loss::{LOSS, delay_ms_max, delay_ms_mean, efficiency, list, picture, with_run_length};
use super::fig11::{DECADES, PROBABILITIES};
use crate::black_box::{Who, random};
use crate::curves::{self, Look, Measure, SHADES};
use crate::paired::with_differences;
use crate::standings::{self as standing, Pair};
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::closed_forms::{Point, status_request_delay};
use segstream_lab::figure::{Curve, Figure, Line, Marker, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::outcome::Outcome;
use segstream_lab::standing::{Quality, Standing};
use segstream_lab::study::{Study, StudyPoint};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ec/random_loss",
    title: "SSTP and SNR under random loss",
    source: "EC 5.3, the text after Figure 13; no figure",
    summary: "Throughput efficiency, mean delay and largest delay over the loss probability, without tolerated losses. SNR repeats a \
              block of 256 packets for each lost one, so that at p = 1e-2, where nearly every block loses a packet, half of what it \
              sends is repetition.\n\nThe mean delay has the paper's closed form behind it.",
    parameters: &[
        ("bandwidth, round trip, window", "500 Mbit/s, 60 ms, 36 segments (chosen, as in Figure 11)"),
        ("SNR's T_in", "5 ms (EC 5.3)"),
        ("SNR's block", "a segment, 256 packets (chosen)"),
        ("loss probabilities", "1e-5 to 1e-1 (chosen)"),
    ],
    points,
    at_whole_length: true,
    figures,
    tables: |points| with_differences(tables(points), points),
    claims: CLAIMS,
    standings,
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const WHO: [Who; 4] = [Who::SstpIdeal, Who::Snr, Who::SstpFull, Who::Segstream];
const MEASURES: [(Measure, &str, &str); 3] = [
    (Measure::ThroughputEfficiency, "throughput", "Throughput efficiency under random loss"),
    (Measure::DelayMean, "mean", "Mean delay under random loss"),
    (Measure::DelayMax, "max", "Maximum delay under random loss"),
];

fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for who in WHO {
        let probabilities = if matches!(who, Who::SstpIdeal | Who::Snr) { &PROBABILITIES[..] } else { &DECADES[..] };
        points.extend(probabilities.iter().map(|p| StudyPoint { curve: who.name().to_owned(), x: *p, scenario: who.over(&random(*p)) }));
    }
    points
}

fn figures(points: &Measured) -> Vec<Figure> {
    let drawn = |measure: Measure| -> Vec<Curve> {
        let one = |(who, colour): (Who, &'static str)| {
            let line = if who == Who::Segstream { Line::Dashed } else { Line::Solid };
            curves::measured(points, who.name(), &who.label(), measure, Look { colour, marker: who.marker(), line })
        };
        let mut found: Vec<Curve> = WHO.into_iter().zip(SHADES).map(one).collect();
        if measure == Measure::DelayMean {
            let look = Look { colour: SHADES[4], marker: Marker::None, line: Line::Dotted };
            found.push(curves::closed_form("analysis, D_r", look, PROBABILITIES, |p| point().receiver_delay(p) * 1e3));
        }
        found
    };
    MEASURES.iter().map(|(measure, id, title)| picture(&format!("ec-random-loss-{id}"), title, LOSS, *measure, drawn(*measure))).collect()
}

fn point() -> Point {
    Point::of_the_papers(500e6)
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let columns = ["p", "measure", "SSTP ideal", "SNR", "SSTP full", "Segstream", "analysis"].map(str::to_owned).to_vec();
    let mut rows = Vec::new();
    for p in PROBABILITIES {
        for (measure, ..) in MEASURES {
            let mut row = vec![format!("{p:e}"), measure.label().to_owned()];
            row.extend(WHO.map(|who| points.at(who.name(), p).map_or_else(String::new, |found| format!("{:.4}", measure.of(found).0))));
            row.push(if measure == Measure::DelayMean { format!("{:.2}", point().receiver_delay(p) * 1e3) } else { String::new() });
            rows.push(row);
        }
    }
    vec![TextTable { title: "SSTP, SNR and Segstream".to_owned(), columns, rows }]
}

const CLAIMS: &[Claim] = &[
    Claim {
        id: "EC-C10",
        text: "Under random loss SSTP is superior to SNR in throughput efficiency, mean delay and largest delay (EC 5.3)",
        check: superior,
    },
    Claim {
        id: "EC-C11",
        text: "SSTP's delay before a request, 3 t_p, is less than SNR's mean of T_in / 2 = 2.5 ms in all cases (EC 5.3)",
        check: sooner,
    },
    Claim {
        id: "EC-C12",
        text: "The mean delay of a segment at the receiver is D_r (EC 5.2); the analysis is quite accurate (EC 5.3)",
        check: as_the_analysis_says,
    },
    Claim {
        id: "EC-C13",
        text: "The largest delay increases significantly with losses, and this leads to a large variance of the segment delay (EC 7)",
        check: large_variance,
    },
];

fn superior(points: &Measured) -> Option<Finding> {
    let row = |read: fn(&Measured, &str, f64) -> Option<f64>, who: Who| -> Option<Vec<f64>> {
        PROBABILITIES.iter().map(|p| read(points, who.name(), *p)).collect()
    };
    let count =
        |ours: &[f64], theirs: &[f64], better: fn(f64, f64) -> bool| ours.iter().zip(theirs).filter(|(a, b)| better(**a, **b)).count();
    let (sstp, snr) = (row(efficiency, Who::SstpIdeal)?, row(efficiency, Who::Snr)?);
    let (mean, snr_mean) = (row(delay_ms_mean, Who::SstpIdeal)?, row(delay_ms_mean, Who::Snr)?);
    let (max, snr_max) = (row(delay_ms_max, Who::SstpIdeal)?, row(delay_ms_max, Who::Snr)?);
    let lower = |a: f64, b: f64| a <= b;
    let better = [count(&sstp, &snr, |a, b| a >= b), count(&mean, &snr_mean, lower), count(&max, &snr_max, lower)];
    let parts = [
        Part::point("not behind at most points", better.iter().sum::<usize>() >= 18),
        Part::also("in throughput at every p", better[0] == PROBABILITIES.len()),
        Part::also("in mean delay at every p", better[1] == PROBABILITIES.len()),
        Part::also("in largest delay at every p", better[2] == PROBABILITIES.len()),
    ];
    let pair = |ours: &[f64], theirs: &[f64], at: usize, decimals| list(&[ours[at], theirs[at]], decimals);
    let measured = format!(
        "SSTP / SNR at p = 1e-3: {} of throughput, {} ms mean, {} ms largest; at 1e-2: {}, {} ms, {} ms; SSTP is not behind at {}, {} \
         and {} of 9 probabilities",
        pair(&sstp, &snr, 4, 3),
        pair(&mean, &snr_mean, 4, 1),
        pair(&max, &snr_max, 4, 0),
        pair(&sstp, &snr, 6, 3),
        pair(&mean, &snr_mean, 6, 1),
        pair(&max, &snr_max, 6, 0),
        better[0],
        better[1],
        better[2]
    );
    let why = if parts.iter().all(|part| part.holds) { String::new() } else { with_run_length(points, "") };
    Some(Finding::of(parts, measured).because(why))
}

fn sooner(_: &Measured) -> Option<Finding> {
    let status = status_request_delay(0.005);
    let delays = [10e6, 100e6, 500e6].map(|bandwidth| Point::of_the_papers(bandwidth).request_delay());
    let parts = [
        Part::point("at the paper's rate", delays[1..].iter().all(|delay| *delay < status)),
        Part::also("in all cases", delays.iter().all(|delay| *delay < status)),
    ];
    let measured =
        format!("3 t_p is {} ms at 10 / 100 / 500 Mbit/s, T_in / 2 is {:.1} ms", list(&delays.map(|delay| delay * 1e3), 3), status * 1e3);
    Some(Finding::of(parts, measured).because("Arithmetic on packets of 1024 bytes: it holds above 9.8 Mbit/s. No run is needed."))
}

fn as_the_analysis_says(points: &Measured) -> Option<Finding> {
    // "Quite accurate" is put at 5 %, the limit for EC-C3's throughput at small losses too.
    const NEAR: f64 = 0.05;
    let measured: Vec<f64> = PROBABILITIES.iter().map(|p| delay_ms_mean(points, Who::SstpIdeal.name(), *p)).collect::<Option<_>>()?;
    let predicted = PROBABILITIES.map(|p| point().receiver_delay(p) * 1e3);
    let off: Vec<f64> = measured.iter().zip(predicted).map(|(found, predicted)| found / predicted - 1.0).collect();
    let most = |values: &[f64]| values.iter().fold(0.0, |most: f64, off| most.max(off.abs()));
    let small = PROBABILITIES.iter().filter(|p| **p <= 1e-2).count();
    let parts = [
        Part::point("up to p = 1e-2, as the analysis of throughput", most(&off[..small]) <= NEAR),
        Part::also("at every p", most(&off) <= NEAR),
    ];
    let all = format!(
        "p = 1e-5 to 1e-1: {} ms simulated, {} ms by D_r; at most {:.1} % apart up to 1e-2, {:.1} % beyond",
        list(&measured, 1),
        list(&predicted, 1),
        100.0 * most(&off[..small]),
        100.0 * most(&off[small..])
    );
    Some(Finding::of(parts, all))
}

fn large_variance(points: &Measured) -> Option<Finding> {
    // "Large" is put at a standard deviation of a quarter of the mean.
    const LARGE: f64 = 0.25;
    let of = |p: f64| {
        let result = points.at(Who::SstpIdeal.name(), p)?;
        Some((
            result.over_replications(Outcome::delay_ms_deviation).mean,
            result.delay_ms_mean().mean,
            delay_ms_max(points, Who::SstpIdeal.name(), p)?,
        ))
    };
    let rows: Vec<(f64, f64, f64)> = PROBABILITIES.iter().map(|p| of(*p)).collect::<Option<_>>()?;
    let deviations: Vec<f64> = rows.iter().map(|row| row.0).collect();
    let shares: Vec<f64> = rows.iter().map(|(deviation, mean, _)| deviation / mean).collect();
    // From the loss on at which one segment in four repeats something.
    let often = PROBABILITIES.iter().position(|p| *p >= 1e-3)?;
    let largest = rows.windows(2).all(|pair| pair[1].2 >= pair[0].2 - 1.0);
    let parts = [
        Part::point("a large variance at p = 1e-3", shares[often] >= LARGE),
        Part::also("the largest delay grows with every p", largest),
        Part::also("a large variance at every p from 1e-3 on", shares[often..].iter().all(|share| *share >= LARGE)),
    ];
    let told = format!("p = 1e-5 to 1e-1: standard deviation {} ms, which is {} of the mean", list(&deviations, 1), list(&shares, 2));
    Some(Finding::of(parts, told))
}

/// The flagship beside SSTP with everything on, and beside SNR.
fn standings(points: &Measured) -> Vec<Standing> {
    let mut found = Vec::new();
    for (with, who) in [("SSTP, full", Who::SstpFull), ("SNR", Who::Snr)] {
        let pair =
            |what: &str| [Pair { ours: Who::Segstream.name().to_owned(), theirs: who.name().to_owned(), curve: format!("{what}, p") }];
        found.extend(standing::of(points, with, Quality::Throughput, &pair("throughput"), standing::efficiency));
        found.extend(standing::of(points, with, Quality::Delay, &pair("mean delay"), standing::delay_mean));
        found.extend(standing::of(points, with, Quality::Delay, &pair("largest delay"), standing::delay_max));
    }
    found
}
