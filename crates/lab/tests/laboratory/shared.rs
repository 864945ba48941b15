//! Shared scenarios: results depend on scenario and seed alone, schemes and cross traffic get what they should.

use super::controllers::outcome;
use segstream_base::endpoint::Ecn;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant, Tolerance};
use segstream_blocks::congestion::{bbr1, cubic, reno};
use segstream_lab::registry;
use segstream_lab::runner::{Progress, Runner, replication_seed};
use segstream_lab::scenario::Scenario;
use segstream_lab::shared::{Application, Pace, SharedFlow, SharedOutcome, SharedScenario, Traffic, run};
use segstream_lab::store::Store;
use segstream_path::Aqm;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn mbit(rate: u64) -> Bandwidth {
    Bandwidth::from_megabits_per_second(rate)
}

fn second(count: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(count)
}

fn scheme(key: &str, rate: Option<Bandwidth>) -> Traffic {
    let scenario = Scenario::default().with(|it| {
        it.scheme = registry::find(key).unwrap().config();
        it.workload.segment_packets = 32;
        it.workload.tolerance = Tolerance::reliable(32);
    });
    Traffic::Scheme { scenario: Box::new(scenario), pace: rate.map_or(Pace::AUTO, Pace::Fixed) }
}

fn crowd() -> SharedScenario {
    SharedScenario {
        bandwidth: mbit(50),
        queue: Bytes::new(375_000),
        duration: Duration::from_secs(6),
        warm_up: Duration::from_secs(2),
        flows: vec![
            SharedFlow { loss: "random:1e-3".parse().unwrap(), ..SharedFlow::new("ours", scheme("segstream", Some(mbit(10)))) },
            SharedFlow::new("sstp", scheme("sstp", Some(mbit(5)))),
            SharedFlow::new("cubic", Traffic::tcp(&cubic::LINUX)),
            SharedFlow { start: second(1), stop: Some(second(4)), ..SharedFlow::new("reno", Traffic::tcp(&reno::ALGORITHM)) },
            SharedFlow::new("bbr", Traffic::tcp(&bbr1::ALGORITHM)),
            SharedFlow::new("bursts", Traffic::OnOff { rate: mbit(8), on: Duration::from_millis(100), off: Duration::from_millis(300) }),
        ],
        ..SharedScenario::default()
    }
}

fn sweep(threads: usize, store: Option<&Store>) -> (Vec<Vec<SharedOutcome>>, u64) {
    let simulated = AtomicU64::new(0);
    let runner = Runner {
        seed: Seed(7),
        store,
        threads,
        progress: &|progress: Progress| {
            simulated.fetch_max(progress.packets, Ordering::Relaxed);
        },
        stop: &AtomicBool::new(false),
        only_stored: false,
    };
    let other = SharedScenario { bandwidth: mbit(30), ..crowd() };
    let points = [(crowd(), 3), (other, 2), (crowd(), 3)];
    let results = runner.run_repeated(&points).unwrap();
    (results.into_iter().map(|result| result.outcomes).collect(), simulated.into_inner())
}

#[test]
fn threads_and_store_change_nothing() {
    let (alone, _) = sweep(1, None);
    assert_eq!(alone.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2, 3]);
    assert_eq!(alone[0], alone[2]);
    assert_ne!(alone[0][0], alone[0][1]);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store")).unwrap();
    let (stored, simulated) = sweep(3, Some(&store));
    assert_eq!(stored, alone);
    assert!(simulated > 0);
    assert_eq!(sweep(2, Some(&store)), (alone, 0));
}

#[test]
fn the_order_of_flows_does_not_matter_but_for_ties() {
    let turned = SharedScenario { flows: crowd().flows.into_iter().rev().collect(), ..crowd() };
    let (usual, _) = run(&crowd(), Seed(1)).unwrap();
    let (turned, _) = run(&turned, Seed(1)).unwrap();
    for flow in &usual.flows {
        let other = turned.flow(&flow.name).unwrap();
        let apart = other.bytes_arrived as f64 / flow.bytes_arrived as f64;
        assert!((apart - 1.0).abs() < 0.2, "{flow:?} against {other:?}");
    }
}

