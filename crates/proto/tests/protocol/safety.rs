//! What is delivered was sent, once; every verdict is true; both ends agree. The oracle of the pair checks
//! each of these for every segment; the tests here make sure that there is something to check.

use crate::pair::oracle::allowed;
use crate::pair::{Offer, Setup, ms};
use segstream_base::halves::Verdict;
use segstream_base::{Duration, Tolerance, UnitIndex};
use segstream_wire::Contract;
use segstream_wire::contract::{InterleaveChoice, Order};

fn limit() -> Duration {
    Duration::from_secs(60)
}

#[test]
fn the_naive_check_of_a_tolerance_knows_windows_runs_and_importance() {
    assert!(allowed(Tolerance::new(10, 2, 1).unwrap(), 0, 30, &[0, 2, 10, 12, 20, 22].map(UnitIndex)));
    assert!(!allowed(Tolerance::new(10, 2, 1).unwrap(), 0, 30, &[0, 2, 4].map(UnitIndex)));
    assert!(!allowed(Tolerance::new(10, 2, 1).unwrap(), 0, 30, &[9, 10].map(UnitIndex)));
    assert!(!allowed(Tolerance::new(10, 2, 2).unwrap(), 1, 30, &[0].map(UnitIndex)));
    assert!(allowed(Tolerance::new(100, 5, 4).unwrap(), 0, 4, &[0, 1, 2, 3].map(UnitIndex)));
}

#[test]
fn every_verdict_is_true_for_many_tolerances() {
    let tolerances = [(16, 2, 1), (16, 4, 2), (64, 3, 3), (8, 8, 1), (8, 1, 1), (100, 20, 4), (7, 7, 7), (1000, 30, 2)];
    let mut met = 0;
    for (index, (window, errors, burst)) in tolerances.into_iter().enumerate() {
        let tolerance = Tolerance::new(window, errors, burst).unwrap();
        for interleave in [InterleaveChoice::Auto, InterleaveChoice::Off, InterleaveChoice::Depth(12)] {
            for importance in [0, 3] {
                let contract = Contract { tolerance, interleave, importance, window_units: 600, ..Contract::default() };
                let mut pair = Setup::new(&[contract]).loss(0.08, 0.08).seed(index as u64).build();
                for length in [1, 4, 5, 16, 33, 100, 257] {
                    pair.offer(0, 4, length * 1024 - 100);
                }
                pair.run_over(limit());
                assert_eq!(pair.oracle.count(Verdict::Expired), 0, "everything can be repaired");
                met += pair.oracle.count(Verdict::WithinTolerance);
            }
        }
    }
    assert!(met > 300, "holes are tolerated in {met} segments only");
}

#[test]
fn no_unit_is_repaired_that_the_promise_excuses() {
    // One unit of 16 may be missing: with one loss in a hundred shipments nearly nothing needs repair.
    let contract = Contract { tolerance: Tolerance::new(16, 1, 1).unwrap(), ..Contract::default() };
    let mut pair = Setup::new(&[contract]).loss(0.01, 0.01).build();
    pair.offer(0, 200, 32 * 1024);
    pair.run_over(limit());
    assert!(pair.oracle.first_lost > 30);
    assert!(pair.oracle.retransmitted * 3 < pair.oracle.first_lost, "{} of {}", pair.oracle.retransmitted, pair.oracle.first_lost);
}

#[test]
fn segments_may_override_the_tolerance_of_their_stream() {
    let mut pair = Setup::new(&[Contract::default()]).loss(0.2, 0.2).build();
    for round in 0..60 {
        let own = [None, Some(Tolerance::any(1)), Tolerance::new(16, 4, 2).ok(), Some(Tolerance::reliable(200))][round % 4];
        pair.offer_one(0, Offer::Whole(20_000, own));
    }
    pair.run_over(limit());
    assert!(pair.oracle.count(Verdict::WithinTolerance) >= 15 && pair.oracle.count(Verdict::Complete) >= 30);
}

