//! A stream beside TCP: the share of each.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: a share is of all bytes that arrived after the warm-up.
//! Source: RFC 8867 5.6 (a long TCP flow) and 5.7 (short ones), RFC 9743 5.2.1 and 5.2.3.

use super::link::{self, OURS, RTT, TCP_LOOKS, TCPS, mbit, second, stream};
use super::over_time::{self, QUEUE, THROUGHPUT};
use super::sweep;
use super::target::{Place, judged};
use crate::curves::{Look, SHADES};
use segstream_base::Duration;
use segstream_blocks::congestion::cubic;
use segstream_lab::claim::{Claim, Finding};
use segstream_lab::figure::{Figure, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::shared::{FlowOutcome, SharedFlow, SharedOutcome, SharedResult, SharedScenario, Traffic};
use segstream_lab::study::{SharedPoint, Study};
use segstream_path::Aqm;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "flagship/beside_tcp",
    title: "A stream beside TCP",
    source: "RFC 8867 5.6 and 5.7, RFC 9743 5.2.1 and 5.2.3",
    summary: "A stream has the link; at 5 s a TCP joins it, with CUBIC, Reno or BBR. TCP with loss as its signal fills the queue, \
              whatever its length. The stream, which would keep the queue short, must then claim a share of it: at least 0.25, and not \
              more than 0.6.\n\n\
              The sweep over the length of the queue is at 20 Mbit/s. In the last picture a short CUBIC flow of one second starts every \
              second and a half, beside the stream, and for comparison beside a long CUBIC flow.",
    parameters: &[
        ("link", "100 Mbit/s, 60 ms, a queue of one product; over the queue's length 20 Mbit/s"),
        ("run", "60 s, the TCP from 5 s on, shares from 10 s on; with short flows 40 s"),
    ],
    shared: points,
    figures,
    tables,
    claims: &[
        Claim { id: "SG-T10", text: "Beside one CUBIC, Reno or BBR it keeps 0.25 of the link.", check: keeps },
        Claim { id: "SG-T11", text: "It takes not more than 0.6 of it.", check: leaves },
        Claim { id: "SG-T12", text: "Both hold at every length of the queue from 0.25 to 4 products, and under CoDel.", check: any_queue },
        Claim {
            id: "SG-T13",
            text: "Short CUBIC flows get no less beside it than beside a long CUBIC flow, and its queue is shorter.",
            check: short_flows,
        },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const PRODUCTS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
const LEAST: f64 = 0.25;
const MOST: f64 = 0.6;
const SHORT_FLOWS: u64 = 20;
const WHY_BBR: &str = "BBR starts by filling the queue and holds what it has taken; the stream has first to find out that others fill the \
                       queue, and then grows slowly.";
const WHY_QUEUE: &str = "CoDel keeps the queue at what the stream aims at by itself, so that nothing tells it of company, and one packet \
                         dropped by CoDel looks like one lost at random. BBR limits itself to two products under way, and leaves a longer \
                         queue to the stream.";

fn beside(traffic: Traffic, scenario: SharedScenario) -> SharedScenario {
    let ours = stream(OURS, scenario.bandwidth, RTT);
    let tcp = SharedFlow { start: second(5), ..link::tcp("tcp", traffic) };
    SharedScenario { duration: Duration::from_secs(60), warm_up: Duration::from_secs(10), flows: vec![ours, tcp], ..scenario }
}

/// A long flow and short ones, each of them a connection of its own that ends after a second.
fn with_short_flows(long: SharedFlow) -> SharedScenario {
    let short = |at: u64| {
        let start = second(8) + Duration::from_millis(1500) * at;
        let flow = link::tcp(&format!("short {at}"), Traffic::tcp(&cubic::LINUX));
        SharedFlow { start, stop: Some(start + Duration::from_secs(1)), ..flow }
    };
    let flows = [long].into_iter().chain((0..SHORT_FLOWS).map(short)).collect();
    SharedScenario { duration: Duration::from_secs(40), flows, ..link::common() }
}

fn points() -> Vec<SharedPoint> {
    let point = |curve: String, x: f64, scenario| SharedPoint { curve, x, scenario };
    let mut points = Vec::new();
    for (name, traffic) in TCPS {
        points.push(point(name.to_owned(), 1.0, beside(traffic.clone(), link::common())));
        let swept = |products: f64| point(format!("{name}, queue"), products, beside(traffic.clone(), link::link(mbit(20), RTT, products)));
        points.extend(PRODUCTS.map(swept));
        let managed = SharedScenario { aqm: Aqm::CODEL, ..link::link(mbit(20), RTT, 1.0) };
        points.push(point(format!("{name}, CoDel"), 1.0, beside(traffic, managed)));
    }
    let long = |traffic| link::tcp(OURS, traffic);
    points.push(point("short flows".to_owned(), 1.0, with_short_flows(link::ours())));
    points.push(point("short flows beside CUBIC".to_owned(), 1.0, with_short_flows(long(Traffic::tcp(&cubic::LINUX)))));
    points
}

fn figures(points: &Measured) -> Vec<Figure> {
    let mut found = Vec::new();
    for ((name, _), look) in TCPS.into_iter().zip(TCP_LOOKS) {
        let Some(result) = points.shared_at(name, 1.0) else { continue };
        let curves =
            vec![over_time::throughput(result, "tcp", name, look.colour), over_time::throughput(result, OURS, "Segstream", SHADES[1])];
        let id = format!("flagship-beside-tcp-{}", name.to_lowercase());
        found.push(over_time::figure(&id, &format!("A stream, and from 5 s on a TCP with {name}"), THROUGHPUT, curves));
    }
    let queues = TCPS.iter().zip(TCP_LOOKS).filter_map(|((name, _), look)| {
        Some(over_time::by_second(over_time::queue(points.shared_at(name, 1.0)?, &format!("beside {name}"), look.colour)))
    });
    let title = "The same: what waits for the link, by the second";
    found.push(over_time::figure("flagship-beside-tcp-delay", title, QUEUE, queues.collect()));
    found.push(swept(points));
    found.extend(short(points));
    found
}

fn swept(points: &Measured) -> Figure {
    let curve = |((name, _), look): (&(&str, Traffic), Look)| {
        sweep::curve(points, &format!("{name}, queue"), &format!("beside {name}"), look, |result| result.share(OURS))
    };
    let mut curves: Vec<_> = TCPS.iter().zip(TCP_LOOKS).map(curve).collect();
    curves.push(sweep::level("target: at most 0.6", SHADES[5], (0.25, 4.0), MOST));
    curves.push(sweep::level("target: at least 0.25", SHADES[0], (0.25, 4.0), LEAST));
    sweep::shares(
        "flagship-beside-tcp-queue",
        "The stream's share beside one TCP, over the length of the queue, 20 Mbit/s",
        ("room in the queue (bandwidth-delay products)", Scale::Log),
        "share of the stream",
        curves,
    )
}

fn short(points: &Measured) -> Vec<Figure> {
    let runs = [("short flows", "Segstream", SHADES[1]), ("short flows beside CUBIC", "a long CUBIC flow", SHADES[2])];
    let (mut throughput, mut queue) = (Vec::new(), Vec::new());
    for (name, label, colour) in runs {
        let Some(result) = points.shared_at(name, 1.0) else { continue };
        throughput.push(over_time::by_second(over_time::throughput(result, OURS, label, colour)));
        queue.push(over_time::by_second(over_time::queue(result, label, colour)));
    }
    vec![
        over_time::figure(
            "flagship-beside-tcp-short",
            "Beside short CUBIC flows: what the long one gets, by the second",
            THROUGHPUT,
            throughput,
        ),
        over_time::figure("flagship-beside-tcp-short-delay", "Beside short CUBIC flows: what waits, by the second", QUEUE, queue),
    ]
}

/// The mean throughput of the short flows in Mbit/s.
fn short_mbit(outcome: &SharedOutcome) -> f64 {
    let flows: Vec<f64> = outcome.flows.iter().filter(|flow| flow.name != OURS).map(|flow| flow.throughput_bps() * 1e-6).collect();
    flows.iter().sum::<f64>() / flows.len() as f64
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let mut rows = Vec::new();
    for point in &points.shared {
        let result = &point.result;
        let lost = |flow: &str| format!("{:.4}", result.of_flow(flow, FlowOutcome::loss_share).mean);
        let short = point.curve.starts_with("short");
        let others = if short { result.over_replications(short_mbit).mean } else { result.throughput_bps("tcp").mean * 1e-6 };
        rows.push(vec![
            point.curve.clone(),
            format!("{} Mbit/s, {}", result.scenario.bandwidth.bits_per_second() / 1_000_000, point.x),
            format!("{:.3}", result.share(OURS).mean),
            format!("{:.2}", result.throughput_bps(OURS).mean * 1e-6),
            format!("{others:.2}"),
            format!("{:.3}", result.utilisation().mean),
            format!("{:.1}", result.queue_ms_mean().mean),
            lost(OURS),
        ]);
    }
    let columns = [
        "beside",
        "link, queue",
        "share",
        "Mbit/s",
        "Mbit/s of the other (of a short flow)",
        "utilisation",
        "queueing delay, mean (ms)",
        "packets lost",
    ];
    vec![TextTable { title: "Beside TCP".to_owned(), columns: columns.map(str::to_owned).to_vec(), rows }]
}

fn share_at(points: &Measured, curve: &str, x: f64) -> Option<f64> {
    Some(points.shared_at(curve, x)?.share(OURS).mean)
}

fn keeps(points: &Measured) -> Option<Finding> {
    let place = |(name, _): &(&str, Traffic)| {
        let share = share_at(points, name, 1.0)?;
        Some(Place::new(*name, format!("{share:.2}"), share >= LEAST))
    };
    Some(judged(&TCPS.iter().map(place).collect::<Option<Vec<_>>>()?, WHY_BBR))
}

fn leaves(points: &Measured) -> Option<Finding> {
    let place = |(name, _): &(&str, Traffic)| {
        let share = share_at(points, name, 1.0)?;
        Some(Place::new(*name, format!("{share:.2}"), share <= MOST))
    };
    Some(judged(&TCPS.iter().map(place).collect::<Option<Vec<_>>>()?, ""))
}

fn any_queue(points: &Measured) -> Option<Finding> {
    let mut places = Vec::new();
    for (name, _) in &TCPS {
        let mut place = |curve: &str, x: f64, called: String| -> Option<()> {
            let share = share_at(points, curve, x)?;
            places.push(Place::new(called, format!("{share:.2}"), (LEAST..=MOST).contains(&share)));
            Some(())
        };
        for products in PRODUCTS {
            place(&format!("{name}, queue"), products, format!("{name} {products}"))?;
        }
        place(&format!("{name}, CoDel"), 1.0, format!("{name} CoDel"))?;
    }
    Some(judged(&places, WHY_QUEUE))
}

fn short_flows(points: &Measured) -> Option<Finding> {
    let (ours, cubic) = (points.shared_at("short flows", 1.0)?, points.shared_at("short flows beside CUBIC", 1.0)?);
    let short = |result: &SharedResult| result.over_replications(short_mbit).mean;
    let wait = |result: &SharedResult| result.queue_ms_mean().mean;
    let places = [
        Place::new("a short flow", format!("{:.1} against {:.1} Mbit/s", short(ours), short(cubic)), short(ours) >= short(cubic)),
        Place::new("queueing delay", format!("{:.1} against {:.1} ms", wait(ours), wait(cubic)), wait(ours) < wait(cubic)),
    ];
    let kept = format!("the long one keeps {:.1} against {:.1} Mbit/s", mbit_of(ours), mbit_of(cubic));
    Some(judged(&places, "").with(&kept))
}

fn mbit_of(result: &SharedResult) -> f64 {
    result.throughput_bps(OURS).mean * 1e-6
}
