//! How fast losses are repaired, and how much control that takes; everything in virtual time.

use crate::pair::{Offer, Pair, Setup, at_ms, ms};
use segstream_base::{Bandwidth, Duration, Tolerance};
use segstream_proto::rate::Rate;
use segstream_wire::Contract;

fn one_way() -> Duration {
    ms(30)
}

/// A pair that has been quiet since its first segment, so that the round trip is known; just after a keep-alive.
fn warm(contract: Contract) -> Pair {
    let mut pair = Setup::new(&[contract]).build();
    pair.offer(0, 1, 100_000);
    pair.run_to(at_ms(1100));
    assert_eq!(pair.told.len(), 1);
    pair
}

#[test]
fn a_segment_alone_is_judged_when_it_is_here_and_its_verdict_is_known_soon_after() {
    let mut pair = warm(Contract::default());
    let start = pair.now;
    pair.offer(0, 1, 3000);
    pair.run_to(at_ms(2000));
    assert!(pair.judged[1].2 < start + one_way() + ms(1));
    assert!(pair.told[1].2 < start + one_way() * 2 + ms(15), "{}", pair.told[1].2);
}

#[test]
fn a_lost_tail_is_repaired_within_two_round_trips_and_twenty_milliseconds() {
    for units in [1, 2, 100] {
        let mut pair = warm(Contract::default());
        let start = pair.now + ms(units * 9 / 100);
        pair.offer(0, 1, units * 1024);
        let place = pair.forward.departed + units - 1;
        pair.forward.habits.lost.insert(place);
        pair.run_to(at_ms(3000));
        let took = pair.judged[1].2.since(start);
        assert!(took > one_way() * 3, "{took}: the loss was not at the tail");
        assert!(took < one_way() * 3 + ms(20), "a tail of {units} units took {took}: half a round trip, one for the repair, and a little");
        assert!(pair.told[1].2.since(start) < one_way() * 4 + ms(20), "{}", pair.told[1].2);
    }
}

#[test]
fn a_lost_tail_and_its_lost_repair_take_one_more_round() {
    let run = |also: Option<u64>| {
        let mut pair = warm(Contract::default());
        let start = pair.now;
        pair.offer(0, 1, 1024);
        // A shipment's number is its place in the order of departure.
        let tail = pair.forward.departed;
        pair.forward.habits.lost.extend([tail].into_iter().chain(also));
        pair.run_to(at_ms(4000));
        (pair.judged[1].2.since(start), pair.oracle.repairs)
    };
    let (_, repairs) = run(None);
    assert_eq!(repairs.len(), 1);
    let (took, repairs) = run(Some(repairs[0]));
    assert_eq!(repairs.len(), 2);
    assert!(took > one_way() * 5 && took < one_way() * 5 + ms(30), "{took}");
}

#[test]
fn a_single_loss_in_the_stream_is_repaired_in_one_round_trip() {
    let mut pair = warm(Contract::default());
    pair.offer(0, 200, 10 * 1024);
    let place = pair.forward.departed + 500;
    pair.forward.habits.lost.insert(place);
    pair.run_to(at_ms(3000));
    // The segments are judged in steps of their own time (0.9 ms); the damaged one waits for its repair.
    let times: Vec<_> = pair.judged.iter().map(|judged| judged.2).collect();
    let longest = times.windows(2).skip(1).map(|two| two[1].since(two[0])).max().unwrap();
    let damaged =
        times.iter().skip(1).enumerate().map(|(index, time)| time.since(times[1]).saturating_sub(ms(9) / 10 * index as u64)).max().unwrap();
    assert_eq!(pair.oracle.retransmitted, 1);
    assert!(damaged > ms(55), "{damaged}: nothing was repaired");
    assert!(damaged < one_way() * 2 + ms(8), "{damaged}, {longest}");
}