#[test]
fn expired_is_said_only_when_the_tolerance_is_not_met() {
    for order in [Order::InOrder, Order::AsAccepted] {
        for seed in 0..6 {
            let contract = Contract { tolerance: Tolerance::new(20, 3, 2).unwrap(), lifetime: ms(45).into(), order, ..Contract::default() };
            let mut pair = Setup::new(&[contract]).loss(0.12, 0.12).seed(seed).build();
            for _ in 0..80 {
                pair.offer(0, 1, 30_000);
                pair.run_for(ms(4));
            }
            pair.run_over(limit());
            let counts = [Verdict::Complete, Verdict::WithinTolerance, Verdict::Expired].map(|verdict| pair.oracle.count(verdict));
            assert!(counts[1] > 10 && counts[2] > 5, "{counts:?}");
        }
    }
}

#[test]
fn a_map_of_holes_longer_than_many_shipments_reaches_the_sender_whole() {
    for (loss, back) in [(0.3, 0.0), (0.3, 0.4)] {
        let contract = Contract { tolerance: Tolerance::any(1), unit_bytes: 200, ..Contract::default() };
        let mut setup = Setup::new(&[contract]).loss(loss, back).seed(3);
        setup.back.late = 0.2;
        setup.back.late_by = 5;
        let mut pair = setup.build();
        pair.offer(0, 2, 10_000 * 200);
        pair.run_over(limit());
        assert_eq!(pair.oracle.count(Verdict::WithinTolerance), 2);
        let delay = pair.told[0].2.since(pair.judged[0].2);
        assert!(back > 0.0 || delay < ms(150), "the sender learnt it {delay} after the judgement");
    }
}

#[test]
fn duplicates_and_old_shipments_change_nothing() {
    let mut setup = Setup::new(&[Contract::default(), Contract { tolerance: Tolerance::new(16, 4, 2).unwrap(), ..Contract::default() }])
        .loss(0.05, 0.05);
    for habits in [&mut setup.forward, &mut setup.back] {
        (habits.duplicate, habits.late, habits.late_by, habits.jitter) = (0.5, 0.1, 200, ms(2));
    }
    let mut pair = setup.build();
    for stream in 0..2 {
        pair.offer(stream, 80, 30_000);
    }
    pair.run_over(limit());
}

#[test]
fn the_window_holds_while_the_application_stops() {
    let contracts = [
        Contract { window_units: 50, window_segments: 7, ..Contract::default() },
        Contract { window_units: 64, window_segments: 3, order: Order::AsAccepted, ..Contract::default() },
    ];
    let mut pair = Setup::new(&contracts).loss(0.1, 0.1).build();
    for round in 0..30 {
        pair.offer(0, 6, 1000 + 9000 * (round % 3));
        pair.offer(1, 3, 1000 + 20_000 * (round % 2));
        pair.taking = round % 4 == 0;
        if pair.taking {
            pair.take();
        }
        pair.run_for(ms(60));
    }
    pair.taking = true;
    pair.take();
    pair.run_over(limit());
}

#[test]
fn the_whole_transfer_is_the_same_through_bytes() {
    let log = |check_mode| {
        let contracts = [
            Contract { lifetime: ms(300).into(), ..Contract::default() },
            Contract { tolerance: Tolerance::new(16, 4, 2).unwrap(), label: "größe".into(), ..Contract::default() },
        ];
        let mut setup = Setup::new(&contracts).loss(0.1, 0.1);
        (setup.check_mode, setup.log) = (check_mode, true);
        let mut pair = setup.build();
        pair.offer(0, 60, 20_000);
        pair.offer(1, 60, 20_000);
        pair.offer_one(1, Offer::Open(Some(Tolerance::new(9, 2, 2).unwrap())));
        pair.offer_one(1, Offer::Append(12_345, true));
        pair.run_over(limit());
        pair.log
    };
    let typed = log(false);
    assert!(typed.len() > 10_000);
    assert_eq!(typed, log(true));
}
