//! A stream whose application limits it, and pauses.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: within two round trips means: in the first whole interval of 100 ms that begins two round trips and the way
//! there after the application went on, and in all later ones, what it has arrives.
//! Source: RFC 8867 5.8.

use super::link::{self, BANDWIDTH, OURS, RTT, mbit, second, stream};
use super::over_time::{self, QUEUE, SECOND, THROUGHPUT, mbit_in, smallest};
use super::target::{Place, judged};
use crate::curves::SHADES;
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_lab::claim::{Claim, Finding};
use segstream_lab::figure::{Figure, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::shared::{Application, SharedFlow, SharedOutcome, SharedResult, SharedScenario};
use segstream_lab::study::{SharedPoint, Study};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "flagship/pause_and_resume",
    title: "An application that limits its stream, and pauses",
    source: "RFC 8867 5.8",
    summary: "An application has 50 Mbit/s for a link of 100, pauses for five seconds, and later for half a second. What it has is to \
              arrive, and after a pause at once: a rate that was found is not to be found again.\n\n\
              In the second run the application has 25 Mbit/s and two greedy streams share the link with it; while it pauses they take \
              its share, and have to give it back.",
    parameters: &[
        ("link", "100 Mbit/s, 60 ms, a queue of one bandwidth-delay product"),
        ("pauses", "10 to 15 s and 20 to 20.5 s; beside others 12 to 20 s"),
        ("run", "30 s"),
    ],
    shared: points,
    figures,
    tables,
    claims: &[
        Claim { id: "SG-T17", text: "What the application has arrives: 0.99 of it while it does not pause.", check: keeps },
        Claim {
            id: "SG-T18",
            text: "After a pause it has its rate again within two round trips: 0.9 of it in every interval from then on.",
            check: recovers,
        },
        Claim { id: "SG-T19", text: "So it does beside two greedy streams that have taken its share.", check: recovers_beside_others },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const ALONE_RATE: f64 = 50.0;
const SHARED_RATE: f64 = 25.0;
const WHY: &str = "It finds a queue that the two others hold, makes way as any newcomer, and its share grows again over seconds; to insist \
                   on what it had would fill the queue.";
const GREEDY: [&str; 2] = ["greedy 1", "greedy 2"];
const END: usize = 30 * SECOND;
/// Two round trips and the one-way delay, in whole intervals of 100 ms.
const TWO_ROUND_TRIPS: usize = 2;

fn spans() -> [(Instant, Instant); 2] {
    [(second(10), second(15)), (second(20), second(20) + Duration::from_millis(500))]
}

fn paced(rate: Bandwidth, idle: &[(Instant, Instant)]) -> SharedFlow {
    SharedFlow { application: Application::periodic(rate).idle_in(idle), ..stream(OURS, BANDWIDTH, RTT) }
}

fn points() -> Vec<SharedPoint> {
    let run = |flows| SharedScenario { duration: Duration::from_secs(30), flows, ..link::common() };
    let alone = run(vec![paced(mbit(50), &spans())]);
    let greedy = GREEDY.map(|name| stream(name, BANDWIDTH, RTT));
    let beside = run([paced(mbit(25), &[(second(12), second(20))])].into_iter().chain(greedy).collect());
    let point = |curve: &str, scenario| SharedPoint { curve: curve.to_owned(), x: 1.0, scenario };
    vec![point("alone", alone), point("beside two", beside)]
}

fn figures(points: &Measured) -> Vec<Figure> {
    let mut found = Vec::new();
    if let Some(result) = points.shared_at("alone", 1.0) {
        let curves = vec![over_time::throughput(result, OURS, "arrives", SHADES[1])];
        let title = "An application with 50 Mbit/s that pauses twice, alone";
        found.push(over_time::figure("flagship-pause-and-resume", title, THROUGHPUT, curves));
    }
    if let Some(result) = points.shared_at("beside two", 1.0) {
        let mut curves = vec![over_time::throughput(result, OURS, "25 Mbit/s, pauses", SHADES[1])];
        curves.extend(GREEDY.iter().zip([SHADES[2], SHADES[3]]).map(|(name, colour)| over_time::throughput(result, name, name, colour)));
        let title = "An application with 25 Mbit/s that pauses, beside two greedy streams";
        found.push(over_time::figure("flagship-pause-and-resume-shared", title, THROUGHPUT, curves));
        let queue = vec![over_time::queue(result, "three streams", SHADES[1])];
        found.push(over_time::figure("flagship-pause-and-resume-delay", "The same three: what waits for the link", QUEUE, queue));
    }
    found
}

/// The smallest part of `rate` that arrived in an interval of these, over all replications.
fn least(result: &SharedResult, rate: f64, spans: &[(usize, usize)]) -> f64 {
    let in_span = |outcome: &SharedOutcome, from: usize, to: usize| {
        (from..to).map(|at| mbit_in(outcome, OURS, at..at + 1) / rate).fold(f64::INFINITY, f64::min)
    };
    smallest(result, |outcome| spans.iter().map(|(from, to)| in_span(outcome, *from, *to)).fold(f64::INFINITY, f64::min))
}

/// After how many seconds all intervals up to `to` have 0.9 of the rate; the worst replication.
fn settled_after_s(result: &SharedResult, rate: f64, resumed: usize, to: usize) -> f64 {
    let intervals = |outcome: &SharedOutcome| {
        (resumed..to).rev().find(|at| mbit_in(outcome, OURS, *at..at + 1) < 0.9 * rate).map_or(0, |last| last + 1 - resumed)
    };
    over_time::largest(result, |outcome| intervals(outcome) as f64 / SECOND as f64)
}

fn latency_ms(result: &SharedResult) -> (f64, f64) {
    let of = |value: fn(&segstream_lab::shared::FlowOutcome) -> u64| result.of_flow(OURS, |flow| value(flow) as f64 * 1e-6).mean;
    (of(|flow| flow.latencies.p95_ns), of(|flow| flow.latencies.max_ns))
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let mut rows = Vec::new();
    let pauses = [
        ("alone", ALONE_RATE, 15 * SECOND, 20 * SECOND),
        ("alone", ALONE_RATE, 20 * SECOND + 5, END),
        ("beside two", SHARED_RATE, 20 * SECOND, END),
    ];
    for (name, rate, resumed, to) in pauses {
        let Some(result) = points.shared_at(name, 1.0) else { continue };
        let (p95, max) = latency_ms(result);
        rows.push(vec![
            name.to_owned(),
            format!("{rate} Mbit/s"),
            format!("{:.1}", resumed as f64 / SECOND as f64),
            format!("{:.1}", settled_after_s(result, rate, resumed, to)),
            format!("{p95:.1}"),
            format!("{max:.1}"),
        ]);
    }
    let columns = [
        "run",
        "the application has",
        "goes on at (s)",
        "0.9 of it from then on after (s)",
        "latency of segments, 95th percentile (ms)",
        "largest (ms)",
    ];
    vec![TextTable { title: "After a pause, the worst replication".to_owned(), columns: columns.map(str::to_owned).to_vec(), rows }]
}

fn keeps(points: &Measured) -> Option<Finding> {
    let result = points.shared_at("alone", 1.0)?;
    let spans = [("5 to 10 s", 5 * SECOND..10 * SECOND), ("16 to 20 s", 16 * SECOND..20 * SECOND), ("21 to 30 s", 21 * SECOND..END)];
    let place = |(name, span): (&str, std::ops::Range<usize>)| {
        let part = smallest(result, |outcome| mbit_in(outcome, OURS, span.clone())) / ALONE_RATE;
        Place::new(name, format!("{part:.3}"), part >= 0.99)
    };
    Some(judged(&spans.map(place), ""))
}

fn recovers(points: &Measured) -> Option<Finding> {
    let result = points.shared_at("alone", 1.0)?;
    let place = |name: &str, resumed: usize, to: usize| {
        let part = least(result, ALONE_RATE, &[(resumed + TWO_ROUND_TRIPS, to)]);
        let number = format!("least {part:.2}, settled after {:.1} s", settled_after_s(result, ALONE_RATE, resumed, to));
        Place::new(name, number, part >= 0.9)
    };
    let places = [place("after 5 s", 15 * SECOND, 20 * SECOND), place("after 0.5 s", 20 * SECOND + 5, END)];
    let (p95, max) = latency_ms(result);
    Some(judged(&places, "").with(&format!("latency of segments {p95:.0} ms at the 95th percentile, {max:.0} at most")))
}

fn recovers_beside_others(points: &Measured) -> Option<Finding> {
    let result = points.shared_at("beside two", 1.0)?;
    let part = least(result, SHARED_RATE, &[(20 * SECOND + TWO_ROUND_TRIPS, END)]);
    let number = format!("least {part:.2}, settled after {:.1} s", settled_after_s(result, SHARED_RATE, 20 * SECOND, END));
    Some(judged(&[Place::new("after 8 s", number, part >= 0.9)], WHY))
}
