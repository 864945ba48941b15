//! Adaptive acknowledgment in virtual time: each test names the claim it proves.

mod bytes;
mod link;
mod traces;

use super::{Config, ConfigError, Feedback, Forward, Place, Rearming, Receiver, Sender};
use crate::link::{PACKET_TIME, draws, gauge, segment};
use link::{Link, RTT, T_ERROR, T_NORMAL, config, link};
use proptest::prelude::*;
use segstream_base::halves::{Receiver as _, Reconfigure, ReconfigureError, Segment, SegmentNumber, Sender as _, StreamId, SubmitError};
use segstream_base::{Bandwidth, Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);

fn nothing(_: &Feedback) -> bool {
    false
}

/// Runs `segments` with the losses that `lose` says of a packet and how often it left before.
fn run(config: &Config, segments: u64, lose: impl FnMut(u32, usize) -> bool + 'static) -> Link {
    let mut link = link(config, RTT, segments, lose, nothing);
    assert!(link.run_to_end(HOUR), "delivered {:?}", link.delivered);
    assert!(link.delivered.iter().copied().eq(0..segments), "{:?}", link.delivered);
    assert_eq!((link.ended, &link.judged), (Some(segments), &link.delivered));
    link
}

fn answer(cumulative: u32, gap: (u32, u32)) -> Feedback {
    Feedback { connection: 7, cumulative, gap_in: gap.0, gap_out: gap.1 }
}

/// A sender of which the first `packets` have left, and when.
fn sender_of(config: &Config, packets: u32) -> (Sender, Instant) {
    let mut sender = Sender::new(config.clone(), Instant::ZERO).unwrap();
    for _ in 0..packets {
        sender.submit(Instant::ZERO, segment(978)).unwrap();
    }
    let mut now = Instant::ZERO;
    assert_eq!(leaving(&mut sender, &mut now), (0..packets).collect::<Vec<_>>());
    (sender, now)
}

/// What leaves as fast as the line allows, until nothing is left to be sent.
fn leaving(sender: &mut Sender, now: &mut Instant) -> Vec<u32> {
    let mut numbers = Vec::new();
    while let Some(deadline) = sender.poll_timeout() {
        *now = (*now).max(deadline.at);
        numbers.extend(sender.poll_transmit(*now).map(|packet| packet.sequence()));
    }
    numbers
}

#[test]
fn without_loss_every_packet_leaves_once_and_a_status_leaves_each_t_normal() {
    let link = run(&config(), 500, |_, _| false);
    assert!(link.numbers().eq(0..=500), "the end has the number behind the last packet");
    for (at, (status, left)) in link.told.iter().enumerate() {
        assert_eq!(*left, Instant::ZERO + T_NORMAL * (at as u64 + 1));
        assert!(!status.names_gap() && status.gap_in == status.cumulative);
    }
    assert_eq!((link.sender.counters().packets_retransmitted, link.gauge("received_again_packets")), (0, 0.0));
}

#[test]
fn a_full_window_waits_for_the_next_status_and_no_packet_leaves_beyond_it() {
    let link = run(&config(), 500, |_, _| false);
    for round in 1..10u32 {
        let opened = Instant::ZERO + T_NORMAL * u64::from(round) + RTT / 2;
        assert_eq!(link.left(round * 32, 0), opened);
        assert_eq!(link.left(round * 32 + 31, 0), opened + PACKET_TIME * 31);
    }
}

#[test]
fn a_hole_holds_the_window_whatever_arrived_behind_it() {
    // Packet 10 is lost twice: its second loss shows by the second status behind its repetition.
    let link = run(&config(), 100, |number, times| number == 10 && times < 2);
    let filled = link.left(10, 2);
    assert!(link.left(41, 0) < filled && link.left(42, 0) > filled, "packet 42 is the first beyond the window");
}

#[test]
fn a_lone_loss_is_repaired_a_round_trip_after_the_next_packet() {
    for (number, next_left) in [(5, 6), (20, 21)] {
        let link = run(&config(), 32, move |packet, times| packet == number && times == 0);
        // In a busy line the repetition goes before all that is new, behind the packet that is leaving.
        let asked = link.left(next_left, 0) + RTT;
        assert!(link.left(number, 1) >= asked && link.left(number, 1) < asked + PACKET_TIME);
        assert_eq!((link.times(number), link.sender.counters().packets_retransmitted), (2, 1));
    }
}

