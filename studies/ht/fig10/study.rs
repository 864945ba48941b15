//! HT Fig. 10: HTPNET under errors at four windows, by how much of what it has the receiver reports.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: eight pairs are what HT 3.4 says, four what its Table 2 draws; the other two ways are ours.
//! Source: HT 3.4, HT 6, Fig. 10.

use super::end_system::{MARKERS, Who};
use super::packet_rate::{self, ERRORS, LABEL};
use crate::black_box::random;
use crate::curves::{Look, SHADES};
use crate::standings::{self as standing, Pair};
use segstream_base::Duration;
use segstream_base::Tolerance;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Figure, Line, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::scenario::Scenario;
use segstream_lab::standing::{Quality, Standing};
use segstream_lab::study::{Study, StudyPoint};
use segstream_path::LossSpec;
use segstream_schemes::htpnet::{self, Ranges};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ht/fig10",
    title: "HTPNET under errors",
    source: "HT 6, Figure 10",
    summary: "Packets a second over the packet error rate, at four windows. A packet is lost with the same probability in both \
              directions, state packets too.\n\nHow far the throughput holds depends on how much a receiver reports. Eight pairs \
              (HT 3.4) or four (HT Table 2) of a fixed place settle as many holes an exchange, and what lies behind them waits: the \
              larger the window, the earlier it falls. Pairs that go on where the last report stopped settle more; all runs settle everything. Segstream stands beside them at \
              the same rate of packets and with windows of as many packets.",
    parameters: &[
        ("round trip", "20 ms (stated)"),
        ("windows", "64, 128, 256, 512 packets (chosen: not stated)"),
        ("exchange of states", "each 5 ms (chosen)"),
        ("processor", "83 us a packet (inferred from 12,000 packets/s)"),
        ("packet error rates", "0, 1e-4 to 0.2 (chosen)"),
        ("packet", "2048 bytes (HT: 2 kbytes of data)"),
        ("Segstream", "packets of 1024 bytes, a fixed rate of one in 83 us; segments of 1 and of 8 packets, windows 64 and 256"),
        ("run length", "a twentieth of the preset's packets, between the first quarter and the last eighth"),
    ],
    points,
    shortened: 20,
    figures,
    tables,
    claims: &[Claim {
        id: "HT-C2",
        text: "Under errors the throughput falls by no more than 25 % before collapse, at every window and error rate (HT 6)",
        check: drop,
    }],
    standings,
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// HT 6.
const RTT: Duration = Duration::from_millis(20);
/// How often states are exchanged.
const PERIOD: Duration = Duration::from_millis(5);
const WINDOWS: [u32; 4] = [64, 128, 256, 512];
const PROBABILITIES: [f64; 8] = [1e-4, 1e-3, 3e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1];
const WHO: [Who; 4] = [Who::Htpnet(Ranges::Eight), Who::Htpnet(Ranges::Four), Who::Htpnet(Ranges::Rotating), Who::Htpnet(Ranges::All)];
/// Segstream by packets of a segment: at these windows,
const SEGSTREAM_WINDOWS: [u32; 2] = [64, 256];
/// with segments of this many,
const SEGMENTS: [u32; 2] = [1, 8];
/// and at these error rates.
const SEGSTREAM_PROBABILITIES: [f64; 4] = [1e-3, 1e-2, 1e-1, 2e-1];
/// All runs, where errors are in data alone: [`Who::Htpnet`] of [`Ranges::All`] by this name.
const DATA_ALONE: &str = "htpnet all, data alone";
/// Its error rates: those at which it matters.
const SEVERE: [f64; 3] = [5e-2, 1e-1, 2e-1];
/// What may be lost of the throughput without errors.
const DROP: f64 = 0.25;

fn curve(who: Who, window: u32) -> String {
    format!("{} W={window}", who.name())
}

fn scenario(who: Who, window: u32, loss: &LossSpec) -> Scenario {
    let sync_period = matches!(who, Who::Htpnet(_)).then_some(PERIOD);
    who.over(RTT, window, loss).with_settings(|it: &mut htpnet::Settings| it.sync_period = sync_period)
}

