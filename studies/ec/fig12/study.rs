//! EC Fig. 12: the largest delay under bursts of loss, at four tolerances.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: as in Fig. 11, the paper's picture is the first.
//! Source: EC 5.2 (the two states), 5.3.

use super::against_loss::{BAD_STATE_LOSS, delay_ms_max, list, picture, with_run_length};
use super::four_tolerances::{FIVE, FOUR, NONE, curve, label, look, scenario, usual_accounting};
use crate::black_box::{Who, bursty};
use crate::curves::{self, Measure};
use crate::paired::with_differences;
use segstream_lab::claim::{Claim, Finding, Judgement};
use segstream_lab::closed_forms::effective_loss;
use segstream_lab::figure::{Curve, Figure, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, StudyPoint};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ec/fig12",
    title: "Maximum end-to-end delay under bursts of loss",
    source: "EC 5.3, Figure 12; the loss process in EC 5.2, Figure 9",
    summary: "The path changes between a good state without loss and a bad one that loses each packet with probability p_b. The largest \
              delay of a segment over p_b, for the four tolerances of Figure 11, with bad states of 180 ms; and, as the text mentions, \
              of 15 ms.\n\nWhen p_b comes near 1 nothing gets through a bad state, all tolerances but the last are violated alike, and \
              the largest delay is that of the longest bad state.",
    parameters: &[
        ("mean bad state", "180 ms (EC 5.3), 15 ms (EC 5.3, no figure)"),
        ("mean good state", "1620 ms (chosen: the path is bad a tenth of the time, so that the legend's p is 1e-4)"),
        ("durations", "exponential (EC 5.2 allows deterministic too)"),
        ("p_b", "1e-4 to 1 (chosen; the text names 1e-3 and 1)"),
        ("tolerances", "as in Figure 11 (EC 5.3 names the ends)"),
        ("bandwidth, round trip, window", "500 Mbit/s, 60 ms, 36 segments (chosen, as in Figure 11)"),
        ("accounting", "paper-literal with ideal feedback, strict-all otherwise"),
    ],
    points,
    figures,
    tables: |points| with_differences(tables(points), points),
    claims: CLAIMS,
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// p_b.
pub(crate) const BAD_STATE_LOSSES: [f64; 6] = [1e-4, 1e-3, 1e-2, 1e-1, 0.5, 1.0];
/// Mean durations of the bad state: of the figure, and of the remark.
const LONG_MS: u32 = 180;
const SHORT_MS: u32 = 15;

/// The curve of `who` at a tolerance with bad states of this mean length.
fn name(who: Who, wanted: (u32, u32), bad_ms: u32) -> String {
    format!("{} {bad_ms}ms", curve(who, wanted))
}

fn points() -> Vec<StudyPoint> {
    let cases = [(Who::SstpIdeal, LONG_MS), (Who::SstpFull, LONG_MS), (Who::Segstream, LONG_MS), (Who::SstpIdeal, SHORT_MS)];
    let mut points = Vec::new();
    for (who, bad_ms) in cases {
        for wanted in FOUR {
            points.extend(BAD_STATE_LOSSES.iter().map(|p| StudyPoint {
                curve: name(who, wanted, bad_ms),
                x: *p,
                scenario: scenario(who, wanted, usual_accounting(who), &bursty(bad_ms, *p)),
            }));
        }
    }
    points
}

fn figures(points: &Measured) -> Vec<Figure> {
    let of = |who: Who, bad_ms: u32| -> Vec<Curve> {
        let one = |wanted| curves::measured(points, &name(who, wanted, bad_ms), &label(who, wanted), Measure::DelayMax, look(who, wanted));
        FOUR.map(one).to_vec()
    };
    let effective = effective_loss(1e-3, 0.18, 1.62);
    let title = format!("Maximum delay, bad states of 180 ms (p = {effective:.0e} at p_b = 1e-3): SSTP, ideal feedback");
    let on_the_path = [of(Who::SstpFull, LONG_MS), of(Who::Segstream, LONG_MS)].concat();
    let all_on = "Maximum delay, bad states of 180 ms: everything on the path";
    let short = "Maximum delay, bad states of 15 ms: SSTP, ideal feedback";
    vec![
        picture("ec-fig12", &title, BAD_STATE_LOSS, Measure::DelayMax, of(Who::SstpIdeal, LONG_MS)),
        picture("ec-fig12-full", all_on, BAD_STATE_LOSS, Measure::DelayMax, on_the_path),
        picture("ec-fig12-15ms", short, BAD_STATE_LOSS, Measure::DelayMax, of(Who::SstpIdeal, SHORT_MS)),
    ]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let cases = [
        ("SSTP ideal, 180 ms", Who::SstpIdeal, LONG_MS),
        ("SSTP full, 180 ms", Who::SstpFull, LONG_MS),
        ("Segstream, 180 ms", Who::Segstream, LONG_MS),
        ("SSTP ideal, 15 ms", Who::SstpIdeal, SHORT_MS),
    ];
    let cell = |who, bad_ms, p: f64| {
        let delays: Option<Vec<f64>> = FOUR.iter().map(|wanted| delay_ms_max(points, &name(who, *wanted, bad_ms), p)).collect();
        delays.map_or_else(String::new, |delays| list(&delays, 0))
    };
    let rows = BAD_STATE_LOSSES
        .iter()
        .map(|p| [vec![format!("{p}")], cases.iter().map(|(_, who, bad_ms)| cell(*who, *bad_ms, *p)).collect()].concat())
        .collect();
    let columns = [vec!["p_b".to_owned()], cases.iter().map(|(name, ..)| (*name).to_owned()).collect()].concat();
    let title = "Largest delay (ms) at (256,0,0) / (256,1,1) / (256,5,5) / (256,256,256)".to_owned();
    vec![TextTable { title, columns, rows }]
}

