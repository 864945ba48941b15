//! XT Table 4: the window with the least delay.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the best of the ten windows the paper tried; 1.1 and 2.1 are one scheme here.
//! Source: XT 4, Table 4.

use super::delay;
use super::over_window::{self, WINDOWS};
use super::tandem::{FIVE, READINGS, Reading, SEGSTREAM, THROUGHPUT, Who, bernoulli};
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Figure, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, TandemPoint};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "xt/table4",
    title: "The window with the least delay",
    source: "XT 4, Table 4",
    summary: "The best of ten windows at 0.12 messages/slot. Small windows cost waiting: the sender asks once a window, with its last \
              packet, and stops until the answer. Large ones let it overfill LINK1. Where the best lies between the two depends on how \
              much a loss makes a scheme send again; the less, the larger the window may be.\n\n\
              The curves of 2.2 and 2.3 are flat round their best window, so that where it lies says little; 1.1, 1.2 and 1.3 \
              collapse right behind theirs or a few tens of packets later. Segstream gets better with every larger window, by less and less.",
    parameters: &[
        ("user throughput", "0.12 messages/slot (stated)"),
        ("windows", "30 to 120 packets (stated), in steps of 10 (chosen)"),
        ("arrivals", "Bernoulli (chosen)"),
        ("WTIMER, room of LINK1", "200 slots, 13 packets (chosen: see sensitivity)"),
        ("at LINK1 in one slot", "the external packet first (inferred from this table)"),
    ],
    tandem: points,
    figures,
    tables,
    claims: &[
        Claim {
            id: "XT-C8",
            text: "The best windows are 50 packets for 1.1 and 2.1, 60 for 1.3, 70 for 1.2, and 90 for 2.2 and 2.3 (XT 4, Table 4)",
            check: best_windows,
        },
        Claim {
            id: "XT-C10",
            text: "A small window makes every scheme wait at its end for the answer, so that rather large ones are best (XT 4)",
            check: small_windows_wait,
        },
    ],
    standings: |measured| delay::standings(measured, &SEGSTREAM.name(), &FIVE, "0.12 messages/slot, W"),
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// What the paper has, in the order of [`FIVE`].
const PAPER: [u32; 5] = [50, 70, 60, 90, 90];
/// By how many packets a best window may be off for its value to be the paper's, whose own runs are as uncertain.
const OFF: u32 = 20;
/// The flagship with a contracted rate that LINK1 serves beside the external traffic, in packets a slot.
const PACED: Who = Who::Segstream(Some(0.4));
const ALL: [Who; 7] = [FIVE[0], FIVE[1], FIVE[2], FIVE[3], FIVE[4], SEGSTREAM, PACED];

fn points() -> Vec<TandemPoint> {
    let mut points = over_window::points(&ALL);
    for reading in &READINGS[1..] {
        for who in FIVE {
            points.extend(WINDOWS.map(|window| TandemPoint {
                curve: reading.curve(who),
                x: f64::from(window),
                scenario: reading.over(&who.over(window, bernoulli(THROUGHPUT))),
            }));
        }
    }
    points
}

/// The best windows in a reading of LINK1, as text and whether they are in the paper's order.
fn read_so(measured: &Measured, reading: &Reading) -> Option<(String, bool)> {
    let best: Vec<u32> = FIVE.iter().map(|who| Some(over_window::best(measured, &reading.curve(*who))?.0)).collect::<Option<_>>()?;
    let listed = best.iter().map(u32::to_string).collect::<Vec<_>>().join(" / ");
    Some((listed, in_order(&best)))
}

/// The paper's order: discard, 1.3, 1.2, then selective repeat; of [`FIVE`].
fn in_order(best: &[u32]) -> bool {
    matches!(*best, [discard, late, early, selective, selective_early]
        if discard < early && early <= late && late < selective.min(selective_early))
}

fn figures(measured: &Measured) -> Vec<Figure> {
    let title = "Delay over the window, 0.12 messages/slot";
    vec![over_window::figure(measured, ("xt-table4", title), (20.0, 70.0), &ALL)]
}

