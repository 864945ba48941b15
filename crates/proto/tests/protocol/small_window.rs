//! Windows and buffers that hold a sender back: what is granted soon, and what a buffer smaller than its window
//! costs.

use crate::pair::{Pair, Setup, ms};
use segstream_base::{Duration, SegmentNumber, Tolerance};
use segstream_wire::Contract;
use segstream_wire::contract::Order;

const UNITS: u64 = 256;
const SEGMENT_BYTES: u64 = UNITS * 1024;

/// Segments of 256 units as accepted, in a window of `window` and a buffer of `buffer` segments.
fn pair(window: u32, buffer: Option<u64>, loss: f64) -> Pair {
    let contract =
        Contract { order: Order::AsAccepted, window_units: window * UNITS as u32, window_segments: window, ..Contract::default() };
    let mut setup = Setup::new(&[contract]).loss(loss, loss);
    setup.buffer_bytes = buffer.map(|segments| segments * SEGMENT_BYTES);
    setup.build()
}

/// The time until `count` segments are judged.
fn time_of(mut pair: Pair, count: usize) -> Duration {
    pair.offer(0, count, SEGMENT_BYTES);
    pair.finish();
    pair.run_over(ms(600_000));
    assert_eq!(pair.judged.len(), count);
    let end = pair.judged.iter().map(|judged| judged.2).max().unwrap();
    end.since(segstream_base::Instant::ZERO)
}

#[test]
fn a_window_that_a_sender_fills_in_a_round_trip_is_granted_segment_by_segment() {
    // At 100 Mbit/s a segment takes 22 ms and the round trip 60 ms: with a window of two, two segments go in
    // every 22 + 60 ms and a little, not two in each report of a long period.
    const SEGMENTS: u64 = 100;
    let taken = time_of(pair(2, None, 0.0), SEGMENTS as usize);
    let ideal = ms(SEGMENTS / 2 * (23 + 60));
    assert!(taken < ideal + ideal / 10, "{taken} for an ideal {ideal}");
}

#[test]
fn what_a_small_buffer_drops_is_asked_for_again_and_delivered() {
    for (buffer, loss) in [(2, 0.01), (3, 0.05), (8, 0.02)] {
        let mut pair = pair(24, Some(buffer), loss);
        pair.offer(0, 120, SEGMENT_BYTES);
        pair.finish();
        pair.run_over(ms(600_000));
        assert_eq!(pair.judged.len(), 120, "a buffer of {buffer} at {loss}");
        assert!(pair.sender.half.counters.units_retransmitted > 0);
    }
}

#[test]
fn a_window_larger_than_the_buffer_fills_the_path_that_the_buffer_alone_does_not() {
    let narrow = time_of(pair(2, None, 0.0), 60);
    let advertised = time_of(pair(8, Some(2), 0.0), 60);
    assert!(advertised * 10 < narrow * 7, "{advertised} against {narrow}");
}

#[test]
fn the_length_of_a_segment_that_was_lost_whole_is_told_while_data_flows() {
    // Segments 200 to 203 are lost whole under a tolerance that excuses everything: nothing is wanted of them but
    // their length, and several newer segments start between two states of the sender.
    const SHORT: u32 = 16;
    let contract = Contract {
        tolerance: Tolerance::any(SHORT),
        order: Order::AsAccepted,
        window_units: 160 * SHORT,
        window_segments: 160,
        ..Contract::default()
    };
    let mut setup = Setup::new(&[contract]);
    // Control has numbers too, so a few more than four segments' worth are lost.
    setup.forward.lost = (200 * u64::from(SHORT)..205 * u64::from(SHORT)).collect();
    let mut pair = setup.build();
    pair.offer(0, 2000, u64::from(SHORT) * 1024);
    pair.finish();
    pair.run_over(ms(60_000));
    let judged = |segment: SegmentNumber| pair.judged.iter().find(|judged| judged.1 == segment).unwrap().2;
    // The next segment that came says that they are over; a request and its answer take a round trip.
    let behind = judged(SegmentNumber(206));
    for segment in 201..203 {
        assert!(
            judged(SegmentNumber(segment)).since(behind) < ms(150),
            "segment {segment} was judged {} later",
            judged(SegmentNumber(segment)).since(behind)
        );
    }
}