#[test]
fn the_first_gap_sets_the_timer_to_t_error_and_a_stream_of_gaps_does_not_put_the_status_off() {
    // Every fourth packet is lost for two hundred in a row, a gap every 400 us: longer than T_error.
    let config = Config { window: 400, ..config() };
    let link = run(&config, 400, |number, times| number % 4 == 1 && number < 200 && times == 0);
    let detected = link.left(2, 0) + RTT / 2;
    let mut named: Vec<u32> = Vec::new();
    for (answer, left) in link.told.iter().filter(|answer| answer.0.names_gap()) {
        if named.contains(&answer.gap_in) {
            assert_eq!(left.since(detected).as_nanos() % T_ERROR.as_nanos(), 0, "a gap is named again by a status only");
        } else {
            named.push(answer.gap_in);
        }
    }
    assert_eq!(named.len(), 50, "each gap is named at once");
    assert_eq!(link.sender.counters().packets_retransmitted, 50, "and its packet leaves once more");
}

#[test]
fn a_loss_after_recovery_begins_a_new_error_phase_though_the_timer_still_runs() {
    let mut receiver = Receiver::new(config(), Instant::ZERO).unwrap();
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    let mut arrives = |millis, number| {
        receiver.handle_forward(at(millis), &data(7, number, number, 0, 1));
        receiver.poll_timeout().unwrap().at
    };
    assert_eq!(arrives(10, 0), at(40));
    assert_eq!(arrives(11, 2), at(16), "packet 1 is missing");
    assert_eq!(arrives(12, 4), at(16), "packet 3 is missing too");
    assert_eq!((arrives(13, 1), arrives(14, 3)), (at(16), at(16)), "all is recovered");
    assert_eq!(arrives(15, 6), at(20), "packet 5 is missing");
}

#[test]
fn when_the_timer_is_set_anew_is_a_matter_of_the_reading() {
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    // Packet 1 is missing at 11 ms, packet 3 at 12, all is recovered at 14, packet 5 is missing at 15 ms.
    let heard = [(10, 0), (11, 2), (12, 4), (13, 1), (14, 3), (15, 6)];
    for rearming in Rearming::ALL {
        assert_eq!(rearming.name().parse(), Ok(rearming));
        let mut receiver = Receiver::new(Config { rearming, ..config() }, Instant::ZERO).unwrap();
        let due: Vec<Instant> = heard
            .into_iter()
            .map(|(millis, number)| {
                receiver.handle_forward(at(millis), &data(7, number, number, 0, 1));
                receiver.poll_timeout().unwrap().at
            })
            .collect();
        let expected = match rearming {
            Rearming::Phase => [40, 16, 16, 16, 16, 20],
            Rearming::First => [40, 16, 16, 16, 16, 16],
            Rearming::Gap => [40, 16, 17, 17, 17, 20],
            Rearming::Expiry => [40; 6],
            Rearming::Recovery => [40, 16, 16, 16, 54, 20],
        };
        assert_eq!(due, expected.map(at), "{rearming}");
    }
    assert!("never".parse::<Rearming>().unwrap_err().to_string().contains("write phase, first, gap, expiry or recovery"));
}

#[test]
fn whatever_sets_the_timer_anew_all_is_delivered() {
    for rearming in Rearming::ALL {
        let config = Config { rearming, ..config() };
        let link = run(&config, 400, |number, times| number % 7 == 3 && times < 2);
        assert_eq!(link.delivered.len(), 400, "{rearming}");
    }
}

#[test]
fn repetitions_leave_in_the_order_in_which_they_were_asked_for_and_before_new_packets() {
    let (mut sender, mut now) = sender_of(&config(), 20);
    sender.submit(now, segment(978)).unwrap();
    sender.handle_feedback(now, &answer(2, (9, 11)));
    sender.handle_feedback(now, &answer(2, (2, 5)));
    assert_eq!(leaving(&mut sender, &mut now), [9, 10, 2, 3, 4, 20]);
}

#[test]
fn a_packet_that_waits_to_leave_again_is_not_queued_twice() {
    let (mut sender, mut now) = sender_of(&config(), 20);
    for _ in 0..3 {
        sender.handle_feedback(now, &answer(2, (2, 5)));
        sender.handle_feedback(now, &answer(2, (4, 7)));
    }
    assert_eq!(gauge(&sender, "repeats_packets"), 5.0);
    assert_eq!(leaving(&mut sender, &mut now), [2, 3, 4, 5, 6]);
}

