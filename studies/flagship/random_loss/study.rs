//! Random loss, and loss by congestion.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: random loss strikes behind the link, on the stream's own path; congestive loss is what the link drops.
//! Source: RFC 9743 5.1.3 (high packet loss) and 5.2.1.

use super::link::{self, OURS, cubic_and_bbr, second, tcp};
use super::sweep;
use super::target::{Place, judged};
use crate::black_box::{gilbert, random};
use crate::curves::{Look, SHADES};
use segstream_base::Duration;
use segstream_blocks::congestion::cubic;
use segstream_lab::claim::{Claim, Finding};
use segstream_lab::figure::{Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::shared::{FlowOutcome, SharedFlow, SharedResult, SharedScenario, Traffic};
use segstream_lab::study::{SharedPoint, Study};
use segstream_path::{Aqm, LossSpec};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "flagship/random_loss",
    title: "Random loss, and congestive loss",
    source: "RFC 9743 5.1.3 and 5.2.1",
    summary: "A stream alone on a path that loses packets at random: it is to pay for what it must repeat, and for nothing else. CUBIC and \
              BBR alone on the same path stand beside it. Loss in bursts comes to much within a moment now and then; that must not be \
              taken for a policer.\n\n\
              Where the loss is congestion, it is to yield: on a queue of a tenth of a product, which hardly shows in delay, and under \
              CoDel; alone, and beside a CUBIC.",
    parameters: &[
        ("link", "100 Mbit/s, 60 ms, a queue of one product; the shallow queue holds 0.1 of one (6 ms)"),
        ("loss", "random, 1e-5 to 1e-1, or 1e-4 to 3e-2 in bursts of 8 packets in the mean; behind the link; the way back loses nothing"),
        ("run", "15 s, totals from 5 s on; beside CUBIC 30 s, totals from 10 s on"),
    ],
    shared: points,
    figures,
    tables,
    claims: &[
        Claim { id: "SG-T14", text: "Random loss of 1e-2 costs less than 5 % of throughput.", check: costs_little },
        Claim {
            id: "SG-T15",
            text: "Alone on a shallow queue, and under CoDel, it loses at most 1 % of its packets to the link.",
            check: yields_alone,
        },
        Claim {
            id: "SG-T16",
            text: "Beside a CUBIC on a shallow queue, and under CoDel, it takes at most 0.6 of the link.",
            check: yields_to_tcp,
        },
        Claim {
            id: "SG-T24",
            text: "Random loss of 1e-1 costs less than 12 % of throughput, and of 1e-2 in bursts of 8 less than 5 %.",
            check: costs_little_when_much,
        },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const PROBABILITIES: [f64; 8] = [1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 2e-2, 5e-2, 1e-1];
const BURSTS_AT: [f64; 4] = [1e-4, 1e-3, 1e-2, 3e-2];
/// The mean length of a burst.
const BURST: f64 = 8.0;
const BURSTS: &str = "Segstream, bursts";
const OTHERS_AT: [f64; 4] = [1e-5, 1e-4, 1e-3, 1e-2];
const SHALLOW: &str = "shallow queue";
const MANAGED: &str = "CoDel";
const WHY: &str = "A queue this short, or kept short, tells neither of company nor of congestion, and single drops look like random loss, \
                   for which the stream is not to pay; CUBIC halts at each of its own.";
const LINKS: [&str; 2] = [SHALLOW, MANAGED];

fn lossy(flow: SharedFlow, loss: LossSpec) -> SharedScenario {
    let flow = SharedFlow { loss, ..flow };
    SharedScenario { duration: Duration::from_secs(15), flows: vec![flow], ..link::common() }
}

fn congested(name: &str) -> SharedScenario {
    let link =
        if name == SHALLOW { link::link(link::BANDWIDTH, link::RTT, 0.1) } else { SharedScenario { aqm: Aqm::CODEL, ..link::common() } };
    SharedScenario { duration: Duration::from_secs(15), flows: vec![link::ours()], ..link }
}

fn beside_cubic(name: &str) -> SharedScenario {
    let cubic = SharedFlow { start: second(5), ..tcp("tcp", Traffic::tcp(&cubic::LINUX)) };
    let flows = vec![link::ours(), cubic];
    SharedScenario { duration: Duration::from_secs(30), warm_up: Duration::from_secs(10), flows, ..congested(name) }
}

fn points() -> Vec<SharedPoint> {
    let point = |curve: String, x: f64, scenario| SharedPoint { curve, x, scenario };
    let mut points = vec![point(
        "none".to_owned(),
        0.0,
        SharedScenario { duration: Duration::from_secs(15), flows: vec![link::ours()], ..link::common() },
    )];
    points.extend(PROBABILITIES.map(|p| point("Segstream".to_owned(), p, lossy(link::ours(), random(p)))));
    points.extend(BURSTS_AT.map(|p| point(BURSTS.to_owned(), p, lossy(link::ours(), gilbert(p, BURST)))));
    for (name, traffic, _) in cubic_and_bbr() {
        points.extend(OTHERS_AT.map(|p| point(name.to_owned(), p, lossy(tcp(OURS, traffic.clone()), random(p)))));
    }
    for name in LINKS {
        points.push(point(format!("{name}, alone"), 1.0, congested(name)));
        points.push(point(format!("{name}, beside CUBIC"), 2.0, beside_cubic(name)));
    }
    points
}

fn figures(points: &Measured) -> Vec<Figure> {
    let value = |result: &SharedResult| result.of_flow(OURS, |flow| flow.throughput_bps() * 1e-6);
    let look = Look { colour: SHADES[1], marker: Marker::Circle, line: Line::Solid };
    let in_bursts = Look { colour: SHADES[1], marker: Marker::Triangle, line: Line::Dashed };
    let mut curves = vec![
        sweep::curve(points, "Segstream", "Segstream", look, value),
        sweep::curve(points, BURSTS, "Segstream, bursts of 8", in_bursts, value),
    ];
    curves.extend(cubic_and_bbr().map(|(name, _, look)| sweep::curve(points, name, name, look, value)));
    curves.push(sweep::level("target at 1e-2: 95 % of what it has without loss", SHADES[1], (1e-5, 1e-1), 0.95 * without_loss(points)));
    let (x, y) = (("loss probability", Scale::Log), ("throughput (Mbit/s)", Scale::Linear));
    let mut figure = sweep::figure("flagship-random-loss", "Alone on a path of 100 Mbit/s with random loss", x, y, curves);
    figure.y.range = Some((0.0, 105.0));
    vec![figure, wait(points)]
}

/// What waits meanwhile.
fn wait(points: &Measured) -> Figure {
    let look = |colour, marker| Look { colour, marker, line: Line::Solid };
    let curves = vec![
        sweep::curve(points, "Segstream", "queueing delay, mean", look(SHADES[1], Marker::Circle), SharedResult::queue_ms_mean),
        sweep::curve(points, "Segstream", "queueing delay, 95th percentile", look(SHADES[5], Marker::Triangle), SharedResult::queue_ms_p95),
    ];
    let (x, y) = (("loss probability", Scale::Log), ("queueing delay (ms)", Scale::Linear));
    let mut figure = sweep::figure("flagship-random-loss-delay", "The stream under random loss: what waits for the link", x, y, curves);
    figure.y.range = Some((0.0, 10.0));
    figure
}

fn without_loss(points: &Measured) -> f64 {
    points.shared_at("none", 0.0).map_or(f64::NAN, |result| result.throughput_bps(OURS).mean * 1e-6)
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let (mut random_rows, mut congested_rows) = (Vec::new(), Vec::new());
    for point in &points.shared {
        let result = &point.result;
        let of = |flow: &str, value: fn(&FlowOutcome) -> f64| result.of_flow(flow, value).mean;
        let (got, wait) = (of(OURS, FlowOutcome::throughput_bps) * 1e-6, result.queue_ms_mean().mean);
        if LINKS.iter().any(|link| point.curve.starts_with(link)) {
            let dropped = of(OURS, |flow| flow.packets_dropped as f64 / flow.packets_sent as f64);
            let share = if point.x > 1.0 { format!("{:.3}", result.share(OURS).mean) } else { String::new() };
            let filled = result.utilisation().mean;
            congested_rows.push(vec![
                point.curve.clone(),
                format!("{got:.1}"),
                share,
                format!("{filled:.3}"),
                format!("{dropped:.4}"),
                format!("{wait:.1}"),
            ]);
        } else {
            let good = of(OURS, FlowOutcome::goodput_bps) * 1e-6;
            random_rows.push(vec![
                point.curve.clone(),
                format!("{:e}", point.x),
                format!("{got:.1}"),
                format!("{good:.1}"),
                format!("{wait:.1}"),
            ]);
        }
    }
    let table = |title: &str, columns: &[&str], rows| TextTable {
        title: title.to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        rows,
    };
    vec![
        table("Random loss", &["who", "p", "Mbit/s arrived", "Mbit/s delivered", "queueing delay, mean (ms)"], random_rows),
        table("Congestive loss", &["link", "Mbit/s", "share", "utilisation", "dropped", "queueing delay, mean (ms)"], congested_rows),
    ]
}

fn costs_little(points: &Measured) -> Option<Finding> {
    let got = points.shared_at("Segstream", 1e-2)?.throughput_bps(OURS).mean * 1e-6;
    let without = without_loss(points);
    let cost = 1.0 - got / without;
    let number = format!("{got:.1} of {without:.1} Mbit/s, {:.1} % less", 100.0 * cost);
    Some(judged(&[Place::new("1e-2", number, cost < 0.05)], ""))
}

fn costs_little_when_much(points: &Measured) -> Option<Finding> {
    let without = without_loss(points);
    let place = |name: &str, curve: &str, p: f64, most: f64| {
        let cost = 1.0 - points.shared_at(curve, p)?.throughput_bps(OURS).mean * 1e-6 / without;
        Some(Place::new(name, format!("{:.1} % less", 100.0 * cost), cost < most))
    };
    Some(judged(&[place("1e-1", "Segstream", 1e-1, 0.12)?, place("1e-2 in bursts", BURSTS, 1e-2, 0.05)?], ""))
}

fn yields_alone(points: &Measured) -> Option<Finding> {
    let place = |name: &&str| {
        let result = points.shared_at(&format!("{name}, alone"), 1.0)?;
        let dropped = result.of_flow(OURS, FlowOutcome::loss_share).mean;
        let number = format!("{:.2} % lost, utilisation {:.3}", 100.0 * dropped, result.utilisation().mean);
        Some(Place::new(*name, number, dropped <= 0.01))
    };
    Some(judged(&LINKS.iter().map(place).collect::<Option<Vec<_>>>()?, ""))
}

fn yields_to_tcp(points: &Measured) -> Option<Finding> {
    let place = |name: &&str| {
        let result = points.shared_at(&format!("{name}, beside CUBIC"), 2.0)?;
        let share = result.share(OURS).mean;
        let number = format!("{share:.2}, utilisation {:.3}", result.utilisation().mean);
        Some(Place::new(*name, number, share <= 0.6))
    };
    Some(judged(&LINKS.iter().map(place).collect::<Option<Vec<_>>>()?, WHY))
}
