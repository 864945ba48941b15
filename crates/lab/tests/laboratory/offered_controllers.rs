//! What the controllers that users can choose do on paths that people have.

use super::controllers::{outcome, traffic};
use segstream_base::endpoint::Ecn;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_blocks::congestion::{ALGORITHMS, Algorithm, bbr, cubic, prague};
use segstream_lab::shared::{SharedFlow, SharedOutcome, SharedScenario, Traffic};
use segstream_lab::statistics::jain;
use segstream_path::Aqm;

/// The controllers that users can choose.
fn offered() -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS.iter().copied().filter(|algorithm| algorithm.offered)
}

/// The flagship at a round trip of 40 ms.
fn flagship(name: &str, congestion: &'static Algorithm) -> SharedFlow {
    SharedFlow { rtt: Duration::from_millis(40), ..SharedFlow::new(name, traffic(congestion, 400)) }
}

/// 20 Mbit/s and 40 ms with a queue of one bandwidth-delay product.
fn link(flows: Vec<SharedFlow>) -> SharedScenario {
    SharedScenario {
        bandwidth: Bandwidth::from_megabits_per_second(20),
        queue: Bytes::new(100_000),
        duration: Duration::from_secs(40),
        warm_up: Duration::from_secs(10),
        flows,
        ..SharedScenario::default()
    }
}

fn share(outcome: &SharedOutcome, flow: &str) -> f64 {
    outcome.flow(flow).unwrap().throughput_bps() / 20e6
}

fn seconds(count: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(count)
}

/// A kernel's CUBIC at the same round trip.
fn linux_cubic(ecn: Option<Ecn>) -> SharedFlow {
    SharedFlow { rtt: Duration::from_millis(40), ..SharedFlow::new("tcp", Traffic::Tcp { congestion: &cubic::LINUX, ecn }) }
}

/// The same link under DualPI2 with its defaults, where queues are never full.
fn dual_queue(flows: Vec<SharedFlow>) -> SharedScenario {
    SharedScenario { aqm: Aqm::DUALPI2, queue: Bytes::new(1_000_000), ..link(flows) }
}

#[test]
fn one_flow_fills_a_link() {
    for congestion in offered() {
        let outcome = outcome(&link(vec![flagship("ours", congestion)]));
        let (share, sent) = (share(&outcome, "ours"), outcome.flow("ours").unwrap());
        assert!(share >= 0.95, "{congestion:?}: {share}");
        assert!(sent.packets_dropped * 100 < sent.packets_sent, "{congestion:?}: {sent:?}");
    }
}

#[test]
fn two_flows_of_a_kind_share_a_link() {
    for congestion in offered() {
        let late = SharedFlow { start: seconds(2), ..flagship("late", congestion) };
        let outcome = outcome(&link(vec![flagship("early", congestion), late]));
        let shares = [share(&outcome, "early"), share(&outcome, "late")];
        assert!(jain(&shares) >= 0.9 && shares[0] + shares[1] > 0.95, "{congestion:?}: {shares:?}");
    }
}

#[test]
fn bbr_bears_loss_that_is_none_of_its_making() {
    // Measured: 0.864 here and 0.849 on TCP's acknowledgments. Each round with a loss lowers the rate to what was delivered, and only
    // the next probe, up to 63 rounds later, restores it: (1 - loss)^N, as the draft counts (5.3.3.8.2). CUBIC keeps 0.12.
    let lossy = |congestion| SharedFlow { loss: "1%".parse().unwrap(), ..flagship("ours", congestion) };
    let kept = |congestion| {
        let scenario = SharedScenario { duration: Duration::from_secs(100), ..link(vec![lossy(congestion)]) };
        share(&outcome(&scenario), "ours")
    };
    let (bbr, cubic) = (kept(&bbr::ALGORITHM), kept(&cubic::ALGORITHM));
    assert!(bbr >= 0.82 && cubic < 0.3, "{bbr} and {cubic}");
}

#[test]
fn a_flow_leaves_a_kernels_cubic_its_share() {
    for congestion in offered() {
        let outcome = outcome(&link(vec![flagship("ours", congestion), linux_cubic(None)]));
        let (ours, tcp) = (share(&outcome, "ours"), share(&outcome, "tcp"));
        assert!((0.3..0.7).contains(&ours) && ours + tcp > 0.95, "{congestion:?}: {ours} and {tcp}");
    }
}

#[test]
fn prague_keeps_the_low_latency_queue_of_dualpi2_short_and_the_link_full() {
    let outcome = outcome(&dual_queue(vec![flagship("ours", &prague::ALGORITHM)]));
    let (share, wait) = (share(&outcome, "ours"), Duration::from_nanos(outcome.queue.p95_ns));
    assert!(share >= 0.95 && wait <= Duration::from_millis(2), "{share} with a queue of {wait}");
    let sent = outcome.flow("ours").unwrap();
    assert!(sent.packets_marked > 1000 && sent.packets_dropped == 0, "{sent:?}");
}

#[test]
fn prague_shares_dualpi2_with_cubic() {
    for ecn in [None, Some(Ecn::Ect0)] {
        let outcome = outcome(&dual_queue(vec![flagship("ours", &prague::ALGORITHM), linux_cubic(ecn)]));
        let (ours, tcp) = (share(&outcome, "ours"), share(&outcome, "tcp"));
        assert!((0.35..0.65).contains(&ours) && ours + tcp > 0.95, "{ecn:?}: {ours} and {tcp}");
    }
}

#[test]
fn a_step_of_the_bottleneck_is_followed_down_and_up_again() {
    for congestion in offered() {
        let trace = "0s:20mbit,15s:5mbit,30s:20mbit".parse().unwrap();
        let scenario = SharedScenario { trace, duration: Duration::from_secs(45), ..link(vec![flagship("ours", congestion)]) };
        let outcome = outcome(&scenario);
        let series = &outcome.flow("ours").unwrap().bytes_arrived_series;
        let per_second: Vec<f64> = series.chunks(10).map(|tenths| tenths.iter().sum::<u64>() as f64 * 8.0 / 1e6).collect();
        // From five seconds after the step on: no second far from the rate, which would be an oscillation that lasts.
        let low = &per_second[20..30];
        assert!(low.iter().all(|rate| (3.5..5.1).contains(rate)), "{congestion:?}: {low:?}");
        let high = &per_second[40..45];
        assert!(high.iter().sum::<f64>() / 5.0 > 0.85 * 20.0, "{congestion:?}: {high:?}");
    }
}
