//! What would stall a sender that is built by the letter of the study, and that none of it does.

use super::link::{FULL, RTT, WINDOW, WTIMER, asks, config, link, pairs, sequence};
use super::{lose, run};
use crate::link::{PACKET_TIME, draws, gauge, segment};
use crate::xtp::{Config, Feedback, Forward, Options, Place, Receiver, ReceiverStrategy, Sender, SenderStrategy};
use proptest::prelude::*;
use segstream_base::halves::{Packet as _, Receiver as _, ReceiverEvent, Sender as _};
use segstream_base::{Duration, Instant};

#[test]
fn a_lost_question_is_asked_again_by_a_cntl_when_wtimer_runs_out() {
    for (sender, receiver) in pairs() {
        let link = run(&config(sender, receiver), 200, lose(WINDOW - 1, 0));
        let (control, at) = link.controls().next().unwrap();
        assert!(asks(control));
        assert_eq!(*at, link.left(WINDOW - 1, 0) + WTIMER, "{sender} {receiver}");
        assert_eq!(link.left(WINDOW - 1, 1), *at + RTT);
        assert_eq!(link.sender.counters().packets_retransmitted, 1);
    }
}

#[test]
fn the_answer_to_an_older_question_does_not_stop_wtimer() {
    // The CNTL upon the gap moves ALLOC, so that packet 41 asks too; it is lost, and 31's answer comes later.
    for receiver in [ReceiverStrategy::Discard, ReceiverStrategy::StoreAggressive] {
        for sender in SenderStrategy::ALL {
            let mut left = 0;
            let lose = move |packet: &Forward, times: usize| {
                left += usize::from(sequence(packet) == 41 * FULL);
                times == 0 && (sequence(packet) == 10 * FULL || sequence(packet) == 41 * FULL && left == 1)
            };
            let link = run(&config(sender, receiver), 200, lose);
            let last_question = link.sent.iter().filter(|sent| asks(&sent.0)).nth(1).unwrap();
            assert_eq!(sequence(&last_question.0), 41 * FULL);
            let (_, control) = link.controls().next().unwrap();
            assert_eq!(*control, last_question.1 + WTIMER, "{sender} {receiver}");
        }
    }
}

#[test]
fn a_lost_repetition_is_found_although_nothing_was_asked() {
    for (sender, receiver) in pairs() {
        let lose = |packet: &Forward, times: usize| sequence(packet) == 5 * FULL && times < 4;
        let link = run(&config(sender, receiver), 200, lose);
        assert!(link.numbers().filter(|number| *number == 5).count() == 5, "{sender} {receiver}");
    }
}

#[test]
fn the_last_packet_asks_and_a_lost_end_is_made_good() {
    for (sender, receiver) in pairs() {
        let link = run(&config(sender, receiver), 7, |packet, times| packet.is_data() && sequence(packet) == 6 * FULL && times < 2);
        assert_eq!(link.numbers().filter(|number| *number == 6).count(), 3, "{sender} {receiver}");
        assert!(link.sent.iter().filter(|sent| asks(&sent.0)).all(|sent| sequence(&sent.0) >= 6 * FULL));
    }
}

#[test]
fn an_end_that_is_told_after_the_last_packet_travels_in_a_cntl() {
    for (sender, receiver) in pairs() {
        for segments in [0, 3] {
            let mut controls = 0;
            let lose = move |packet: &Forward, _: usize| {
                controls += usize::from(!packet.is_data());
                !packet.is_data() && controls <= 2
            };
            let mut link = link(&config(sender, receiver), [], lose, |_, told| told == 0).endless();
            for _ in 0..segments {
                link.sender.submit(link.now, segment(960)).unwrap();
            }
            link.settle();
            assert_eq!(
                (link.ended, link.delivered.len(), link.judged.len()),
                (None, segments, segments),
                "WTIMER has asked for what was sent"
            );
            link.sender.finish(link.now);
            link.settle();
            assert_eq!(link.ended, Some(segments as u64), "{sender} {receiver}");
            assert_eq!(link.sender.poll_timeout(), None);
        }
    }
}

