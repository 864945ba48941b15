//! EC Fig. 11: the largest delay under random loss, at four tolerances.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the first picture is the paper's (ideal feedback, tolerated losses counted as it writes); what keeps the
//! promise stands in the others.
//! Source: EC 3.1, 4.2, 5.3.

use super::against_loss::{LOSS, delay_ms_max, list, packets, picture, with_run_length};
use super::four_tolerances::{ANY, FIVE, FOUR, NONE, ONE, curve, label, look, scenario, usual_accounting};
use crate::black_box::{Who, mbit, random};
use crate::curves::{self, Look, Measure, SHADES};
use crate::paired::with_differences;
use crate::standings::{self as standing, Pair};
use segstream_blocks::Accounting;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::closed_forms::{Point, retransmission_probability, violation_probability};
use segstream_lab::figure::{Figure, Line, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::standing::{Quality, Standing};
use segstream_lab::study::{Study, StudyPoint};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ec/fig11",
    title: "Maximum end-to-end delay under random loss",
    source: "EC 5.3, Figure 11",
    summary: "The largest delay of a segment, from its first transmission to its acceptance, over the loss probability, for four \
              tolerances. Every round of requests costs a round trip, so the curves are stairs of 60 ms; a tolerance saves rounds.\n\n\
              The first picture has SSTP with ideal feedback and tolerated losses counted as the paper writes it. That accounting \
              forgets what it has tolerated. The second has SSTP with everything on and Segstream, both with the accounting that keeps \
              the promise; the third compares the ways of counting.",
    parameters: &[
        ("tolerances", "(256,0,0), (256,1,1), (256,5,5), (256,256,256) (the third is chosen)"),
        ("bandwidth and round trip", "500 Mbit/s, 60 ms (chosen: they give 154 and 94 ms); 100, 550 and 600 Mbit/s for EC-C5"),
        ("window", "36 segments, 2.5 w_a (chosen)"),
        ("loss probabilities", "1e-5 to 1e-1 (chosen)"),
        ("accounting", "paper-literal with ideal feedback, strict-all otherwise"),
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

/// Nine probabilities for SSTP with ideal feedback.
pub(crate) const PROBABILITIES: [f64; 9] = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1];
/// Five of them for everything else.
pub(crate) const DECADES: [f64; 5] = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1];
/// Those at which the ways of counting part.
const OFTEN: [f64; 3] = [1e-3, 1e-2, 1e-1];
/// The promise-keeping ways, which the third picture sets beside the paper's.
const STRICT: [Accounting; 2] = [Accounting::StrictAll, Accounting::StrictBurst];
/// The tolerances that are counted.
const COUNTED: [(u32, u32); 2] = [ONE, FIVE];

/// Other rates for EC-C5, in Mbit/s, with 2.5 w_a segments of window: the papers' example, and two that give its delays as well.
const OTHER_RATES: [(u64, u32); 3] = [(100, 8), (550, 40), (600, 43)];
/// The loss probability of EC-C5.
const OF_TEXT: f64 = 1e-3;

/// The curve of SSTP with ideal feedback at another rate.
fn at_rate(wanted: (u32, u32), rate: u64) -> String {
    format!("{} {rate}mbit", curve(Who::SstpIdeal, wanted))
}

fn points_at_other_rates() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for wanted in [NONE, ONE] {
        points.extend(OTHER_RATES.map(|(rate, window)| StudyPoint {
            curve: at_rate(wanted, rate),
            x: OF_TEXT,
            scenario: scenario(Who::SstpIdeal, wanted, usual_accounting(Who::SstpIdeal), &random(OF_TEXT)).with(|it| {
                it.black_box.bandwidth = mbit(rate);
                it.workload.window = window;
            }),
        }));
    }
    points
}

fn points() -> Vec<StudyPoint> {
    let mut points = points_at_other_rates();
    for wanted in FOUR {
        for who in [Who::SstpIdeal, Who::SstpFull, Who::Segstream] {
            let probabilities = if who == Who::SstpIdeal { &PROBABILITIES[..] } else { &DECADES[..] };
            points.extend(probabilities.iter().map(|p| StudyPoint {
                curve: curve(who, wanted),
                x: *p,
                scenario: scenario(who, wanted, usual_accounting(who), &random(*p)),
            }));
        }
    }
    for wanted in COUNTED {
        for accounting in STRICT {
            points.extend(OFTEN.iter().map(|p| StudyPoint {
                curve: counted(wanted, accounting),
                x: *p,
                scenario: scenario(Who::SstpIdeal, wanted, accounting, &random(*p)),
            }));
        }
    }
    points
}

/// The curve of SSTP with ideal feedback and a way of counting.
fn counted(wanted: (u32, u32), accounting: Accounting) -> String {
    let usual = curve(Who::SstpIdeal, wanted);
    if accounting == usual_accounting(Who::SstpIdeal) { usual } else { format!("{usual} {accounting}") }
}

