//! HT Fig. 11: what it costs to search the whole table of sent packets, over the window.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the two searches find the same packets; they differ in the slots they look at.
//! Source: HT 4, HT 6, Fig. 11.

use super::end_system::Who;
use super::packet_rate::{self, LABEL};
use crate::curves::{Look, SHADES};
use segstream_base::Duration;
use segstream_blocks::Search;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::scenario::Scenario;
use segstream_lab::study::{Study, StudyPoint};
use segstream_path::LossSpec;
use segstream_schemes::htpnet::{self, Ranges};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ht/fig11",
    title: "FIFO search and exhaustive search",
    source: "HT 6, Figure 11",
    summary: "Packets a second over the window, without loss. On each state that comes back the sender searches its table of sent \
              packets: from the tail as far as the exchange reaches, or all of it. The time is taken from the processor that sends.\n\n\
              The second picture shows what FIFO search gains at the largest window, over what a slot costs. That cost is not in the \
              paper, and the size of the gain follows from it.",
    parameters: &[
        ("windows", "16 to 2048 packets (2048 is stated)"),
        ("round trip", "40 ms (chosen: not stated for this figure)"),
        ("exchange of states", "each 5 ms (chosen)"),
        ("a slot of the table", "1.1 us (chosen so that the gain is HT's; 22 cycles of a processor at 20 MHz)"),
        ("processor", "83 us a packet (inferred); HT had one for all of the sender here"),
        ("run length", "a twentieth of the preset's packets, between the first quarter and the last eighth"),
    ],
    points,
    shortened: 20,
    figures,
    tables,
    claims: &[Claim {
        id: "HT-C3",
        text: "At small windows both searches give almost the same throughput; at 2048 FIFO search gives over 75 % more (HT 6)",
        check: gain,
    }],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const RTT: Duration = Duration::from_millis(40);
const PERIOD: Duration = Duration::from_millis(5);
const WINDOWS: [u32; 8] = [16, 32, 64, 128, 256, 512, 1024, 2048];
const LARGEST: u32 = 2048;
/// What a slot costs in the first picture, in nanoseconds.
const SLOT_NS: u64 = 1100;
/// What it costs in the second; at 2.44 us an exhaustive search takes all of the time between two exchanges.
const SLOTS_NS: [u64; 6] = [0, 250, 500, 1100, 1500, 2000];
const SEARCHES: [Search; 2] = [Search::Fifo, Search::Exhaustive];
/// The flagship, which searches no table: its sending order tells it which packets a report concerns.
const SEGSTREAM: &str = "segstream";
/// The second picture's curves are named so.
const BY_COST: &str = "by cost";

fn scenario(search: Search, window: u32, slot_ns: u64) -> Scenario {
    Who::Htpnet(Ranges::Eight)
        .over(RTT, window, &LossSpec::None)
        .with(|it| it.black_box.search_cost = Duration::from_nanos(slot_ns))
        .with_settings(|it: &mut htpnet::Settings| {
            it.search = search;
            it.sync_period = Some(PERIOD);
        })
}

fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for search in SEARCHES {
        let name = search.to_string();
        points.extend(WINDOWS.map(|window| StudyPoint {
            curve: name.clone(),
            x: f64::from(window),
            scenario: scenario(search, window, SLOT_NS),
        }));
        points.extend(SLOTS_NS.map(|cost| StudyPoint {
            curve: format!("{name} {BY_COST}"),
            x: cost as f64 * 1e-3,
            scenario: scenario(search, LARGEST, cost),
        }));
    }
    points.extend(WINDOWS.map(|window| StudyPoint {
        curve: SEGSTREAM.to_owned(),
        x: f64::from(window),
        scenario: Who::Segstream.over(RTT, window, &LossSpec::None),
    }));
    points
}

fn look(search: Search) -> Look {
    match search {
        Search::Fifo => Look { colour: SHADES[0], marker: Marker::Diamond, line: Line::Solid },
        Search::Exhaustive => Look { colour: SHADES[2], marker: Marker::Square, line: Line::Dashed },
    }
}

fn label(search: Search) -> &'static str {
    match search {
        Search::Fifo => "FIFO search",
        Search::Exhaustive => "exhaustive search",
    }
}