#[test]
fn a_request_is_not_regarded_for_a_round_trip_after_the_packet_left_again() {
    let (mut sender, mut now) = sender_of(&config(), 20);
    // Packet 19 left 100 us ago, which is the round trip then.
    sender.handle_feedback(now + PACKET_TIME, &answer(2, (3, 19)));
    assert_eq!(gauge(&sender, "rtt_ms"), 0.1);
    assert_eq!(leaving(&mut sender, &mut now).len(), 16);
    // Packet 18 left last, at `now`.
    let due = now + PACKET_TIME;
    sender.handle_feedback(due - Duration::from_nanos(1), &answer(2, (18, 19)));
    assert_eq!(gauge(&sender, "repeats_packets"), 0.0);
    sender.handle_feedback(due, &answer(2, (18, 19)));
    assert_eq!(gauge(&sender, "repeats_packets"), 1.0);
}

#[test]
fn the_configured_round_trip_is_believed_until_there_is_a_sample() {
    let config = Config { rtt: Duration::from_millis(3), ..config() };
    let (mut sender, mut now) = sender_of(&config, 2);
    let status = |sender: &mut Sender, at| sender.handle_feedback(at, &answer(0, (0, 0)));
    // All is lost. The second status that says so counts, once packets may be spoken of: 8 ms after they left.
    let first_left = Instant::ZERO;
    status(&mut sender, now);
    status(&mut sender, first_left + Duration::from_millis(8) - Duration::from_nanos(1));
    assert_eq!(leaving(&mut sender, &mut now), [0; 0]);
    status(&mut sender, first_left + Duration::from_millis(8));
    now = first_left + Duration::from_millis(8);
    assert_eq!(leaving(&mut sender, &mut now), [0], "packet 1 left 100 us later");
    assert!(gauge(&sender, "rtt_ms").is_nan());
}

#[test]
fn the_round_trip_is_the_smallest_age_and_nothing_that_left_again_gives_one() {
    let (mut sender, now) = sender_of(&config(), 20);
    let after = |millis| now + Duration::from_millis(millis);
    assert_eq!(now.since(Instant::ZERO), PACKET_TIME * 19);
    // Packet 9 left 1 ms before the last, packet 15 left 400 us before it.
    sender.handle_feedback(after(4), &answer(10, (10, 10)));
    assert_eq!(gauge(&sender, "rtt_ms"), 5.0);
    sender.handle_feedback(after(3), &answer(10, (12, 15)));
    assert_eq!(gauge(&sender, "rtt_ms"), 3.4);
    sender.handle_feedback(after(9), &answer(10, (12, 15)));
    assert_eq!(gauge(&sender, "rtt_ms"), 3.4);
    let mut late = after(9);
    assert_eq!(leaving(&mut sender, &mut late), [12, 13, 14]);
    sender.handle_feedback(late, &answer(15, (15, 15)));
    assert_eq!(gauge(&sender, "rtt_ms"), 3.4, "packet 14 has just left, but not for the first time");
}

#[test]
fn without_the_tail_rule_a_lost_tail_is_never_found() {
    for lost in [95, 99, 100] {
        let config = Config { tail_rule: false, ..config() };
        let mut link = link(&config, RTT, 100, move |number, times| number >= lost && times == 0, nothing);
        assert!(!link.run_to_end(Duration::from_secs(60)), "the end cannot be told");
        assert!(link.delivered.iter().copied().eq(0..u64::from(lost.min(100))));
        let said: Vec<Feedback> = link.told.iter().rev().take(1000).map(|answer| answer.0).collect();
        assert_eq!(said, vec![answer(lost, (lost, lost)); 1000], "for 40 seconds it says that nothing is missing");
    }
}

#[test]
fn with_the_tail_rule_the_second_status_without_progress_sends_the_tail_again() {
    for lost in [95, 99, 100] {
        let link = run(&config(), 100, move |number, times| number >= lost && times == 0);
        let last = link.left(100, 0);
        let statuses: Vec<Instant> = link.told.iter().map(|answer| answer.1 + RTT / 2).filter(|heard| *heard > last).collect();
        assert_eq!(link.left(lost, 1), statuses[1]);
        assert_eq!(link.sent.len() as u32, 101 + 101 - lost);
    }
}

#[test]
fn a_tail_that_is_lost_again_and_again_is_found_again_and_again() {
    let link = run(&config(), 40, |number, times| number >= 38 && times < 7);
    assert_eq!([38, 39, 40].map(|number| link.times(number)), [8; 3]);
}

