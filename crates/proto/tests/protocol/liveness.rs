//! Whatever is lost, every transfer ends: all verdicts are known at both ends and no window stays closed.

use crate::pair::{Offer, Setup, at_ms, ms};
use segstream_base::halves::Verdict;
use segstream_base::{Duration, Tolerance};
use segstream_wire::Contract;
use segstream_wire::contract::{InterleaveChoice, Order};

fn reliable() -> Contract {
    Contract::default()
}

fn small_window(segments: u32, units: u32) -> Contract {
    Contract { window_segments: segments, window_units: units, ..Contract::default() }
}

fn limit() -> Duration {
    Duration::from_secs(120)
}

#[test]
fn nothing_lost_is_the_easy_case() {
    let mut pair = Setup::new(&[reliable()]).build();
    pair.offer(0, 50, 10_000);
    pair.run_over(Duration::from_secs(2));
    assert_eq!(pair.oracle.count(Verdict::Complete), 50);
    assert_eq!(pair.oracle.retransmitted, 0);
}

#[test]
fn an_empty_stream_ends() {
    let mut pair = Setup::new(&[reliable(), reliable()]).build();
    pair.run_over(Duration::from_secs(1));
}

#[test]
fn any_one_lost_shipment_in_either_direction_only_delays() {
    for place in 0..60 {
        for back in [false, true] {
            let mut setup = Setup::new(&[small_window(3, 20)]);
            let habits = if back { &mut setup.back } else { &mut setup.forward };
            habits.lost.insert(place);
            let mut pair = setup.build();
            pair.offer(0, 12, 5000);
            pair.run_over(Duration::from_secs(20));
            assert_eq!(pair.oracle.count(Verdict::Complete), 12, "place {place} back {back}");
        }
    }
}

#[test]
fn any_two_neighbouring_losses_with_a_window_of_one_segment_only_delay() {
    for place in 0..40 {
        for (forward, back) in [(2, 0), (0, 2), (1, 1), (6, 6)] {
            let mut setup = Setup::new(&[small_window(1, 4)]);
            setup.forward.lost.extend(place..place + forward);
            setup.back.lost.extend(place..place + back);
            let mut pair = setup.build();
            pair.offer(0, 6, 4000);
            pair.run_over(Duration::from_secs(20));
        }
    }
}

#[test]
fn heavy_loss_both_ways_ends_whatever_the_shape_of_segments() {
    let tolerant = Contract { tolerance: Tolerance::new(16, 4, 2).unwrap(), ..reliable() };
    let any = Contract { tolerance: Tolerance::any(1), ..reliable() };
    let shapes: [(Contract, usize, u64); 8] = [
        (reliable(), 200, 1),
        (reliable(), 60, 20_000),
        (small_window(1, 1), 40, 1000),
        (small_window(100, 100), 20, 60 * 1024),
        (small_window(4, 1000), 60, 3000),
        (Contract { order: Order::AsAccepted, ..small_window(8, 64) }, 100, 4000),
        (tolerant, 50, 40_000),
        (any, 50, 40_000),
    ];
    for (index, (contract, count, bytes)) in shapes.into_iter().enumerate() {
        for seed in 0..6 {
            for loss in [0.05, 0.3, 0.6] {
                let mut pair = Setup::new(std::slice::from_ref(&contract)).loss(loss, loss).seed(seed * 10 + index as u64).build();
                pair.offer(0, count, bytes);
                pair.run_over(limit());
            }
        }
    }
}