const CLAIMS: &[Claim] = &[
    Claim {
        id: "EC-C7",
        text: "Under bursts too a larger tolerance lowers the largest delay; the three lowest come together as p_b approaches 1 (EC 5.3)",
        check: order_and_convergence,
    },
    Claim {
        id: "EC-C8",
        text: "Longer bad states make the trade-off between tolerance and delay larger; at 15 ms it is still appreciable (EC 5.3)",
        check: trade_off_grows,
    },
];

/// Delays by tolerance, then by p_b.
fn rows(points: &Measured, who: Who, bad_ms: u32) -> Option<Vec<Vec<f64>>> {
    let row = |wanted: &(u32, u32)| BAD_STATE_LOSSES.iter().map(|p| delay_ms_max(points, &name(who, *wanted, bad_ms), *p)).collect();
    FOUR.iter().map(row).collect()
}

/// By which share the three lowest tolerances differ.
fn spread(rows: &[Vec<f64>], at: usize) -> f64 {
    let three = [rows[0][at], rows[1][at], rows[2][at]];
    let (least, most) = (three.iter().copied().fold(f64::INFINITY, f64::min), three.iter().copied().fold(0.0, f64::max));
    (most - least) / most
}

fn order_and_convergence(points: &Measured) -> Option<Finding> {
    // Two delays within a segment time are the same step.
    const SAME_MS: f64 = 4.2;
    // "Diminish" is put at a twentieth.
    const TOGETHER: f64 = 0.05;
    // At p_b = 1 the claim is that there is no order left.
    const IN_ORDER: usize = BAD_STATE_LOSSES.len() - 1;
    let found = rows(points, Who::SstpIdeal, LONG_MS)?;
    let in_order =
        |rows: &[Vec<f64>]| (0..IN_ORDER).filter(|at| rows.windows(2).all(|pair| pair[1][*at] <= pair[0][*at] + SAME_MS)).count();
    let ordered = in_order(&found);
    let (apart, together) = (spread(&found, 3), spread(&found, 5));
    let judgement = match (ordered, together <= TOGETHER && together < apart) {
        (IN_ORDER, true) => Judgement::Agrees,
        (4.., _) => Judgement::ShapeOnly,
        _ => Judgement::DoesNotAgree,
    };
    let at = |at: usize| list(&found.iter().map(|row| row[at]).collect::<Vec<_>>(), 0);
    let measured = format!(
        "p_b = 0.1: {} ms; p_b = 1: {} ms; the three lowest differ by {:.0} % and {:.1} %; falling order at {ordered} of {IN_ORDER} \
         p_b below 1 (SSTP full {}, Segstream {})",
        at(3),
        at(5),
        apart * 100.0,
        together * 100.0,
        in_order(&rows(points, Who::SstpFull, LONG_MS)?),
        in_order(&rows(points, Who::Segstream, LONG_MS)?)
    );
    let why = "At p_b = 1 the largest delay is that of the longest bad state, whatever a few losses count; which of its rounds a segment \
               meets is chance.";
    Some(Finding::new(judgement, measured).because(with_run_length(points, why)))
}

fn trade_off_grows(points: &Measured) -> Option<Finding> {
    // "Appreciable" is put at one round of requests.
    const ROUND_MS: f64 = 59.0;
    let saved = |bad_ms| -> Option<Vec<f64>> {
        let delay = |wanted, p| delay_ms_max(points, &name(Who::SstpIdeal, wanted, bad_ms), p);
        BAD_STATE_LOSSES.iter().map(|p| Some(delay(NONE, *p)? - delay(FIVE, *p)?)).collect()
    };
    let (long, short) = (saved(LONG_MS)?, saved(SHORT_MS)?);
    let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let judgement = match (most(&long) > most(&short), most(&short) >= ROUND_MS) {
        (true, true) => Judgement::Agrees,
        (false, false) => Judgement::DoesNotAgree,
        _ => Judgement::ShapeOnly,
    };
    let measured = format!(
        "(256,5,5) saves against (256,0,0), for p_b = 1e-4 to 1: {} ms with bad states of 180 ms, {} ms with 15 ms",
        list(&long, 0),
        list(&short, 0)
    );
    let why = "The saving is a number of rounds of 60 ms, so that it grows in steps.";
    Some(Finding::new(judgement, measured).because(with_run_length(points, why)))
}