fn figures(points: &Measured) -> Vec<Figure> {
    let of = |rest: &str| {
        SEARCHES
            .map(|search| {
                let name = format!("{search}{rest}");
                packet_rate::curve(points, &name, label(search), look(search), 1.0)
            })
            .to_vec()
    };
    let title = "FIFO and exhaustive search, round trip 40 ms, 1.1 us a slot";
    let by_window = packet_rate::figure("ht-fig11", title, ("window (packets)", Scale::Log), LABEL, {
        let segstream = packet_rate::curve(points, SEGSTREAM, &Who::Segstream.label(), Who::Segstream.look(), 1.0);
        [of(""), vec![segstream]].concat()
    });
    let axis = ("cost of a slot (us)", Scale::Linear);
    let title = "FIFO and exhaustive search at a window of 2048, by the cost of a slot";
    vec![by_window, packet_rate::figure("ht-fig11-cost", title, axis, LABEL, of(&format!(" {BY_COST}")))]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let table = |title: &str, head: &str, rest: &str, xs: &[f64]| {
        let mut rows = Vec::new();
        for x in xs {
            let at = |search| packet_rate::at(points, &format!("{search}{rest}"), *x);
            let Some((fifo, all)) = at(Search::Fifo).zip(at(Search::Exhaustive)) else { continue };
            rows.push(vec![x.to_string(), format!("{fifo:.0}"), format!("{all:.0}"), format!("{:.2}", fifo / all)]);
        }
        let columns = [head, "FIFO (packets/s)", "exhaustive (packets/s)", "ratio"].map(str::to_owned).to_vec();
        TextTable { title: title.to_owned(), columns, rows }
    };
    let of_segstream = |window: &u32| {
        let rate = packet_rate::at(points, SEGSTREAM, f64::from(*window))?;
        Some(vec![window.to_string(), format!("{rate:.0}")])
    };
    vec![
        TextTable {
            title: "Segstream by window, no table to search".to_owned(),
            columns: ["window", "packets/s"].map(str::to_owned).to_vec(),
            rows: WINDOWS.iter().filter_map(of_segstream).collect(),
        },
        table("By window, 1.1 us a slot", "window", "", &WINDOWS.map(f64::from)),
        table("By the cost of a slot, window 2048", "us a slot", &format!(" {BY_COST}"), &SLOTS_NS.map(|cost| cost as f64 * 1e-3)),
    ]
}

fn gain(points: &Measured) -> Option<Finding> {
    // "Almost identical" is put at 3 %, "small" at up to 128 packets.
    const SAME: f64 = 0.03;
    let ratio = |window: u32| {
        let x = f64::from(window);
        Some(packet_rate::at(points, "fifo", x)? / packet_rate::at(points, "exhaustive", x)?)
    };
    let small = WINDOWS[..4].iter().map(|window| ratio(*window)).collect::<Option<Vec<f64>>>()?;
    let apart = small.iter().fold(0.0, |most: f64, ratio| most.max((ratio - 1.0).abs()));
    let large = ratio(LARGEST)?;
    let parts = [
        Part::point("the same at small windows", apart <= SAME),
        Part::point("more with FIFO search at 2048", large > 1.0 + SAME),
        Part::also("over 75 % more", large >= 1.75),
    ];
    let mut by_cost = Vec::new();
    for cost in SLOTS_NS.map(|cost| cost as f64 * 1e-3) {
        let gain = packet_rate::at(points, "fifo by cost", cost)? / packet_rate::at(points, "exhaustive by cost", cost)?;
        by_cost.push(format!("{:.0} % at {cost} us", (gain - 1.0) * 100.0));
    }
    let measured = format!("windows 16 to 128: at most {:.1} % apart; 2048: {:.0} % more", apart * 100.0, (large - 1.0) * 100.0);
    Some(Finding::of(parts, measured).by_choice_of("the cost of a slot, 1.1 us", &by_cost.join(", ")).because(
        "That the two part with the window, and from which on, comes out by itself; the size of the gain was given: a slot costs 1.1 us. \
         An exhaustive search takes W slots each 5 ms, which is 2048 x 1.1 us = 45 % of the processor.",
    ))
}
