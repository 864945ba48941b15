//! The automatic rate on a path with a real bottleneck: fills it, survives what may be lost, gives way, is heard of.

use crate::bottleneck::{Source, Transfer, at_ms, bottleneck, ms};
use segstream_base::halves::{Reconfigure, Sender, Verdict};
use segstream_base::{Bandwidth, Duration};
use segstream_blocks::congestion::{auto, bbr, cubic, prague};
use segstream_path::PathConfig;
use segstream_proto::rate::Rate;

/// The share of a packet of the bottleneck that is payload: one unit of 1024 bytes.
const PAYLOAD: f64 = 1024.0 / (1024.0 + 41.0 + 16.0);

fn greedy(rate: Rate, path: &PathConfig) -> Transfer {
    Transfer::new(rate, path, Source::Greedy, 64 * 1024)
}

fn megabits(megabits: u64) -> Bandwidth {
    Bandwidth::from_megabits_per_second(megabits)
}

#[test]
fn a_bottleneck_nobody_shares_is_filled_and_its_queue_is_not() {
    let mut transfer = greedy(Rate::AUTO, &bottleneck(20));
    transfer.run_to(at_ms(5000));
    transfer.queued_max = Duration::ZERO;
    let share = transfer.goodput_over(Duration::from_secs(20)) / (20e6 * PAYLOAD);
    assert!(share > 0.9 && share <= 1.01, "{share:.3} of what the bottleneck carries");
    assert!(transfer.queued_max < ms(40), "the queue of 40 ms was filled: {}", transfer.queued_max);
    assert!(transfer.verdicts.iter().all(|verdict| *verdict == Verdict::Complete));
}

#[test]
fn the_bounds_of_an_automatic_rate_hold() {
    let bounds = Rate::between(megabits(1), megabits(5));
    let mut transfer = greedy(bounds, &bottleneck(20));
    let share = transfer.goodput_over(Duration::from_secs(20)) / (5e6 * PAYLOAD);
    assert!(share > 0.85 && share < 1.01, "{share:.3} of the peak");
    assert!(transfer.rates.iter().all(|(_, rate)| (megabits(1)..=megabits(5)).contains(rate)));
    // On a path that carries less than the floor the floor is kept all the same.
    let mut crowded = greedy(Rate::between(megabits(2), megabits(5)), &bottleneck(1));
    crowded.run_to(at_ms(10_000));
    assert!(crowded.sender.half.rate() >= Some(megabits(2)));
}

#[test]
fn the_loss_of_every_state_for_two_seconds_is_survived() {
    let mut transfer = greedy(Rate::AUTO, &bottleneck(20));
    transfer.run_to(at_ms(6000));
    transfer.states_lost = true;
    transfer.run_to(at_ms(8000));
    transfer.states_lost = false;
    transfer.run_to(at_ms(12_000));
    let share = transfer.goodput_over(Duration::from_secs(4)) / (20e6 * PAYLOAD);
    assert!(share > 0.8, "{share:.3} of what the bottleneck carries");
    assert!(transfer.finish_by(at_ms(40_000)));
}

#[test]
fn a_receiver_that_never_tells_of_exchanges_gets_the_floor_and_no_less() {
    let floor = Bandwidth::from_bits_per_second(400_000);
    let mut transfer = greedy(Rate::between(floor, megabits(10)), &bottleneck(20));
    transfer.arrivals_kept_back = true;
    transfer.run_to(at_ms(20_000));
    let goodput = transfer.goodput_over(Duration::from_secs(20));
    assert!((0.5 * 400e3..=400e3).contains(&goodput), "{goodput:.0} bit/s at a floor of 400 kbit/s");
}

#[test]
fn a_receiver_that_ceases_to_tell_of_exchanges_gets_the_floor_half_a_minute_later() {
    let floor = Bandwidth::from_bits_per_second(400_000);
    let mut transfer = greedy(Rate::between(floor, megabits(2)), &bottleneck(20));
    transfer.run_to(at_ms(3000));
    transfer.arrivals_kept_back = true;
    transfer.run_to(at_ms(33_000));
    let goodput = transfer.goodput_over(Duration::from_secs(25));
    assert!((0.5 * 400e3..=400e3).contains(&goodput), "{goodput:.0} bit/s at a floor of 400 kbit/s");
}

#[test]
fn an_outage_of_five_seconds_is_survived() {
    for start in [0, 100, 3000, 9000] {
        let (from, to) = (at_ms(start), at_ms(start + 5000));
        let mut transfer = greedy(Rate::AUTO, &bottleneck(20)).outage(from, to);
        transfer.run_to(from);
        let most = transfer.sender.half.in_flight_cap();
        transfer.run_to(to - ms(1));
        let in_flight = transfer.sender.half.in_flight();
        assert!(in_flight < most + 64 * 1024, "the cap in flight did not hold: {in_flight} bytes, {most} allowed, from {start} ms on");
        transfer.run_to(to + ms(3000));
        let share = transfer.goodput_over(Duration::from_secs(4)) / (20e6 * PAYLOAD);
        assert!(share > 0.7, "{share:.3} of what the bottleneck carries after an outage from {start} ms on");
        assert!(transfer.finish_by(at_ms(start + 60_000)), "from {start} ms on");
        assert!(transfer.verdicts.iter().all(|verdict| *verdict == Verdict::Complete));
    }
}