#[test]
fn a_window_that_is_lost_as_a_whole_is_found_too() {
    let link = run(&config(), 100, |number, times| number < 32 && times < 3);
    assert_eq!(link.left(0, 1), Instant::ZERO + T_NORMAL * 2 + RTT / 2);
}

#[test]
fn a_tail_that_is_still_under_way_is_not_sent_again() {
    // Ten statuses a round trip come while the window waits for its first acknowledgment.
    let rtt = Duration::from_millis(100);
    let config = Config { rtt, t_normal: Duration::from_millis(10), ..config() };
    let mut link = link(&config, rtt, 200, |_, _| false, nothing);
    assert!(link.run_to_end(HOUR));
    assert_eq!(link.sender.counters().packets_retransmitted, 0);
}

#[test]
fn lost_acknowledgments_are_made_good_by_the_next_status() {
    // All that name a gap for the first time are lost, and two statuses in three.
    let mut count = 0;
    let lose_back = move |_: &Feedback| {
        count += 1;
        count % 3 != 0
    };
    let mut link = link(&config(), RTT, 200, |number, times| number % 11 == 3 && times == 0, lose_back);
    assert!(link.run_to_end(HOUR));
    assert!(link.judged.iter().copied().eq(0..200));
}

#[test]
fn segments_of_several_packets_are_delivered_whole_and_in_order() {
    let config = Config { segment_packets: 5, ..config() };
    let link = run(&config, 60, |number, times| number % 17 == 3 && times == 0);
    assert_eq!(link.numbers().max(), Some(300));
}

#[test]
fn a_sender_takes_two_windows_and_only_what_it_can_send() {
    let mut sender = Sender::new(config(), Instant::ZERO).unwrap();
    let now = Instant::ZERO;
    for number in 0..64 {
        assert_eq!(sender.submit(now, segment(900)), Ok(SegmentNumber(number)));
    }
    assert_eq!(sender.submit(now, segment(900)), Err(SubmitError::Blocked));
    assert_eq!(sender.submit(now, segment(979)), Err(SubmitError::TooLong { units: 2, window: 1 }));
    assert_eq!(sender.submit(now, Segment { bytes: None, ..segment(1) }), Err(SubmitError::Finished));
    assert_eq!(sender.submit(now, Segment { stream: StreamId(1), ..segment(1) }), Err(SubmitError::Finished));
    assert_eq!(sender.append(now, StreamId(0), 1, true), Err(SubmitError::Finished));
    sender.finish(now);
    assert_eq!(sender.submit(now, segment(900)), Err(SubmitError::Finished));
    assert_eq!(sender.reconfigure(now, Reconfigure::Class(7)), Err(ReconfigureError::Unsupported));
    assert_eq!(sender.reconfigure(now, Reconfigure::Rate(Bandwidth::ZERO)), Err(ReconfigureError::OutOfRange));
    assert_eq!(sender.reconfigure(now, Reconfigure::Rate(Bandwidth::from_megabits_per_second(1))), Ok(()));
}

#[test]
fn what_cannot_be_configured_is_refused() {
    let zero = Duration::ZERO;
    let cases = [
        (Config { packet_bytes: 22, ..config() }, ConfigError::PacketBytes(22)),
        (Config { segment_packets: 0, ..config() }, ConfigError::SegmentPackets(0)),
        (Config { window: 0, ..config() }, ConfigError::Window(0)),
        (Config { t_normal: zero, ..config() }, ConfigError::PeriodZero { t_normal: zero, t_error: T_ERROR }),
        (Config { t_error: zero, ..config() }, ConfigError::PeriodZero { t_normal: T_NORMAL, t_error: zero }),
    ];
    for (config, error) in cases {
        assert_eq!(config.check(), Err(error));
        assert!(Sender::new(config.clone(), Instant::ZERO).is_err() && Receiver::new(config, Instant::ZERO).is_err());
    }
    assert_eq!(Config { rtt: zero, ..config() }.check(), Ok(()), "AA Table 1 has no propagation delay");
}

fn data(connection: u32, sequence: u32, segment: u32, packet: u16, packets: u16) -> Forward {
    Forward::Data { connection, sequence, place: Place { segment, packet, packets }, stride: 10, bytes: 10 }
}

