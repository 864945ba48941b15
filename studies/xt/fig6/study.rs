//! XT Fig. 6: Bernoulli and bursty arrivals beside each other.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the points of Figs. 4 and 5 with the window of XT 3.2.
//! Source: XT 4, Fig. 6.

use super::delay::{self, Across, Drawn};
use super::over_throughput::{self, RATES, X};
use super::tandem::{FIVE, SEGSTREAM, WINDOW, Who, bernoulli, interrupted};
use crate::curves::Look;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Figure, Line, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, TandemPoint};
use segstream_lab::tandem::Arrivals;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "xt/fig6",
    title: "Bernoulli and bursty arrivals",
    source: "XT 4, Figure 6",
    summary: "Mean delay of a message over the user throughput, with Bernoulli arrivals and with interrupted Bernoulli arrivals of \
              C^2 = 10. Bursts add about 25 slots to the delay of each scheme at the lowest throughput, 60 to 75 at 0.10 messages/slot, and \
              85 to 130 at 0.12. Schemes 1.1 and 2.1 lose their steady state at half the throughput.",
    parameters: &[
        ("arrivals", "Bernoulli; interrupted Bernoulli, C^2 = 10 (stated), alpha = 1 (chosen)"),
        ("user throughput", "0.02 to 0.15 messages/slot (chosen)"),
        ("window", "60 packets (stated)"),
        ("WTIMER, room of LINK1", "200 slots, 13 packets (chosen: see sensitivity)"),
    ],
    tandem: points,
    figures,
    tables,
    claims: &[
        Claim {
            id: "XT-C7",
            text: "With bursty arrivals the curves have the same shape; the delay is larger in the order of tens of slots at high \
                   throughput, and 1.1 and 2.1 degrade the most (XT 4, Figures 5 and 6)",
            check: bursts_cost_tens,
        },
        Claim {
            id: "XT-C11",
            text: "The delay increases substantially as the burstiness increases, most where the receiver discards (XT 5)",
            check: burstier_is_slower,
        },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

fn everyone() -> impl Iterator<Item = Who> {
    FIVE.into_iter().chain([SEGSTREAM])
}

fn smooth(who: Who) -> String {
    format!("{} bernoulli", who.name())
}

fn bursty(who: Who) -> String {
    format!("{} c2=10", who.name())
}

fn points() -> Vec<TandemPoint> {
    let of = |who: Who| {
        [over_throughput::points(&smooth(who), who, WINDOW, bernoulli), over_throughput::points(&bursty(who), who, WINDOW, interrupted)]
            .concat()
    };
    let burstier =
        |who: Who| BURSTINESS.map(|scv| TandemPoint { curve: over_burstiness(who), x: scv, scenario: who.over(WINDOW, arrivals(scv)) });
    everyone().flat_map(of).chain(everyone().flat_map(burstier)).collect()
}

/// C^2 of the times between messages; the paper has 10 and, with Bernoulli arrivals, a little less than 1.
const BURSTINESS: [f64; 6] = [1.0, 2.0, 5.0, 10.0, 20.0, 40.0];
/// The throughput at which C^2 is varied: 1.1 has a steady state there without bursts, in messages a slot.
const VARIED_AT: f64 = 0.05;

fn over_burstiness(who: Who) -> String {
    format!("{} over c2", who.name())
}

const fn arrivals(scv: f64) -> Arrivals {
    Arrivals::Interrupted { rate: VARIED_AT, scv, alpha: 1.0 }
}

fn figures(measured: &Measured) -> Vec<Figure> {
    // The colour tells whom, the line how messages arrive.
    let mut drawn: Vec<Drawn> = everyone().map(|who| (bursty(who), format!("{} bursty", who.number()), look(who, Line::Solid))).collect();
    drawn.extend(everyone().map(|who| (smooth(who), format!("{} Bernoulli", who.number()), look(who, Line::Dotted))));
    let title = "Bernoulli and bursty (C² = 10) arrivals, window 60";
    let over: Vec<Drawn> = everyone().map(|who| (over_burstiness(who), who.label(), look(who, Line::Solid))).collect();
    const ACROSS: Across = ("C² of the times between messages", (0.0, 42.0));
    let second = "Delay over the burstiness, 0.05 messages/slot, window 60";
    vec![
        delay::figure(measured, ("xt-fig6", title), X, (0.0, 250.0), &drawn),
        delay::figure(measured, ("xt-fig6-burstiness", second), ACROSS, (0.0, 250.0), &over),
    ]
}

fn look(who: Who, line: Line) -> Look {
    let colour = match who.number() {
        "1.2" => "#e69f00",
        "1.3" => "#cc79a7",
        _ => who.look().colour,
    };
    Look { colour, line, ..who.look() }
}

/// What the bursts add, in slots; infinite where they take the steady state away.
fn added(measured: &Measured, who: Who, rate: f64) -> Option<f64> {
    Some(delay::at(measured, &bursty(who), rate)? - delay::at(measured, &smooth(who), rate).filter(|delay| delay.is_finite())?)
}

fn tables(measured: &Measured) -> Vec<TextTable> {
    let row = |rate: &f64| {
        let mut row = vec![format!("{rate:.2}")];
        row.extend(everyone().map(|who| {
            added(measured, who, *rate).map_or_else(
                || "none without".to_owned(),
                |added| match added {
                    infinite if infinite.is_infinite() => "none with".to_owned(),
                    added => format!("{added:+.1}"),
                },
            )
        }));
        row
    };
    let columns = std::iter::once("messages/slot".to_owned()).chain(everyone().map(|who| who.number().to_owned())).collect();
    let title = "What bursts add to the mean delay, in slots; none: no steady state, with or already without them";
    let added = TextTable { title: title.to_owned(), columns, rows: RATES.iter().map(row).collect() };
    let columns = std::iter::once("C²".to_owned()).chain(everyone().map(|who| who.number().to_owned())).collect();
    let row = |scv: f64| {
        let cells = everyone().map(|who| delay::cell(measured, &over_burstiness(who), scv));
        std::iter::once(scv.to_string()).chain(cells).collect::<Vec<_>>()
    };
    let title = format!("Mean delay in slots over the burstiness, {VARIED_AT} messages/slot");
    vec![added, TextTable { title, columns, rows: BURSTINESS.map(row).to_vec() }]
}

/// The first throughput from which on a curve has no steady state somewhere.
fn lost_from(measured: &Measured, curve: &str) -> Option<f64> {
    RATES.into_iter().find(|rate| delay::at(measured, curve, *rate).is_some_and(f64::is_infinite))
}

fn bursts_cost_tens(measured: &Measured) -> Option<Finding> {
    // "High" is put at what Table 4 takes; "in the order of tens" at 10 to 100.
    const HIGH: [f64; 2] = [0.10, 0.12];
    let storing = &FIVE[1..];
    let (mut told, mut tens) = (Vec::new(), Vec::new());
    for rate in HIGH {
        let more: Vec<f64> = storing.iter().map(|who| added(measured, *who, rate)).collect::<Option<_>>()?;
        tens.push(more.iter().all(|more| (10.0..100.0).contains(more)));
        told.push(format!("{} more at {rate:.2}", delay::list(&more)));
    }
    // The order of Fig. 4 at high throughput: 2.3, 2.2, then go-back-N.
    let late: Vec<f64> = FIVE.iter().map(|who| delay::at(measured, &bursty(*who), 0.14)).collect::<Option<_>>()?;
    let shape = late[4] < late[3] && late[3] < late[1].min(late[2]);
    let text = |from: Option<f64>| from.map_or_else(|| "nowhere".to_owned(), |from| format!("from {from:.2}"));
    let (with, without) = (lost_from(measured, &bursty(FIVE[0])), lost_from(measured, &smooth(FIVE[0])));
    let most = with.is_some_and(|with| without.is_none_or(|without| with < without))
        && storing.iter().all(|who| lost_from(measured, &bursty(*who)).is_none_or(|other| Some(other) > with));
    let parts = [
        Part::point("the same shape, and 1.1 and 2.1 degrade the most", shape && most),
        Part::also("tens of slots more at high throughput", tens.iter().all(|tens| *tens)),
    ];
    let measured = format!(
        "1.2, 1.3, 2.2, 2.3: {} messages/slot; at 0.14 with bursts 2.3 {}, 2.2 {}, 1.2 {}, 1.3 {}; 1.1 has no steady state {} on, {} \
         without bursts",
        told.join(", "),
        delay::text(late[4]),
        delay::text(late[3]),
        delay::text(late[1]),
        delay::text(late[2]),
        text(with),
        text(without)
    );
    Some(
        Finding::of(parts, measured)
            .because("What is more than a hundred slots is so with go-back-N alone, and beyond 0.11 messages/slot; the paper does not say where high begins."),
    )
}

fn burstier_is_slower(measured: &Measured) -> Option<Finding> {
    // "Substantially": each doubling of C^2, or more than that, adds a tenth at least.
    const SUBSTANTIAL: f64 = 1.1;
    let rows: Vec<Vec<f64>> = FIVE.iter().map(|who| delay::row(measured, &over_burstiness(*who), &BURSTINESS)).collect::<Option<_>>()?;
    let rises = |row: &Vec<f64>| row.is_sorted_by(|a, b| *b >= SUBSTANTIAL * *a || b.is_infinite());
    let rising = rows.iter().filter(|row| rises(row)).count();
    let most = |at: usize| rows[1..].iter().all(|row| rows[0][at] >= row[at]);
    let discard = (1..BURSTINESS.len()).all(most);
    // Where the receiver discards, a run of this length may or may not lose its steady state: a delay may stand behind none.
    let parts = [
        Part::point("it grows substantially where the receiver stores", rows[1..].iter().all(rises)),
        Part::also("and where it discards", rising == FIVE.len()),
        Part::also("most where the receiver discards", discard),
    ];
    let told: Vec<String> = FIVE.iter().zip(&rows).map(|(who, row)| format!("{} {}", who.number(), delay::list(row))).collect();
    let values = BURSTINESS.map(|scv| scv.to_string()).join(" / ");
    Some(Finding::of(parts, format!("slots at {VARIED_AT} messages/slot, C² of {values}: {}", told.join("; "))))
}