#[test]
fn every_scheme_keeps_its_rate_and_the_rest_is_the_others() {
    let outcome = outcome(&crowd());
    let rate = |name: &str| outcome.flow(name).unwrap().throughput_bps();
    let lost = |name: &str| outcome.flow(name).unwrap().loss_share();
    assert!((rate("ours") / (10e6 * (1.0 - lost("ours"))) - 1.0).abs() < 0.03, "{} with {}", rate("ours"), lost("ours"));
    assert!((rate("sstp") / (5e6 * (1.0 - lost("sstp"))) - 1.0).abs() < 0.03, "{} with {}", rate("sstp"), lost("sstp"));
    let all: f64 = outcome.flows.iter().map(|flow| flow.bytes_arrived as f64 * 8.0 / 4.0).sum();
    assert!(all > 0.93 * 50e6 && all < 50.1e6, "{all}");
    let ours = outcome.flow("ours").unwrap();
    assert!(ours.delays.segments > 50 && ours.delays.mean_ns > 30_000_000, "{:?}", ours.delays);
    assert!(ours.delays.p95_ns <= ours.delays.max_ns && ours.latencies.mean_ns >= ours.delays.mean_ns, "{ours:?}");
    let series: u64 = ours.bytes_arrived_series.iter().skip(20).sum();
    assert_eq!((series, ours.bytes_arrived_series.len()), (ours.bytes_arrived, 60));
    assert!(outcome.queue.mean_ns > 0 && outcome.queue.p95_ns >= outcome.queue.mean_ns / 2, "{:?}", outcome.queue);
    let reno = outcome.flow("reno").unwrap();
    assert!(reno.present_ns == 2_000_000_000 && reno.bytes_arrived_series[45..].iter().all(|bytes| *bytes == 0), "{reno:?}");
}

#[test]
fn an_application_with_pauses_sends_nothing_in_them() {
    let application = Application::periodic(mbit(4)).idle_in(&[(second(2), second(4))]);
    let scenario = SharedScenario {
        duration: Duration::from_secs(6),
        warm_up: Duration::ZERO,
        flows: vec![
            SharedFlow { application: application.clone(), ..SharedFlow::new("ours", scheme("segstream", Some(mbit(20)))) },
            SharedFlow { application, ..SharedFlow::new("cubic", Traffic::tcp(&cubic::LINUX)) },
        ],
        ..SharedScenario::default()
    };
    let (outcome, _) = run(&scenario, Seed(1)).unwrap();
    for flow in &outcome.flows {
        let carried = flow.bytes_arrived as f64 * 8.0 / 4.0;
        assert!((carried / 4e6 - 1.0).abs() < 0.06, "{} carried {carried}", flow.name);
        let pause: u64 = flow.bytes_arrived_series[23..40].iter().sum();
        assert!(pause < 3_000, "{} carried {pause} bytes in its pause", flow.name);
    }
}

#[test]
fn a_quick_shared_point_is_cheap() {
    let scenario = SharedScenario {
        flows: vec![
            SharedFlow::new("ours", scheme("segstream", Some(mbit(30)))),
            SharedFlow::new("cubic", Traffic::tcp(&cubic::LINUX)),
            SharedFlow::new("bbr", Traffic::tcp(&bbr1::ALGORITHM)),
        ],
        ..SharedScenario::default()
    };
    let (outcome, _) = run(&scenario, replication_seed(Seed(1), 0)).unwrap();
    // The work is bounded, whatever the machine: no more packets than the link carries and a tenth.
    assert!(outcome.link_packets_sent < 370_000, "{}", outcome.link_packets_sent);
}

#[test]
fn an_automatic_rate_fills_a_link_of_its_own() {
    let scenario = SharedScenario {
        bandwidth: mbit(20),
        queue: Bytes::new(150_000),
        duration: Duration::from_secs(20),
        flows: vec![SharedFlow::new("ours", scheme("segstream", None))],
        ..SharedScenario::default()
    };
    let outcome = outcome(&scenario);
    let ours = &outcome.flows[0];
    assert!(ours.throughput_bps() > 0.5 * 20e6 && ours.loss_share() < 0.1, "{ours:?}");
}

#[test]
fn a_dual_queue_marks_ect1_and_keeps_its_wait_short() {
    let wait = |ecn: Option<Ecn>| {
        let scenario = SharedScenario {
            bandwidth: mbit(20),
            aqm: Aqm::DUALPI2,
            duration: Duration::from_secs(10),
            flows: vec![SharedFlow::new("cubic", Traffic::Tcp { congestion: &cubic::LINUX, ecn })],
            ..SharedScenario::default()
        };
        let outcome = outcome(&scenario);
        (outcome.queue.mean_ns, outcome.link_marked, outcome.link_dropped_aqm)
    };
    let ((l4s, l4s_marked, l4s_dropped), (classic, classic_marked, classic_dropped)) = (wait(Some(Ecn::Ect1)), wait(None));
    assert!(l4s_marked > 0 && l4s_dropped == 0 && classic_marked == 0 && classic_dropped > 0);
    assert!(l4s * 3 < classic, "{l4s} against {classic} ns");
}
