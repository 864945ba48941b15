//! HT Fig. 12: throughput at a bottleneck over the load that is offered to it, with and without congestion avoidance.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: load is all that is sent, what is retransmitted included; throughput is what is delivered, each packet once.
//! Source: HT 3.5, HT 6, Fig. 12.

use super::end_system::{PACKET_BYTES, SEGSTREAM_PACKET_BYTES, Who, one_packet_in};
use super::packet_rate::{self, LABEL};
use crate::curves::{Look, SHADES};
use segstream_base::{Bandwidth, Bytes, Duration};
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Curve, Figure, Line, Marker, Point, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::scenario::{self, Scenario};
use segstream_lab::shared::{Application, Pace, SharedFlow, SharedScenario, Traffic};
use segstream_lab::study::{SharedPoint, Study, StudyPoint};
use segstream_path::LossSpec;
use segstream_schemes::htpnet::{self, Ptif, Ranges};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ht/fig12",
    title: "Congestion avoidance by traffic intensity",
    source: "HT 6, Figure 12",
    summary: "A bottleneck serves 4,000 packets a second and has room for 64. The sender offers it a load: one packet, new or again, in \
              each interval. Up to saturation all of it is delivered. Beyond, without control, more and more of what crosses the \
              bottleneck is there already or has to wait for what is lost, and throughput collapses.\n\nPTIF slows the sender \
              by the traffic intensity that the exchanges measure. The paper gives the signal and no law. The obvious one holds or does \
              not, by the period of the exchanges; one that reckons the queue holds at every period tried. Segstream finds its rate as \
              it goes; its load is what its application offers.",
    parameters: &[
        ("bottleneck", "4,000 packets/s of 2048 bytes, 64 packets of room (chosen: not stated)"),
        ("round trip", "20 ms (chosen)"),
        ("load", "0.2 to 2 of the bottleneck: a packet of HTPNET takes its sender so long that this rate comes out (chosen)"),
        ("window", "2048 packets, so that it is no limit (chosen)"),
        ("exchange of states", "each 2.5, 5 and 10 ms (chosen)"),
        ("laws", "literal and held, as described with the scheme (chosen: HT gives none)"),
        ("class, report", "5, eight pairs (HT 3.4); four (HT Table 2) beside them at an exchange each 5 ms"),
        (
            "run length",
            "a tenth of the preset's packets, between the first quarter and the last eighth; Segstream 20 s, the first 5 s not counted",
        ),
    ],
    points,
    shortened: 10,
    shared,
    figures,
    tables,
    claims: &[Claim {
        id: "HT-C4",
        text: "Throughput grows almost linearly with load up to saturation; beyond, it collapses without control, and PTIF holds it \
               (HT 6)",
        check: holds,
    }],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const RTT: Duration = Duration::from_millis(20);
/// What the bottleneck serves, in packets a second.
const SERVED: u64 = 4000;
const ROOM: u32 = 64;
const WINDOW: u32 = 2048;
/// Offered loads in hundredths of what the bottleneck serves.
const LOADS: [u64; 9] = [20, 50, 80, 90, 100, 110, 125, 150, 200];
const PERIODS_US: [u64; 3] = [2_500, 5_000, 10_000];
/// The period of the first picture.
const USUAL_US: u64 = 5_000;

fn load(hundredths: u64) -> f64 {
    hundredths as f64 * 1e-2
}

/// How often a packet leaves at this load.
fn interval(hundredths: u64) -> Duration {
    Duration::from_nanos(1_000_000_000 * 100 / (SERVED * hundredths))
}

fn bottleneck(bytes: u32) -> Bandwidth {
    one_packet_in(interval(100), bytes)
}

fn curve(law: Ptif, period_us: u64) -> String {
    format!("htpnet {} T={}ms", law.name(), period_us as f64 * 1e-3)
}

/// The same with the four pairs of HT Table 2, at [`USUAL_US`].
fn curve_of_four(law: Ptif) -> String {
    format!("htpnet {} {}", Ranges::Four, law.name())
}

fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for law in Ptif::ALL {
        for period_us in PERIODS_US {
            points.extend(LOADS.map(|hundredths| StudyPoint {
                curve: curve(law, period_us),
                x: load(hundredths),
                scenario: scenario(Ranges::Eight, law, period_us, hundredths),
            }));
        }
        points.extend(LOADS.map(|hundredths| StudyPoint {
            curve: curve_of_four(law),
            x: load(hundredths),
            scenario: scenario(Ranges::Four, law, USUAL_US, hundredths),
        }));
    }
    points
}

