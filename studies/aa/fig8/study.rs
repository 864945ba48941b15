//! AA Fig. 8: throughput over the window, at the intervals that were found the best.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: all curves have T_normal 40 ms and T_error 5 ms; the flagship has no intervals.
//! Source: AA 3.2.2, Fig. 8.

use super::efficiency::{self, LABEL};
use super::end_system::{BEST_PAIR, Who};
use super::intervals::SHORTENED;
use super::rearming::{self, OTHERS};
use crate::black_box::random;
use crate::curves::{Look, SHADES};
use crate::standings::{self as standing, Pair};
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::standing::{Quality, Standing};
use segstream_lab::study::{Study, StudyPoint};
use segstream_schemes::adaptive_ack::Rearming;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "aa/fig8",
    title: "Throughput over the window",
    source: "AA 3.2.2, Figure 8",
    summary: "Throughput efficiency at T_normal 40 ms and T_error 5 ms over the window, at four loss rates. A window of fewer packets than \
              40 ms take stands full until the next report, so few losses are worse than many: what is lost brings the next report 5 ms \
              later instead of 40.\n\n\
              Segstream's receiver reports as often as the window needs, so that it is as fast with a window of 50 as with one of 600.",
    parameters: &[
        ("windows", "50 to 600 packets (chosen)"),
        ("loss rates", "1e-4 to 1e-1 (1e-2 stated, the others chosen)"),
        ("T_normal, T_error", "40 ms, 5 ms (stated)"),
        ("loss", "each data packet alone, acknowledgments not at all (chosen)"),
        rearming::PARAMETER,
        ("run length", "a tenth of the preset's packets, between the first eighth and the last; AA's 1000 / p where that is less"),
    ],
    points,
    shortened: SHORTENED,
    figures,
    tables,
    claims: &[Claim {
        id: "AA-C4",
        text: "With large windows the throughput falls as the loss rate grows; with small ones a loss rate of 1e-2 gives more than lower \
               rates do (AA 3.2.2, Figure 8)",
        check: more_with_losses,
    }],
    standings,
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const WINDOWS: [u32; 7] = [50, 100, 200, 300, 400, 500, 600];
const LOSSES: [f64; 4] = [1e-4, 1e-3, 1e-2, 1e-1];
const WHO: [Who; 2] = [Who::AdaptiveAck(BEST_PAIR.0, BEST_PAIR.1), Who::Segstream];

fn name(who: Who, p: f64) -> String {
    match who {
        Who::Segstream => format!("segstream p {p:e}"),
        _ => format!("adaptive-ack p {p:e}"),
    }
}

fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for who in WHO {
        for p in LOSSES {
            let at = |window: u32| StudyPoint { curve: name(who, p), x: f64::from(window), scenario: who.over(window, &random(p)) };
            points.extend(WINDOWS.map(at));
        }
    }
    for reading in OTHERS {
        for p in LOSSES {
            points.extend(READ_AT.map(|window| StudyPoint {
                curve: read_so(reading, p),
                x: f64::from(window),
                scenario: rearming::read(WHO[0].over(window, &random(p)), BEST_PAIR, reading),
            }));
        }
    }
    points
}

/// The windows at which other readings of when the timer is set anew are tried: a small one and a large one.
const READ_AT: [u32; 2] = [50, 400];

fn read_so(reading: Rearming, p: f64) -> String {
    format!("timer set anew: {reading}, p {p:e}")
}

fn figures(points: &Measured) -> Vec<Figure> {
    const SIGNS: [Marker; 4] = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond];
    const COLOURS: [&str; 4] = [SHADES[0], SHADES[2], SHADES[3], SHADES[4]];
    let mut curves = Vec::new();
    for who in WHO {
        for (at, p) in LOSSES.into_iter().enumerate() {
            let (label, look) = match who {
                Who::Segstream => (format!("Segstream, p {p:e}"), Look { marker: SIGNS[at], ..who.look(Line::Dashed) }),
                _ => (format!("Adaptive ack., p {p:e}"), Look { colour: COLOURS[at], marker: SIGNS[at], line: Line::Solid }),
            };
            curves.push(efficiency::curve(points, &name(who, p), &label, look));
        }
    }
    let title = "Throughput over the window, T_normal 40 ms, T_error 5 ms";
    vec![efficiency::figure("aa-fig8", title, ("window (packets)", Scale::Linear), LABEL, curves)]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let columns = ["", "loss rate"].map(str::to_owned).into_iter().chain(WINDOWS.map(|window| format!("W = {window}"))).collect();
    let mut rows = Vec::new();
    for who in WHO {
        for p in LOSSES {
            let mut row = vec![if who == Who::Segstream { "Segstream" } else { "Adaptive ack." }.to_owned(), format!("{p:e}")];
            let value = |window: u32| efficiency::at(points, &name(who, p), f64::from(window));
            row.extend(WINDOWS.map(|window| value(window).map_or_else(String::new, |value| format!("{value:.4}"))));
            rows.push(row);
        }
    }
    vec![TextTable { title: "Throughput efficiency over the window".to_owned(), columns, rows }]
}

fn more_with_losses(points: &Measured) -> Option<Finding> {
    let of = |window: u32| {
        let value = |p: f64| efficiency::at(points, &name(WHO[0], p), f64::from(window));
        LOSSES.into_iter().map(value).collect::<Option<Vec<f64>>>()
    };
    let text = |window: u32, values: &[f64]| {
        let each: Vec<String> = values.iter().map(|value| format!("{value:.3}")).collect();
        format!("W = {window}: {}", each.join(", "))
    };
    let (mut told, mut falls, mut gains) = (Vec::new(), Vec::new(), Vec::new());
    for window in WINDOWS {
        let values = of(window)?;
        if values.is_sorted_by(|a, b| a > b) {
            falls.push(window);
        }
        if values[2] > values[0].max(values[1]) {
            gains.push(window);
        }
        told.push(text(window, &values));
    }
    // Large: 40 ms of packets and more, which are 330.
    let large = WINDOWS.iter().filter(|window| **window >= 400).all(|window| falls.contains(window));
    let small = gains.contains(&WINDOWS[0]) && !gains.contains(&600);
    let parts = [Part::point("a small window gains by losses", small), Part::also("a large one does not", large)];
    let mut anew = Vec::new();
    for reading in OTHERS {
        let row = |window: u32| {
            let values: Option<Vec<f64>> =
                LOSSES.into_iter().map(|p| efficiency::at(points, &read_so(reading, p), f64::from(window))).collect();
            values.map(|values| text(window, &values))
        };
        anew.push(format!("{reading} {}, {}", row(READ_AT[0])?, row(READ_AT[1])?));
    }
    let list = |windows: &[u32]| windows.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let measured = format!(
        "at p 1e-4, 1e-3, 1e-2, 1e-1: {}; falls all the way at W = {}; 1e-2 gives more than both lower rates at W = {}; with the timer set anew in other \
         ways: {}",
        told.join("; "),
        list(&falls),
        list(&gains),
        anew.join("; ")
    );
    Some(Finding::of(parts, measured))
}

/// The flagship beside adaptive acknowledgment at the intervals that AA finds the best.
fn standings(points: &Measured) -> Vec<Standing> {
    let pairs = LOSSES.map(|p| Pair { ours: name(WHO[1], p), theirs: name(WHO[0], p), curve: format!("p = {p:e}, W") });
    standing::of(points, "adaptive ack., 40 and 5 ms", Quality::Throughput, &pairs, |result| efficiency::of(result).mean)
}