fn figures(points: &Measured) -> Vec<Figure> {
    let of = |who: Who, wanted| curves::measured(points, &curve(who, wanted), &label(who, wanted), Measure::DelayMax, look(who, wanted));
    let paper = FOUR.map(|wanted| of(Who::SstpIdeal, wanted)).to_vec();
    let on_the_path = [Who::SstpFull, Who::Segstream].iter().flat_map(|who| FOUR.map(|wanted| of(*who, wanted))).collect();
    vec![
        picture("ec-fig11", "Maximum delay under random loss: SSTP, ideal feedback", LOSS, Measure::DelayMax, paper),
        picture("ec-fig11-full", "Maximum delay under random loss: everything on the path", LOSS, Measure::DelayMax, on_the_path),
        picture("ec-fig11-accounting", "Maximum delay by accounting of tolerated losses", LOSS, Measure::DelayMax, by_accounting(points)),
    ]
}

fn by_accounting(points: &Measured) -> Vec<segstream_lab::figure::Curve> {
    let mut found = Vec::new();
    for (accounting, line) in Accounting::ALL.into_iter().zip([Line::Solid, Line::Dashed, Line::Dotted]) {
        for (wanted, colour) in COUNTED.into_iter().zip(&SHADES[1..]) {
            let look = Look { colour, marker: Who::SstpIdeal.marker(), line };
            let label = format!("(256,{},{}), {accounting}", wanted.0, wanted.1);
            found.push(curves::measured(points, &counted(wanted, accounting), &label, Measure::DelayMax, look));
        }
    }
    found
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let mut rows = Vec::new();
    for p in PROBABILITIES {
        let mut row = vec![format!("{p:e}")];
        for who in [Who::SstpIdeal, Who::SstpFull, Who::Segstream] {
            let cells: Vec<String> = FOUR.iter().map(|wanted| cell(points, &curve(who, *wanted), p)).collect();
            row.push(if cells.iter().all(String::is_empty) { String::new() } else { cells.join(" / ") });
        }
        rows.push(row);
    }
    let columns = ["p", "SSTP, ideal feedback", "SSTP, full", "Segstream"].map(str::to_owned).to_vec();
    let title = "Largest delay (ms) at (256,0,0) / (256,1,1) / (256,5,5) / (256,256,256)".to_owned();
    vec![TextTable { title, columns, rows }]
}

fn cell(points: &Measured, curve: &str, p: f64) -> String {
    delay_ms_max(points, curve, p).map_or_else(String::new, |delay| format!("{delay:.1}"))
}

const CLAIMS: &[Claim] = &[
    Claim {
        id: "EC-C4",
        text: "Without tolerance the largest delay rises strongly with loss; with every loss tolerated it does not change (EC 5.3)",
        check: the_two_ends,
    },
    Claim {
        id: "EC-C5",
        text: "At p = 1e-3 one tolerated loss of a segment lowers the largest delay from 154 to 94 ms (EC 5.3)",
        check: one_tolerated_loss,
    },
    Claim {
        id: "EC-C6",
        text: "Tolerating more losses gives a lower largest delay, across a wide range of tolerances (EC 5.3)",
        check: across_tolerances,
    },
];

/// A step between two delays that is no step: segments wait for each other's repeated packets.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= point().segment_time() * 1e3
}

fn point() -> Point {
    Point::of_the_papers(500e6)
}

fn row(points: &Measured, who: Who, wanted: (u32, u32), probabilities: &[f64]) -> Option<Vec<f64>> {
    probabilities.iter().map(|p| delay_ms_max(points, &curve(who, wanted), *p)).collect()
}

fn the_two_ends(points: &Measured) -> Option<Finding> {
    let none = row(points, Who::SstpIdeal, NONE, &PROBABILITIES)?;
    let any = row(points, Who::SstpIdeal, ANY, &PROBABILITIES)?;
    let least = point().receiver_delay(0.0) * 1e3;
    let rises = none.windows(2).all(|pair| pair[1] > pair[0] || same(pair[0], pair[1])) && none[8] > 2.0 * none[0];
    let flat = any.iter().all(|delay| (delay - least).abs() < 0.1);
    let parts = [Part::point("rises without tolerance", rises), Part::also("constant with every loss tolerated", flat)];
    let measured = format!(
        "p = 1e-5 to 1e-1: (256,0,0) {} ms, (256,256,256) {} ms; t_s + RTD/2 is {least:.1} ms",
        list(&none, 0),
        list(&[any[0], any[8]], 1)
    );
    let explanation = if rises && flat { String::new() } else { with_run_length(points, "") };
    Some(Finding::of(parts, measured).because(explanation))
}

