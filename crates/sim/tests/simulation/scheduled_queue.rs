//! Queues that decide when the link takes a packet, shared or on a flow's own path: flows are served apart, L4S traffic waits for
//! little, and every packet is counted.

use crate::crossing::{bytes_found, constant, greedy, managed, mbit, own, seconds, tcp};
use segstream_base::endpoint::Ecn;
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_path::{Aqm, PathConfig};
use segstream_schemes::cross_traffic::Supply;
use segstream_sim::shared::{FlowCounters, Link};
use segstream_sim::{Setup, Shared};

/// Own paths of 60 ms, of which the forward one has a bottleneck too.
fn own_bottleneck(config: PathConfig) -> Setup {
    let plain = own("");
    Setup { forward: PathConfig { delay: plain.forward.delay, ..config }, ..plain }
}

fn assert_counted(counters: &FlowCounters) {
    assert_eq!(counters.bytes_sent, bytes_found(counters), "{counters:?}");
}

#[test]
fn fq_codel_serves_a_sparse_flow_before_one_that_fills_the_link() {
    let link = Link::new(&managed(20, Aqm::FQ_CODEL), Seed(1)).unwrap();
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(greedy("linux_cubic", &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    shared.add(Box::new(constant(Supply::at_rate(mbit(1)), &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    shared.run_until(seconds(30.0)).unwrap();
    let counters: Vec<FlowCounters> = shared.flows().map(|flow| flow.counters()).collect();
    counters.iter().for_each(assert_counted);
    let on_link = link.counters();
    assert_eq!(on_link.sent, counters.iter().map(|counters| counters.packets_sent).sum::<u64>());
    assert_eq!(link.queue().packets(), on_link.delivered);
    assert!(counters[0].packets_dropped > 0 && counters[1].packets_dropped == 0, "{counters:?}");
    assert!(counters[0].bytes_arrived as f64 * 8.0 / 30.0 > 0.85 * 19e6, "{counters:?}");
}

/// What one greedy flow with this codepoint gets from DualPI2, and its mean wait.
fn dualpi2(ecn: Option<Ecn>) -> (FlowCounters, Duration) {
    let link = Link::new(&managed(20, Aqm::DUALPI2), Seed(1)).unwrap();
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(tcp("linux_cubic", Supply::greedy(), ecn, &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    shared.run_until(seconds(5.0)).unwrap();
    link.restart_meter();
    shared.run_until(seconds(30.0)).unwrap();
    let counters = shared.flow(0).unwrap().counters();
    assert_counted(&counters);
    (counters, link.queue().mean())
}

#[test]
fn dualpi2_keeps_the_queue_of_ect1_far_below_the_target_of_the_others() {
    let (l4s, wait_l4s) = dualpi2(Some(Ecn::Ect1));
    let (ect0, wait_ect0) = dualpi2(Some(Ecn::Ect0));
    let (not_ect, wait_not_ect) = dualpi2(None);
    assert!(l4s.packets_marked > 0 && l4s.packets_dropped == 0, "{l4s:?}");
    assert!(ect0.packets_marked > 0, "{ect0:?}");
    assert!(not_ect.packets_marked == 0 && not_ect.packets_dropped > 0, "{not_ect:?}");
    assert!(wait_l4s < Duration::from_millis(1), "{wait_l4s}");
    assert!(wait_ect0 > wait_l4s * 3 && wait_not_ect > wait_l4s * 3, "{wait_l4s}, {wait_ect0}, {wait_not_ect}");
}

/// A flow whose own path has `aqm` and is never full, behind a shared link with `shared_aqm` that marks what waits for long: the
/// marks are the link's.
fn assert_marks_pass(shared_aqm: Aqm, aqm: Aqm) {
    let config = PathConfig { mark_above: Some(Duration::from_millis(5)), ..managed(20, shared_aqm) };
    let link = Link::new(&config, Seed(1)).unwrap();
    let setup = own_bottleneck(managed(100, aqm));
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(tcp("linux_cubic", Supply::greedy(), Some(Ecn::Ect0), &setup, link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    // Fills the shared queue in bursts: so the shared link marks packets of the first flow.
    let bursts = Supply::at_rate(mbit(40)).in_bursts(Duration::from_millis(50), Duration::from_millis(500), Seed(9));
    shared.add(Box::new(constant(bursts, &own(""), link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    shared.run_until(seconds(20.0)).unwrap();
    let counters = shared.flow(0).unwrap().counters();
    assert_counted(&counters);
    // A few packets may be marked and still be in flight.
    let missing = link.counters().marked.checked_sub(counters.packets_marked);
    assert!(counters.packets_marked > 0 && missing.is_some_and(|missing| missing <= 10), "{counters:?}, {missing:?}");
}

#[test]
fn a_queue_that_decides_later_behind_a_shared_link_keeps_the_links_marks() {
    for shared_aqm in [Aqm::DropTail, Aqm::FQ_CODEL] {
        for aqm in [Aqm::DropTail, Aqm::FQ_CODEL, Aqm::DUALPI2] {
            assert_marks_pass(shared_aqm, aqm);
        }
    }
}

#[test]
fn losses_on_an_own_path_whose_queue_decides_later_are_counted() {
    let link = Link::new(&managed(50, Aqm::DropTail), Seed(1)).unwrap();
    let setup = own_bottleneck(managed(10, Aqm::FQ_CODEL));
    let mut shared = Shared::new(link.clone());
    shared.add(Box::new(greedy("linux_cubic", &setup, link.enter(Instant::ZERO))), Instant::FAR_FUTURE);
    shared.run_until(seconds(20.0)).unwrap();
    let counters = shared.flow(0).unwrap().counters();
    assert!(counters.packets_lost > 0, "{counters:?}");
    assert_counted(&counters);
}
