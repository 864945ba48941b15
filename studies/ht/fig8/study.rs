//! HT Fig. 8: throughput over the number of processors.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: costs are parameters, those measured included, so that a run gives the same anywhere.
//! Source: HT 5, HT 6, Figs. 7 to 9.

use crate::curves::{Look, SHADES};
use segstream_base::Duration;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Axis, Curve, Figure, Line, Marker, Point, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::stages::{STAGE_NAMES, STAGES, StageCosts, StageScenario};
use segstream_lab::study::{StagePoint, Study};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ht/fig8",
    title: "Throughput over processors",
    source: "HT 6, Figures 8 and 9",
    summary: "HTPNET's processes, the hosts and the network between them on 1 to 8 modelled processors, each process where it balances \
              best. One curve has costs of the paper's size, the second what our processes cost on a machine of today, the third what Segstream's \
              two halves cost on it.\n\nWith the paper's \
              costs one and eight processors give what the paper says because the costs were made so; what comes out by itself is \
              the way between. With ours a processor carries hundreds of times as much, and the gain ends sooner: the hosts, \
              which copy and compare the payload, cost most of it, and a process is on one processor however many there are.",
    parameters: &[
        ("costs of the paper's size", "Tx1 and Rx1 80 us a packet, Tx2 and Rx2 55, hosts 25 each, network 3 times 32 (division chosen)"),
        ("costs measured", "wall time of a process on a 2-core x86-64 server, 2026, medians, one thread (recorded below)"),
        (
            "Segstream",
            "its halves in the places of Tx1 and Rx1, with what a packet costs each (EC Table 2); Tx2, Rx2 and congestion avoidance do \
             nothing, hosts and network cost what they cost HTPNET",
        ),
        ("placement", "the one with the least load on the busiest processor (chosen; HT Figure 9 shows one for eight)"),
        ("window, exchange", "1024 packets, 5 ms; with the costs measured 16,384 packets, 1 ms (chosen: so that neither is a limit)"),
        ("run length", "20,000 packets, with the costs measured 100,000; the first fifth not counted"),
    ],
    stages,
    figures,
    tables,
    claims: &[Claim {
        id: "HT-C1",
        text: "Eight processors give close to five times the throughput of one, about 12,000 packets/s with five for the protocol (HT 6)",
        check: fivefold,
    }],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const PROCESSORS: std::ops::RangeInclusive<usize> = 1..=8;

/// The sets of costs, by the names of their curves.
const PAPER: &str = "paper";
const MEASURED: &str = "measured";
const SEGSTREAM: &str = "segstream";

/// Nanoseconds a packet of each stage, in the order of [`STAGE_NAMES`].
const MEASURED_NS: [u64; STAGES] = [174, 79, 4, 0, 79, 0, 42, 48, 32, 286];

/// The same of Segstream, whose sending half takes 142 ns a packet and whose receiving half 55 (EC Table 2, on the same machine).
///
/// Limit: the messages between the processes are HTPNET's; what Segstream's halves cost is charged for them.
const SEGSTREAM_NS: [u64; STAGES] = [174, 142, 0, 0, 55, 0, 42, 48, 32, 286];

fn costs(curve: &str) -> StageCosts {
    match curve {
        PAPER => StageCosts::paper(),
        SEGSTREAM => StageCosts(SEGSTREAM_NS.map(Duration::from_nanos)),
        _ => StageCosts(MEASURED_NS.map(Duration::from_nanos)),
    }
}

fn stages() -> Vec<StagePoint> {
    let of = |curve: &str| {
        let usual = StageScenario { costs: costs(curve), ..StageScenario::default() };
        // Packets that take less come in greater numbers between two exchanges.
        let base = match curve {
            PAPER => usual,
            _ => StageScenario { window: 16_384, sync_period: Duration::from_millis(1), packets: 100_000, ..usual },
        };
        let point = |processors: usize| StagePoint {
            curve: curve.to_owned(),
            x: processors as f64,
            scenario: StageScenario { processors, ..base.clone() },
        };
        PROCESSORS.map(point).collect::<Vec<_>>()
    };
    [of(PAPER), of(MEASURED), of(SEGSTREAM)].concat()
}

fn rate(points: &Measured, curve: &str, processors: usize) -> Option<f64> {
    Some(points.stages_at(curve, processors as f64)?.packets_per_second())
}

