//! TCP in virtual time: each test names the claim it proves.

mod bytes;
mod link;

use super::{Backoff, Config, ConfigError, Feedback, Forward, Place, Receiver, Sender};
use crate::link::{PACKET_TIME, draws, gauge, segment};
use link::{Link, RTT, config, settled};
use proptest::prelude::*;
use segstream_base::halves::{Receiver as _, Reconfigure, ReconfigureError, Segment, SegmentNumber, Sender as _, StreamId, SubmitError};
use segstream_base::{Bandwidth, Duration, Instant};

const EACH: [Backoff; 3] = [Backoff::Retain, Backoff::Own, Backoff::Oldest];

/// Runs `segments` with the losses that `lose` says of a packet and how often it left before.
fn run(config: &Config, segments: u64, lose: impl FnMut(u32, usize) -> bool + 'static) -> Link {
    let link = settled(config, segments, lose, |_| false);
    assert!(link.delivered.iter().copied().eq(0..segments), "{:?}", link.delivered);
    assert_eq!((link.ended, &link.judged), (Some(segments), &link.delivered));
    link
}

#[test]
fn without_loss_every_packet_leaves_once_and_each_is_acknowledged() {
    for backoff in EACH {
        let link = run(&config(backoff), 500, |_, _| false);
        assert!(link.numbers().eq(0..=500), "the end has the number behind the last packet");
        assert_eq!(link.told.len(), 501);
        assert_eq!(link.sender.counters().packets_retransmitted, 0);
        assert_eq!(link.gauge("received_again_packets"), 0.0);
    }
}

#[test]
fn the_window_is_fixed_and_never_exceeded() {
    let link = run(&config(Backoff::Retain), 500, |_, _| false);
    for round in 1..10 {
        let (last, first) = (link.left(round * 32 - 1, 0), link.left(round * 32, 0));
        assert_eq!(first, link.left((round - 1) * 32, 0) + RTT, "a packet leaves when that a window before is acknowledged");
        assert_eq!(last, link.left((round - 1) * 32, 0) + PACKET_TIME * 31);
    }
}

#[test]
fn the_first_timeout_is_three_configured_round_trips() {
    for backoff in EACH {
        let link = run(&config(backoff), 32, |number, times| number == 0 && times == 0);
        assert_eq!(link.left(0, 1).since(link.left(0, 0)), RTT * 3);
    }
}

#[test]
fn a_lost_packet_is_sent_again_two_round_trips_after_it_left() {
    for backoff in EACH {
        let link = run(&config(backoff), 500, |number, times| number == 200 && times == 0);
        // The one timer of `Oldest` is started by the acknowledgment before.
        let since = if backoff == Backoff::Oldest { link.left(199, 0) + RTT } else { link.left(200, 0) };
        assert_eq!(link.left(200, 1).since(since), RTT * 2, "{backoff}");
    }
}

#[test]
fn the_window_behind_a_lost_packet_is_sent_again_for_nothing_but_by_the_oldest_timer() {
    for (backoff, again) in EACH.into_iter().zip([32, 32, 1]) {
        let link = run(&config(backoff), 500, |number, times| number == 200 && times == 0);
        assert_eq!(link.sender.counters().packets_retransmitted, again, "{backoff}");
        assert_eq!(link.gauge("received_again_packets"), again as f64 - 1.0, "what came out of order was kept");
    }
}

#[test]
fn packets_wait_no_longer_to_be_sent_again_once_they_are_acknowledged() {
    // 32 packets need 100 ms; the acknowledgment comes after 40.
    let config = Config { rate: segstream_blocks::RateSpec::smooth(Bandwidth::from_bits_per_second(2_560_000)), ..config(Backoff::Retain) };
    let link = run(&config, 100, |number, times| number == 40 && times == 0);
    let again = link.sender.counters().packets_retransmitted;
    assert!((2..20).contains(&again), "{again}");
}

#[test]
fn a_retained_timeout_lasts_until_a_fresh_sample() {
    // Packet 200 is lost, and so is the first that the acknowledgment of its repetition lets go.
    let lose = |number: u32, times: usize| matches!(number, 200 | 232) && times == 0;
    for (backoff, waits) in EACH.into_iter().zip([4, 2, 4]) {
        let link = run(&config(backoff), 500, lose);
        assert_eq!(link.left(232, 0), link.left(200, 1) + RTT);
        assert_eq!(link.left(232, 1).since(link.left(232, 0)), RTT * waits, "{backoff}");
    }
    // One round trip later the sample is there.
    let lose = |number: u32, times: usize| matches!(number, 200 | 264) && times == 0;
    for backoff in [Backoff::Retain, Backoff::Own] {
        let link = run(&config(backoff), 500, lose);
        assert_eq!(link.left(264, 1).since(link.left(264, 0)), RTT * 2, "{backoff}");
    }
}