fn scenario(ranges: Ranges, law: Ptif, period_us: u64, hundredths: u64) -> Scenario {
    Who::Htpnet(ranges)
        .over(RTT, WINDOW, &LossSpec::None)
        .with(|it| {
            it.black_box.service = interval(hundredths);
            it.black_box.bandwidth = bottleneck(PACKET_BYTES);
            it.black_box.queue_packets = Some(ROOM);
        })
        .with_settings(|it: &mut htpnet::Settings| {
            it.ptif = law;
            it.sync_period = Some(Duration::from_micros(period_us));
        })
}

/// Segstream alone on the same bottleneck, at a rate that it finds.
fn shared() -> Vec<SharedPoint> {
    let of = |hundredths: u64| {
        let scenario = Box::new(Who::Segstream.over(RTT, WINDOW, &LossSpec::None));
        let flow = SharedFlow {
            rtt: RTT,
            application: Application::periodic(one_packet_in(interval(hundredths), SEGSTREAM_PACKET_BYTES)),
            ..SharedFlow::new(SEGSTREAM, Traffic::Scheme { scenario, pace: Pace::AUTO })
        };
        let scenario = SharedScenario {
            bandwidth: bottleneck(SEGSTREAM_PACKET_BYTES),
            queue: Bytes::new(u64::from(ROOM) * u64::from(SEGSTREAM_PACKET_BYTES)),
            duration: Duration::from_secs(20),
            flows: vec![flow],
            ..SharedScenario::default()
        };
        SharedPoint { curve: SEGSTREAM.to_owned(), x: load(hundredths), scenario }
    };
    LOADS.map(of).to_vec()
}

/// The only flow, and the curve.
const SEGSTREAM: &str = "segstream";

/// What Segstream delivers of what the bottleneck serves.
fn segstream_at(points: &Measured, hundredths: u64) -> Option<f64> {
    let result = points.shared_at(SEGSTREAM, load(hundredths))?;
    Some(result.of_flow(SEGSTREAM, segstream_lab::shared::FlowOutcome::goodput_bps).mean / goodput_of_bottleneck()?)
}

/// The application's bits that the bottleneck serves in a second.
fn goodput_of_bottleneck() -> Option<f64> {
    let bytes = scenario::segment_bytes(&Who::Segstream.over(RTT, WINDOW, &LossSpec::None));
    Some(bytes as f64 * 8.0 * SERVED as f64)
}

fn look(law: Ptif, line: Line) -> Look {
    match law {
        Ptif::Off => Look { colour: SHADES[0], marker: Marker::Circle, line },
        Ptif::Literal => Look { colour: SHADES[2], marker: Marker::Square, line },
        Ptif::Held => Look { colour: SHADES[3], marker: Marker::Diamond, line },
    }
}

const fn label(law: Ptif) -> &'static str {
    match law {
        Ptif::Off => "HTPNET, uncontrolled",
        Ptif::Literal => "HTPNET, PTIF literal",
        Ptif::Held => "HTPNET, PTIF held",
    }
}

/// The same where all are HTPNET.
const fn word(law: Ptif) -> &'static str {
    match law {
        Ptif::Off => "uncontrolled",
        Ptif::Literal => "literal",
        Ptif::Held => "held",
    }
}

fn segstream_curve(points: &Measured) -> Curve {
    let Look { colour, marker, line } = Who::Segstream.look();
    let at = |hundredths: u64| {
        let y = segstream_at(points, hundredths)? * SERVED as f64;
        Some(Point { x: load(hundredths), y, interval: None, imprecise: false, note: "runs of 20 s, the first 5 s not counted".to_owned() })
    };
    let points = LOADS.into_iter().filter_map(at).collect();
    Curve { label: "Segstream, rate found".to_owned(), colour: colour.to_owned(), marker, line, points }
}