#[test]
fn a_receiver_takes_only_what_continues_and_fits() {
    let mut receiver = Receiver::new(config(), Instant::ZERO).unwrap();
    // Another connection's, one beyond the window, one without a number behind it.
    for packet in [data(8, 0, 0, 0, 1), data(7, 32, 32, 0, 1), data(7, u32::MAX, 0, 0, 1)] {
        receiver.handle_forward(Instant::ZERO, &packet);
        assert_eq!((receiver.poll_event(), receiver.poll_transmit(Instant::ZERO)), (None, None), "{packet:?}");
    }
    // One of another segment, one of too long a segment: they are not taken, and requested again.
    for packet in [data(7, 0, 5, 0, 1), data(7, 0, 0, 0, 2)] {
        receiver.handle_forward(Instant::ZERO, &packet);
        assert_eq!(receiver.poll_event(), None, "{packet:?}");
    }
    let due = receiver.poll_timeout().unwrap().at;
    assert_eq!(due, Instant::ZERO + T_ERROR);
    receiver.handle_timeout(due);
    assert_eq!(receiver.poll_transmit(due), Some(answer(0, (0, 1))));
    receiver.handle_forward(due, &data(7, 0, 0, 0, 1));
    assert!(receiver.poll_event().is_some(), "the place is free for the right one");
}

#[test]
fn what_waits_to_be_told_is_bounded_though_nobody_asks_for_it() {
    let config = Config { window: 8, ..config() };
    let mut receiver = Receiver::new(config, Instant::ZERO).unwrap();
    let mut now = Instant::ZERO;
    for number in 0..1000 {
        // Each packet comes behind the one that follows it.
        receiver.handle_forward(now, &data(7, number ^ 1, number ^ 1, 0, 1));
        now += Duration::from_micros(1);
    }
    let waiting = std::iter::from_fn(|| receiver.poll_transmit(now)).count();
    assert_eq!(waiting, 8);
}

#[test]
fn an_acknowledgment_of_what_was_not_sent_does_nothing() {
    let (mut sender, now) = sender_of(&config(), 4);
    let strange = [
        answer(5, (5, 5)),
        // The packet behind a gap has arrived, so it was sent.
        answer(1, (1, 4)),
        answer(1, (3, 2)),
        answer(2, (1, 3)),
        answer(0, (0, u32::MAX)),
        Feedback { connection: 8, ..answer(1, (1, 3)) },
    ];
    for answer in strange {
        for _ in 0..3 {
            sender.handle_feedback(now + HOUR, &answer);
        }
        assert_eq!((sender.poll_timeout(), gauge(&sender, "in_flight_packets")), (None, 4.0), "{answer:?}");
    }
    sender.handle_feedback(now + HOUR, &answer(3, (3, 3)));
    sender.handle_feedback(now + HOUR, &answer(1, (1, 2)));
    assert_eq!((sender.poll_timeout(), gauge(&sender, "in_flight_packets")), (None, 1.0), "an older one says nothing");
}

#[test]
fn what_is_acknowledged_no_longer_waits_to_leave_again() {
    let (mut sender, mut now) = sender_of(&config(), 20);
    sender.handle_feedback(now, &answer(2, (2, 6)));
    sender.handle_feedback(now, &answer(4, (4, 6)));
    assert_eq!(leaving(&mut sender, &mut now), [4, 5]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn any_finite_loss_of_packets_and_acknowledgments_ends_in_full_delivery(
        seed in any::<u64>(), percent in 0u64..60, window in 1u32..40, segment_packets in 1u32..4,
        periods in (1u64..50, 1u64..50), rtt in 0u64..30, known in any::<bool>(),
    ) {
        let (t_normal, t_error) = (Duration::from_millis(periods.0), Duration::from_millis(periods.1));
        let rtt = Duration::from_millis(rtt);
        let config = Config { window, segment_packets, t_normal, t_error, rtt: if known { rtt } else { Duration::ZERO }, ..config() };
        let mut draw = draws(seed, percent);
        let (mut draw_back, mut lost_back) = (draw, 0);
        let lose_back = move |_: &Feedback| {
            let lost = lost_back < 300 && draw_back();
            lost_back += u32::from(lost);
            lost
        };
        let mut link = link(&config, rtt, 60, move |_, times| times < 6 && draw(), lose_back);
        prop_assert!(link.run_to_end(HOUR));
        prop_assert!(link.delivered.iter().copied().eq(0..60));
        prop_assert_eq!(link.judged, link.delivered);
        prop_assert_eq!(link.ended, Some(60));
    }
}
