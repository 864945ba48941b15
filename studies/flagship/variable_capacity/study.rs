//! A link that becomes slower under load, and faster again.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: peaks are the longest wait of any packet of any replication, not means.
//! Source: RFC 8867 5.1, RFC 9743 5.1.2.

use super::link::{self, OURS, cubic_and_bbr, mbit, stream};
use super::over_time::{self, QUEUE, SECOND, THROUGHPUT, largest, mbit_in, queue_ms, queue_ms_max, smallest};
use super::sweep;
use super::target::{Place, judged};
use crate::curves::{Look, SHADES};
use segstream_base::{Bandwidth, Bytes, Duration};
use segstream_lab::claim::{Claim, Finding};
use segstream_lab::figure::{Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::shared::{SharedFlow, SharedOutcome, SharedResult, SharedScenario};
use segstream_lab::statistics::Estimate;
use segstream_lab::study::{SharedPoint, Study};
use segstream_path::RateTrace;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "flagship/variable_capacity",
    title: "A link that becomes slower under load",
    source: "RFC 8867 5.1",
    summary: "A stream fills a link of 10 Mbit/s, which at 15 s has half of that left and at 30 s all of it again. What the stream sends \
              before it can know fills the queue; the queue is to be short again soon. CUBIC and BBR on the same link stand beside it.\n\n\
              The other pictures have deeper steps, and other round trips.",
    parameters: &[
        ("link", "10 Mbit/s, a round trip of 100 ms, a queue of 500 ms at 10 Mbit/s (625,000 bytes)"),
        ("capacity", "10 Mbit/s to 15 s, then 5 to 30 s, then 10 (RFC 8867 5.1 has 1, 2.5, 0.6 and 1 Mbit/s)"),
        ("run", "45 s"),
    ],
    shared: points,
    figures,
    tables,
    claims: &[
        Claim { id: "SG-T7", text: "From 10 to 5 Mbit/s no packet waits for 300 ms.", check: peak_is_low },
        Claim { id: "SG-T8", text: "Queueing delay is below 20 ms again within 2 s of that step, and stays there.", check: soon_short },
        Claim { id: "SG-T9", text: "Back at 10 Mbit/s it fills 0.9 of them within 2 s.", check: soon_back },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const DOWN: usize = 15 * SECOND;
const UP: usize = 30 * SECOND;
const END: usize = 45 * SECOND;
const RTT_MS: u64 = 100;
const RTTS_MS: [u64; 4] = [20, 50, 100, 200];
const DEPTHS_KBIT: [u64; 4] = [8000, 5000, 2500, 1000];
const SHORT_MS: f64 = 20.0;

fn stepping(to: Bandwidth, flow: SharedFlow) -> SharedScenario {
    let at = |second| Duration::from_secs(second);
    let trace = RateTrace::new(&[(Duration::ZERO, mbit(10)), (at(15), to), (at(30), mbit(10))], None);
    SharedScenario {
        bandwidth: mbit(10),
        trace: trace.unwrap_or_default(),
        queue: Bytes::new(625_000),
        duration: at(45),
        flows: vec![flow],
        ..link::common()
    }
}

fn ours(rtt_ms: u64) -> SharedFlow {
    stream(OURS, mbit(10), Duration::from_millis(rtt_ms))
}

fn points() -> Vec<SharedPoint> {
    let point = |curve: &str, x: f64, scenario| SharedPoint { curve: curve.to_owned(), x, scenario };
    let kbit = |rate: u64| Bandwidth::from_bits_per_second(rate * 1000);
    let mut points: Vec<SharedPoint> =
        DEPTHS_KBIT.iter().map(|depth| point("depth", *depth as f64 / 1000.0, stepping(kbit(*depth), ours(RTT_MS)))).collect();
    points.extend(RTTS_MS.iter().map(|rtt| point("round trip", *rtt as f64, stepping(mbit(5), ours(*rtt)))));
    for (name, traffic, _) in cubic_and_bbr() {
        let flow = SharedFlow { rtt: Duration::from_millis(RTT_MS), ..link::tcp(OURS, traffic) };
        points.push(point(name, 5.0, stepping(mbit(5), flow)));
    }
    points
}

/// The longest wait of a packet in one run while less was left.
fn peak_ms(outcome: &SharedOutcome) -> f64 {
    queue_ms_max(outcome, DOWN..UP)
}

/// How long after the step the wait was first below 20 ms again, having been above it; in seconds.
fn short_after_s(outcome: &SharedOutcome) -> f64 {
    let waits = queue_ms(outcome, DOWN..UP);
    let above = waits.iter().position(|wait| *wait >= SHORT_MS);
    let again = above.and_then(|above| waits.iter().skip(above).position(|wait| *wait < SHORT_MS).map(|after| above + after + 1));
    match (above, again) {
        (None, _) => 0.0,
        (Some(_), Some(intervals)) => intervals as f64 / SECOND as f64,
        (Some(_), None) => f64::INFINITY,
    }
}

/// The longest mean wait of an interval from 2 s after the step on.
fn later_ms(outcome: &SharedOutcome) -> f64 {
    queue_ms(outcome, DOWN + 2 * SECOND..UP).into_iter().fold(0.0, f64::max)
}

fn figures(points: &Measured) -> Vec<Figure> {
    let runs = [("depth", "Segstream", SHADES[1]), ("CUBIC", "CUBIC", SHADES[2]), ("BBR", "BBR", SHADES[4])];
    let all = |draw: &dyn Fn(&SharedResult, &str, &str) -> segstream_lab::figure::Curve| {
        runs.iter().filter_map(|(name, label, colour)| Some(draw(points.shared_at(name, 5.0)?, label, colour))).collect()
    };
    let throughput = all(&|result, label, colour| over_time::throughput(result, OURS, label, colour));
    let queue = all(&over_time::queue);
    let title = "10, 5 and 10 Mbit/s, each alone";
    vec![
        over_time::figure("flagship-variable-capacity", title, THROUGHPUT, throughput),
        over_time::figure("flagship-variable-capacity-delay", "The same: what waits for the link", QUEUE, queue),
        swept(points, "depth", "capacity after the step (Mbit/s)", (1.0, 8.0)),
        swept(points, "round trip", "round trip (ms)", (20.0, 200.0)),
    ]
}

fn swept(points: &Measured, name: &str, label: &str, range: (f64, f64)) -> Figure {
    let look = |colour, marker| Look { colour, marker, line: Line::Solid };
    let per = |value: fn(&SharedOutcome) -> f64| move |result: &SharedResult| -> Estimate { result.over_replications(value) };
    let curves = vec![
        sweep::curve(points, name, "longest wait after the step (ms)", look(SHADES[1], Marker::Circle), per(peak_ms)),
        sweep::curve(
            points,
            name,
            "time until it is below 20 ms again (ms)",
            look(SHADES[2], Marker::Square),
            per(|outcome| 1000.0 * short_after_s(outcome)),
        ),
        sweep::level("target: 300 ms (from 10 to 5 Mbit/s, round trip 100 ms)", SHADES[1], range, 300.0),
        sweep::level("target: 2 s", SHADES[2], range, 2000.0),
    ];
    let id = format!("flagship-variable-capacity-{}", if name == "depth" { "depth" } else { "rtt" });
    let title =
        format!("A step down from 10 Mbit/s, over {}", if name == "depth" { "what is left" } else { "the round trip (to 5 Mbit/s)" });
    sweep::figure(&id, &title, (label, Scale::Log), ("milliseconds", Scale::Log), curves)
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let mut rows = Vec::new();
    for point in &points.shared {
        let result = &point.result;
        let setting = match point.curve.as_str() {
            "depth" => format!("Segstream, 10 to {} Mbit/s, {RTT_MS} ms", point.x),
            "round trip" => format!("Segstream, 10 to 5 Mbit/s, {} ms", point.x),
            name => format!("{name}, 10 to 5 Mbit/s, {RTT_MS} ms"),
        };
        let got = |from: usize, to: usize| result.over_replications(|outcome| mbit_in(outcome, OURS, from..to)).mean;
        rows.push(vec![
            setting,
            format!("{:.0}", largest(result, peak_ms)),
            after(largest(result, short_after_s)),
            format!("{:.0}", largest(result, later_ms)),
            format!("{:.2}", got(DOWN + 2 * SECOND, UP)),
            format!("{:.2}", got(UP + 2 * SECOND, END)),
        ]);
    }
    let columns =
        ["run", "longest wait (ms)", "below 20 ms again after (s)", "longest 100 ms mean later (ms)", "Mbit/s, 17 to 30 s", "32 to 45 s"];
    vec![TextTable { title: "After the step, the worst replication".to_owned(), columns: columns.map(str::to_owned).to_vec(), rows }]
}

fn after(seconds: f64) -> String {
    if seconds.is_finite() { format!("{seconds:.1}") } else { "never".to_owned() }
}

fn peak_is_low(points: &Measured) -> Option<Finding> {
    let peak = largest(points.shared_at("depth", 5.0)?, peak_ms);
    Some(judged(&[Place::new("longest wait", format!("{peak:.0} ms"), peak < 300.0)], ""))
}

fn soon_short(points: &Measured) -> Option<Finding> {
    let result = points.shared_at("depth", 5.0)?;
    let (soon, later) = (largest(result, short_after_s), largest(result, later_ms));
    let places = [
        Place::new("below 20 ms again", format!("after {} s", after(soon)), soon <= 2.0),
        Place::new("from 2 s on", format!("at most {later:.0} ms"), later < SHORT_MS),
    ];
    Some(judged(&places, ""))
}

fn soon_back(points: &Measured) -> Option<Finding> {
    let result = points.shared_at("depth", 5.0)?;
    let third = smallest(result, |outcome| mbit_in(outcome, OURS, UP + 2 * SECOND..UP + 3 * SECOND));
    let rest = smallest(result, |outcome| mbit_in(outcome, OURS, UP + 2 * SECOND..END));
    let places = [
        Place::new("in the third second", format!("{third:.2} Mbit/s"), third >= 9.0),
        Place::new("from then on", format!("{rest:.2} Mbit/s"), rest >= 9.0),
    ];
    Some(judged(&places, ""))
}
