//! A shared link: every packet is counted once, the order of flows does not matter, flows start and stop, marks reach receivers,
//! policers bound a flow.

use crate::crossing::{bytes_found, constant, greedy, link, managed, mbit, own, rates, seconds, tcp};
use segstream_base::endpoint::Ecn;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Duration, Instant};
use segstream_path::{Aqm, PathConfig, Policer};
use segstream_schemes::cross_traffic::Supply;
use segstream_sim::shared::{Flow, FlowCounters, Link};
use segstream_sim::{Setup, Shared};

fn boxed<'a>(which: usize, link: &Link) -> Box<dyn Flow + 'a> {
    let start = seconds([0.0, 0.31, 0.77, 1.23][which]);
    match which {
        0 => Box::new(greedy("linux_cubic", &own("random:1e-4"), link.enter(start))),
        1 => Box::new(greedy("bbr1", &own(""), link.enter(start))),
        2 => Box::new(greedy("reno", &own(""), link.enter(start))),
        _ => {
            let supply = Supply::at_rate(mbit(15)).in_bursts(Duration::from_millis(200), Duration::from_millis(300), Seed(5));
            Box::new(constant(supply, &own(""), link.enter(start)))
        }
    }
}

fn run(order: [usize; 4], until: f64) -> Vec<FlowCounters> {
    let link = link(mbit(50), 1.0);
    let mut shared = Shared::new(link.clone());
    for which in order {
        shared.add(boxed(which, &link), Instant::FAR_FUTURE);
    }
    shared.run_until(seconds(until)).unwrap();
    let mut counters = vec![FlowCounters::default(); 4];
    for (which, flow) in order.into_iter().zip(shared.flows()) {
        counters[which] = flow.counters();
    }
    let queue = link.queue();
    let on_link = link.counters();
    assert_eq!(on_link.sent, counters.iter().map(|counters| counters.packets_sent).sum::<u64>());
    assert_eq!(on_link.dropped_queue, counters.iter().map(|counters| counters.packets_dropped).sum::<u64>());
    assert_eq!(queue.packets(), on_link.delivered);
    counters
}

#[test]
fn every_byte_is_in_one_place() {
    for until in [0.2, 1.01, 5.0, 10.003] {
        for (which, counters) in run([0, 1, 2, 3], until).into_iter().enumerate() {
            assert_eq!(counters.bytes_sent, bytes_found(&counters), "flow {which} at {until} s: {counters:?}");
            assert!(until < 5.0 || counters.bytes_dropped > 0, "flow {which} at {until} s: {counters:?}");
        }
    }
}

#[test]
fn the_order_of_flows_does_not_matter() {
    let usual = run([0, 1, 2, 3], 10.0);
    for order in [[3, 2, 1, 0], [1, 3, 0, 2]] {
        for (counters, expected) in run(order, 10.0).iter().zip(&usual) {
            let apart = counters.bytes_arrived as f64 / expected.bytes_arrived as f64;
            assert!((apart - 1.0).abs() < 0.25, "{order:?}: {counters:?} against {expected:?}");
        }
    }
    assert_eq!(run([0, 1, 2, 3], 10.0), usual);
}

#[test]
fn a_flow_is_silent_before_its_start_and_after_its_stop() {
    let link = link(mbit(100), 1.0);
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(greedy("linux_cubic", &own(""), link.enter(Instant::ZERO))), seconds(10.0));
    shared.add(Box::new(greedy("linux_cubic", &own(""), link.enter(seconds(5.0)))), Instant::FAR_FUTURE);
    assert!(rates(&mut shared, seconds(5.0))[1] == 0.0);
    shared.run_until(seconds(22.0)).unwrap();
    let alone = rates(&mut shared, seconds(40.0));
    assert!(alone[0] == 0.0 && alone[1] > 90e6, "{alone:?}");
}

#[test]
fn what_a_flow_starts_with_does_not_depend_on_when() {
    let first_second = |start: f64| {
        let link = link(mbit(100), 1.0);
        let mut shared = Shared::new(link.clone());
        shared.add(Box::new(greedy("linux_cubic", &own("random:1e-3"), link.enter(seconds(start)))), Instant::FAR_FUTURE);
        shared.run_until(seconds(start + 1.0)).unwrap();
        shared.flow(0).unwrap().counters()
    };
    assert_eq!(first_second(0.0), first_second(7.5));
}