fn figures(points: &Measured) -> Vec<Figure> {
    let axis = ("offered load (of what the bottleneck serves)", Scale::Linear);
    let of = |law: Ptif, period_us, label: &str, line| packet_rate::curve(points, &curve(law, period_us), label, look(law, line), 1.0);
    let mut usual: Vec<Curve> = Ptif::ALL.map(|law| of(law, USUAL_US, label(law), Line::Solid)).to_vec();
    usual.push(segstream_curve(points));
    let four = Ptif::ALL
        .map(|law| packet_rate::curve(points, &curve_of_four(law), &format!("{}, four pairs", word(law)), look(law, Line::Dashed), 1.0));
    usual.extend(four);
    let mut all = Vec::new();
    for law in Ptif::ALL {
        for (period_us, line) in PERIODS_US.into_iter().zip([Line::Dotted, Line::Solid, Line::Dashed]) {
            all.push(of(law, period_us, &format!("{}, {} ms", word(law), period_us as f64 * 1e-3), line));
        }
    }
    vec![
        packet_rate::figure("ht-fig12", "Throughput at a bottleneck, an exchange each 5 ms", axis, LABEL, usual),
        packet_rate::figure(
            "ht-fig12-periods",
            "Throughput of HTPNET at a bottleneck, by law and period of the exchange",
            axis,
            LABEL,
            all,
        ),
    ]
}

fn part(points: &Measured, law: Ptif, period_us: u64, hundredths: u64) -> Option<f64> {
    Some(packet_rate::at(points, &curve(law, period_us), load(hundredths))? / SERVED as f64)
}

fn part_of_four(points: &Measured, law: Ptif, hundredths: u64) -> Option<f64> {
    Some(packet_rate::at(points, &curve_of_four(law), load(hundredths))? / SERVED as f64)
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let told = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
    let mut rows = Vec::new();
    for law in Ptif::ALL {
        for period_us in PERIODS_US {
            let mut row = vec![format!("{}, {} ms", label(law), period_us as f64 * 1e-3)];
            row.extend(LOADS.map(|hundredths| told(part(points, law, period_us, hundredths))));
            rows.push(row);
        }
        let mut row = vec![format!("{}, four pairs, 5 ms", label(law))];
        row.extend(LOADS.map(|hundredths| told(part_of_four(points, law, hundredths))));
        rows.push(row);
    }
    let mut row = vec!["Segstream, rate found".to_owned()];
    row.extend(LOADS.map(|hundredths| told(segstream_at(points, hundredths))));
    rows.push(row);
    let mut columns = vec!["load".to_owned()];
    columns.extend(LOADS.map(|hundredths| load(hundredths).to_string()));
    vec![TextTable { title: "Throughput as a part of what the bottleneck serves".to_owned(), columns, rows }]
}

fn holds(points: &Measured) -> Option<Finding> {
    // Linear is put at 2 % up to 0.9, a collapse at half of the peak lost at twice the load, holding at 0.9 of the peak there.
    let row = |law, period_us| LOADS.iter().map(|load| part(points, law, period_us, *load)).collect::<Option<Vec<f64>>>();
    let twice = LOADS.len() - 1;
    let peak = |row: &[f64]| row.iter().copied().fold(0.0, f64::max);
    let mut linear = true;
    let mut held = [[0.0; 3]; 3];
    for (law, held) in Ptif::ALL.into_iter().zip(&mut held) {
        for (period_us, held) in PERIODS_US.into_iter().zip(held) {
            let row = row(law, period_us)?;
            linear &= LOADS.iter().zip(&row).filter(|(load, _)| **load <= 90).all(|(at, part)| (part / load(*at) - 1.0).abs() <= 0.02);
            *held = row[twice] / peak(&row);
        }
    }
    let [off, literal, law] = held;
    let collapses = off.iter().all(|part| *part < 0.5);
    let four = |law| part_of_four(points, law, LOADS[twice]);
    let parts = [
        Part::point("linear up to saturation", linear),
        Part::point("collapses without control", collapses),
        Part::also("held by control at every period", law.iter().all(|part| *part >= 0.9)),
    ];
    let told = |parts: [f64; 3]| parts.map(|part| format!("{part:.2}")).join(" / ");
    let measured = format!(
        "{} up to a load of 0.9; at twice the load, of the peak, with an exchange each 2.5 / 5 / 10 ms: uncontrolled {}, held {}; with four \
         pairs and 5 ms {:.2} and {:.2} of what the bottleneck serves; Segstream {:.2} of it",
        if linear { "linear within 2 %" } else { "not linear within 2 %" },
        told(off),
        told(law),
        four(Ptif::Off)?,
        four(Ptif::Held)?,
        segstream_at(points, LOADS[twice])?
    );
    let otherwise = format!("{} with the literal law", told(literal));
    Some(Finding::of(parts, measured).by_choice_of("the law by which rho sets the gap", &otherwise).because(
        "The law is ours, and was tuned at this bottleneck: HT gives the signal, rho = beta / alpha, and no law. The literal one, a gap \
         multiplied by a smoothed rho, forgets the queue that has built up already, and at long periods acts twice on the same news.",
    ))
}
