//! SSCOP in virtual time: each test names the claim it proves.

mod bytes;
mod connection;
mod errors;
mod link;

use super::{Config, ConfigError, Feedback, Forward, Receiver, Sender};
use crate::link::{Fate, PACKET_TIME, segment};
use link::{Link, PAYLOAD, RTT, config, link, link_after};
use proptest::prelude::*;
use segstream_base::halves::{Receiver as _, Reconfigure, ReconfigureError, Segment, SegmentNumber, Sender as _, StreamId, SubmitError};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration, Instant};

fn arrives(_: &Feedback, _: usize) -> Fate {
    Fate::Arrives
}

/// Whether an SD with one of the `numbers` leaves for the first time.
fn first(packet: &Forward, times: usize, numbers: &[u32]) -> bool {
    matches!(packet, Forward::Sd { n_s, .. } if times == 0 && numbers.contains(n_s))
}

/// Runs `segments` with the losses that `lose` says of a packet and how often it left before.
fn run(config: &Config, segments: u64, lose: impl FnMut(&Forward, usize) -> bool + 'static) -> Link {
    let mut link = link(config, segments, lose, arrives);
    link.settle();
    assert_complete(&link, 0, segments);
    link
}

fn assert_complete(link: &Link, from: u64, segments: u64) {
    assert!(link.delivered.iter().copied().eq(from..from + segments), "{:?}", link.delivered);
    assert_eq!((link.ended, &link.judged), (Some(from + segments), &link.delivered));
    assert_eq!(link.units, segments, "an SD is a unit");
}

/// A receiver with a connection, the BGAK taken.
fn receiver(config: Config) -> Receiver {
    let mut receiver = Receiver::new(config, Instant::ZERO).unwrap();
    receiver.handle_forward(Instant::ZERO, &Forward::Bgn { n_sq: 1, n_mr: 0 });
    assert_eq!(answers(&mut receiver), [Feedback::Bgak { n_mr: 64 }]);
    receiver
}

fn answers(receiver: &mut Receiver) -> Vec<Feedback> {
    std::iter::from_fn(|| receiver.poll_transmit(Instant::ZERO)).collect()
}

fn hear(receiver: &mut Receiver, numbers: impl IntoIterator<Item = u32>) -> Vec<Feedback> {
    for n_s in numbers {
        receiver.handle_forward(Instant::ZERO, &Forward::Sd { n_s, bytes: 4 });
    }
    answers(receiver)
}

fn poll(receiver: &mut Receiver, n_ps: u32, n_s: u32) -> Vec<Feedback> {
    receiver.handle_forward(Instant::ZERO, &Forward::Poll { n_ps, n_s });
    answers(receiver)
}

#[test]
fn without_loss_every_sd_leaves_once_and_only_polls_are_answered() {
    let link = run(&config(), 500, |_, _| false);
    let numbers = link.sent().filter_map(|packet| if let Forward::Sd { n_s, .. } = packet { Some(*n_s) } else { None });
    assert!(numbers.eq(0..500));
    let stats: Vec<_> = link.answers().filter(|answer| matches!(answer, Feedback::Stat { .. })).collect();
    assert_eq!(stats.len(), link.polls().len());
    assert!(stats.iter().all(|stat| matches!(stat, Feedback::Stat { list, .. } if list.is_empty())));
    assert_eq!(link.answers().count(), stats.len() + 2, "beside a BGAK and an ENDAK");
    assert_eq!((link.sender.counters().packets_sent, link.sender.counters().packets_retransmitted), (500, 0));
}

#[test]
fn a_poll_leaves_every_timer_poll_from_poll_to_poll() {
    let link = run(&config(), 500, |_, _| false);
    let polls = link.polls();
    // The first one after the BGAK, which takes a round trip.
    assert_eq!(polls[0], Instant::ZERO + RTT + config().timer_poll);
    assert!(polls.len() > 20 && polls.windows(2).all(|pair| pair[1].since(pair[0]) == config().timer_poll), "{polls:?}");
}

