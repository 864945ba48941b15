//! EC Fig. 12: the largest delay under bursts of loss, at four tolerances.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: as in Fig. 11, the paper's picture is the first.
//! Source: EC 5.2 (the two states), 5.3.

use super::against_loss::{BAD_STATE_LOSS, delay_ms_max, list, picture, with_run_length};
use super::four_tolerances::{FIVE, FOUR, NONE, curve, label, look, scenario, usual_accounting};
use crate::black_box::{Who, bursty, bursty_regular};
use crate::curves::{self, Measure};
use crate::paired::with_differences;
use crate::standings::{self as standing, Pair};
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::closed_forms::effective_loss;
use segstream_lab::figure::{Curve, Figure, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::standing::{Quality, Standing};
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
        ("durations", "exponential, and beside them deterministic with ideal feedback (EC 5.2 names both and says not which)"),
        ("p_b", "1e-4 to 1 (chosen; the text names 1e-3 and 1)"),
        ("tolerances", "as in Figure 11 (EC 5.3 names the ends)"),
        ("bandwidth, round trip, window", "500 Mbit/s, 60 ms, 36 segments (chosen, as in Figure 11)"),
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
    for wanted in FOUR {
        points.extend(BAD_STATE_LOSSES.iter().map(|p| StudyPoint {
            curve: regular(wanted),
            x: *p,
            scenario: scenario(Who::SstpIdeal, wanted, usual_accounting(Who::SstpIdeal), &bursty_regular(LONG_MS, *p)),
        }));
    }
    points
}

/// The curve of SSTP with ideal feedback where every bad state takes 180 ms.
fn regular(wanted: (u32, u32)) -> String {
    format!("{} deterministic", name(Who::SstpIdeal, wanted, LONG_MS))
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
    let of_regular = FOUR
        .map(|wanted| {
            let (label, look) = (label(Who::SstpIdeal, wanted), look(Who::SstpIdeal, wanted));
            curves::measured(points, &regular(wanted), &label, Measure::DelayMax, look)
        })
        .to_vec();
    let exactly = "Maximum delay, bad states of exactly 180 ms: SSTP, ideal feedback";
    let short = "Maximum delay, bad states of 15 ms: SSTP, ideal feedback";
    vec![
        picture("ec-fig12", &title, BAD_STATE_LOSS, Measure::DelayMax, of(Who::SstpIdeal, LONG_MS)),
        picture("ec-fig12-deterministic", exactly, BAD_STATE_LOSS, Measure::DelayMax, of_regular),
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
    let listed = |of: &dyn Fn((u32, u32)) -> String, p: f64| {
        let delays: Option<Vec<f64>> = FOUR.iter().map(|wanted| delay_ms_max(points, &of(*wanted), p)).collect();
        delays.map_or_else(String::new, |delays| list(&delays, 0))
    };
    let row = |p: &f64| {
        let mut row = vec![format!("{p}")];
        row.extend(cases.iter().map(|(_, who, bad_ms)| listed(&|wanted| name(*who, wanted, *bad_ms), *p)));
        row.push(listed(&regular, *p));
        row
    };
    let rows = BAD_STATE_LOSSES.iter().map(row).collect();
    let mut columns = vec!["p_b".to_owned()];
    columns.extend(cases.iter().map(|(name, ..)| (*name).to_owned()));
    columns.push("SSTP ideal, exactly 180 ms".to_owned());
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
    let exactly: Option<Vec<Vec<f64>>> =
        FOUR.iter().map(|wanted| BAD_STATE_LOSSES.iter().map(|p| delay_ms_max(points, &regular(*wanted), *p)).collect()).collect();
    let exactly = exactly?;
    let together_exactly = spread(&exactly, 5);
    let parts = [
        Part::point("falling order at most p_b below 1", ordered >= 4),
        Part::also("falling order at every p_b below 1", ordered == IN_ORDER && in_order(&exactly) == IN_ORDER),
        Part::also("together at 1, exponential states", together <= TOGETHER && together < apart),
        Part::also("together at 1, deterministic states", together_exactly <= TOGETHER),
    ];
    let of = |rows: &[Vec<f64>], at: usize| list(&rows.iter().map(|row| row[at]).collect::<Vec<_>>(), 0);
    let at = |at: usize| of(&found, at);
    let measured = format!(
        "p_b = 0.1: {} ms; p_b = 1: {} ms; the three lowest differ by {:.0} % and {:.1} %; falling order at {ordered} of {IN_ORDER} \
         p_b below 1 (SSTP full {}, Segstream {}); with states of exactly their mean {} and {} ms, {:.1} % apart at p_b = 1, falling \
         order at {} of {IN_ORDER}",
        at(3),
        at(5),
        apart * 100.0,
        together * 100.0,
        in_order(&rows(points, Who::SstpFull, LONG_MS)?),
        in_order(&rows(points, Who::Segstream, LONG_MS)?),
        of(&exactly, 3),
        of(&exactly, 5),
        together_exactly * 100.0,
        in_order(&exactly)
    );
    let why = "At p_b = 1 the largest delay is that of the longest bad state, whatever a few losses count; with exponential states which of \
               its rounds a segment meets is chance, with deterministic ones it is the same for all.";
    Some(Finding::of(parts, measured).because(with_run_length(points, why)))
}

fn trade_off_grows(points: &Measured) -> Option<Finding> {
    // "Appreciable" is put at one round of requests, "larger" at no less by more than a segment time.
    const ROUND_MS: f64 = 59.0;
    const SAME_MS: f64 = 4.2;
    let saved = |bad_ms| -> Option<Vec<f64>> {
        let delay = |wanted, p| delay_ms_max(points, &name(Who::SstpIdeal, wanted, bad_ms), p);
        BAD_STATE_LOSSES.iter().map(|p| Some(delay(NONE, *p)? - delay(FIVE, *p)?)).collect()
    };
    let (long, short) = (saved(LONG_MS)?, saved(SHORT_MS)?);
    let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let longer_is_larger = long.iter().zip(&short).filter(|(long, short)| **long + SAME_MS >= **short).count();
    let appreciable = short.iter().filter(|saved| **saved >= ROUND_MS).count();
    let parts = [
        Part::point("larger with longer bad states", most(&long) > most(&short)),
        Part::also("at every p_b", longer_is_larger == BAD_STATE_LOSSES.len()),
        Part::also("appreciable at 15 ms at most p_b", 2 * appreciable > BAD_STATE_LOSSES.len()),
    ];
    let measured = format!(
        "(256,5,5) saves against (256,0,0), for p_b = 1e-4 to 1: {} ms with bad states of 180 ms, {} ms with 15 ms",
        list(&long, 0),
        list(&short, 0)
    );
    let why = "The saving is a number of rounds of 60 ms, so that it grows in steps. With bad states of 15 ms it is a round or nothing, by \
               p_b.";
    Some(Finding::of(parts, measured).because(with_run_length(points, why)))
}

/// The flagship beside SSTP with everything on, at every tolerance.
fn standings(points: &Measured) -> Vec<Standing> {
    let pair = |wanted: (u32, u32)| Pair {
        ours: name(Who::Segstream, wanted, LONG_MS),
        theirs: name(Who::SstpFull, wanted, LONG_MS),
        curve: format!("(256,{},{}), p_b", wanted.0, wanted.1),
    };
    standing::of(points, "SSTP, full", Quality::Delay, &FOUR.map(pair), standing::delay_max)
}
