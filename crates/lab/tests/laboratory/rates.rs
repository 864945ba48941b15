//! The automatic rate on paths whose delay varies, beside what TCP gets there, in virtual time.
//!
//! The jitter is uniform and keeps the order, in both directions, so it comes in bursts: whatever one packet is held back by holds back all
//! behind it. Much of a delay is then no queue.

use super::controllers::traffic;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration};
use segstream_blocks::congestion::{auto, bbr, cubic};
use segstream_lab::shared::{SharedOutcome, SharedParty, SharedScenario, Traffic, run};

/// A path: bandwidth in Mbit/s, round trip and jitter in milliseconds, losses.
type Cell = (u64, u64, u64, &'static str);

fn ours(bandwidth: Bandwidth, rtt: Duration) -> Traffic {
    traffic(&auto::ALGORITHM, (12 * bandwidth.bytes_in(rtt).get() / (32 * 1144) + 64) as u32)
}

/// Goodput of one flow alone over a queue of one product, as a part of the bandwidth.
fn goodput((mbit, rtt_ms, jitter_ms, loss): Cell, traffic: impl Fn(Bandwidth, Duration) -> Traffic) -> f64 {
    let (bandwidth, rtt) = (Bandwidth::from_megabits_per_second(mbit), Duration::from_millis(rtt_ms));
    let party = SharedParty {
        rtt,
        jitter: Duration::from_millis(jitter_ms),
        loss: loss.parse().expect("a loss"),
        ..SharedParty::new("flow", traffic(bandwidth, rtt))
    };
    let scenario = SharedScenario {
        bandwidth,
        queue: Bytes::new(bandwidth.bytes_in(rtt).get()),
        duration: Duration::from_secs(20),
        warm_up: Duration::ZERO,
        parties: vec![party],
        ..SharedScenario::default()
    };
    let seeds = 1..=2;
    let of = |outcome: SharedOutcome| outcome.party("flow").expect("it runs").goodput_bps() / bandwidth.bits_per_second() as f64;
    seeds.map(|seed| of(run(&scenario, Seed(seed)).expect("it runs").0)).sum::<f64>() / 2.0
}

#[test]
fn jitter_that_keeps_the_order_leaves_the_automatic_rate_four_fifths_of_what_the_better_tcp_gets() {
    let cells: [Cell; 5] =
        [(20, 40, 5, "none"), (20, 40, 10, "none"), (20, 40, 20, "none"), (20, 40, 40, "none"), (50, 30, 15, "random:0.005")];
    for cell in cells {
        let tcp = |congestion| goodput(cell, |_, _| Traffic::Tcp { congestion, ecn: false });
        let (found, better) = (goodput(cell, ours), tcp(&cubic::ALGORITHM).max(tcp(&bbr::ALGORITHM)));
        assert!(found > 0.8 * better, "{cell:?}: {found} of the bandwidth, a TCP gets {better}");
    }
}