#[test]
fn a_poll_leaves_after_max_pd_sds_whatever_the_timer_says() {
    let link = run(&Config { max_pd: Some(10), timer_poll: Duration::from_secs(1), ..config() }, 60, |_, _| false);
    let kinds: Vec<bool> = link.sent().skip(1).map(|packet| matches!(packet, Forward::Poll { .. })).take(66).collect();
    let polls: Vec<usize> = (0..66).filter(|index| kinds[*index]).collect();
    assert_eq!(polls, [10, 21, 32, 43, 54, 65]);
}

#[test]
fn a_gap_is_named_once_and_what_it_names_leaves_at_once() {
    let link = run(&config(), 200, |packet, times| first(packet, times, &[50, 51, 52]));
    let ustats: Vec<_> = link.answers().filter(|answer| matches!(answer, Feedback::Ustat { .. })).collect();
    assert!(matches!(ustats[..], [Feedback::Ustat { list: [50, 53], n_r: 50, n_mr: 114 }]), "{ustats:?}");
    // SD 53 shows the gap; the USTAT takes half a round trip, and the line is free within the time of one SD.
    let seen = link.sd(53)[0] + RTT;
    for (place, number) in (50..53).enumerate() {
        let again = link.sd(number);
        assert_eq!(again.len(), 2);
        let waited = again[1].since(seen);
        assert!(waited <= PACKET_TIME * (place as u64 + 1), "{number} waited {waited}");
    }
}

#[test]
fn sds_that_leave_again_go_before_new_ones_in_the_order_asked_for() {
    let link = run(&config(), 200, |packet, times| first(packet, times, &[50, 51, 53]));
    let sds = link.sent().filter_map(|packet| if let Forward::Sd { n_s, .. } = packet { Some(*n_s) } else { None });
    let mut highest = None;
    let (new, again): (Vec<_>, Vec<_>) = sds.enumerate().partition(|(_, number)| {
        let new = highest.is_none_or(|highest| *number > highest);
        highest = highest.max(Some(*number));
        new
    });
    assert!(again.iter().map(|sd| sd.1).eq([50, 51, 53]), "{again:?}");
    assert_eq!(new.len(), 200);
    assert_eq!(again[1].0, again[0].0 + 1, "no new SD comes between");
}

#[test]
fn a_repetition_that_is_lost_is_found_by_the_next_poll() {
    let link = run(&config(), 300, |packet, times| matches!(packet, Forward::Sd { n_s: 50, .. } if times < 3));
    let left = link.sd(50);
    assert_eq!(left.len(), 4);
    for pair in left[1..].windows(2) {
        let poll = link.polls().into_iter().find(|poll| *poll >= pair[0]).unwrap();
        let waited = pair[1].since(poll + RTT);
        assert!(pair[1] >= poll + RTT && waited <= PACKET_TIME, "asked for by the first POLL behind it: {waited}");
    }
}

#[test]
fn a_lost_tail_is_found_by_a_poll() {
    let link = run(&config(), 100, |packet, times| first(packet, times, &[97, 98, 99]));
    assert!(!link.answers().any(|answer| matches!(answer, Feedback::Ustat { .. })), "nothing behind shows the gap");
    let poll = link.polls().into_iter().find(|poll| *poll >= link.sd(99)[0]).unwrap();
    assert!(link.sd(97)[1] == poll + RTT);
    assert_eq!(link.sender.counters().packets_retransmitted, 3);
}

#[test]
fn an_sd_is_sent_again_only_for_a_poll_that_left_after_it() {
    // Polls every 1 ms over a round trip of 4: three more STATs name the gap before its repetition can have arrived.
    let link = run(&Config { timer_poll: Duration::from_millis(1), ..config() }, 300, |packet, times| first(packet, times, &[100]));
    let named = link.answers().filter(|answer| matches!(answer, Feedback::Stat { list, .. } if list.first() == Some(&100))).count();
    assert!(named >= 3, "{named}");
    assert_eq!(link.sd(100).len(), 2);
    assert_eq!(link.gauge("received_again_packets"), 0.0);
}

#[test]
fn without_reordering_nothing_arrives_twice_whatever_is_lost() {
    let mut random = Seed(3).stream("loss");
    let mut back = Seed(4).stream("loss");
    let mut link = link(&config(), 3000, move |_, _| random.chance(0.2), move |_, _| back.chance(0.2));
    link.settle();
    assert_complete(&link, 0, 3000);
    assert_eq!(link.gauge("received_again_packets"), 0.0);
    assert_eq!(link.gauge("recoveries"), 0.0);
}

