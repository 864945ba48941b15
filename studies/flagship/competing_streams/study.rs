//! Streams of the flagship beside each other: fairness, and fairness between round trips.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: fairness is Jain's index over what each got in a second.
//! Source: RFC 8867 5.4 and 5.5, RFC 9743 5.1.4.

use super::link::{self, BANDWIDTH, RTT, mbit, second, stream};
use super::over_time::{self, QUEUE, SECOND, THROUGHPUT, mbit_in};
use super::sweep;
use super::target::{Place, judged};
use crate::curves::{Look, SHADES};
use segstream_base::Duration;
use segstream_lab::claim::{Claim, Finding};
use segstream_lab::figure::{Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::shared::{SharedFlow, SharedOutcome, SharedResult, SharedScenario};
use segstream_lab::statistics::jain;
use segstream_lab::study::{SharedPoint, Study};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "flagship/competing_streams",
    title: "Streams beside each other",
    source: "RFC 8867 5.4 and 5.5, RFC 9743 5.1.4",
    summary: "Four streams start two seconds apart and share a link. Each newcomer is to get its share, and the four are to stay \
              together.\n\n\
              In the second picture five streams of different round trips, 20 to 300 ms (one-way delays of 10, 25, 50, 100 and 150 ms \
              as in RFC 8867 5.5), share it. In the third the number of streams grows.",
    parameters: &[
        ("link", "100 Mbit/s, 60 ms, a queue of one bandwidth-delay product; 20 Mbit/s over the number of streams"),
        ("starts", "0, 2, 4, 6 s; of different round trips all at 0; over the number of streams half a second apart"),
        ("run", "40 s; fairness from 10 s on, of different round trips from 20 s on"),
    ],
    shared: points,
    figures,
    tables,
    claims: &[
        Claim {
            id: "SG-T5",
            text: "Of four streams started at 0, 2, 4 and 6 s Jain's index over every second from 10 s on is 0.95 or more.",
            check: four_share,
        },
        Claim {
            id: "SG-T6",
            text: "Of five streams with round trips of 20 to 300 ms each gets at least a third of an equal share.",
            check: round_trips_share,
        },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const NAMES: [&str; 4] = ["1st", "2nd", "3rd", "4th"];
const DELAYS_MS: [u64; 5] = [10, 25, 50, 100, 150];
const COUNTS: [usize; 4] = [2, 4, 8, 16];
const FAIR: f64 = 0.95;
const LEAST_PART: f64 = 1.0 / 3.0;
const RUN: usize = 40 * SECOND;
const FROM: usize = 10 * SECOND;

fn four() -> SharedScenario {
    let flow = |(at, name): (usize, &&str)| SharedFlow { start: second(2 * at as u64), ..stream(name, BANDWIDTH, RTT) };
    let flows = NAMES.iter().enumerate().map(flow).collect();
    SharedScenario { duration: Duration::from_secs(40), warm_up: Duration::from_secs(10), flows, ..link::common() }
}

fn round_trip_name(delay_ms: u64) -> String {
    format!("{} ms", 2 * delay_ms)
}

fn round_trips() -> SharedScenario {
    let flows = DELAYS_MS.map(|delay| stream(&round_trip_name(delay), BANDWIDTH, Duration::from_millis(2 * delay)));
    SharedScenario { duration: Duration::from_secs(40), warm_up: Duration::from_secs(20), flows: flows.to_vec(), ..link::common() }
}

fn many(count: usize) -> SharedScenario {
    let start = |at: usize| segstream_base::Instant::ZERO + Duration::from_millis(500) * at as u64;
    let flow = |at: usize| SharedFlow { start: start(at), ..stream(&format!("{}", at + 1), mbit(20), RTT) };
    let flows = (0..count).map(flow).collect();
    SharedScenario { duration: Duration::from_secs(40), warm_up: Duration::from_secs(10), flows, ..link::link(mbit(20), RTT, 1.0) }
}

fn points() -> Vec<SharedPoint> {
    let point = |curve: &str, x: f64, scenario| SharedPoint { curve: curve.to_owned(), x, scenario };
    let mut points = vec![point("four", 4.0, four()), point("round trips", 5.0, round_trips())];
    points.extend(COUNTS.map(|count| point("many", count as f64, many(count))));
    points
}

/// The index in each whole second from `from` on of one run.
fn fairness(outcome: &SharedOutcome, from: usize) -> Vec<f64> {
    let in_second = |at: usize| {
        let got: Vec<f64> = outcome.flows.iter().map(|flow| mbit_in(outcome, &flow.name, at..at + SECOND)).collect();
        jain(&got)
    };
    (from..RUN).step_by(SECOND).map(in_second).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn figures(points: &Measured) -> Vec<Figure> {
    let mut found = Vec::new();
    if let Some(result) = points.shared_at("four", 4.0) {
        let curves = NAMES.iter().zip(&SHADES[1..]).map(|(name, colour)| over_time::throughput(result, name, name, colour));
        let title = "Four streams, started at 0, 2, 4 and 6 s";
        found.push(over_time::figure("flagship-competing-streams", title, THROUGHPUT, curves.collect()));
        let queue = vec![over_time::queue(result, "four streams", SHADES[1])];
        found.push(over_time::figure("flagship-competing-streams-delay", "The same four: what waits for the link", QUEUE, queue));
    }
    if let Some(result) = points.shared_at("round trips", 5.0) {
        let curve = |(delay, colour): (&u64, &&str)| {
            let name = round_trip_name(*delay);
            over_time::throughput(result, &name, &format!("round trip {name}"), colour)
        };
        let curves = DELAYS_MS.iter().zip(&SHADES[1..]).map(curve).collect();
        let title = "Five streams of different round trips";
        found.push(over_time::figure("flagship-competing-streams-rtt", title, THROUGHPUT, curves));
    }
    let value = |result: &SharedResult| result.over_replications(|outcome| mean(&fairness(outcome, FROM)));
    let least =
        |result: &SharedResult| result.over_replications(|outcome| fairness(outcome, FROM).into_iter().fold(f64::INFINITY, f64::min));
    let look = |colour, marker| Look { colour, marker, line: Line::Solid };
    let curves = vec![
        sweep::curve(points, "many", "mean of all seconds from 10 s on", look(SHADES[1], Marker::Circle), value),
        sweep::curve(points, "many", "least of them", look(SHADES[5], Marker::Triangle), least),
        sweep::level("target of four", SHADES[0], (2.0, 16.0), FAIR),
    ];
    let title = "Fairness over the number of streams, 20 Mbit/s";
    let (x, y) = (("streams", Scale::Linear), ("Jain's index over a second", Scale::Linear));
    let mut figure = sweep::figure("flagship-competing-streams-many", title, x, y, curves);
    figure.y.range = Some((0.0, 1.05));
    found.push(figure);
    found
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let mut rows = Vec::new();
    for point in &points.shared {
        let result = &point.result;
        let of = |value: fn(&[f64]) -> f64, from| result.over_replications(|outcome| value(&fairness(outcome, from))).mean;
        let from = if point.curve == "round trips" { 2 * FROM } else { FROM };
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let streams = if point.curve == "many" { format!("{}, 20 Mbit/s", point.x) } else { format!("{} ({})", point.x, point.curve) };
        rows.push(vec![
            streams,
            format!("{:.3}", of(mean, from)),
            format!("{:.3}", of(least, from)),
            format!("{:.3}", result.utilisation().mean),
            format!("{:.1}", result.queue_ms_mean().mean),
        ]);
    }
    let columns = ["streams", "Jain's index, mean", "least", "utilisation", "queueing delay, mean (ms)"];
    vec![TextTable { title: "Streams beside each other".to_owned(), columns: columns.map(str::to_owned).to_vec(), rows }]
}

fn four_share(points: &Measured) -> Option<Finding> {
    let result = points.shared_at("four", 4.0)?;
    let seconds: Vec<f64> = result.outcomes.iter().flat_map(|outcome| fairness(outcome, FROM)).collect();
    let fair = seconds.iter().filter(|index| **index >= FAIR).count();
    let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let places = [
        Place::new("mean", format!("{:.3}", mean(&seconds)), mean(&seconds) >= FAIR),
        Place::new("every second", format!("least {least:.3}, {fair} of {} seconds at 0.95 or more", seconds.len()), least >= FAIR),
    ];
    Some(judged(&places, "Four seconds after the last has started they are still drawing together."))
}

fn round_trips_share(points: &Measured) -> Option<Finding> {
    let result = points.shared_at("round trips", 5.0)?;
    let equal = 1.0 / DELAYS_MS.len() as f64;
    let place = |delay: &u64| {
        let name = round_trip_name(*delay);
        let part = result.share(&name).mean / equal;
        Place::new(name, format!("{part:.2}"), part >= LEAST_PART)
    };
    Some(judged(&DELAYS_MS.iter().map(place).collect::<Vec<_>>(), "A share moves in round trips, of which 40 s are 130 at 300 ms."))
}
