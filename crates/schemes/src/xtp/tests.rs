//! XTP in virtual time: each test names the claim it proves.

mod bytes;
mod link;
mod liveness;
mod strategies;

use super::{Config, ConfigError, Feedback, Forward, Options, Receiver, ReceiverStrategy, Sender, SenderStrategy, StrategyError};
use crate::link::{PACKET_TIME, gauge, segment};
use link::{FULL, Link, RTT, WINDOW, asks, config, link, pairs, sequence};
use segstream_base::halves::{
    Packet as _, Reconfigure, ReconfigureError, Segment, SegmentNumber, Sender as _, SenderEvent, StreamId, SubmitError,
};
use segstream_base::{Bandwidth, Duration, Instant};

/// Runs `segments` full packets with the losses that `lose` says.
fn run(config: &Config, segments: u64, lose: impl FnMut(&Forward, usize) -> bool + 'static) -> Link {
    let bytes = u64::from(config.segment_packets * config.payload_bytes());
    let mut link = link(config, (0..segments).map(|_| bytes), lose, |_, _| false);
    link.settle();
    assert!(link.delivered.iter().copied().eq(0..segments), "{:?}", link.delivered);
    assert_eq!((link.ended, &link.judged), (Some(segments), &link.delivered));
    link
}

/// Loses the `time`-th transmission of full packet `number`.
fn lose(number: u64, time: usize) -> impl FnMut(&Forward, usize) -> bool + 'static {
    move |packet, times| packet.is_data() && sequence(packet) == number * FULL && times == time
}

fn lose_nothing(_: &Forward, _: usize) -> bool {
    false
}

#[test]
fn without_loss_every_packet_leaves_once_and_only_the_last_of_a_window_asks() {
    for (sender, receiver) in pairs() {
        let link = run(&config(sender, receiver), 500, lose_nothing);
        assert!(link.numbers().eq(0..500), "{sender} {receiver}");
        let asked: Vec<u64> = link.sent.iter().filter(|sent| asks(&sent.0)).map(|sent| sequence(&sent.0) / FULL).collect();
        let expected: Vec<u64> = (1..=15).map(|window| window * WINDOW - 1).chain([499]).collect();
        assert_eq!(asked, expected);
        assert_eq!(link.told.len(), asked.len(), "a CNTL leaves only when it is asked for");
        assert_eq!((link.sender.counters().packets_retransmitted, link.controls().count()), (0, 0));
    }
}

#[test]
fn a_sender_stops_at_alloc_and_waits_a_round_trip_for_the_answer() {
    let link = run(&config(SenderStrategy::SelectiveRepeat, ReceiverStrategy::StoreConservative), 500, lose_nothing);
    for window in 1..10 {
        let (last, first) = (link.left(window * WINDOW - 1, 0), link.left(window * WINDOW, 0));
        assert_eq!(last, link.left((window - 1) * WINDOW, 0) + PACKET_TIME * (WINDOW - 1));
        assert_eq!(first, last + RTT);
    }
}

#[test]
fn every_cntl_carries_the_window_above_what_is_delivered_and_the_number_of_the_question() {
    let link = run(&config(SenderStrategy::GoBackN, ReceiverStrategy::StoreAggressive), 200, lose(40, 0));
    for (state, _) in &link.told {
        assert_eq!((state.dseq, state.alloc), (state.rseq, state.rseq + WINDOW * FULL));
    }
    let echoes: Vec<u32> = link.told.iter().map(|told| told.0.echo).collect();
    assert!(echoes.is_sorted() && echoes.last() == Some(&(gauge(&link.sender, "questions") as u32)), "{echoes:?}");
}

#[test]
fn when_no_full_packet_fits_behind_a_packet_it_asks() {
    // 31 full packets and a half one: half a packet of the window is left.
    let config = Config { backlog_packets: None, ..config(SenderStrategy::SelectiveRepeat, ReceiverStrategy::StoreAggressive) };
    let mut sender = Sender::new(config, Instant::ZERO).unwrap();
    for bytes in (0..31).map(|_| 960).chain([480, 960]) {
        sender.submit(Instant::ZERO, segment(bytes)).unwrap();
    }
    let mut now = Instant::ZERO;
    let sent: Vec<bool> = core::iter::from_fn(|| {
        now += PACKET_TIME;
        sender.poll_transmit(now).map(|packet| asks(&packet))
    })
    .collect();
    let expected: Vec<bool> = (0..32).map(|packet| packet == 31).collect();
    assert_eq!(sent, expected, "the last full packet does not fit");
}

