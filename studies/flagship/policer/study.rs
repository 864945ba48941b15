//! A policer: packets above a rate are dropped without a queue.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the policer stands at the entry of the stream's own path, behind a link that is never full; its bucket is full
//! at the start.
//! Source: RFC 2475 2.3.3.3; RFC 9743 5.1.3.

use super::link::{self, OURS, cubic_and_bbr, mbit, tcp};
use super::over_time::{self, SECOND, THROUGHPUT, mbit_in, smallest};
use super::sweep;
use super::target::{Place, judged};
use crate::curves::{Look, SHADES};
use segstream_base::{Bytes, Duration};
use segstream_lab::claim::{Claim, Finding};
use segstream_lab::figure::{Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::shared::{FlowOutcome, SharedFlow, SharedOutcome, SharedResult, SharedScenario};
use segstream_lab::study::{SharedPoint, Study};
use segstream_path::Policer;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "flagship/policer",
    title: "A policer",
    source: "RFC 9743 5.1.3; policing as in RFC 2475 2.3.3.3",
    summary: "A link of 100 Mbit/s lets a stream have less by dropping what exceeds it. There is no queue to see, and loss is all there \
              is to learn from. The stream is to find at least half of its rate within two seconds, and to stop losing much.\n\n\
              The pictures over time are at 20 Mbit/s, with CUBIC and BBR for comparison.",
    parameters: &[
        ("link", "100 Mbit/s, 60 ms, a queue of one bandwidth-delay product"),
        ("policer", "5 to 80 Mbit/s; a bucket of 100 ms of its rate, and at 20 Mbit/s of 10 and of 500 ms"),
        ("run", "15 s; rates and losses from 2 s on"),
    ],
    shared: points,
    figures,
    tables,
    claims: &[
        Claim {
            id: "SG-T20",
            text: "Of 5 to 80 Mbit/s it has half or more in every second from 2 s on, with buckets of 10 to 500 ms.",
            check: finds_half,
        },
        Claim { id: "SG-T21", text: "From 2 s on it loses at most 2 % of its packets there.", check: loses_little },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const RATES: [u64; 5] = [5, 10, 20, 40, 80];
const BUCKETS_MS: [u64; 3] = [10, 100, 500];
const RATE: u64 = 20;
const FOUND: usize = 2 * SECOND;
const END: usize = 15 * SECOND;

fn policed(flow: SharedFlow, rate: u64, bucket_ms: u64) -> SharedScenario {
    let bucket = mbit(rate).bytes_in(Duration::from_millis(bucket_ms)).max(Bytes::new(15_000));
    let policer = Policer { rate: mbit(rate), burst: bucket };
    let flow = SharedFlow { policer: Some(policer), ..flow };
    let (duration, warm_up) = (Duration::from_secs(15), Duration::from_secs(2));
    SharedScenario { duration, warm_up, flows: vec![flow], ..link::common() }
}

fn points() -> Vec<SharedPoint> {
    let point = |curve: &str, x: f64, scenario| SharedPoint { curve: curve.to_owned(), x, scenario };
    let mut points: Vec<SharedPoint> =
        RATES.iter().map(|rate| point("Segstream", *rate as f64, policed(link::ours(), *rate, 100))).collect();
    points.extend(BUCKETS_MS.iter().map(|bucket| point("bucket", *bucket as f64, policed(link::ours(), RATE, *bucket))));
    for (name, traffic, _) in cubic_and_bbr() {
        points.extend(RATES.iter().map(|rate| point(name, *rate as f64, policed(tcp(OURS, traffic.clone()), *rate, 100))));
    }
    points
}

fn figures(points: &Measured) -> Vec<Figure> {
    let at = |name: &str| points.shared_at(name, RATE as f64);
    let mut curves = Vec::new();
    for (name, _, look) in cubic_and_bbr() {
        curves.extend(at(name).map(|result| over_time::throughput(result, OURS, name, look.colour)));
    }
    curves.extend(at("Segstream").map(|result| over_time::throughput(result, OURS, "Segstream", SHADES[1])));
    let title = "Each alone behind a policer of 20 Mbit/s: what arrives";
    vec![
        over_time::figure("flagship-policer", title, THROUGHPUT, curves),
        swept(points, "flagship-policer-rate", "What is had of a policer's rate, from 2 s on", "part of the policer's rate", |result| {
            result.of_flow(OURS, |flow| flow.throughput_bps() / (1e6 * policer_mbit(result)))
        }),
        swept(points, "flagship-policer-loss", "What a policer drops, from 2 s on", "part of packets dropped", |result| {
            result.of_flow(OURS, FlowOutcome::loss_share)
        }),
    ]
}

fn policer_mbit(result: &SharedResult) -> f64 {
    let policer = result.scenario.flows.first().and_then(|flow| flow.policer);
    policer.map_or(f64::NAN, |policer| policer.rate.bits_per_second() as f64 * 1e-6)
}

fn swept(points: &Measured, id: &str, title: &str, up: &str, value: fn(&SharedResult) -> segstream_lab::statistics::Estimate) -> Figure {
    let look = Look { colour: SHADES[1], marker: Marker::Circle, line: Line::Solid };
    let mut curves = vec![sweep::curve(points, "Segstream", "Segstream", look, value)];
    curves.extend(cubic_and_bbr().map(|(name, _, look)| sweep::curve(points, name, name, look, value)));
    let of_rate = id.ends_with("rate");
    let (label, y, scale) = if of_rate { ("target: half", 0.5, Scale::Linear) } else { ("target: 2 %", 0.02, Scale::Log) };
    curves.push(sweep::level(label, SHADES[0], (5.0, 80.0), y));
    let mut figure = sweep::figure(id, title, ("policer (Mbit/s)", Scale::Log), (up, scale), curves);
    figure.y.range = of_rate.then_some((0.0, 1.05));
    figure
}

/// The least part of the policer's rate that a second from 2 s on had.
fn least_second(outcome: &SharedOutcome, rate: f64) -> f64 {
    let seconds = (FOUND..END).step_by(SECOND);
    seconds.map(|at| mbit_in(outcome, OURS, at..at + SECOND) / rate).fold(f64::INFINITY, f64::min)
}

fn least(result: &SharedResult) -> f64 {
    let rate = policer_mbit(result);
    smallest(result, |outcome| least_second(outcome, rate))
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let row = |point: &segstream_lab::measured::MeasuredShared| {
        let result = &point.result;
        let got = result.throughput_bps(OURS).mean * 1e-6 / policer_mbit(result);
        let (who, setting) = match point.curve.as_str() {
            "bucket" => ("Segstream", format!("{RATE} Mbit/s, {} ms", point.x)),
            name => (name, format!("{} Mbit/s, 100 ms", point.x)),
        };
        let lost = result.of_flow(OURS, FlowOutcome::loss_share).mean;
        vec![who.to_owned(), setting, format!("{got:.3}"), format!("{:.3}", least(result)), format!("{lost:.4}")]
    };
    let columns = ["who", "policer, bucket", "part of its rate from 2 s on", "least second", "packets lost"];
    let rows = points.shared.iter().map(row).collect();
    vec![TextTable { title: "Behind a policer".to_owned(), columns: columns.map(str::to_owned).to_vec(), rows }]
}

fn settings(points: &Measured, place: impl Fn(&SharedResult, String) -> Place) -> Option<Vec<Place>> {
    let rates = RATES.iter().map(|rate| Some(place(points.shared_at("Segstream", *rate as f64)?, format!("{rate} Mbit/s"))));
    let buckets = BUCKETS_MS.iter().filter(|bucket| **bucket != 100);
    let buckets = buckets.map(|bucket| Some(place(points.shared_at("bucket", *bucket as f64)?, format!("bucket of {bucket} ms"))));
    rates.chain(buckets).collect()
}

fn finds_half(points: &Measured) -> Option<Finding> {
    let places = settings(points, |result, name| Place::new(name, format!("{:.2}", least(result)), least(result) >= 0.5))?;
    Some(judged(&places, ""))
}

fn loses_little(points: &Measured) -> Option<Finding> {
    let places = settings(points, |result, name| {
        let lost = result.of_flow(OURS, FlowOutcome::loss_share).mean;
        Place::new(name, format!("{:.2} %", 100.0 * lost), lost <= 0.02)
    })?;
    Some(judged(&places, "Every few seconds it tries whether more passes, and a full bucket hides for a while that it does not."))
}