/// Control shipments a second, both ways, in steady flow.
fn control_rates(loss: f64, contract: Contract, bytes: u64) -> (u64, u64) {
    let mut pair = Setup::new(&[contract]).loss(loss, loss).build();
    let count = (100_000_000 / 8 * 5 / bytes) as usize;
    pair.offer(0, count, bytes);
    pair.run_to(at_ms(1000));
    let before = (pair.sender.half.counters.state_shipments, pair.receiver.half.counters.report_shipments);
    pair.run_to(at_ms(4000));
    let after = (pair.sender.half.counters.state_shipments, pair.receiver.half.counters.report_shipments);
    assert!(pair.judged.len() < count, "data flows all the time");
    ((after.0 - before.0) / 3, (after.1 - before.1) / 3)
}

#[test]
fn without_loss_there_are_few_control_shipments() {
    for bytes in [1000, 10_000, 1_000_000] {
        let (states, reports) = control_rates(0.0, Contract::default(), bytes);
        assert!(states < 150 && reports < 150, "{bytes}: {states} states and {reports} reports a second");
        assert!(states > 5 && reports > 5, "{bytes}: {states} states and {reports} reports a second");
    }
}

#[test]
fn a_sender_that_becomes_fast_hears_before_most_of_its_window_is_gone() {
    let contract = Contract { window_units: 16_384, ..Contract::default() };
    let rate = Rate::smooth(Bandwidth::from_megabits_per_second(1000));
    let mut pair = Setup { rate, ..Setup::new(&[contract]) }.delay(Duration::from_micros(100)).build();
    for second in 1..=3 {
        pair.offer(0, 1, 1000);
        pair.run_to(at_ms(second * 1000));
    }
    pair.offer(0, 10_000, 1000);
    let mut most = 0;
    for step in 0..900 {
        pair.run_to(at_ms(3000) + Duration::from_micros(step * 100));
        most = most.max(pair.judged.len() - pair.told.len());
    }
    assert!(pair.judged.len() > 9000, "{}", pair.judged.len());
    assert!((400..1000).contains(&most), "{most} segments at once were judged and not told");
}

#[test]
fn with_one_loss_in_ten_there_is_no_storm_of_reports() {
    for (tolerance, bytes) in
        [(Tolerance::reliable(1000), 1000), (Tolerance::reliable(1000), 100_000), (Tolerance::new(16, 2, 1).unwrap(), 32_768)]
    {
        let (states, reports) = control_rates(0.1, Contract { tolerance, ..Contract::default() }, bytes);
        // 12,000 shipments a second, of which 1,200 are lost: each loss is told at once, but one report tells several.
        assert!(states < 500 && reports < 1000, "{bytes}: {states} states and {reports} reports a second");
    }
}

#[test]
fn a_closed_window_is_asked_after_gently() {
    let mut pair = Setup::new(&[Contract { window_units: 100, ..Contract::default() }]).build();
    pair.taking = false;
    pair.offer(0, 50, 10_000);
    pair.run_to(at_ms(1000));
    let before = (pair.sender.half.counters.state_shipments, pair.receiver.half.counters.report_shipments);
    pair.run_to(at_ms(11_000));
    let states = pair.sender.half.counters.state_shipments - before.0;
    let reports = pair.receiver.half.counters.report_shipments - before.1;
    assert!((10..=500).contains(&states) && reports <= 500, "{states} and {reports} in ten seconds");
    pair.taking = true;
    pair.take();
    let opened = pair.now;
    let units = pair.sender.half.counters.units_sent;
    pair.run_to(opened + one_way() * 2 + ms(10));
    assert!(pair.sender.half.counters.units_sent > units, "the window opens within a round trip");
}

#[test]
fn nothing_to_say_is_said_once_a_keep_alive() {
    let mut pair = warm(Contract::default());
    pair.run_to(at_ms(3000));
    let before = (pair.sender.half.counters.state_shipments, pair.receiver.half.counters.report_shipments);
    pair.run_to(at_ms(23_000));
    let states = pair.sender.half.counters.state_shipments - before.0;
    let reports = pair.receiver.half.counters.report_shipments - before.1;
    assert!((19..=21).contains(&states) && reports <= 21, "{states} and {reports} in twenty seconds");
}