#[test]
fn everything_at_once_on_a_bad_path_ends() {
    for seed in 0..10 {
        let contracts = [
            reliable(),
            Contract { tolerance: Tolerance::new(32, 3, 1).unwrap(), importance: 2, lifetime: ms(150).into(), ..small_window(16, 400) },
            Contract { order: Order::AsAccepted, tolerance: Tolerance::new(8, 2, 2).unwrap(), weight: 4, ..small_window(5, 50) },
            Contract { tolerance: Tolerance::new(64, 8, 4).unwrap(), interleave: InterleaveChoice::Depth(16), ..reliable() },
        ];
        let mut setup = Setup::new(&contracts).loss(0.2, 0.2).seed(seed);
        for habits in [&mut setup.forward, &mut setup.back] {
            habits.jitter = ms(3);
            habits.duplicate = 0.1;
            habits.late = 0.05;
            habits.late_by = 9;
        }
        let mut pair = setup.build();
        for stream in 0..4 {
            pair.offer(stream, 40, 3000 + 5000 * u64::from(stream));
        }
        pair.run_over(limit());
    }
}

#[test]
fn long_total_outages_are_survived() {
    for (from, to) in [(0, 5000), (35, 8000), (100, 20_000), (500, 3000)] {
        for (forward, back) in [(true, true), (true, false), (false, true)] {
            let mut setup = Setup::new(&[small_window(64, 2000), reliable()]);
            let span = (at_ms(from), at_ms(to));
            if forward {
                setup.forward.outages.push(span);
            }
            if back {
                setup.back.outages.push(span);
            }
            let mut pair = setup.build();
            pair.offer(0, 300, 20_000);
            pair.offer(1, 100, 1);
            pair.run_over(Duration::from_secs(60));
            let late = pair.now.since(at_ms(to));
            assert!(late < Duration::from_secs(4), "{late} after the outage {from}..{to} ms");
        }
    }
}

#[test]
fn open_segments_appended_slowly_end() {
    for seed in 0..8 {
        let contracts =
            [reliable(), Contract { tolerance: Tolerance::new(32, 4, 2).unwrap(), interleave: InterleaveChoice::Depth(8), ..reliable() }];
        let mut pair = Setup::new(&contracts).loss(0.2, 0.2).seed(seed).build();
        for round in 0..6u64 {
            for stream in 0..2 {
                pair.offer_one(stream, Offer::Open(None));
            }
            for step in 0..round {
                for stream in 0..2 {
                    pair.offer_one(stream, Offer::Append(700 * (step + 1), false));
                }
                pair.run_for(ms(37));
            }
            for stream in 0..2 {
                pair.offer_one(stream, Offer::Append(round * 300, true));
            }
            pair.run_for(ms(11));
        }
        pair.run_over(limit());
    }
}

#[test]
fn an_open_segment_whose_last_units_were_lost_before_it_ended_is_repaired() {
    let mut pair = Setup::new(&[reliable()]).build();
    pair.offer_one(0, Offer::Open(None));
    pair.run_for(ms(200));
    pair.forward.drop_next = 2;
    pair.offer_one(0, Offer::Append(2048, false));
    pair.run_for(ms(500));
    // Its end adds no unit: only a statement can tell that it ended there.
    pair.offer_one(0, Offer::Append(0, true));
    pair.run_over(Duration::from_secs(5));
    assert_eq!(pair.oracle.count(Verdict::Complete), 1);
}

#[test]
fn lifetimes_end_what_an_outage_holds_up() {
    for order in [Order::InOrder, Order::AsAccepted] {
        let contract = Contract { lifetime: ms(200).into(), order, ..small_window(20, 300) };
        let mut setup = Setup::new(&[contract]);
        setup.forward.outages.push((at_ms(150), at_ms(1500)));
        let mut pair = setup.build();
        for _ in 0..100 {
            pair.offer(0, 1, 9000);
            pair.run_for(ms(25));
        }
        pair.run_over(limit());
        assert!(pair.oracle.count(Verdict::Expired) > 30 && pair.oracle.count(Verdict::Complete) > 30);
    }
}

