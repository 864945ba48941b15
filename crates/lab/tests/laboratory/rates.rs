//! The automatic rate in virtual time: on paths whose delay varies, beside what TCP gets there; among flows of its kind; beside TCP.
//!
//! The jitter is uniform and keeps the order, in both directions, so it comes in bursts: whatever one packet is held back by holds back all
//! behind it. Much of a delay is then no queue.

use super::controllers::traffic;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_blocks::congestion::{Algorithm, auto, bbr1, cubic};
use segstream_lab::shared::{SharedFlow, SharedOutcome, SharedScenario, Traffic, run};
use segstream_lab::statistics::jain;
use segstream_path::{Jitter, RateTrace};

/// A path: bandwidth in Mbit/s, round trip and jitter in milliseconds, losses.
type Cell = (u64, u64, u64, &'static str);

fn ours(bandwidth: Bandwidth, rtt: Duration) -> Traffic {
    traffic(&auto::ALGORITHM, (12 * bandwidth.bytes_in(rtt).get() / (32 * 1144) + 64) as u32)
}

/// Goodput of one flow alone over a queue of one product, as a part of the bandwidth.
fn goodput((mbit, rtt_ms, jitter_ms, loss): Cell, traffic: impl Fn(Bandwidth, Duration) -> Traffic) -> f64 {
    let (bandwidth, rtt) = (Bandwidth::from_megabits_per_second(mbit), Duration::from_millis(rtt_ms));
    let flow = SharedFlow {
        rtt,
        jitter: Jitter::Uniform(Duration::from_millis(jitter_ms)),
        loss: loss.parse().expect("a loss"),
        ..SharedFlow::new("flow", traffic(bandwidth, rtt))
    };
    let scenario = SharedScenario {
        bandwidth,
        queue: Bytes::new(bandwidth.bytes_in(rtt).get()),
        duration: Duration::from_secs(20),
        warm_up: Duration::ZERO,
        flows: vec![flow],
        ..SharedScenario::default()
    };
    let seeds = 1..=2;
    let of = |outcome: SharedOutcome| outcome.flow("flow").expect("it runs").goodput_bps() / bandwidth.bits_per_second() as f64;
    seeds.map(|seed| of(run(&scenario, Seed(seed)).expect("it runs").0)).sum::<f64>() / 2.0
}

#[test]
fn jitter_that_keeps_the_order_leaves_the_automatic_rate_four_fifths_of_what_the_better_tcp_gets() {
    let cells: [Cell; 5] =
        [(20, 40, 5, "none"), (20, 40, 10, "none"), (20, 40, 20, "none"), (20, 40, 40, "none"), (50, 30, 15, "random:0.005")];
    for cell in cells {
        let tcp = |congestion| goodput(cell, |_, _| Traffic::tcp(congestion));
        let (found, better) = (goodput(cell, ours), tcp(&cubic::LINUX).max(tcp(&bbr1::ALGORITHM)));
        assert!(found > 0.8 * better, "{cell:?}: {found} of the bandwidth, a TCP gets {better}");
    }
}

/// Flows of ours at one bottleneck: Mbit/s, how many, and how far their hosts' clocks differ in milliseconds.
type Crowd = (u64, usize, u64);

/// Jain's index of the goodput from the tenth to the thirtieth second, and the fraction of packets lost.
fn shares((mbit, count, clocks_ms): Crowd, seed: u64) -> (f64, f64) {
    let (bandwidth, rtt) = (Bandwidth::from_megabits_per_second(mbit), Duration::from_millis(40));
    let flow = |index| SharedFlow { rtt, ..SharedFlow::new(&format!("flow{index}"), ours(bandwidth, rtt)) };
    let scenario = SharedScenario {
        bandwidth,
        queue: Bytes::new(bandwidth.bytes_in(rtt).get()),
        warm_up: Duration::from_secs(10),
        clock_spread: Duration::from_millis(clocks_ms),
        flows: (0..count).map(flow).collect(),
        ..SharedScenario::default()
    };
    let (outcome, _) = run(&scenario, Seed(seed)).expect("it runs");
    let rates: Vec<f64> = outcome.flows.iter().map(|flow| flow.goodput_bps()).collect();
    let of = |count: fn(&segstream_lab::shared::FlowOutcome) -> u64| outcome.flows.iter().map(count).sum::<u64>() as f64;
    (jain(&rates), of(|flow| flow.packets_dropped) / of(|flow| flow.packets_sent))
}

#[test]
fn flows_of_one_kind_share_alike_and_lose_little_as_long_as_their_clocks_agree() {
    let crowds: [Crowd; 7] = [(20, 2, 0), (20, 4, 20), (20, 8, 0), (20, 16, 0), (100, 8, 20), (100, 16, 0), (100, 40, 0)];
    for crowd in crowds {
        let (jain, lost) = shares(crowd, 1);
        assert!(jain > 0.95 && lost < 0.02, "{crowd:?}: Jain's index {jain}, {lost} lost");
    }
}

/// Our share beside one flow of TCP over 20 Mbit/s and 40 ms, from the second second on: the mean of three seeds.
fn share_beside(congestion: &'static Algorithm, products: u64, ours_at: u64, theirs_at: u64) -> f64 {
    let (bandwidth, rtt) = (Bandwidth::from_megabits_per_second(20), Duration::from_millis(40));
    let at = |second| Instant::ZERO + Duration::from_secs(second);
    let us = SharedFlow { rtt, start: at(ours_at), ..SharedFlow::new("us", ours(bandwidth, rtt)) };
    let them = SharedFlow { rtt, start: at(theirs_at), ..SharedFlow::new("them", Traffic::tcp(congestion)) };
    let scenario = SharedScenario {
        bandwidth,
        queue: Bytes::new(products * bandwidth.bytes_in(rtt).get()),
        warm_up: Duration::from_secs(2),
        flows: vec![us, them],
        ..SharedScenario::default()
    };
    let share = |seed| {
        let (outcome, _) = run(&scenario, Seed(seed)).expect("it runs");
        let of = |name| outcome.flow(name).expect("it runs").goodput_bps();
        of("us") / (of("us") + of("them"))
    };
    (1..=3).map(share).sum::<f64>() / 3.0
}

#[test]
fn beside_a_flow_of_tcp_ours_has_a_share_and_leaves_one() {
    // Limit: one CUBIC at a queue of a quarter of a product or under CoDel keeps less, 0.1 to 0.35.
    for (congestion, products, ours_at, theirs_at) in [
        (&cubic::LINUX, 1, 0, 2),
        (&cubic::LINUX, 1, 2, 0),
        (&cubic::LINUX, 1, 0, 0),
        (&cubic::LINUX, 4, 0, 2),
        (&cubic::LINUX, 4, 0, 0),
        (&bbr1::ALGORITHM, 4, 0, 2),
        (&bbr1::ALGORITHM, 4, 2, 0),
    ] {
        let share = share_beside(congestion, products, ours_at, theirs_at);
        let case = format!("{} at {products} products, ours at {ours_at} s, theirs at {theirs_at} s", congestion.name);
        assert!((0.3..0.75).contains(&share), "{case}: {share}");
    }
}

/// The throughput of ours, as a part of the bandwidth, in each half second of the last ten of a run in which the bandwidth steps at five
/// seconds from `before` to `after` Mbit/s, and the longest wait in that time.
fn after_step(before: u64, after: u64, rtt_ms: u64, seed: u64) -> (Vec<f64>, Duration) {
    let (mbit, rtt) = (Bandwidth::from_megabits_per_second, Duration::from_millis(rtt_ms));
    let steps = [(Duration::ZERO, mbit(before)), (Duration::from_secs(5), mbit(after))];
    let scenario = SharedScenario {
        bandwidth: mbit(before),
        trace: RateTrace::new(&steps, None).expect("steps"),
        queue: Bytes::new(4 * mbit(before.max(after)).bytes_in(rtt).get()),
        duration: Duration::from_secs(20),
        flows: vec![SharedFlow { rtt, ..SharedFlow::new("flow", ours(mbit(before.max(after)), rtt)) }],
        ..SharedScenario::default()
    };
    let (outcome, _) = run(&scenario, Seed(seed)).expect("it runs");
    let capacity = mbit(after).bits_per_second() as f64;
    let halves = outcome.flows[0].bytes_arrived_series[100..].chunks(5);
    let parts = halves.map(|half| half.iter().sum::<u64>() as f64 * 16.0 / capacity).collect();
    let waits = outcome.queue.max_ns_series[100..].iter().flatten().max().copied().unwrap_or(0);
    (parts, Duration::from_nanos(waits))
}

#[test]
fn five_seconds_after_a_step_of_the_bandwidth_the_rate_does_not_oscillate() {
    for (before, after, rtt_ms) in [(20, 5, 40), (40, 10, 60), (5, 20, 40), (50, 20, 25), (10, 4, 100)] {
        for seed in 1..=2 {
            let (parts, wait) = after_step(before, after, rtt_ms, seed);
            let case = format!("{before} to {after} Mbit/s, {rtt_ms} ms, seed {seed}");
            assert!(parts.iter().all(|part| (0.85..1.05).contains(part)), "{case}: {parts:?}");
            assert!(wait < Duration::from_millis(60), "{case}: {wait}");
        }
    }
}

#[test]
fn flows_of_different_round_trips_each_have_a_part_of_their_own() {
    let (bandwidth, rtts) = (Bandwidth::from_megabits_per_second(50), [10, 30, 60, 120, 240]);
    let flow = |rtt_ms| {
        let rtt = Duration::from_millis(rtt_ms);
        SharedFlow { rtt, ..SharedFlow::new(&format!("flow{rtt_ms}"), ours(bandwidth, rtt)) }
    };
    let scenario = SharedScenario {
        bandwidth,
        queue: Bytes::new(375_000),
        duration: Duration::from_secs(40),
        warm_up: Duration::from_secs(20),
        flows: rtts.map(flow).to_vec(),
        ..SharedScenario::default()
    };
    let jain_of = |seed| {
        let (outcome, _) = run(&scenario, Seed(seed)).expect("it runs");
        jain(&outcome.flows.iter().map(|flow| flow.throughput_bps()).collect::<Vec<f64>>())
    };
    // Limit: in one or two runs of 24 a flow takes the others for TCP, and the index is near a half.
    let mut found: Vec<f64> = (1..=5).map(jain_of).collect();
    found.sort_by(f64::total_cmp);
    assert!(found[1] > 0.8 && found[2] > 0.9, "{found:?}");
}
