//! A unit is sent again if and only if it was asked for and its last shipment is lost. The oracle checks
//! every unit sent again in every test of this crate; here are the counts.

use crate::pair::{Setup, ms};
use segstream_base::halves::Verdict;
use segstream_base::{Duration, Tolerance};
use segstream_wire::Contract;

fn limit() -> Duration {
    Duration::from_secs(30)
}

#[test]
fn without_loss_nothing_is_sent_twice() {
    for delay in [ms(0), ms(1), ms(30), ms(300)] {
        let mut pair = Setup::new(&[Contract::default(), Contract::default()]).delay(delay).build();
        pair.offer(0, 100, 30_000);
        pair.offer(1, 1000, 700);
        pair.run_over(limit());
        assert_eq!(pair.oracle.retransmitted, 0, "{delay}");
    }
}

#[test]
fn reordering_within_the_distance_sends_nothing_twice() {
    for by in 1..=3 {
        for seed in 0..4 {
            let mut setup = Setup::new(&[Contract::default(), Contract::default()]).seed(seed);
            // Control is reordered among data too.
            (setup.forward.late, setup.forward.late_by, setup.adapting) = (0.2, by, false);
            let mut pair = setup.build();
            pair.offer(0, 100, 30_000);
            pair.offer(1, 300, 700);
            pair.run_over(limit());
            assert_eq!(pair.oracle.retransmitted, 0, "{by} positions late");
            assert_eq!(pair.receiver.half.counters.units_detected_lost, 0);
        }
    }
}

#[test]
fn reordering_beyond_the_distance_costs_little_once_the_distance_has_grown() {
    let mut setup = Setup::new(&[Contract::default()]);
    (setup.forward.late, setup.forward.late_by) = (0.05, 20);
    let mut pair = setup.build();
    pair.offer(0, 300, 30_000);
    pair.run_over(limit());
    assert!(pair.oracle.retransmitted < 20, "{} of 9000 units", pair.oracle.retransmitted);
}

#[test]
fn every_lost_unit_is_sent_again_exactly_once_when_no_repair_is_lost() {
    for seed in 0..5 {
        let mut setup = Setup::new(&[Contract::default()]).seed(seed);
        // Losses end long before the transfer does; repairs of the last ones come after that.
        setup.forward.lost.extend((50..2000).filter(|place| (place * 7919 + seed * 31) % 53 == 0));
        let mut pair = setup.build();
        pair.offer(0, 120, 30_000);
        pair.run_over(limit());
        // Some of the lost are repairs or states; every repair repairs one lost unit.
        let lost = pair.oracle.first_lost + (pair.oracle.retransmitted - pair.oracle.first_lost);
        assert!(pair.oracle.first_lost > 25);
        assert_eq!(pair.oracle.retransmitted, lost);
        assert_eq!(pair.receiver.half.counters.units_duplicate, 0, "nothing arrives twice");
    }
}

#[test]
fn nothing_arrives_twice_at_any_random_loss() {
    for loss in [0.001, 0.01, 0.1, 0.5] {
        let mut pair = Setup::new(&[Contract::default(), Contract { tolerance: Tolerance::new(16, 3, 1).unwrap(), ..Contract::default() }])
            .loss(loss, loss)
            .build();
        pair.offer(0, 100, 30_000);
        pair.offer(1, 100, 30_000);
        pair.run_over(limit());
        assert_eq!(pair.receiver.half.counters.units_duplicate, 0, "loss {loss}");
        assert!(pair.oracle.retransmitted > 0 || loss < 0.01);
    }
}

#[test]
fn lost_feedback_alone_sends_nothing_twice() {
    let mut pair = Setup::new(&[Contract::default()]).loss(0.0, 0.7).build();
    pair.offer(0, 300, 30_000);
    pair.run_over(limit());
    assert_eq!((pair.oracle.retransmitted, pair.oracle.count(Verdict::Complete)), (0, 300));
}

#[test]
fn a_burst_of_losses_costs_one_round() {
    let mut setup = Setup::new(&[Contract::default()]);
    setup.forward.lost.extend(100..400);
    let mut pair = setup.build();
    pair.offer(0, 1, 1_000_000);
    pair.run_over(limit());
    assert_eq!(pair.oracle.retransmitted, pair.oracle.first_lost);
    // 1000 shipments take 90 ms, then half a round trip, and one round of repair with its own 25 ms.
    let judged = pair.judged[0].2;
    assert!(judged.since(segstream_base::Instant::ZERO) < ms(60 + 95 + 30 + 60 + 40), "{judged}");
}