#[test]
fn a_slow_path_is_not_filled_with_control() {
    let mut setup = Setup::new(&[Contract::default()]).loss(0.05, 0.05);
    setup.rate = Rate::smooth(Bandwidth::from_bits_per_second(200_000));
    let mut pair = setup.build();
    pair.offer(0, 40, 10_000);
    pair.run_to(at_ms(15_000));
    // 200 kbit/s carry about 22 shipments a second: control may not take more than every fourth.
    let (states, data) = (pair.sender.half.counters.state_shipments, pair.sender.half.counters.data_shipments);
    assert!(data > 200, "{data}");
    assert!(states < data / 2, "{states} states beside {data} data shipments");
}

#[test]
fn a_tail_that_waits_behind_a_queue_does_not_feed_it() {
    // The periods are those of a short round trip, as they were measured before the queue grew to ten of them.
    let mut pair = warm(Contract::default());
    let before = (pair.sender.half.counters.state_shipments, pair.receiver.half.counters.report_shipments);
    let start = pair.now;
    pair.forward.habits.delay = one_way() * 20;
    pair.back.habits.delay = one_way() * 20;
    pair.offer(0, 1, 10_000);
    pair.run_to(start + one_way() * 20);
    let states = pair.sender.half.counters.state_shipments - before.0;
    assert!((25..=50).contains(&states), "{states} states before the first could have arrived");
    pair.run_to(start + one_way() * 60);
    assert_eq!(pair.told.len(), 2);
    let reports = pair.receiver.half.counters.report_shipments - before.1;
    assert!(reports <= 60, "{reports} reports");
}

#[test]
fn the_tail_of_an_open_segment_that_pauses_is_repaired_while_it_pauses() {
    let mut pair = warm(Contract::default());
    pair.offer_one(0, Offer::Open(None));
    pair.offer_one(0, Offer::Append(10 * 1024, false));
    let place = pair.forward.departed;
    pair.forward.habits.lost.extend([place + 8, place + 9]);
    let start = pair.now;
    pair.run_to(start + one_way() * 5);
    assert_eq!(pair.sender.half.counters.units_retransmitted, 2);
    assert_eq!(pair.receiver.half.counters.units_received, 98 + 10, "98 units of the first segment, and all that was appended");
    pair.offer_one(0, Offer::Append(1024, true));
    pair.run_to(start + ms(1000));
    assert_eq!(pair.judged.len(), 2);
    assert_eq!(pair.sender.half.counters.units_retransmitted, 2);
}

#[test]
fn a_state_does_not_list_small_segments_of_which_the_next_report_tells() {
    let mut setup = Setup::new(&[Contract::default()]);
    setup.log = true;
    let mut pair = setup.build();
    pair.offer(0, 5000, 1024);
    // Why 400 ms: longer than several round trips, and well before the last data leaves.
    pair.run_to(at_ms(400));
    assert!(pair.judged.len() > 1000 && pair.judged.len() < 4000, "{}", pair.judged.len());
    let states = pair.log.lines().filter(|line| line.contains(" state ")).count();
    let listed = pair.log.matches("Finished(Finished").count();
    assert!(listed <= 2 * states, "{listed} segments listed in {states} states");
}

#[test]
fn after_an_outage_segments_of_which_nothing_arrived_are_judged_within_a_round_trip_of_each_other() {
    let whatever = Contract { tolerance: Tolerance::any(4), ..Contract::default() };
    let mut pair = warm(whatever);
    let (segments, states) = (60, 8);
    let place = pair.forward.departed;
    pair.forward.habits.lost.extend(place..place + segments * 4 + states);
    pair.offer(0, segments as usize, 4 * 1024);
    pair.run_to(at_ms(3000));
    let judged: Vec<_> = pair.judged[1..].iter().map(|judged| judged.2).collect();
    assert_eq!(judged.len() as u64, segments);
    let took = judged.iter().max().unwrap().since(*judged.iter().min().unwrap());
    assert!(took < one_way() * 2, "{took}: the receiver had to ask for lengths");
}