#[test]
fn new_data_that_leaves_while_a_question_is_open_is_not_taken_for_lost() {
    for (strategy, receiver) in pairs() {
        let mut sender = Sender::new(config(strategy, receiver), Instant::ZERO).unwrap();
        let mut peer = Receiver::new(config(strategy, receiver), Instant::ZERO).unwrap();
        let mut now = Instant::ZERO;
        sender.submit(now, segment(960)).unwrap();
        peer.handle_forward(now, &sender.poll_transmit(now).unwrap());
        // Idle: WTIMER asks. Then data leaves, and only the question has come when the answer leaves.
        now = sender.poll_timeout().unwrap().at;
        assert_eq!(now, Instant::ZERO + WTIMER);
        sender.handle_timeout(now);
        peer.handle_forward(now, &sender.poll_transmit(now).unwrap());
        sender.submit(now, segment(960)).unwrap();
        now += PACKET_TIME;
        assert!(sender.poll_transmit(now).is_some());
        sender.handle_feedback(now + RTT * 3, &peer.poll_transmit(now).unwrap());
        assert_eq!(sender.poll_transmit(now + RTT * 3), None, "{strategy} {receiver}");
    }
}

#[test]
fn a_wtimer_below_the_round_trip_still_ends_in_full_delivery() {
    for (sender, receiver) in pairs() {
        let config = Config { wtimer: Duration::from_micros(900), ..config(sender, receiver) };
        run(&config, 100, |packet, times| times == 0 && sequence(packet) / FULL % 5 == 2);
    }
}

#[test]
fn without_a_filter_and_with_a_window_of_one_packet_everything_is_still_delivered() {
    for (sender, receiver) in pairs() {
        let config = Config { control_rtt: Duration::ZERO, window: 1, rate: None, ..config(sender, receiver) };
        run(&config, 40, |packet, times| times == 0 && sequence(packet) / FULL % 3 == 2);
    }
}

#[test]
fn wtimer_of_an_idle_sender_starts_anew_with_every_packet() {
    let mut sender = Sender::new(config(SenderStrategy::GoBackN, ReceiverStrategy::Discard), Instant::ZERO).unwrap();
    for millis in [0, 9, 18] {
        let now = Instant::ZERO + Duration::from_millis(millis);
        sender.handle_timeout(now);
        sender.submit(now, segment(960)).unwrap();
        assert!(matches!(sender.poll_transmit(now), Some(Forward::Data { .. })));
        assert_eq!(sender.poll_timeout().map(|deadline| deadline.at), Some(now + WTIMER));
    }
    assert_eq!(gauge(&sender, "questions"), 0.0);
}

#[test]
fn the_studys_sender_asks_when_its_window_closes_or_its_stream_ends_and_not_in_a_pause() {
    let study = Config { asks_in_pauses: false, ..config(SenderStrategy::GoBackN, ReceiverStrategy::Discard) };
    let mut sender = Sender::new(study, Instant::ZERO).unwrap();
    sender.submit(Instant::ZERO, segment(960)).unwrap();
    assert!(matches!(sender.poll_transmit(Instant::ZERO), Some(Forward::Data { .. })));
    assert_eq!(sender.poll_timeout(), None);
    sender.finish(Instant::ZERO);
    assert!(matches!(sender.poll_transmit(Instant::ZERO), Some(packet) if asks(&packet)));
    assert_eq!(sender.poll_timeout().map(|deadline| deadline.at), Some(Instant::ZERO + WTIMER));
}

fn strategies() -> impl Strategy<Value = (SenderStrategy, ReceiverStrategy)> {
    (0usize..3, 0usize..3).prop_map(|(sender, receiver)| (SenderStrategy::ALL[sender], ReceiverStrategy::ALL[receiver]))
}