#[test]
fn open_segments_that_expire_end_at_their_present_length() {
    for seed in 0..5 {
        let mut pair = Setup::new(&[Contract { lifetime: ms(100).into(), ..reliable() }]).loss(0.2, 0.2).seed(seed).build();
        for _ in 0..5 {
            pair.offer_one(0, Offer::Open(None));
            for _ in 0..8 {
                pair.offer_one(0, Offer::Append(2500, false));
                pair.run_for(ms(30));
            }
            pair.offer_one(0, Offer::Append(100, true));
        }
        pair.run_over(limit());
    }
}

#[test]
fn a_segment_longer_than_the_window_the_receiver_grants_expires_instead_of_waiting_for_ever() {
    let mut setup = Setup::new(&[small_window(100, 1000)]);
    setup.stream_window_bytes = 100 * 1024;
    let mut pair = setup.build();
    // Submitted before the receiver's answer can be known.
    pair.offer(0, 1, 50 * 1024);
    pair.offer(0, 1, 500 * 1024);
    pair.offer(0, 3, 80 * 1024);
    pair.run_over(Duration::from_secs(5));
    assert_eq!((pair.oracle.count(Verdict::Complete), pair.oracle.count(Verdict::Expired)), (4, 1));
}

#[test]
fn every_class_ends() {
    for class in 0..8 {
        for (seed, loss) in [(0, 0.0), (1, 0.1), (2, 0.4)] {
            let contracts = [small_window(30, 100), Contract { tolerance: Tolerance::new(10, 3, 2).unwrap(), ..small_window(8, 64) }];
            let mut pair = Setup::new(&contracts).class(class).loss(loss, loss).seed(seed).build();
            pair.offer(0, 60, 20_000);
            pair.offer(1, 60, 12_000);
            pair.run_over(limit());
        }
    }
}

#[test]
fn without_flow_control_an_application_that_stops_loses_segments_but_nothing_hangs() {
    for class in [1, 5] {
        let mut pair = Setup::new(&[small_window(30, 100)]).class(class).loss(0.05, 0.05).build();
        pair.taking = false;
        pair.offer(0, 60, 20_000);
        pair.run_for(Duration::from_secs(2));
        pair.taking = true;
        pair.take();
        pair.run_over(limit());
    }
}

#[test]
fn a_lost_first_segment_cannot_stop_a_stream_without_flow_control() {
    let mut setup = Setup::new(&[small_window(64, 64)]).class(5);
    setup.forward.lost.extend(1..12);
    let mut pair = setup.build();
    pair.offer(0, 200, 8 * 1024);
    pair.run_over(Duration::from_secs(20));
}

#[test]
fn a_class_asked_for_is_not_forgotten_when_the_rate_changes_too() {
    use segstream_base::Bandwidth;
    use segstream_base::halves::{Reconfigure, Sender};
    let mut pair = Setup::new(&[reliable()]).build();
    pair.offer(0, 10, 100_000);
    pair.run_for(ms(100));
    pair.set_class(5);
    pair.sender.reconfigure(pair.now, Reconfigure::Rate(Bandwidth::from_megabits_per_second(10))).unwrap();
    pair.run_over(Duration::from_secs(10));
    assert_eq!(pair.reclassed, Some(5));
}

#[test]
fn a_stopped_application_closes_the_window_and_opens_it_again() {
    for seed in 0..4 {
        let mut pair = Setup::new(&[small_window(16, 200), reliable()]).loss(0.2, 0.2).seed(seed).build();
        pair.taking = false;
        pair.offer(0, 100, 15_000);
        pair.offer(1, 20, 15_000);
        pair.run_for(Duration::from_secs(5));
        pair.taking = true;
        pair.take();
        pair.run_over(limit());
    }
}

#[test]
fn many_streams_with_tails_lost_together_all_end() {
    let contracts = vec![reliable(); 100];
    let mut setup = Setup::new(&contracts);
    setup.forward.outages.push((at_ms(62), at_ms(90)));
    let mut pair = setup.build();
    for stream in 0..100 {
        pair.offer(stream, 40, 900);
    }
    pair.run_over(Duration::from_secs(10));
}