fn figures(points: &Measured) -> Vec<Figure> {
    let curve = |name: &str, label: &str, look: Look, by: f64| {
        let at = |point: &segstream_lab::measured::MeasuredStages| Point {
            x: point.x,
            y: point.result.packets_per_second() * by,
            interval: None,
            imprecise: false,
            note: format!("busiest processor {:.0} %", point.result.busiest_share() * 100.0),
        };
        let points = points.stages_curve(name).map(at).collect();
        Curve { label: label.to_owned(), colour: look.colour.to_owned(), marker: look.marker, line: look.line, points }
    };
    let looks = [
        Look { colour: SHADES[4], marker: Marker::Diamond, line: Line::Solid },
        Look { colour: SHADES[0], marker: Marker::Square, line: Line::Dashed },
        Look { colour: SHADES[1], marker: Marker::Circle, line: Line::Solid },
    ];
    let figure = |id: &str, title: &str, y: &str, curves| Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        x: Axis { label: "processors".to_owned(), scale: Scale::Linear, range: None },
        y: Axis { label: y.to_owned(), scale: Scale::Linear, range: None },
        curves,
    };
    let one = |name| rate(points, name, 1).map_or(0.0, |rate| 1.0 / rate);
    let gains = [
        (PAPER, "costs of the paper's size", looks[0]),
        (MEASURED, "costs measured here", looks[1]),
        (SEGSTREAM, "costs of Segstream's halves", looks[2]),
    ]
    .map(|(name, label, look)| curve(name, label, look, one(name)));
    vec![
        figure(
            "ht-fig8",
            "Throughput over processors, costs of the paper's size",
            "throughput (packets/s)",
            vec![curve(PAPER, "costs of the paper's size", looks[0], 1.0)],
        ),
        figure("ht-fig8-gain", "Throughput over processors, as a multiple of one", "throughput / that of one processor", gains.to_vec()),
    ]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let row = |processors: usize| {
        let cells = |name| {
            let outcome = points.stages_at(name, processors as f64)?;
            let busiest = outcome.busiest_share();
            Some([format!("{:.0}", outcome.packets_per_second()), format!("{:.2}", busiest)])
        };
        let [paper, busy] = cells(PAPER)?;
        let [measured, busy_here] = cells(MEASURED)?;
        let [segstream, busy_ours] = cells(SEGSTREAM)?;
        Some(vec![processors.to_string(), paper, busy, measured, busy_here, segstream, busy_ours])
    };
    let columns = [
        "processors",
        "packets/s, paper's costs",
        "busiest",
        "packets/s, costs measured",
        "busiest",
        "packets/s, Segstream's halves",
        "busiest",
    ];
    let stage = |at: usize| {
        let us = |costs: &StageCosts| format!("{:.3}", costs.0[at].as_secs_f64() * 1e6);
        vec![STAGE_NAMES[at].to_owned(), us(&costs(PAPER)), us(&costs(MEASURED)), us(&costs(SEGSTREAM))]
    };
    vec![
        TextTable {
            title: "Throughput, and how much of its time the busiest processor works".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: PROCESSORS.filter_map(row).collect(),
        },
        TextTable {
            title: "What a packet costs each process (us)".to_owned(),
            columns: ["process", "of the paper's size", "measured", "Segstream's halves"].map(str::to_owned).to_vec(),
            rows: (0..STAGES).map(stage).collect(),
        },
    ]
}

fn fivefold(points: &Measured) -> Option<Finding> {
    let row = |name| PROCESSORS.map(|processors| rate(points, name, processors)).collect::<Option<Vec<f64>>>();
    let (paper, ours) = (row(PAPER)?, row(MEASURED)?);
    let gain = |row: &[f64]| row[row.len() - 1] / row[0];
    let grows = |row: &[f64]| row.windows(2).all(|pair| pair[1] >= pair[0] * 0.995);
    let size = (paper[7] / 12_000.0 - 1.0).abs() <= 0.05;
    let parts = [
        Part::point("more with each processor", grows(&paper) && gain(&paper) > 1.0),
        Part::also("about five times from one to eight", (4.0..=6.0).contains(&gain(&paper))),
        Part::also("about 12,000 packets/s", size),
    ];
    let measured = format!("{:.0} packets/s on one processor and {:.0} on eight, {:.2} times as many", paper[0], paper[7], gain(&paper));
    let otherwise =
        format!("with costs measured here {:.2} million and {:.2} million, {:.2} times", ours[0] * 1e-6, ours[7] * 1e-6, gain(&ours));
    let chosen = "what a packet costs each process, 417 us in all and at most 83 us";
    Some(Finding::of(parts, measured).by_choice_of(chosen, &otherwise).because(
        "The costs were made from the two numbers of the text: 417 us for all processes together and 83 us for the slowest. Eight \
         processors can give no more than the sum over the slowest.",
    ))
}