#[test]
fn messages_of_any_length_are_delivered_whole_and_in_order() {
    for (sender, receiver) in pairs() {
        let config = Config { segment_packets: 5, ..config(sender, receiver) };
        let lengths = [0, 1, 960, 961, 4800, 0, 0, 4799, 3];
        let lose = |packet: &Forward, times: usize| packet.is_data() && sequence(packet) % 7 == 3 && times < 2;
        let mut link = link(&config, (0..200).map(|number| lengths[number % lengths.len()]), lose, |_, _| false);
        link.settle();
        assert!(link.delivered.iter().copied().eq(0..200), "{sender} {receiver}");
        assert_eq!((link.ended, &link.judged), (Some(200), &link.delivered));
    }
}

#[test]
fn a_backlog_without_limit_is_never_refused_and_a_full_one_opens_again() {
    let endless = Config { backlog_packets: None, ..config(SenderStrategy::GoBackN, ReceiverStrategy::Discard) };
    let mut sender = Sender::new(endless.clone(), Instant::ZERO).unwrap();
    for number in 0..10_000 {
        assert_eq!(sender.submit(Instant::ZERO, segment(960)), Ok(SegmentNumber(number)));
    }
    let mut sender = Sender::new(Config { backlog_packets: Some(3), ..endless }, Instant::ZERO).unwrap();
    for number in 0..3 {
        assert_eq!(sender.submit(Instant::ZERO, segment(960)), Ok(SegmentNumber(number)));
    }
    assert_eq!(sender.submit(Instant::ZERO, segment(960)), Err(SubmitError::Blocked));
    assert!(sender.poll_transmit(Instant::ZERO).is_some());
    let events: Vec<SenderEvent> = core::iter::from_fn(|| sender.poll_event()).collect();
    let started = SenderEvent::Started { stream: StreamId(0), segment: SegmentNumber(0) };
    assert_eq!(events, [started, SenderEvent::WindowOpen(StreamId(0))]);
    assert_eq!(sender.submit(Instant::ZERO, segment(960)), Ok(SegmentNumber(3)));
}

#[test]
fn what_cannot_be_sent_is_refused_and_nothing_of_it_is_kept() {
    let mut sender = Sender::new(config(SenderStrategy::GoBackN, ReceiverStrategy::Discard), Instant::ZERO).unwrap();
    let now = Instant::ZERO;
    assert_eq!(sender.submit(now, segment(961)), Err(SubmitError::TooLong { units: 2, window: 1 }));
    assert_eq!(sender.submit(now, segment(u64::MAX)).map_err(|error| matches!(error, SubmitError::TooLong { .. })), Err(true));
    assert_eq!(sender.submit(now, Segment { bytes: None, ..segment(1) }), Err(SubmitError::Finished));
    assert_eq!(sender.submit(now, Segment { stream: StreamId(1), ..segment(1) }), Err(SubmitError::Finished));
    assert_eq!(sender.append(now, StreamId(0), 1, true), Err(SubmitError::Finished));
    assert_eq!(gauge(&sender, "queued_packets"), 0.0);
    sender.finish(now);
    assert_eq!(sender.submit(now, segment(1)), Err(SubmitError::Finished));
}

#[test]
fn a_rate_paces_and_can_change_and_without_one_a_window_leaves_at_once() {
    let paced = config(SenderStrategy::GoBackN, ReceiverStrategy::Discard);
    let mut sender = Sender::new(Config { rate: None, ..paced.clone() }, Instant::ZERO).unwrap();
    for _ in 0..40 {
        sender.submit(Instant::ZERO, segment(960)).unwrap();
    }
    assert_eq!(core::iter::from_fn(|| sender.poll_transmit(Instant::ZERO)).count(), WINDOW as usize);
    let mut sender = Sender::new(paced, Instant::ZERO).unwrap();
    sender.submit(Instant::ZERO, segment(960)).unwrap();
    sender.submit(Instant::ZERO, segment(960)).unwrap();
    assert_eq!(core::iter::from_fn(|| sender.poll_transmit(Instant::ZERO)).count(), 1);
    assert_eq!(sender.reconfigure(Instant::ZERO, Reconfigure::Class(3)), Err(ReconfigureError::Unsupported));
    assert_eq!(sender.reconfigure(Instant::ZERO, Reconfigure::Rate(Bandwidth::ZERO)), Err(ReconfigureError::OutOfRange));
    sender.reconfigure(Instant::ZERO, Reconfigure::Rate(Bandwidth::from_megabits_per_second(8))).unwrap();
    assert_eq!(sender.poll_timeout().map(|deadline| (deadline.timer, deadline.at)), Some(("pacing", Instant::ZERO + PACKET_TIME * 10)));
}