/// Segstream with segments of this many packets.
fn segstream(segment: u32, window: u32) -> String {
    format!("segstream s={segment} W={window}")
}

fn segstream_points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for segment in SEGMENTS {
        for window in SEGSTREAM_WINDOWS {
            let point = |p: f64, loss: &LossSpec| {
                let scenario = scenario(Who::Segstream, window, loss).with(|it| {
                    it.workload.segment_packets = segment;
                    it.workload.tolerance = Tolerance::reliable(segment);
                    it.workload.window = window / segment;
                });
                StudyPoint { curve: segstream(segment, window), x: p, scenario }
            };
            points.push(point(0.0, &LossSpec::None));
            points.extend(SEGSTREAM_PROBABILITIES.iter().map(|p| point(*p, &random(*p))));
        }
    }
    points
}

fn points() -> Vec<StudyPoint> {
    let mut points = segstream_points();
    for who in WHO {
        for window in WINDOWS {
            let point = |p: f64, loss: &LossSpec| StudyPoint { curve: curve(who, window), x: p, scenario: scenario(who, window, loss) };
            points.push(point(0.0, &LossSpec::None));
            points.extend(PROBABILITIES.iter().map(|p| point(*p, &random(*p))));
        }
    }
    for window in WINDOWS {
        points.extend(SEVERE.map(|p| StudyPoint {
            curve: format!("{DATA_ALONE} W={window}"),
            x: p,
            scenario: scenario(Who::Htpnet(Ranges::All), window, &random(p)).with(|it| it.black_box.control_loss = Some(LossSpec::None)),
        }));
    }
    points
}

fn figures(points: &Measured) -> Vec<Figure> {
    let picture = |rest: &str, who: Who| {
        let mut curves = Vec::new();
        for ((window, colour), marker) in WINDOWS.into_iter().zip(SHADES).zip(MARKERS) {
            let look = Look { colour, marker, line: Line::Solid };
            curves.push(packet_rate::curve(points, &curve(who, window), &format!("window {window}"), look, 1.0));
        }
        let title = format!("Throughput under errors, round trip 20 ms: {}", who.label());
        packet_rate::figure(&format!("ht-fig10{rest}"), &title, (ERRORS, Scale::Log), LABEL, curves)
    };
    let mut figures =
        [("", WHO[0]), ("-four", WHO[1]), ("-rotating", WHO[2]), ("-all", WHO[3])].map(|(rest, who)| picture(rest, who)).to_vec();
    let mut curves = Vec::new();
    for (segment, line) in SEGMENTS.into_iter().zip([Line::Solid, Line::Dashed]) {
        for ((window, colour), marker) in SEGSTREAM_WINDOWS.into_iter().zip([SHADES[0], SHADES[2]]).zip([MARKERS[0], MARKERS[2]]) {
            let label = format!("window {window}, segments of {segment}");
            curves.push(packet_rate::curve(points, &segstream(segment, window), &label, Look { colour, marker, line }, 1.0));
        }
    }
    let title = "Throughput under errors, round trip 20 ms: Segstream";
    figures.push(packet_rate::figure("ht-fig10-segstream", title, (ERRORS, Scale::Log), LABEL, curves));
    figures
}

/// What is left at an error rate of the throughput without errors.
fn left(points: &Measured, curve: &str, p: f64) -> Option<f64> {
    Some(packet_rate::at(points, curve, p)? / packet_rate::at(points, curve, 0.0)?)
}