#[test]
fn the_credit_is_never_exceeded_and_opens_with_what_is_in_order() {
    let config = Config { window: 8, ..config() };
    let link = run(&config, 100, |packet, times| first(packet, times, &[20]));
    let last_before_repeat = link.sent().position(|packet| *packet == Forward::Sd { n_s: 28, bytes: PAYLOAD as u16 });
    let repeated = link.sent().enumerate().filter(|(_, packet)| matches!(packet, Forward::Sd { n_s: 20, .. })).nth(1);
    assert!(last_before_repeat > repeated.map(|(at, _)| at), "SD 28 must wait for SD 20");
    for answer in link.answers() {
        if let Feedback::Stat { n_mr, n_r, .. } | Feedback::Ustat { n_mr, n_r, .. } = answer {
            assert_eq!(*n_mr, n_r + 8);
        }
    }
}

#[test]
fn a_stat_lists_missing_and_received_runs_in_turn() {
    let mut receiver = receiver(config());
    assert_eq!(poll(&mut receiver, 1, 0), [Feedback::Stat { list: vec![], n_ps: 1, n_mr: 64, n_r: 0 }]);
    // 2, 3, 6 and 9 are missing, and 9 is the last that was sent.
    let ustat = |list, n_r| Feedback::Ustat { list, n_mr: 64 + n_r, n_r };
    assert_eq!(hear(&mut receiver, [0, 1, 4, 5, 7, 8]), [ustat([2, 4], 2), ustat([6, 7], 2)]);
    let stat = |n_ps, list: &[u32], n_r| vec![Feedback::Stat { list: list.to_vec(), n_ps, n_mr: 64 + n_r, n_r }];
    assert_eq!(poll(&mut receiver, 2, 9), stat(2, &[2, 4, 6, 7, 9], 2), "the end of what arrived ends the list");
    assert_eq!(poll(&mut receiver, 3, 10), stat(3, &[2, 4, 6, 7, 9, 10], 2), "the end of what is missing ends the list");
    assert_eq!(hear(&mut receiver, [2, 3, 10]), [], "no gap is named twice");
    assert_eq!(poll(&mut receiver, 4, 11), stat(4, &[6, 7, 9, 10, 11], 6));
    assert_eq!(hear(&mut receiver, [6, 9]), []);
    assert_eq!(poll(&mut receiver, 5, 11), stat(5, &[], 11));
    assert_eq!(poll(&mut receiver, 6, 9), stat(6, &[], 11), "a POLL that was overtaken is answered with what is known");
}

#[test]
fn a_long_list_goes_on_in_the_next_stat_with_the_gap_at_which_it_was_cut() {
    for (max_stat, packet_bytes) in [(5, 1000), (6, 1000), (67, 12 + 4 * 6)] {
        let mut receiver = receiver(Config { max_stat, packet_bytes, ..config() });
        hear(&mut receiver, [1, 3, 5, 7, 9]);
        let lists: Vec<_> = poll(&mut receiver, 1, 10)
            .into_iter()
            .map(|answer| if let Feedback::Stat { list, n_ps: 1, n_mr: 64, n_r: 0 } = answer { list } else { panic!("{answer:?}") })
            .collect();
        assert_eq!(lists, [vec![0, 1, 2, 3, 4], vec![4, 5, 6, 7, 8], vec![8, 9, 10]], "{max_stat} {packet_bytes}");
    }
}

#[test]
fn cut_lists_ask_for_every_gap() {
    let lost: Vec<u32> = (100..160).step_by(2).collect();
    let link = run(
        &Config { max_stat: 3, ..config() },
        300,
        move |packet, times| matches!(packet, Forward::Sd { n_s, .. } if times < 2 && lost.contains(n_s)),
    );
    assert!(link.answers().any(|answer| matches!(answer, Feedback::Stat { list, .. } if list.len() == 3)));
    assert_eq!(link.sender.counters().packets_retransmitted, 60);
}

