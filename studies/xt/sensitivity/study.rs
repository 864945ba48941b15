//! What XT leaves open and what hangs on it: the best windows, and where an early report begins to harm go-back-N.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: each setting differs from the usual one in one thing.
//! Source: XT 3.2, XT 4 and Table 4, which are silent on all of it.

use super::delay;
use super::over_throughput::RATES;
use super::over_window::{self, WINDOWS};
use super::tandem::{FIVE, THROUGHPUT, WINDOW, Who, bernoulli};
use segstream_lab::figure::{Axis, Scale, TextTable};
use segstream_lab::heat_map::{HeatMap, Side};
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, TandemPoint};
use segstream_lab::tandem::{Order, TandemConfig, TandemScenario, TandemScheme, Tie};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "xt/sensitivity",
    title: "What the best windows hang on",
    source: "XT 3.2 and 4, where they are silent",
    summary: "The best window of each scheme, and the throughput from which on scheme 1.3 is worse than 1.2, with other values of what the \
              paper does not state: the room that its buffer of 10 packets really is, WTIMER, which packet is first when two reach LINK1 \
              in one slot, and whether a packet that leaves makes room for one that arrives. Each row changes one of them.",
    parameters: &[
        ("usual", "room 13, WTIMER 200 slots, the external packet first, departures first"),
        ("user throughput", "0.12 messages/slot for windows; 0.08 to 0.15 at a window of 60 for the crossing"),
        ("windows", "30 to 120 packets"),
    ],
    tandem: points,
    heat_maps,
    tables,
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// A setting of what is not stated.
struct Setting {
    name: &'static str,
    wtimer: u32,
    room: u32,
    tie: Tie,
    order: Order,
}

const USUAL: Setting = Setting { name: "usual", wtimer: 200, room: 13, tie: Tie::ExternalFirst, order: Order::DeparturesFirst };
const SETTINGS: [Setting; 9] = [
    USUAL,
    Setting { name: "LINK1 room 10", room: 10, ..USUAL },
    Setting { name: "LINK1 room 15", room: 15, ..USUAL },
    Setting { name: "WTIMER 60", wtimer: 60, ..USUAL },
    Setting { name: "WTIMER 100", wtimer: 100, ..USUAL },
    Setting { name: "WTIMER 400", wtimer: 400, ..USUAL },
    Setting { name: "first of two drawn", tie: Tie::Drawn, ..USUAL },
    Setting { name: "user's packet first", tie: Tie::UserFirst, ..USUAL },
    Setting { name: "arrivals first", order: Order::ArrivalsFirst, ..USUAL },
];

impl Setting {
    fn over(&self, who: Who, window: u32, rate: f64) -> TandemScenario {
        let usual = who.over(window, bernoulli(rate));
        let scheme = match usual.scheme {
            TandemScheme::Xtp { sender, receiver, filter_slots, asks, reads_slots, .. } => {
                TandemScheme::Xtp { sender, receiver, wtimer_slots: self.wtimer, filter_slots, asks, reads_slots }
            }
            other => other,
        };
        let tandem = TandemConfig { link1_room: self.room, tie: self.tie, order: self.order, ..usual.tandem };
        TandemScenario { scheme, tandem, ..usual }
    }

    fn windows(&self, who: Who) -> String {
        format!("{}, {}", self.name, who.name())
    }

    fn rates(&self, who: Who) -> String {
        format!("{}, {} over throughput", self.name, who.name())
    }
}

/// The throughputs among which the crossing is looked for.
fn crossing_rates() -> impl Iterator<Item = f64> {
    RATES.into_iter().filter(|rate| *rate >= 0.08)
}

/// Go-back-N with a conservative and with an aggressive receiver.
const PAIR: [Who; 2] = [FIVE[1], FIVE[2]];

fn points() -> Vec<TandemPoint> {
    let mut points = Vec::new();
    for setting in &SETTINGS {
        for who in FIVE {
            points.extend(WINDOWS.map(|window| TandemPoint {
                curve: setting.windows(who),
                x: f64::from(window),
                scenario: setting.over(who, window, THROUGHPUT),
            }));
        }
        for who in PAIR {
            let at = |rate: f64| TandemPoint { curve: setting.rates(who), x: rate, scenario: setting.over(who, WINDOW, rate) };
            points.extend(crossing_rates().map(at));
        }
    }
    points
}

fn heat_maps(measured: &Measured) -> Vec<HeatMap> {
    let sides = || (Side::names("scheme", FIVE.map(Who::number)), Side::names("", SETTINGS.iter().map(|setting| setting.name)));
    let best = |column: usize, row: usize| over_window::best(measured, &SETTINGS.get(row)?.windows(*FIVE.get(column)?));
    let axis = |label: &str, range| Axis { label: label.to_owned(), scale: Scale::Linear, range: Some(range) };
    vec![
        HeatMap::of(
            ("xt-sensitivity", "Best window at 0.12 messages/slot"),
            sides(),
            axis("best window (packets)", (30.0, 120.0)),
            |column, row| best(column, row).map(|(window, _)| f64::from(window)),
        ),
        HeatMap::of(
            ("xt-sensitivity-delay", "Mean delay with the best window, 0.12 messages/slot"),
            sides(),
            axis(delay::LABEL, (25.0, 45.0)),
            |column, row| best(column, row).map(|(_, delay)| delay),
        ),
    ]
}

/// The throughput from which on the aggressive receiver is worse.
fn crossing(measured: &Measured, setting: &Setting) -> Option<String> {
    let rates: Vec<f64> = crossing_rates().collect();
    let [late, early] = PAIR.map(|who| delay::row(measured, &setting.rates(who), &rates));
    let (late, early) = (late?, early?);
    let worse = |at: &usize| early[*at] > late[*at];
    // Without a steady state neither is worse.
    let compared = early.iter().zip(&late).take_while(|(early, late)| early.is_finite() || late.is_finite()).count();
    let beyond = (0..compared).rev().take_while(worse).count();
    let from = compared - beyond;
    Some(match (beyond, from) {
        (0, _) => "not up to 0.15".to_owned(),
        (_, 0) => "below 0.08".to_owned(),
        (_, from) => format!("{:.2}", rates[from]),
    })
}

fn tables(measured: &Measured) -> Vec<TextTable> {
    let row = |setting: &Setting| {
        let mut row = vec![setting.name.to_owned()];
        let best = FIVE.map(|who| over_window::best(measured, &setting.windows(who)).map(|(window, _)| window));
        row.extend(best.map(|window| window.map_or_else(|| "none".to_owned(), |window| window.to_string())));
        let ordered = match best {
            [Some(discard), Some(late), Some(early), Some(selective), Some(selective_early)] => {
                discard < early && early <= late && late < selective.min(selective_early)
            }
            _ => false,
        };
        row.push(if ordered { "yes" } else { "no" }.to_owned());
        row.push(crossing(measured, setting).unwrap_or_default());
        row
    };
    let heads = FIVE.map(|who| format!("best W, {}", who.number()));
    let columns = std::iter::once(String::new())
        .chain(heads)
        .chain(["ordered as the paper's".to_owned(), "1.3 worse than 1.2 from (messages/slot)".to_owned()])
        .collect();
    let title = format!("Best windows at {} messages/slot, and the crossing of 1.2 and 1.3 at a window of {}", THROUGHPUT, WINDOW);
    vec![TextTable { title, columns, rows: SETTINGS.iter().map(row).collect() }]
}