#[test]
fn a_source_slower_than_the_path_is_never_held_up_by_the_rate() {
    // 25 segments of 10 kB a second are 2 Mbit/s.
    let mut transfer = Transfer::new(Rate::AUTO, &bottleneck(20), Source::Every(ms(40)), 10_000);
    transfer.run_to(at_ms(4000));
    let before = transfer.judged;
    transfer.run_to(at_ms(34_000));
    let segments = (transfer.judged - before) / 10_000;
    assert!((748..=752).contains(&segments), "{segments} segments of 750");
    let rate = transfer.sender.half.rate().unwrap().bits_per_second();
    assert!(rate > 2_000_000, "{rate} bit/s are less than the source has");
    assert_eq!(transfer.dropped(), 0);
    assert!(transfer.finish_by(at_ms(36_000)));
}

#[test]
fn an_idle_connection_hardly_asks() {
    let mut transfer = Transfer::new(Rate::AUTO, &bottleneck(20), Source::Every(Duration::from_secs(100)), 10_000);
    transfer.run_to(at_ms(2000));
    let before = transfer.sent();
    transfer.run_to(at_ms(32_000));
    let asked = transfer.sent() - before;
    assert!((29..=31).contains(&asked), "{asked} states in thirty seconds of nothing to say");
}

#[test]
fn marks_make_the_rate_give_way_without_a_loss() {
    let path = PathConfig { mark_above: Some(ms(4)), ..bottleneck(20) };
    let mut transfer = greedy(Rate::AUTO, &path);
    transfer.run_to(at_ms(5000));
    let (dropped, marked) = (transfer.dropped(), transfer.marked());
    transfer.queued_max = Duration::ZERO;
    let share = transfer.goodput_over(Duration::from_secs(10)) / (20e6 * PAYLOAD);
    assert!(share > 0.7, "{share:.3} of what the bottleneck carries");
    assert_eq!(transfer.dropped(), dropped);
    assert!(transfer.queued_max < ms(30) && marked > 0, "{} and {marked} marks", transfer.queued_max);
}

#[test]
fn a_change_is_told_when_it_matters_and_not_too_often() {
    let mut transfer = greedy(Rate::AUTO, &bottleneck(20));
    transfer.run_to(at_ms(10_000));
    assert!(transfer.rates.len() > 3, "{:?}", transfer.rates);
    for pair in transfer.rates.windows(2) {
        let ((at, rate), (next_at, next)) = (pair[0], pair[1]);
        assert!(next_at.since(at) >= ms(100), "{at} and {next_at}");
        let change = rate.bits_per_second().abs_diff(next.bits_per_second());
        assert!(change * 20 >= rate.bits_per_second(), "{rate} and {next}");
    }
}

#[test]
fn fixed_becomes_automatic_and_automatic_fixed_while_data_flows() {
    let mut transfer = greedy(Rate::smooth(megabits(10)), &bottleneck(20));
    transfer.run_to(at_ms(3000));
    transfer.sender.half.set_rate(transfer.now, Rate::AUTO).unwrap();
    transfer.run_to(at_ms(8000));
    let share = transfer.goodput_over(Duration::from_secs(4)) / (20e6 * PAYLOAD);
    assert!(share > 0.85, "{share:.3} of what the bottleneck carries");
    // Another peak keeps what is known of the path.
    transfer.sender.half.set_rate(transfer.now, Rate::between(Rate::FLOOR, megabits(8))).unwrap();
    let share = transfer.goodput_over(Duration::from_secs(4)) / (8e6 * PAYLOAD);
    assert!(share > 0.85 && share < 1.1, "{share:.3} of the new peak");
    transfer.sender.reconfigure(transfer.now, Reconfigure::Rate(megabits(5))).unwrap();
    assert!(transfer.sender.reconfigure(transfer.now, Reconfigure::Class(6)).is_ok());
    assert!(transfer.sender.half.set_rate(transfer.now, Rate::AUTO).is_err(), "rate control was asked to end");
    assert!(transfer.finish_by(at_ms(40_000)));
}

/// Whether a fixed rate of `sent` is given up within a minute on a path that carries `carried`.
fn breaks(sent: u64, carried: u64) -> bool {
    let mut transfer = Transfer::new(Rate::smooth(megabits(sent)), &bottleneck(carried), Source::Greedy, 64 * 1024);
    for second in 1..60 {
        transfer.run_to(at_ms(second * 1000));
        if transfer.sender.circuit_broken().is_some() {
            return true;
        }
    }
    false
}

#[test]
fn a_fixed_rate_is_given_up_where_almost_nothing_of_it_arrives() {
    assert!(breaks(100, 4));
    assert!(!breaks(20, 10), "a path that carries half of it is a lossy path, no more");
}

#[test]
fn the_half_tells_what_broke_the_circuit() {
    let mut transfer = greedy(Rate::smooth(megabits(50)), &bottleneck(1));
    let mut told = None;
    while told.is_none() && transfer.now < at_ms(60_000) {
        transfer.run_to(transfer.now + ms(10));
        told = transfer.sender.circuit_broken();
    }
    let told = told.expect("the circuit breaks");
    assert!(told.received * 10 < told.sent && told.span >= Duration::from_secs(5), "{told:?}");
}

#[test]
fn one_controller_takes_over_from_another_while_data_flows() {
    let mut transfer = greedy(Rate::AUTO, &bottleneck(20));
    transfer.run_to(at_ms(3000));
    for congestion in [&bbr::ALGORITHM, &cubic::ALGORITHM, &prague::ALGORITHM, &auto::ALGORITHM] {
        transfer.sender.half.set_rate(transfer.now, Rate::AUTO.under(congestion)).unwrap();
        transfer.run_to(transfer.now + Duration::from_secs(2));
        let share = transfer.goodput_over(Duration::from_secs(6)) / (20e6 * PAYLOAD);
        assert!(share > 0.85, "{congestion:?}: {share:.3} of what the bottleneck carries");
    }
    assert!(transfer.finish_by(transfer.now + Duration::from_secs(20)));
}
