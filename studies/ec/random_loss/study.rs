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
use segstream_lab::claim::{Claim, Finding, Judgement};
use segstream_lab::closed_forms::{Point, status_request_delay};
use segstream_lab::figure::{Curve, Figure, Line, Marker, TextTable};
use segstream_lab::measured::Measured;
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
    figures,
    tables: |points| with_differences(tables(points), points),
    claims: CLAIMS,
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
    let judgement = match better.iter().sum::<usize>() {
        27 => Judgement::Agrees,
        18.. => Judgement::ShapeOnly,
        _ => Judgement::DoesNotAgree,
    };
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
    let why = if judgement == Judgement::Agrees { String::new() } else { with_run_length(points, "") };
    Some(Finding::new(judgement, measured).because(why))
}

fn sooner(_: &Measured) -> Option<Finding> {
    let status = status_request_delay(0.005);
    let delays = [10e6, 100e6, 500e6].map(|bandwidth| Point::of_the_papers(bandwidth).request_delay());
    let judgement = if delays.iter().all(|delay| *delay < status) { Judgement::Agrees } else { Judgement::DoesNotAgree };
    let measured =
        format!("3 t_p is {} ms at 10 / 100 / 500 Mbit/s, T_in / 2 is {:.1} ms", list(&delays.map(|delay| delay * 1e3), 3), status * 1e3);
    Some(Finding::new(judgement, measured).because("Arithmetic on packets of 1024 bytes: it holds above 9.8 Mbit/s. No run is needed."))
}