#[test]
fn a_state_that_cannot_be_true_changes_nothing() {
    let mut sender = Sender::new(config(SenderStrategy::SelectiveRepeat, ReceiverStrategy::StoreAggressive), Instant::ZERO).unwrap();
    let mut now = Instant::ZERO;
    for _ in 0..WINDOW {
        sender.submit(now, segment(960)).unwrap();
        now += PACKET_TIME;
        assert!(sender.poll_transmit(now).is_some());
    }
    now += RTT;
    let sound = Feedback { key: 7, options: Options::FASTNAK, dseq: 0, rseq: 0, alloc: WINDOW * FULL, echo: 1, spans: Vec::new() };
    let full = |number: u64| number * FULL;
    let lone = |start, end| core::iter::once(full(start)..full(end)).collect();
    let unsound = [
        Feedback { key: 8, ..sound.clone() },
        Feedback { echo: 2, ..sound.clone() },
        Feedback { dseq: 1, ..sound.clone() },
        Feedback { rseq: full(33), alloc: full(60), ..sound.clone() },
        Feedback { alloc: full(33), ..sound.clone() },
        Feedback { spans: lone(0, 2), ..sound.clone() },
        Feedback { spans: vec![full(4)..full(6), full(5)..full(8)], ..sound.clone() },
        Feedback { spans: vec![full(9)..full(10), full(2)..full(3)], ..sound.clone() },
        Feedback { spans: lone(9, 9), ..sound.clone() },
        Feedback { spans: lone(9, 33), ..sound.clone() },
    ];
    for state in unsound {
        sender.handle_feedback(now, &state);
        assert_eq!((sender.poll_transmit(now), gauge(&sender, "in_flight_packets")), (None, WINDOW as f64), "{state:?}");
    }
    sender.handle_feedback(now, &sound);
    assert!(sender.poll_transmit(now).is_some(), "the sound one is heard");
}

#[test]
fn alloc_never_falls_and_an_older_state_is_not_heard() {
    let mut sender = Sender::new(config(SenderStrategy::SelectiveRepeat, ReceiverStrategy::StoreAggressive), Instant::ZERO).unwrap();
    for _ in 0..WINDOW {
        sender.submit(Instant::ZERO, segment(960)).unwrap();
    }
    let mut now = Instant::ZERO;
    for _ in 0..WINDOW {
        now += PACKET_TIME;
        sender.poll_transmit(now);
    }
    let state = |rseq: u64, alloc: u64| Feedback {
        key: 7,
        options: Options::NONE,
        dseq: rseq * FULL,
        rseq: rseq * FULL,
        alloc: alloc * FULL,
        echo: 1,
        spans: Vec::new(),
    };
    for (rseq, alloc) in [(32, 64), (32, 40), (20, 52)] {
        sender.handle_feedback(now, &state(rseq, alloc));
        assert_eq!(gauge(&sender, "window_left_bytes"), (32 * FULL) as f64);
    }
}

#[test]
fn strategies_are_read_from_the_words_they_print() {
    for (sender, receiver) in pairs() {
        assert_eq!((sender.to_string().parse(), receiver.to_string().parse()), (Ok(sender), Ok(receiver)));
    }
    assert_eq!("GBN".parse::<SenderStrategy>(), Err(StrategyError::Sender("GBN".to_owned())));
    assert_eq!("store".parse::<ReceiverStrategy>(), Err(StrategyError::Receiver("store".to_owned())));
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let good = config(SenderStrategy::GoBackN, ReceiverStrategy::Discard);
    let refused = [
        (Config { key: 1 << 63, ..good.clone() }, ConfigError::Key(1 << 63)),
        (Config { packet_bytes: 40, ..good.clone() }, ConfigError::PacketBytes(40)),
        (Config { packet_bytes: 1 << 16, ..good.clone() }, ConfigError::PacketBytes(1 << 16)),
        (Config { segment_packets: 0, ..good.clone() }, ConfigError::SegmentPackets { packets: 0, max: 4_473_924 }),
        (Config { segment_packets: 4_473_925, ..good.clone() }, ConfigError::SegmentPackets { packets: 4_473_925, max: 4_473_924 }),
        (Config { window: 0, ..good.clone() }, ConfigError::Window(0)),
        (Config { window: 1 << 25, ..good.clone() }, ConfigError::Window(1 << 25)),
        (Config { wtimer: Duration::ZERO, ..good.clone() }, ConfigError::WtimerZero),
        (Config { backlog_packets: Some(0), ..good.clone() }, ConfigError::BacklogZero),
    ];
    for (config, error) in refused {
        assert_eq!(config.check(), Err(error));
        assert_eq!(Sender::new(config.clone(), Instant::ZERO).err(), Some(error));
        assert_eq!(Receiver::new(config, Instant::ZERO).err(), Some(error));
    }
    assert_eq!(good.check(), Ok(()));
    assert_eq!(Config { window: 1, packet_bytes: 41, rate: None, control_rtt: Duration::ZERO, ..good }.check(), Ok(()));
}
