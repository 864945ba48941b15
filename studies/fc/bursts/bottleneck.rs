//! Bursts over a bottleneck beside an even rate of the same average: four senders, and the room in front of the link.
//!
//! Called by [`super::STUDY`].
//!
//! Invariant: burst or even, the senders have the same segments at the same average rate; only P differs.

use crate::black_box::mbit;
use crate::curves::{Look, SHADES};
use crate::flagship::sweep;
use segstream_base::{Bandwidth, Bytes, Duration, Tolerance};
use segstream_lab::claim::{Finding, Part};
use segstream_lab::figure::{Figure, Line, Marker, Scale, TextTable};
use segstream_lab::flagship;
use segstream_lab::measured::Measured;
use segstream_lab::scenario::Scenario;
use segstream_lab::shared::{Application, FlowOutcome, Pace, SharedFlow, SharedOutcome, SharedResult, SharedScenario, Traffic};
use segstream_lab::statistics::Estimate;
use segstream_lab::study::SharedPoint;
use segstream_schemes::sstp;
use segstream_schemes::transport::Bursts;

const SENDERS: u32 = 4;
/// C and P in Mbit/s.
const LINK: u64 = 100;
const PEAK: u64 = 400;
const PACKET_BYTES: u32 = 1024;
/// s, and L.
const SEGMENT: u32 = 64;
/// F.
const PER_SECOND: u32 = 30;
/// In packets.
const ROOM: [u32; 5] = [16, 32, 64, 128, 256];

/// Who sends, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    is_flagship: bool,
    in_bursts: bool,
}

const WAYS: [Way; 4] = [
    Way { is_flagship: false, in_bursts: true },
    Way { is_flagship: false, in_bursts: false },
    Way { is_flagship: true, in_bursts: true },
    Way { is_flagship: true, in_bursts: false },
];

/// A = 8 F L l.
const fn average() -> Bandwidth {
    Bandwidth::from_bits_per_second(8 * PER_SECOND as u64 * SEGMENT as u64 * PACKET_BYTES as u64)
}

impl Way {
    const fn name(self) -> &'static str {
        match (self.is_flagship, self.in_bursts) {
            (false, true) => "sstp bursts",
            (false, false) => "sstp even",
            (true, true) => "segstream bursts",
            (true, false) => "segstream even",
        }
    }

    const fn label(self) -> &'static str {
        match (self.is_flagship, self.in_bursts) {
            (false, true) => "SSTP, bursts",
            (false, false) => "SSTP, evenly",
            (true, true) => "Segstream, bursts",
            (true, false) => "Segstream, evenly",
        }
    }

    const fn look(self) -> Look {
        let (colour, marker) = if self.is_flagship { (SHADES[1], Marker::Circle) } else { (SHADES[2], Marker::Square) };
        Look { colour, marker, line: if self.in_bursts { Line::Solid } else { Line::Dashed } }
    }

    fn sender(self, number: u32) -> SharedFlow {
        let scenario = Scenario::default().with(|it| {
            it.scheme = if self.is_flagship { flagship::Settings::default().into() } else { sstp::Settings::default().into() };
            it.workload.packet_bytes = PACKET_BYTES;
            it.workload.segment_packets = SEGMENT;
            it.workload.tolerance = Tolerance::reliable(SEGMENT);
            it.workload.window = 12;
            it.workload.bursts = self.in_bursts.then_some(Bursts { per_second: PER_SECOND, packets: SEGMENT });
        });
        let rate = if self.in_bursts { mbit(PEAK) } else { average() };
        let traffic = Traffic::Scheme { scenario: Box::new(scenario), pace: Pace::Fixed(rate) };
        // A little less than the rate carries: what is lost must be sent again.
        let offered = Bandwidth::from_bits_per_second(average().bits_per_second() * 19 / 20);
        SharedFlow { application: Application::periodic(offered), ..SharedFlow::new(&format!("{number}"), traffic) }
    }
}

pub(super) fn points() -> Vec<SharedPoint> {
    let over = |way: Way, room: u32| SharedScenario {
        bandwidth: mbit(LINK),
        queue: Bytes::new(u64::from(room * PACKET_BYTES)),
        duration: Duration::from_secs(8),
        warm_up: Duration::from_secs(2),
        // A second: the bursts of different senders come at times of their own.
        start_spread: Duration::from_secs(1),
        flows: (1..=SENDERS).map(|number| way.sender(number)).collect(),
        ..SharedScenario::default()
    };
    let of = |way: Way| ROOM.map(|room| SharedPoint { curve: way.name().to_owned(), x: f64::from(room), scenario: over(way, room) });
    WAYS.into_iter().flat_map(of).collect()
}

