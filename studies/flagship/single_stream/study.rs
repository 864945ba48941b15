//! One stream alone on a link: does it fill it, and does it keep the queue short?
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: utilisation counts whole packets that arrived after the warm-up of 5 s.
//! Source: RFC 9743 5.1.2 (bufferbloat); RFC 8867 5.1 without its changes of capacity.

use super::link::{self, BANDWIDTH, OURS, RTT, mbit, stream};
use super::over_time::{self, QUEUE, THROUGHPUT};
use super::sweep;
use super::target::{Place, judged};
use crate::curves::{Look, SHADES};
use segstream_base::{Bandwidth, Duration};
use segstream_lab::claim::{Claim, Finding};
use segstream_lab::figure::{Curve, Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::shared::{FlowOutcome, SharedOutcome, SharedResult, SharedScenario};
use segstream_lab::study::{SharedPoint, Study};
use segstream_path::Aqm;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "flagship/single_stream",
    title: "One stream alone on a link",
    source: "RFC 9743 5.1.2; the link of RFC 8867 5.1 without its changes",
    summary: "A stream at automatic rate has the link to itself. It is to fill the link and to keep little waiting, over four decades \
              of bandwidth, over round trips from 5 to 300 ms, and whatever the queue could hold.\n\n\
              CUBIC, Reno and BBR alone on the same link stand beside it.",
    parameters: &[
        ("link", "100 Mbit/s, 60 ms, a queue of one bandwidth-delay product, where nothing else is said"),
        ("run", "12 s (20 s in the pictures over time, 8 s at 1 Gbit/s), totals from 5 s on"),
        ("packets", "1144 bytes, TCP's 1500; segments of 32, no tolerated losses"),
    ],
    shared: points,
    figures,
    tables,
    claims: &[
        Claim { id: "SG-T1", text: "At 100 Mbit/s and 60 ms it fills the link to 0.95 or more.", check: fills },
        Claim { id: "SG-T2", text: "The mean queueing delay there is at most 10 ms.", check: waits },
        Claim { id: "SG-T3", text: "Both hold from 1 Mbit/s to 1 Gbit/s at 60 ms, and from 5 to 300 ms at 100 Mbit/s.", check: everywhere },
        Claim { id: "SG-T4", text: "Both hold in queues of 0.25 to 4 products, under CoDel and with marks.", check: any_queue },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const BANDWIDTHS: [u64; 4] = [1, 10, 100, 1000];
const RTTS_MS: [u64; 5] = [5, 20, 60, 150, 300];
const PRODUCTS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
const MANAGED: [&str; 2] = ["CoDel", "CoDel, marks"];
const FILLED: f64 = 0.95;
const WAIT_MS: f64 = 10.0;

fn alone(bandwidth: Bandwidth, rtt: Duration, products: f64) -> SharedScenario {
    let duration = Duration::from_secs(if bandwidth > BANDWIDTH { 8 } else { 12 });
    SharedScenario { duration, flows: vec![stream(OURS, bandwidth, rtt)], ..link::link(bandwidth, rtt, products) }
}

fn managed(name: &str) -> SharedScenario {
    let common = alone(BANDWIDTH, RTT, 1.0);
    // L4S (RFC 9331) is not used: marks come where a CoDel of 5 ms would drop.
    let mark_above = (name == MANAGED[1]).then_some(Duration::from_millis(5));
    SharedScenario { aqm: Aqm::CODEL, mark_above, ..common }
}

fn points() -> Vec<SharedPoint> {
    let point = |curve: &str, x: f64, scenario: SharedScenario| SharedPoint { curve: curve.to_owned(), x, scenario };
    let mut points = vec![point("time", 0.0, SharedScenario { flows: vec![link::ours()], ..link::common() })];
    for (name, traffic) in link::TCPS {
        points.push(point(name, 0.0, SharedScenario { flows: vec![link::tcp(OURS, traffic)], ..link::common() }));
    }
    points.extend(BANDWIDTHS.map(|rate| point("bandwidth", rate as f64, alone(mbit(rate), RTT, 1.0))));
    points.extend(RTTS_MS.map(|rtt| point("round trip", rtt as f64, alone(BANDWIDTH, Duration::from_millis(rtt), 1.0))));
    points.extend(PRODUCTS.map(|products| point("queue", products, alone(BANDWIDTH, RTT, products))));
    points.extend(MANAGED.map(|name| point(name, 1.0, managed(name))));
    points
}

fn figures(points: &Measured) -> Vec<Figure> {
    let mut found = over_time(points);
    let sweeps: [(&str, &str, &str, (f64, f64)); 3] = [
        ("bandwidth", "bandwidth", "bandwidth (Mbit/s)", (1.0, 1000.0)),
        ("rtt", "round trip", "round trip (ms)", (5.0, 300.0)),
        ("queue", "queue", "room in the queue (bandwidth-delay products)", (0.25, 4.0)),
    ];
    for (id, name, label, range) in sweeps {
        let id = format!("flagship-single-stream-{id}");
        let title = format!("One stream alone, over the {name}");
        let look = |colour, marker| Look { colour, marker, line: Line::Solid };
        let curves = vec![
            sweep::curve(points, name, "queueing delay, mean (ms)", look(SHADES[1], Marker::Circle), SharedResult::queue_ms_mean),
            sweep::curve(
                points,
                name,
                "queueing delay, 95th percentile (ms)",
                look(SHADES[5], Marker::Triangle),
                SharedResult::queue_ms_p95,
            ),
            sweep::curve(points, name, "idle part of the link (%)", look(SHADES[2], Marker::Square), |result| {
                result.over_replications(|outcome| 100.0 * (1.0 - filled(result, outcome)))
            }),
            sweep::level("target: at most 10 ms", SHADES[1], range, WAIT_MS),
            sweep::level("target: at most 5 %", SHADES[2], range, 100.0 * (1.0 - FILLED)),
        ];
        found.push(sweep::figure(&id, &title, (label, Scale::Log), ("milliseconds, per cent", Scale::Linear), curves));
    }
    found
}

fn filled(result: &SharedResult, outcome: &SharedOutcome) -> f64 {
    let seconds = result.scenario.duration.saturating_sub(result.scenario.warm_up).as_secs_f64();
    let arrived: u64 = outcome.flows.iter().map(|flow| flow.bytes_arrived).sum();
    arrived as f64 * 8.0 / (result.scenario.bandwidth.bits_per_second() as f64 * seconds)
}

fn over_time(points: &Measured) -> Vec<Figure> {
    let names = ["time", "CUBIC", "Reno", "BBR"];
    let drawn = |draw: &dyn Fn(&SharedResult, &str, &str) -> Curve| -> Vec<Curve> {
        let one = |(at, name): (usize, &&str)| {
            let label = if at == 0 { "Segstream" } else { *name };
            Some(draw(points.shared_at(name, 0.0)?, label, COLOURS[at]))
        };
        names.iter().enumerate().filter_map(one).collect()
    };
    let throughput = drawn(&|result, label, colour| over_time::throughput(result, OURS, label, colour));
    let queue = drawn(&over_time::queue);
    vec![
        over_time::figure("flagship-single-stream-throughput", "Each alone on 100 Mbit/s, 60 ms: what it gets", THROUGHPUT, throughput),
        over_time::figure("flagship-single-stream-delay", "Each alone on 100 Mbit/s, 60 ms: what waits for the link", QUEUE, queue),
    ]
}

const COLOURS: [&str; 4] = [SHADES[1], SHADES[2], SHADES[3], SHADES[4]];

fn tables(points: &Measured) -> Vec<TextTable> {
    let mut rows = Vec::new();
    for point in &points.shared {
        let result = &point.result;
        let (setting, who) = match point.curve.as_str() {
            "time" => ("common point".to_owned(), "Segstream"),
            "bandwidth" => (format!("{} Mbit/s", point.x), "Segstream"),
            "round trip" => (format!("{} ms", point.x), "Segstream"),
            "queue" => (format!("a queue of {}", point.x), "Segstream"),
            name if MANAGED.contains(&name) => (name.to_owned(), "Segstream"),
            name => ("common point".to_owned(), name),
        };
        let lost = result.of_flow(OURS, FlowOutcome::loss_share).mean;
        rows.push(vec![
            setting,
            who.to_owned(),
            format!("{:.3}", result.utilisation().mean),
            format!("{:.1}", result.queue_ms_mean().mean),
            format!("{:.1}", result.queue_ms_p95().mean),
            format!("{lost:.5}"),
        ]);
    }
    let columns = ["setting", "who", "utilisation", "queueing delay, mean (ms)", "95th percentile (ms)", "packets lost"];
    vec![TextTable { title: "Alone on the link".to_owned(), columns: columns.map(str::to_owned).to_vec(), rows }]
}

fn fills(points: &Measured) -> Option<Finding> {
    let filled = points.shared_at("time", 0.0)?.utilisation().mean;
    Some(judged(&[Place::new("utilisation", format!("{filled:.3}"), filled >= FILLED)], ""))
}

fn waits(points: &Measured) -> Option<Finding> {
    let result = points.shared_at("time", 0.0)?;
    let wait = result.queue_ms_mean().mean;
    let number = format!("{wait:.1} ms, 95th percentile {:.1} ms", result.queue_ms_p95().mean);
    Some(judged(&[Place::new("mean", number, wait <= WAIT_MS)], ""))
}

fn both(points: &Measured, curve: &str, x: f64, name: String) -> Option<Place> {
    let result = points.shared_at(curve, x)?;
    let (filled, wait) = (result.utilisation().mean, result.queue_ms_mean().mean);
    Some(Place::new(name, format!("{filled:.3}, {wait:.1} ms"), filled >= FILLED && wait <= WAIT_MS))
}

fn everywhere(points: &Measured) -> Option<Finding> {
    let bandwidths = BANDWIDTHS.iter().map(|rate| both(points, "bandwidth", *rate as f64, format!("{rate} Mbit/s")));
    let rtts = RTTS_MS.iter().map(|rtt| both(points, "round trip", *rtt as f64, format!("{rtt} ms")));
    let places: Option<Vec<Place>> = bandwidths.chain(rtts).collect();
    Some(judged(
        &places?,
        "The delay it aims at grows as its rate falls, 10 ms at 10 Mbit/s and 22 at 1, which is what makes streams at one queue equal; over \
         300 ms it sees late what follows a drain.",
    ))
}

fn any_queue(points: &Measured) -> Option<Finding> {
    let queues = PRODUCTS.iter().map(|products| both(points, "queue", *products, format!("queue {products}")));
    let managed = MANAGED.iter().map(|name| both(points, name, 1.0, (*name).to_owned()));
    let places: Option<Vec<Place>> = queues.chain(managed).collect();
    Some(judged(&places?, ""))
}