fn forward() -> impl Strategy<Value = Forward> {
    let options = (any::<bool>(), any::<bool>(), any::<bool>())
        .prop_map(|(asks, last, end)| Options::NONE.with_if(Options::SREQ, asks).with_if(Options::EOM, last).with_if(Options::WCLOSE, end));
    let sequence = prop_oneof![0u64..60_000, (0u64..60).prop_map(|number| number * FULL), (u64::MAX - 2000)..=u64::MAX];
    let place = (0u32..40, prop_oneof![Just(0), 0u32..3000, Just(u32::MAX)]).prop_map(|(segment, offset)| Place { segment, offset });
    (options, any::<u32>(), sequence, place, 0u16..=960, any::<bool>()).prop_map(|(options, sync, sequence, place, bytes, is_data)| {
        if is_data {
            Forward::Data { key: 7, options, sync, sequence, place, bytes }
        } else {
            Forward::Control { key: 7, options, sync, sequence }
        }
    })
}

fn feedback() -> impl Strategy<Value = Feedback> {
    let place = || prop_oneof![0u64..60_000, (0u64..60).prop_map(|number| number * FULL), any::<u64>()];
    let spans = prop::collection::vec((place(), place()).prop_map(|(start, end)| start..end), 0..4);
    (place(), place(), place(), 0u32..9, spans, any::<bool>(), any::<bool>()).prop_map(|(dseq, rseq, alloc, echo, spans, gap, over)| {
        let options = Options::NONE.with_if(Options::FASTNAK, gap).with_if(Options::RCLOSE, over);
        Feedback { key: 7, options, dseq: dseq.min(rseq), rseq, alloc, echo, spans }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn any_finite_loss_of_data_and_cntl_ends_in_full_delivery(
        seed in any::<u64>(), percent in 0u64..60, (sender, receiver) in strategies(), window in 1u32..40, segment_packets in 1u32..4,
        paced in any::<bool>(), wtimer in 1u64..20, filter in 0u64..6,
    ) {
        let base = config(sender, receiver);
        let config = Config {
            window,
            segment_packets,
            rate: base.rate.filter(|_| paced),
            wtimer: Duration::from_millis(wtimer),
            control_rtt: Duration::from_millis(filter),
            ..base
        };
        let mut draw = draws(seed, percent);
        let mut draw_back = draw;
        let mut controls = 0;
        let lengths = (0..60).map(|number| u64::from(config.segment_packets) * 960 * (number % 4) / 3).collect::<Vec<_>>();
        let lose = move |packet: &Forward, times: usize| {
            controls += usize::from(matches!(packet, Forward::Control { .. }));
            times < 6 && controls < 40 && draw()
        };
        let mut link = link(&config, lengths, lose, move |_, told| told < 200 && draw_back());
        link.settle();
        prop_assert!(link.delivered.iter().copied().eq(0..60));
        prop_assert_eq!(link.judged, link.delivered);
        prop_assert_eq!(link.ended, Some(60));
    }

    #[test]
    fn no_packets_make_a_half_panic_or_deliver_out_of_order(
        (sender, receiver) in strategies(), packets in prop::collection::vec(forward(), 0..80), states in prop::collection::vec(feedback(), 0..40),
    ) {
        let now = Instant::ZERO + WTIMER;
        let mut half = Receiver::new(config(sender, receiver), now).unwrap();
        let mut delivered = 0;
        for packet in &packets {
            half.handle_forward(now, packet);
            prop_assert!(half.poll_transmit(now).is_none_or(|state| state.is_consistent()));
            while let Some(event) = half.poll_event() {
                if let ReceiverEvent::Delivered { segment, .. } = event {
                    prop_assert_eq!(segment.0, delivered);
                    delivered += 1;
                }
            }
        }
        let mut half = Sender::new(Config { rate: None, ..config(sender, receiver) }, now).unwrap();
        for _ in 0..45 {
            half.submit(now, segment(960)).unwrap();
        }
        for (round, state) in states.iter().enumerate() {
            let now = now + PACKET_TIME * round as u64;
            half.handle_feedback(now, state);
            half.handle_timeout(now);
            while let Some(packet) = half.poll_transmit(now) {
                prop_assert!(sequence(&packet) <= 45 * FULL);
            }
        }
    }
}