fn marked(ecn: Option<Ecn>) -> (FlowCounters, f64) {
    let config = PathConfig { mark_above: Some(Duration::from_millis(20)), ..managed(20, Aqm::DropTail) };
    let link = Link::new(&config, Seed(1)).unwrap();
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(tcp("linux_cubic", Supply::greedy(), ecn, &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    shared.run_until(seconds(30.0)).unwrap();
    (shared.flow(0).unwrap().counters(), link.queue().mean().as_millis_f64())
}

#[test]
fn a_marked_cubic_backs_off_without_losing_anything() {
    let (with, queue_with) = marked(Some(Ecn::Ect0));
    let (without, queue_without) = marked(None);
    assert!(with.packets_marked > 0 && with.bytes_dropped == 0, "{with:?}");
    assert!(without.packets_marked == 0 && without.bytes_dropped > 0, "{without:?}");
    assert!(queue_with < 25.0 && queue_with < 0.3 * queue_without, "{queue_with} against {queue_without} ms");
    assert!(with.bytes_arrived as f64 * 8.0 / 30.0 > 0.85 * 20e6, "{with:?}");
}

#[test]
fn codel_keeps_the_queue_of_a_cubic_short() {
    let aqm = Aqm::CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
    let link = Link::new(&managed(20, aqm), Seed(1)).unwrap();
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(greedy("linux_cubic", &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    shared.run_until(seconds(30.0)).unwrap();
    assert!(link.counters().dropped_aqm > 0);
    assert!(link.queue().mean() < Duration::from_millis(15), "{}", link.queue().mean());
}

#[test]
fn a_policer_on_a_flow_own_path_bounds_it_and_frees_the_others() {
    let link = link(mbit(50), 1.0);
    let mut setup: Setup = own("");
    setup.forward.policer = Some(Policer { rate: mbit(5), burst: Bytes::new(30_000) });
    let policed = greedy("reno", &setup, link.enter(Instant::ZERO));
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(policed), Instant::FAR_FUTURE);
    shared.add(Box::new(greedy("reno", &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    shared.run_until(seconds(10.0)).unwrap();
    let rates = rates(&mut shared, seconds(60.0));
    assert!(rates[0] <= 5.1e6 && rates[0] > 1e6 && rates[1] > 40e6, "{rates:?}");
}

#[test]
fn sources_pause_and_keep_their_rate() {
    let arrived = |supply: Supply| {
        let link = link(mbit(100), 1.0);
        let mut shared = Shared::new(link.clone());
        shared.add(Box::new(constant(supply, &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
        shared.run_until(seconds(20.0)).unwrap();
        shared.flow(0).unwrap().counters().bytes_sent as f64 * 8.0 / 20.0
    };
    let steady = arrived(Supply::at_rate(mbit(10)));
    assert!((steady / 10e6 - 1.0).abs() < 1e-3, "{steady}");
    let paused = arrived(Supply::at_rate(mbit(10)).idle_in(&[(seconds(2.0), seconds(6.0)), (seconds(10.0), seconds(11.0))]));
    assert!((paused / 7.5e6 - 1.0).abs() < 1e-3, "{paused}");
    let bursts = arrived(Supply::at_rate(mbit(10)).in_bursts(Duration::from_millis(50), Duration::from_millis(150), Seed(9)));
    // A hundred bursts: the mean within three standard deviations.
    assert!((bursts / 2.5e6 - 1.0).abs() < 0.4, "{bursts}");
}

#[test]
fn encoding_cross_traffic_changes_nothing() {
    let run = |check: bool| {
        let link = link(mbit(50), 1.0);
        let setup = Setup { check, ..own("random:1e-3") };
        let mut shared = Shared::new(link.clone());
        shared.add(Box::new(greedy("linux_cubic", &setup, link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
        shared.add(Box::new(constant(Supply::at_rate(mbit(5)), &setup, link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
        shared.run_until(seconds(3.0)).unwrap();
        shared.flows().map(|flow| flow.counters()).collect::<Vec<_>>()
    };
    assert_eq!(run(true), run(false));
}