fn one_tolerated_loss(points: &Measured) -> Option<Finding> {
    let at = |who, wanted| delay_ms_max(points, &curve(who, wanted), OF_TEXT);
    let pair = |rate| Some((delay_ms_max(points, &at_rate(NONE, rate), OF_TEXT)?, delay_ms_max(points, &at_rate(ONE, rate), OF_TEXT)?));
    let (none, one) = (at(Who::SstpIdeal, NONE)?, at(Who::SstpIdeal, ONE)?);
    let strict = delay_ms_max(points, &counted(ONE, Accounting::StrictAll), 1e-3)?;
    let measured = format!(
        "{none:.2} to {one:.2} ms with ideal feedback ({strict:.2} ms with strict accounting); SSTP full {:.1} to {:.1}, Segstream {:.1} \
         to {:.1} ms",
        at(Who::SstpFull, NONE)?,
        at(Who::SstpFull, ONE)?,
        at(Who::Segstream, NONE)?,
        at(Who::Segstream, ONE)?
    );
    let parts = [
        Part::point("one tolerated loss lowers it by a round", one < none && !same(one, none)),
        Part::also("154 ms", (none - 154.0).abs() < 1.0),
        Part::also("94 ms", (one - 94.0).abs() < 1.0),
    ];
    let mut others = Vec::new();
    for (rate, _) in OTHER_RATES {
        let (none, one) = pair(rate)?;
        others.push(format!("{none:.2} to {one:.2} ms at {rate} Mbit/s"));
    }
    let finding = Finding::of(parts, measured).by_choice_of("the bandwidth, 500 Mbit/s", &others.join(", "));
    if finding.parts().iter().all(|part| part.holds) {
        return Some(finding.because(format!(
            "The bandwidth was inferred from these two numbers: t_s + RTD/2 + k (t_a + t_p) is {:.2} ms with one round of requests and \
             {:.2} ms with two. Rounded to milliseconds every rate from 481 to 608 Mbit/s gives both, 550 and 600 as well.",
            point().delay_after(1) * 1e3,
            point().delay_after(2) * 1e3
        )));
    }
    let chance = retransmission_probability(packets(points), OF_TEXT, 2);
    let third = retransmission_probability(packets(points), OF_TEXT, 3);
    Some(finding.because(with_run_length(
        points,
        &format!(
            "154 ms is a packet lost twice and not three times: over this many packets the probability of the first is {chance:.2}, of \
             a third loss {third:.3}."
        ),
    )))
}

/// How many probabilities have their four delays in falling order.
fn ordered(rows: &[Vec<f64>]) -> usize {
    let falls = |at: usize| rows.windows(2).all(|pair| pair[1][at] < pair[0][at] || same(pair[0][at], pair[1][at]));
    (0..rows[0].len()).filter(|at| falls(*at)).count()
}

fn across_tolerances(points: &Measured) -> Option<Finding> {
    let rows_of = |who, probabilities: &[f64]| -> Option<Vec<Vec<f64>>> {
        FOUR.iter().map(|wanted| row(points, who, *wanted, probabilities)).collect()
    };
    let literal = rows_of(Who::SstpIdeal, &PROBABILITIES)?;
    let full = rows_of(Who::SstpFull, &DECADES)?;
    let ours = rows_of(Who::Segstream, &DECADES)?;
    let all = ordered(&literal);
    let lower = literal[2][6] < literal[0][6];
    let parts = [
        Part::point("falling order at most probabilities", all >= 6),
        Part::also("falling order at every probability", all == 9),
        Part::also("five tolerated losses lower it at p = 1e-2", lower),
    ];
    let at_one_percent = |accounting| {
        Some(list(&[delay_ms_max(points, &counted(ONE, accounting), 1e-2)?, delay_ms_max(points, &counted(FIVE, accounting), 1e-2)?], 0))
    };
    let measured = format!(
        "falling order at {all} of 9 probabilities (SSTP full {} of 5, Segstream {} of 5); p = 1e-2: {} ms without tolerance, and for \
         (256,1,1) / (256,5,5) {} ms paper-literal, {} strict-all, {} strict-burst",
        ordered(&full),
        ordered(&ours),
        list(&literal[0][6..7], 0),
        at_one_percent(Accounting::PaperLiteral)?,
        at_one_percent(Accounting::StrictAll)?,
        at_one_percent(Accounting::StrictBurst)?
    );
    let many = violation_probability(256, 1, 1e-2);
    Some(Finding::of(parts, measured).because(with_run_length(
        points,
        &format!(
            "At p = 1e-2 a share of {many:.2} of the segments exceeds one loss. Strict accounting that asks for the violating burst only \
             comes back to the limit with each further loss, so it saves no round; asking for all that is missing does."
        ),
    )))
}

/// The flagship beside SSTP with everything on, at every tolerance.
fn standings(points: &Measured) -> Vec<Standing> {
    let pair = |wanted: (u32, u32)| Pair {
        ours: curve(Who::Segstream, wanted),
        theirs: curve(Who::SstpFull, wanted),
        curve: format!("(256,{},{}), p", wanted.0, wanted.1),
    };
    standing::of(points, "SSTP, full", Quality::Delay, &FOUR.map(pair), standing::delay_max)
}
