//! Claims that were once false. The random operations found most of them; each is here in its shortest form.

use crate::pair::{Offer, Setup, at_ms, ms};
use segstream_base::halves::Verdict;
use segstream_base::{Duration, Tolerance};
use segstream_wire::Contract;
use segstream_wire::contract::{InterleaveChoice, Order};

fn limit() -> Duration {
    Duration::from_secs(20)
}

fn window(segments: u32, units: u32) -> Contract {
    Contract { window_segments: segments, window_units: units, ..Contract::default() }
}

#[test]
fn one_lost_datagram_cannot_break_a_promise_by_itself() {
    // The oracle asks this of every shipment; columns of two neighbours are the hard case.
    for (window, errors, burst) in [(15, 2, 1), (16, 8, 1), (20, 10, 4), (10, 5, 2), (9, 4, 3), (4, 2, 1)] {
        let tolerance = Tolerance::new(window, errors, burst).unwrap();
        for interleave in [InterleaveChoice::Auto, InterleaveChoice::Off] {
            let contract = Contract { tolerance, interleave, unit_bytes: 40, ..Contract::default() };
            let mut pair = Setup::new(&[contract]).loss(0.1, 0.0).build();
            for units in 1..60 {
                pair.offer(0, 1, units * 40);
            }
            pair.run_over(limit());
        }
    }
}

#[test]
fn a_newer_segment_cannot_keep_out_the_one_the_application_waits_for() {
    let mut pair = Setup::new(&[window(2, 1)]).build();
    pair.taking = false;
    pair.offer(0, 5, 0);
    pair.set_class(4);
    pair.run_for(Duration::from_micros(71_250));
    pair.set_class(2);
    pair.run_for(Duration::from_micros(87_188));
    pair.taking = true;
    pair.take();
    pair.run_over(limit());
}

#[test]
fn the_length_of_an_open_segment_is_told_only_when_all_of_it_fits_the_window() {
    let contract = Contract { unit_bytes: 500, order: Order::AsAccepted, ..window(5, 21) };
    let mut pair = Setup::new(&[contract]).build();
    for bytes in [0, 501, 0, 6501] {
        pair.offer(0, 1, bytes);
    }
    pair.offer_one(0, Offer::Open(None));
    pair.offer_one(0, Offer::Append(3501, true));
    pair.run_over(limit());
    assert_eq!((pair.oracle.retransmitted, pair.receiver.half.counters.parts_refused), (0, 0));
}

#[test]
fn an_interleaved_open_segment_starts_whole_blocks_however_little_of_the_window_is_left() {
    let contract = Contract { interleave: InterleaveChoice::Depth(16), unit_bytes: 500, ..window(5, 40) };
    let mut pair = Setup::new(&[contract]).loss(0.1, 0.1).build();
    for round in 0..30 {
        pair.offer(0, 1, 500 * (round % 23));
        pair.offer_one(0, Offer::Open(None));
        for _ in 0..3 {
            pair.offer_one(0, Offer::Append(500 * 11 + 7, false));
            pair.run_for(ms(30));
        }
        pair.offer_one(0, Offer::Append(500, true));
    }
    pair.run_over(limit());
    assert_eq!(pair.receiver.half.counters.parts_refused, 0);
}

#[test]
fn a_segment_dropped_for_room_is_expired_only_if_its_tolerance_is_not_met() {
    for (tolerance, verdict) in [(Tolerance::any(1), Verdict::WithinTolerance), (Tolerance::reliable(1), Verdict::Expired)] {
        let mut pair = Setup::new(&[Contract { tolerance, ..window(8, 10) }]).class(1).build();
        pair.taking = false;
        pair.offer(0, 6, 4096);
        pair.run_for(Duration::from_secs(1));
        pair.taking = true;
        pair.take();
        pair.run_over(limit());
        assert!(pair.oracle.count(verdict) > 0);
        assert!(pair.receiver.half.poll_dropped().is_some(), "the owner of the bytes is told");
    }
}

#[test]
fn one_refused_part_drops_no_more_segments_than_make_its_room() {
    // Ten units: two segments of four and a part of the next one fit only if one of them goes.
    let mut setup = Setup::new(&[window(64, 10)]).class(5);
    // The first unit of each of the first two is lost, so that both are open.
    setup.forward.lost.extend([1, 5]);
    let mut pair = setup.build();
    pair.run_to(at_ms(59));
    pair.offer(0, 3, 4096);
    pair.run_over(limit());
    assert_eq!((pair.oracle.count(Verdict::Complete), pair.oracle.count(Verdict::Expired)), (2, 1));
}

#[test]
fn idleness_is_no_credit_for_a_burst() {
    let mut pair = Setup::new(&[Contract::default()]).build();
    pair.offer(0, 1, 1024);
    pair.run_to(at_ms(1100));
    for _ in 0..2 {
        let before = pair.sender.half.counters.data_shipments;
        pair.offer(0, 1, 1 << 20);
        pair.run_for(ms(2));
        let left = pair.sender.half.counters.data_shipments - before;
        // 100 Mbit/s are 11.5 shipments a millisecond.
        assert!((20..=25).contains(&left), "{left} shipments in two milliseconds");
        pair.run_for(Duration::from_secs(1));
    }
}

#[test]
fn a_huge_segment_with_a_thousand_gaps_is_repaired_in_one_round() {
    let mut setup = Setup::new(&[Contract { tolerance: Tolerance::reliable(1 << 28), ..Contract::default() }]);
    setup.forward.lost.extend((10..10_000).step_by(10));
    let mut pair = setup.build();
    pair.offer(0, 1, 10_000 * 1024);
    pair.run_over(limit());
    // The first pass takes 870 ms from 60 ms on; what follows is one round trip and the repairs.
    assert!(pair.oracle.first_lost > 900);
    assert!(pair.judged[0].2 < at_ms(60 + 870 + 100 + 30 + 60 + 40), "{}", pair.judged[0].2);
}

#[test]
fn many_small_segments_cost_each_report_no_more_than_what_is_new() {
    let mut pair = Setup::new(&[window(16_384, 16_384)]).loss(0.01, 0.01).build();
    pair.offer(0, 60_000, 1000);
    pair.run_over(limit());
    let reports = pair.receiver.half.counters.report_shipments;
    // Six seconds; 266 reports a second are the most that the short period allows, one shipment each.
    assert!(reports < 6 * 350, "{reports}");
}