#[test]
fn a_packet_lost_again_and_again_waits_twice_as_long_each_time() {
    for backoff in EACH {
        let link = run(&config(backoff), 300, |number, times| number == 200 && times < 5);
        let waits = [1, 2, 3, 4].map(|time| link.left(200, time + 1).since(link.left(200, time)));
        assert_eq!(waits, [4, 8, 16, 32].map(|times| RTT * times), "{backoff}");
    }
}

#[test]
fn a_window_of_timers_that_run_out_one_after_the_other_doubles_the_timeout_once() {
    let link = run(&config(Backoff::Retain), 300, |number, times| number == 200 && times < 2);
    for number in 200..232 {
        assert_eq!(link.left(number, 2).since(link.left(number, 1)), RTT * 4, "{number}");
    }
}

#[test]
fn no_timeout_is_longer_than_64_seconds() {
    for backoff in EACH {
        let link = run(&config(backoff), 3, |number, times| number == 1 && times < 14);
        assert_eq!(link.left(1, 14).since(link.left(1, 13)), Duration::from_secs(64));
    }
}

#[test]
fn nothing_that_was_sent_again_is_sampled() {
    for (backoff, timeout) in EACH.into_iter().zip([240.0, 120.0, 240.0]) {
        let mut sender = Sender::new(config(backoff), Instant::ZERO).unwrap();
        sender.submit(Instant::ZERO, segment(10)).unwrap();
        assert!(sender.poll_transmit(Instant::ZERO).is_some());
        let due = sender.poll_timeout().unwrap().at;
        sender.handle_timeout(due);
        assert!(sender.poll_transmit(due).is_some());
        sender.handle_feedback(due + Duration::from_millis(1), &Feedback { connection: 7, next: 1 });
        assert!(gauge(&sender, "rtt_ms").is_nan(), "there is no sample");
        assert_eq!(gauge(&sender, "timeout_ms"), timeout, "{backoff}");
    }
}

#[test]
fn the_timeout_is_twice_a_round_trip_smoothed_with_nine_tenths() {
    let mut sender = Sender::new(config(Backoff::Retain), Instant::ZERO).unwrap();
    let mut now = Instant::ZERO;
    for (at, (millis, timeout)) in [(40, 80.0), (140, 100.0), (0, 90.0)].into_iter().enumerate() {
        sender.submit(now, segment(10)).unwrap();
        assert!(sender.poll_transmit(now).is_some());
        now += Duration::from_millis(millis);
        sender.handle_feedback(now, &Feedback { connection: 7, next: at as u32 + 1 });
        assert_eq!(gauge(&sender, "timeout_ms"), timeout);
        // The line is free again.
        now += PACKET_TIME;
    }
}

#[test]
fn timers_run_out_at_a_tick_when_there_are_ticks() {
    let config = Config { granularity: Duration::from_millis(7), ..config(Backoff::Retain) };
    let link = run(&config, 32, |number, times| number == 3 && times == 0);
    assert_eq!(link.left(3, 1), Instant::ZERO + Duration::from_millis(126), "120.3 ms rounded up to 18 ticks");
}

#[test]
fn every_packet_sets_a_timer_behind_all_others_and_clears_it_in_front_of_them() {
    let link = run(&config(Backoff::Retain), 32 * 100, |_, _| false);
    let operations = link.sender.operations();
    // With the end one packet more; in a steady window 31 timers run when one is set.
    assert_eq!(operations.timer_operations, 2 * (3200 + 1));
    let share = operations.timers_passed as f64 / 3201.0;
    assert!((30.0..=31.0).contains(&share), "{share}");
    let oldest = run(&config(Backoff::Oldest), 32 * 100, |_, _| false).sender.operations();
    assert_eq!(oldest.timers_passed, 0, "one timer passes none");
}

#[test]
fn a_lost_end_and_lost_acknowledgments_are_made_good() {
    for backoff in EACH {
        let mut first = true;
        let lose_back = move |answer: &Feedback| std::mem::take(&mut first) || answer.next.is_multiple_of(3) && answer.next < 40;
        let link = settled(&config(backoff), 40, |number, times| number == 40 && times < 2, lose_back);
        assert_eq!((link.ended, link.times(40)), (Some(40), 3), "{backoff}");
        assert!(link.judged.iter().copied().eq(0..40));
    }
}

#[test]
fn segments_of_several_packets_are_delivered_whole_and_in_order() {
    let config = Config { segment_packets: 5, ..config(Backoff::Own) };
    let link = run(&config, 60, |number, times| number % 17 == 3 && times == 0);
    assert!(link.numbers().max() == Some(300));
}