/// The same with errors in data alone.
fn left_of_data_alone(points: &Measured, window: u32, p: f64) -> Option<f64> {
    let without = packet_rate::at(points, &curve(Who::Htpnet(Ranges::All), window), 0.0)?;
    Some(packet_rate::at(points, &format!("{DATA_ALONE} W={window}"), p)? / without)
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let told = |part: Option<f64>| part.map_or_else(String::new, |left| format!("{left:.2}"));
    let row = |label: &str, window: u32, curve: &str| {
        let most = packet_rate::at(points, curve, 0.0).map_or_else(String::new, |rate| format!("{rate:.0}"));
        let mut row = vec![label.to_owned(), window.to_string(), most];
        row.extend(PROBABILITIES.map(|p| told(left(points, curve, p))));
        row
    };
    let mut rows = Vec::new();
    for who in WHO {
        rows.extend(WINDOWS.map(|window| row(&who.label(), window, &curve(who, window))));
    }
    for window in WINDOWS {
        let mut row = vec!["HTPNET, all runs, no state lost".to_owned(), window.to_string(), String::new()];
        row.extend(PROBABILITIES.map(|p| told(left_of_data_alone(points, window, p))));
        rows.push(row);
    }
    for segment in SEGMENTS {
        let label = format!("Segstream, segments of {segment}");
        rows.extend(SEGSTREAM_WINDOWS.map(|window| row(&label, window, &segstream(segment, window))));
    }
    let mut columns = ["", "window", "packets/s without errors"].map(str::to_owned).to_vec();
    columns.extend(PROBABILITIES.map(|p| format!("{p:e}")));
    vec![TextTable { title: "What is left of the throughput, by error rate".to_owned(), columns, rows }]
}

/// The largest error rate up to which at most [`DROP`] is lost.
fn holds_to(points: &Measured, who: Who, window: u32) -> Option<f64> {
    let mut holds = 0.0;
    for p in PROBABILITIES {
        if left(points, &curve(who, window), p)? < 1.0 - DROP {
            break;
        }
        holds = p;
    }
    Some(holds)
}

fn drop(points: &Measured) -> Option<Finding> {
    let last = PROBABILITIES[PROBABILITIES.len() - 1];
    let mut told = Vec::new();
    let mut holds = Vec::new();
    let mut somewhere = false;
    for who in WHO {
        let to = WINDOWS.iter().map(|window| holds_to(points, who, *window)).collect::<Option<Vec<f64>>>()?;
        told.push(format!("{} {}", who.label(), to.iter().map(|p| format!("{p:e}")).collect::<Vec<_>>().join(" / ")));
        holds.push(to.iter().all(|p| *p >= last));
        somewhere |= who == WHO[0] && to.iter().all(|p| *p >= 1e-2);
    }
    let data_alone = WINDOWS.iter().map(|window| left_of_data_alone(points, *window, last)).collect::<Option<Vec<f64>>>()?;
    let least = data_alone.iter().copied().fold(f64::INFINITY, f64::min);
    let parts = [
        Part::point("up to some error rate at every window, with the paper's report", somewhere),
        Part::also("up to the largest error rate, with the paper's report", holds[0]),
        Part::also("up to the largest with some report", holds[1..].contains(&true) || least >= 1.0 - DROP),
    ];
    let measured = format!(
        "at most 25 % are lost up to an error rate of, at windows of 64 / 128 / 256 / 512: {}; with all runs and no state packet lost \
         at least {least:.2} is left at {last}; of Segstream with segments of one packet {:.2} / {:.2} at {last}, windows 64 / 256",
        told.join("; "),
        left(points, &segstream(1, 64), last)?,
        left(points, &segstream(1, 256), last)?
    );
    Some(Finding::of(parts, measured).because(
        "HT 3.4 says up to eight pairs, HT Table 2 draws four. They settle as many holes an exchange, so that the oldest of the holes in a \
         window hold the rest back: n / (p (RTD + T)) packets a second with n pairs. The claim needs a receiver that reports every run it has, in as many \
         state packets of one exchange as that takes; then only what is lost is sent again, and what is left at 0.2 depends on \
         whether state packets are lost as well: 36 % of the exchanges then fail.",
    ))
}

/// The flagship beside HTPNET with eight pairs, by packets of a segment.
fn standings(points: &Measured) -> Vec<Standing> {
    let pair = |segment: u32, window: u32| Pair {
        ours: segstream(segment, window),
        theirs: curve(WHO[0], window),
        curve: format!("segments of {segment}, W = {window}, p"),
    };
    let pairs: Vec<Pair> = SEGMENTS.iter().flat_map(|segment| SEGSTREAM_WINDOWS.map(|window| pair(*segment, window))).collect();
    standing::of(points, "HTPNET, eight pairs", Quality::Throughput, &pairs, |result| packet_rate::of(result).mean)
}