fn tables(measured: &Measured) -> Vec<TextTable> {
    let columns = ["", "paper", "best window", "its delay (slots)", "of 2 % more"].map(str::to_owned);
    let row = |(at, who): (usize, &Who)| {
        let best = over_window::best(measured, &who.name());
        let near =
            best.zip(over_window::delays(measured, &who.name())).map_or_else(String::new, |((_, least), delays)| near(&delays, least));
        let name = if at == 0 { "1.1, 2.1".to_owned() } else { who.label() };
        vec![
            name,
            PAPER.get(at).map_or_else(String::new, u32::to_string),
            best.map_or_else(String::new, |(window, _)| window.to_string()),
            best.map_or_else(String::new, |(_, delay)| delay::text(delay)),
            near,
        ]
    };
    let best = TextTable {
        title: "Best windows, and all that are within 2 % of the best".to_owned(),
        columns: columns.to_vec(),
        rows: ALL.iter().enumerate().map(row).collect(),
    };
    let columns = std::iter::once(String::new()).chain(WINDOWS.map(|window| format!("W = {window}"))).collect();
    let rows = ALL.iter().map(|who| {
        let mut row = vec![who.label()];
        row.extend(WINDOWS.map(|window| delay::cell(measured, &who.name(), f64::from(window))));
        row
    });
    vec![best, TextTable { title: "Mean delay of a message in slots".to_owned(), columns, rows: rows.collect() }]
}

/// The windows with a delay within 2 % of the least.
fn near(delays: &[f64], least: f64) -> String {
    let near: Vec<String> =
        WINDOWS.iter().zip(delays).filter(|(_, delay)| **delay <= 1.02 * least).map(|(window, _)| window.to_string()).collect();
    near.join(", ")
}

fn best_windows(measured: &Measured) -> Option<Finding> {
    let best: Vec<u32> = FIVE.iter().map(|who| Some(over_window::best(measured, &who.name())?.0)).collect::<Option<_>>()?;
    let [discard, late, early, selective, selective_early] = best[..] else { return None };
    let ordered = in_order(&best);
    let near = best.iter().zip(PAPER).all(|(ours, paper)| ours.abs_diff(paper) <= OFF);
    let equal = best.iter().zip(PAPER).filter(|(ours, paper)| **ours == *paper).count();
    let parts = [Part::point("the order", ordered), Part::also("the windows", equal == PAPER.len())];
    let mut otherwise = Vec::new();
    for reading in &READINGS[1..] {
        let (windows, ordered) = read_so(measured, reading)?;
        otherwise.push(format!("{} {windows}{}", reading.name, if ordered { "" } else { ", not in order" }));
    }
    let measured = format!(
        "1.1 and 2.1: {discard}, 1.3: {early}, 1.2: {late}, 2.2: {selective}, 2.3: {selective_early}; discard < 1.3 <= 1.2 < 2.2 and 2.3 \
         {}; {equal} of five are the paper's, all within {OFF} packets of it: {}",
        if ordered { "holds" } else { "does not hold" },
        if near { "yes" } else { "no" }
    );
    let chosen = "which packet is first at LINK1, the external one, with room for 13";
    Some(Finding::of(parts, measured).by_choice_of(chosen, &otherwise.join("; ")).because(
        "Which of two packets that reach LINK1 in one slot is first was chosen for the order, which does not come out with the user's; \
         the values move with the room of LINK1. The study of sensitivity has both.",
    ))
}

fn small_windows_wait(measured: &Measured) -> Option<Finding> {
    let (mut more, mut told) = (Vec::new(), Vec::new());
    for who in FIVE {
        let (window, least) = over_window::best(measured, &who.name())?;
        let smallest = over_window::delays(measured, &who.name())?[0];
        more.push(smallest / least - 1.0);
        told.push(format!("{} {} against {} at {window}", who.number(), delay::text(smallest), delay::text(least)));
    }
    let waiting = more.iter().filter(|more| **more > 0.05).count();
    let parts = [Part::point("most schemes wait", waiting >= 3), Part::also("every scheme does", waiting == FIVE.len())];
    Some(Finding::of(parts, format!("slots at a window of 30 and {THROUGHPUT} messages/slot: {}", told.join("; "))))
}