#[test]
fn a_sender_takes_two_windows_and_only_what_it_can_send() {
    let mut sender = Sender::new(config(Backoff::Retain), Instant::ZERO).unwrap();
    let now = Instant::ZERO;
    for number in 0..64 {
        assert_eq!(sender.submit(now, segment(900)), Ok(SegmentNumber(number)));
    }
    assert_eq!(sender.submit(now, segment(900)), Err(SubmitError::Blocked));
    assert_eq!(sender.submit(now, segment(979)), Err(SubmitError::TooLong { units: 2, window: 1 }));
    assert_eq!(sender.submit(now, Segment { bytes: None, ..segment(1) }), Err(SubmitError::Finished));
    assert_eq!(sender.append(now, StreamId(0), 1, true), Err(SubmitError::Finished));
    sender.finish(now);
    assert_eq!(sender.submit(now, segment(900)), Err(SubmitError::Finished));
    assert_eq!(sender.reconfigure(now, Reconfigure::Class(7)), Err(ReconfigureError::Unsupported));
    assert_eq!(sender.reconfigure(now, Reconfigure::Rate(Bandwidth::ZERO)), Err(ReconfigureError::OutOfRange));
    assert_eq!(sender.reconfigure(now, Reconfigure::Rate(Bandwidth::from_megabits_per_second(1))), Ok(()));
}

#[test]
fn what_cannot_be_configured_is_refused() {
    let good = || config(Backoff::Retain);
    let cases = [
        (Config { packet_bytes: 22, ..good() }, ConfigError::PacketBytes(22)),
        (Config { segment_packets: 0, ..good() }, ConfigError::SegmentPackets(0)),
        (Config { window: 0, ..good() }, ConfigError::Window(0)),
        (Config { rtt: Duration::ZERO, ..good() }, ConfigError::RttZero),
    ];
    for (config, error) in cases {
        assert_eq!(config.check(), Err(error));
        assert!(Sender::new(config, Instant::ZERO).is_err());
    }
    assert_eq!(["retain", "own", "oldest"].map(|text| text.parse::<Backoff>().unwrap()), EACH);
    assert!("both".parse::<Backoff>().is_err());
}

#[test]
fn a_receiver_takes_only_what_continues_and_fits() {
    let mut receiver = Receiver::new(config(Backoff::Retain), Instant::ZERO).unwrap();
    let data = |connection, sequence, segment, packet, packets| Forward::Data {
        connection,
        sequence,
        place: Place { segment, packet, packets },
        stride: 10,
        bytes: 10,
    };
    // Another connection's, one beyond the window, one of another segment, one of too long a segment.
    for packet in [data(8, 0, 0, 0, 1), data(7, 32, 32, 0, 1), data(7, 0, 5, 0, 1), data(7, 0, 0, 0, 2), data(7, u32::MAX, 0, 0, 1)] {
        receiver.handle_forward(Instant::ZERO, &packet);
        assert_eq!(receiver.poll_event(), None, "{packet:?}");
    }
    let answers: Vec<u32> = std::iter::from_fn(|| receiver.poll_transmit(Instant::ZERO)).map(|answer| answer.next).collect();
    assert_eq!(answers, [0, 0, 0], "each of this connection is answered, and nothing of it is taken");
    receiver.handle_forward(Instant::ZERO, &data(7, 0, 0, 0, 1));
    assert!(receiver.poll_event().is_some(), "the place is free for the right one");
}

#[test]
fn an_acknowledgment_of_what_was_not_sent_does_nothing() {
    let mut sender = Sender::new(config(Backoff::Retain), Instant::ZERO).unwrap();
    sender.submit(Instant::ZERO, segment(10)).unwrap();
    assert!(sender.poll_transmit(Instant::ZERO).is_some());
    for answer in [Feedback { connection: 7, next: 2 }, Feedback { connection: 8, next: 1 }, Feedback { connection: 7, next: 0 }] {
        sender.handle_feedback(Instant::ZERO + RTT, &answer);
    }
    assert!(sender.poll_timeout().is_some(), "its timer runs on");
    sender.handle_feedback(Instant::ZERO + RTT, &Feedback { connection: 7, next: 1 });
    assert_eq!(sender.poll_timeout(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_finite_loss_of_packets_and_acknowledgments_ends_in_full_delivery(
        seed in any::<u64>(), percent in 0u64..60, backoff in 0usize..3, window in 1u32..40, segment_packets in 1u32..4,
    ) {
        let config = Config { window, segment_packets, ..config(EACH[backoff]) };
        let mut draw = draws(seed, percent);
        let mut draw_back = draw;
        let link = settled(&config, 60, move |_, times| times < 6 && draw(), move |answer| answer.next < 60 && draw_back());
        prop_assert!(link.delivered.iter().copied().eq(0..60));
        prop_assert_eq!(link.judged, link.delivered);
        prop_assert_eq!(link.ended, Some(60));
    }
}