#[test]
fn a_sender_takes_two_windows_and_only_what_one_sd_can_carry() {
    let mut sender = Sender::new(config(), Instant::ZERO).unwrap();
    let now = Instant::ZERO;
    for number in 0..128 {
        assert_eq!(sender.submit(now, segment(PAYLOAD)), Ok(SegmentNumber(number)));
    }
    assert_eq!(sender.submit(now, segment(PAYLOAD)), Err(SubmitError::Blocked));
    assert_eq!(sender.submit(now, segment(PAYLOAD + 1)), Err(SubmitError::TooLong { units: 2, window: 1 }));
    assert_eq!(sender.submit(now, segment(1 << 20)), Err(SubmitError::TooLong { units: 1053, window: 1 }));
    assert_eq!(sender.submit(now, Segment { bytes: None, ..segment(1) }), Err(SubmitError::Finished));
    assert_eq!(sender.submit(now, Segment { stream: StreamId(1), ..segment(1) }), Err(SubmitError::Finished));
    assert_eq!(sender.append(now, StreamId(0), 1, true), Err(SubmitError::Finished));
    sender.finish(now);
    assert_eq!(sender.submit(now, segment(1)), Err(SubmitError::Finished));
    assert_eq!(sender.reconfigure(now, Reconfigure::Class(7)), Err(ReconfigureError::Unsupported));
    assert_eq!(sender.reconfigure(now, Reconfigure::Rate(Bandwidth::ZERO)), Err(ReconfigureError::OutOfRange));
    assert_eq!(sender.reconfigure(now, Reconfigure::Rate(Bandwidth::from_megabits_per_second(1))), Ok(()));
}

#[test]
fn what_cannot_be_configured_is_refused() {
    let no_response = ConfigError::NoResponse { given: Duration::from_secs(2), needed: Duration::from_millis(2004) };
    let cases = [
        (Config { packet_bytes: 23, ..config() }, ConfigError::PacketBytes(23)),
        (Config { packet_bytes: 1 << 16, ..config() }, ConfigError::PacketBytes(1 << 16)),
        (Config { window: 0, ..config() }, ConfigError::Window(0)),
        (Config { window: 1 << 22, ..config() }, ConfigError::Window(1 << 22)),
        (Config { max_pd: Some(0), ..config() }, ConfigError::MaxPd(0)),
        (Config { max_stat: 2, ..config() }, ConfigError::MaxStat(2)),
        (Config { max_cc: 0, ..config() }, ConfigError::MaxCc(0)),
        (Config { timer_poll: Duration::ZERO, ..config() }, ConfigError::TimerZero("Timer_POLL")),
        (Config { timer_no_response: Duration::from_secs(2), ..config() }, no_response),
    ];
    for (config, error) in cases {
        assert_eq!(config.check(), Err(error));
        assert!(Sender::new(config.clone(), Instant::ZERO).is_err() && Receiver::new(config, Instant::ZERO).is_err());
    }
    assert_eq!(Config::default().check(), Ok(()));
    assert_eq!(Config { packet_bytes: 1023, ..config() }.payload_bytes(), 1016, "whole words only");
}

/// What a network of datagrams may do to one in a hundred or in two.
fn disturbed(seed: u64, name: &str, percent: f64) -> impl FnMut(usize) -> Fate + 'static {
    let mut random = Seed(seed).stream(name);
    move |times| {
        if times >= 6 || !random.chance(percent) {
            return Fate::Arrives;
        }
        match random.below(4) {
            0 => Fate::Doubled,
            1 => Fate::Late(Duration::from_micros(random.below(20_000))),
            _ => Fate::Lost,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_finite_loss_doubling_and_overtaking_ends_in_full_delivery(
        seed in any::<u64>(), percent in 0.0f64..0.6, window in 1u32..40, max_pd in prop::option::of(1u32..20), max_stat in 3u32..9,
    ) {
        let config = Config { window, max_pd, max_stat, ..config() };
        let (mut forward, mut back) = (disturbed(seed, "forward", percent), disturbed(seed, "back", percent));
        let mut link = link(&config, 120, move |_, times| forward(times), move |_, times| back(times));
        link.settle();
        prop_assert!(link.delivered.iter().copied().eq(0..120));
        prop_assert_eq!(&link.judged, &link.delivered);
        prop_assert_eq!(link.ended, Some(120));
    }
}