/// The share of packets that the link dropped, in per cent.
fn dropped(result: &SharedResult) -> Estimate {
    let of = |outcome: &SharedOutcome, count: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(count).sum::<u64>() as f64;
    result.over_replications(|outcome| 100.0 * of(outcome, |flow| flow.packets_dropped) / of(outcome, |flow| flow.packets_sent))
}

/// From when a segment was due to its acceptance, the mean in milliseconds.
fn latency(result: &SharedResult) -> Estimate {
    let mean = |outcome: &SharedOutcome| {
        let (segments, sum) = outcome.flows.iter().fold((0, 0.0), |(segments, sum), flow| {
            (segments + flow.latencies.segments, sum + flow.latencies.segments as f64 * flow.latencies.mean_ns as f64)
        });
        sum * 1e-6 / f64::from(u32::try_from(segments).unwrap_or(u32::MAX))
    };
    result.over_replications(mean)
}

pub(super) fn figures(points: &Measured) -> Vec<Figure> {
    let curves = |value: fn(&SharedResult) -> Estimate| WAYS.map(|way| sweep::curve(points, way.name(), way.label(), way.look(), value));
    let x = ("room in front of the link (packets)", Scale::Log);
    vec![
        sweep::figure(
            "fc-bursts-dropped",
            "Packets dropped by the bottleneck",
            x,
            ("packets dropped (%)", Scale::Linear),
            curves(dropped).to_vec(),
        ),
        sweep::figure("fc-bursts-latency", "From a segment's due time to its acceptance", x, ("mean (ms)", Scale::Linear), {
            curves(latency).to_vec()
        }),
    ]
}

pub(super) fn tables(points: &Measured) -> Vec<TextTable> {
    let text = |way: Way, room: u32| {
        points.shared_at(way.name(), f64::from(room)).map_or_else(String::new, |it| {
            format!("{:.2} %, {:.1} ms, {:.1} ms", dropped(it).mean, it.queue_ms_mean().mean, latency(it).mean)
        })
    };
    let row = |room: u32| [vec![room.to_string()], WAYS.map(|way| text(way, room)).to_vec()].concat();
    let columns = [vec!["room (packets)".to_owned()], WAYS.map(|way| way.label().to_owned()).to_vec()].concat();
    let title = "Over the bottleneck: dropped, queueing delay in the mean, from due to accepted in the mean".to_owned();
    vec![TextTable { title, columns, rows: ROOM.map(row).to_vec() }]
}

fn row(points: &Measured, way: Way, value: fn(&SharedResult) -> Estimate) -> Option<Vec<f64>> {
    ROOM.iter().map(|room| Some(value(points.shared_at(way.name(), f64::from(*room))?).mean)).collect()
}

fn listed(values: &[f64], decimals: usize) -> String {
    values.iter().map(|value| format!("{value:.decimals$}")).collect::<Vec<_>>().join(" / ")
}

fn of_all(points: &Measured, value: fn(&SharedResult) -> Estimate, decimals: usize) -> Option<(Vec<Vec<f64>>, String)> {
    let rows = WAYS.iter().map(|way| row(points, *way, value)).collect::<Option<Vec<_>>>()?;
    let parts: Vec<String> = WAYS.iter().zip(&rows).map(|(way, row)| format!("{}: {}", way.label(), listed(row, decimals))).collect();
    Some((rows, format!("room for 16 / 32 / 64 / 128 / 256 packets: {}", parts.join("; "))))
}

pub(super) fn bursts_need_room(points: &Measured) -> Option<Finding> {
    let (rows, text) = of_all(points, dropped, 2)?;
    let alone = f64::from(SEGMENT) * (1.0 - LINK as f64 / PEAK as f64);
    let lose = |row: &[f64]| ROOM.iter().zip(row).filter(|(room, _)| f64::from(**room) < alone).all(|(_, lost)| *lost > 0.0);
    let bursts = rows.iter().zip(WAYS).filter(|(_, way)| way.in_bursts).all(|(row, _)| lose(row));
    let even = rows.iter().zip(WAYS).filter(|(_, way)| !way.in_bursts).all(|(row, _)| row.iter().all(|lost| *lost == 0.0));
    let parts = [Part::also("bursts lose packets in less room", bursts), Part::also("an even rate loses none", even)];
    Some(Finding::of(parts, format!("L (1 - C / P) = {alone} packets; dropped in %, {text}")))
}

pub(super) fn bursts_are_sooner(points: &Measured) -> Option<Finding> {
    let (rows, text) = of_all(points, latency, 1)?;
    let most = |row: &[f64]| row.last().copied().unwrap_or(f64::NAN);
    let parts: Vec<Part> =
        ["SSTP", "Segstream"].into_iter().zip(rows.chunks(2)).map(|(who, pair)| Part::also(who, most(&pair[0]) < most(&pair[1]))).collect();
    Some(Finding::of(parts, format!("from due to accepted in ms, {text}")))
}
