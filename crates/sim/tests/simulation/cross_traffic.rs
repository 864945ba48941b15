//! Cross traffic does what is known of it: fills links, follows its laws, shares as measured elsewhere.

use crate::crossing::{greedy, jain, link, mbit, own, rates, seconds};
use segstream_base::halves::Probe;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Duration, Instant};
use segstream_path::{PathConfig, QueueLimit};
use segstream_sim::Shared;
use segstream_sim::shared::{Flow, Link};

const LINK: f64 = 100e6;
/// Packets in a bandwidth-delay product of 100 Mbit/s and 60 ms.
const PRODUCT: f64 = LINK * 0.060 / 12_000.0;

struct Gauge(&'static str, f64);

impl Probe for Gauge {
    fn gauge(&mut self, name: &'static str, value: f64) {
        if name == self.0 {
            self.1 = value;
        }
    }
}

fn gauge(flow: &dyn Flow, name: &'static str) -> f64 {
    let mut gauge = Gauge(name, f64::NAN);
    flow.probe(&mut gauge);
    gauge.1
}

#[test]
fn one_cubic_fills_the_link() {
    let link = link(mbit(100), 1.0);
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(greedy("linux_cubic", &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    let filled = rates(&mut shared, seconds(30.0))[0] / LINK;
    assert!(filled >= 0.95, "{filled}");
    assert!(link.counters().dropped_queue > 0);
}

/// After each reduction the window is C (t - K)^3 + W_max until the next, with fast convergence (RFC 9438 4.2, 4.7).
#[test]
fn the_window_of_cubic_is_a_cubic_function() {
    let link = link(mbit(100), 1.0);
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(greedy("linux_cubic", &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    let mut samples = Vec::new();
    shared
        .run_sampled(seconds(60.0), Duration::from_millis(10), |shared| {
            samples.push((shared.now(), gauge(shared.flow(0).unwrap(), "window_packets")));
        })
        .unwrap();
    let falls: Vec<usize> = (1..samples.len()).filter(|at| samples[*at].1 < 0.8 * samples[*at - 1].1).collect();
    assert!(falls.len() >= 4, "{falls:?}");
    let (mut worst, mut window_max) = (0.0f64, 0.0);
    for (number, pair) in falls.windows(2).enumerate() {
        let (prior, after) = (samples[pair[0] - 1].1, samples[pair[0]].1);
        window_max = if prior < window_max { 0.85 * prior } else { prior };
        if number == 0 {
            continue; // Slow start ended it.
        }
        // The repair takes a round trip, in which the window stands; the epoch begins behind it.
        let begin = (pair[0]..pair[1]).find(|at| samples[*at].1 > after).unwrap() - 1;
        let k = f64::cbrt((window_max - after) / 0.4);
        for (at, window) in &samples[begin..pair[1] - 1] {
            let t = at.since(samples[begin].0).as_secs_f64();
            let expected = 0.4 * (t - k).powi(3) + window_max;
            worst = worst.max((window - expected).abs() / expected);
        }
    }
    assert!(worst < 0.02, "{worst}");
}

#[test]
fn two_renos_share_alike() {
    let link = link(mbit(100), 1.0);
    let mut shared = Shared::new(link.clone());
    for start in [0.0, 1.3] {
        shared.add(Box::new(greedy("reno", &own(""), link.enter(seconds(start)))), Instant::FAR_FUTURE);
    }
    let rates = rates(&mut shared, seconds(60.0));
    assert!(jain(&rates) >= 0.95, "{rates:?}");
    assert!(rates.iter().sum::<f64>() >= 0.95 * LINK, "{rates:?}");
}

#[test]
fn reno_under_random_loss_has_the_rate_of_the_square_root_law() {
    for p in [3e-4f64, 1e-3, 3e-3, 1e-2] {
        let link = link(mbit(1000), 1.0);
        let mut shared = Shared::new(link.clone());
        shared.add(Box::new(greedy("reno", &own(&format!("random:{p}")), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
        shared.run_until(seconds(20.0)).unwrap();
        let rate = rates(&mut shared, seconds(400.0))[0];
        let law = 1.22 * 12_000.0 / (0.060 * p.sqrt());
        assert!((rate / law - 1.0).abs() < 0.2, "p = {p}: {rate} against {law}");
    }
}

#[test]
fn one_bbr_fills_the_link_with_a_short_queue_and_two_products_under_way() {
    let link = link(mbit(100), 4.0);
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(greedy("bbr1", &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    shared.run_until(seconds(2.0)).unwrap();
    link.restart_meter();
    let before = shared.flow(0).unwrap().counters().bytes_arrived;
    let mut most = 0.0f64;
    shared
        .run_sampled(seconds(32.0), Duration::from_millis(1), |shared| {
            most = most.max(gauge(shared.flow(0).unwrap(), "in_flight_packets"));
        })
        .unwrap();
    let filled = (shared.flow(0).unwrap().counters().bytes_arrived - before) as f64 * 8.0 / 30.0 / LINK;
    let mean = link.queue().mean().as_millis_f64();
    assert!(filled >= 0.9, "{filled}");
    assert!(mean < 6.0, "{mean}");
    assert!(most <= 2.0 * PRODUCT + 10.0, "{most}");
}

/// BBR's window is two bandwidth-delay products: with a queue of one it can hold the queue full by itself, and CUBIC is
/// pushed back (Ware et al., IMC 2019: hardly anything is left at one product); with more queue both live.
#[test]
fn bbr_pushes_cubic_back_from_a_short_queue_and_lives_with_it_at_a_longer_one() {
    let share = |products: f64| {
        let link = link(mbit(100), products);
        let mut shared = Shared::new(link.clone());
        shared.add(Box::new(greedy("linux_cubic", &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
        shared.add(Box::new(greedy("bbr1", &own(""), link.enter(seconds(0.7)))), Instant::FAR_FUTURE);
        shared.run_until(seconds(20.0)).unwrap();
        let rates = rates(&mut shared, seconds(80.0));
        (rates[0] / LINK, rates[1] / LINK)
    };
    let (cubic, bbr) = share(1.0);
    assert!(cubic > 0.05 && bbr > 0.6, "{cubic} and {bbr}");
    for products in [1.5, 2.0, 4.0] {
        let (cubic, bbr) = share(products);
        assert!(cubic >= 0.2 && bbr >= 0.2 && cubic + bbr > 0.95, "{products}: {cubic} and {bbr}");
    }
}

fn over_an_outage(congestion: &str) -> (f64, u64) {
    let trace = "0s:20mbit,5s:0bit,8s:20mbit".parse().unwrap();
    let config = PathConfig { trace, queue: QueueLimit::Bytes(Bytes::new(150_000)), ..PathConfig::default() };
    let link = Link::new(&config, Seed(1)).unwrap();
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(greedy(congestion, &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    shared.run_until(seconds(15.0)).unwrap();
    let rate = rates(&mut shared, seconds(25.0))[0];
    (rate / 20e6, shared.flow(0).unwrap().counters().packets_retransmitted)
}

#[test]
fn an_outage_of_three_seconds_is_survived_by_the_timeout() {
    for name in ["reno", "linux_cubic", "bbr1"] {
        let (filled, again) = over_an_outage(name);
        assert!(filled > 0.8 && again > 0, "{name}: {filled}, {again}");
    }
}

#[test]
fn lost_acknowledgments_cost_little() {
    let mut setup = own("");
    setup.back.loss = "random:0.1".parse().unwrap();
    let link = link(mbit(20), 1.0);
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(greedy("linux_cubic", &setup, link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    let filled = rates(&mut shared, seconds(30.0))[0] / 20e6;
    let counters = shared.flow(0).unwrap().counters();
    assert!(filled > 0.9, "{filled}");
    assert!(counters.packets_retransmitted < 2 * counters.packets_dropped + 20, "{counters:?}");
}
