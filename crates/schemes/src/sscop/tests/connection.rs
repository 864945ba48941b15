//! Set-up, release and the phases of polling.

use super::{Fate, Link, PACKET_TIME, PAYLOAD, RTT, arrives, assert_complete, config, link, link_after, run};
use crate::sscop::{Config, Feedback, Forward, Sender};
use segstream_base::halves::Sender as _;
use segstream_base::{Duration, Instant};

fn at(time: Duration) -> Instant {
    Instant::ZERO + time
}

/// The N(SQ) of every BGN that left.
fn attempts(link: &Link) -> Vec<u8> {
    link.sent().filter_map(|packet| if let Forward::Bgn { n_sq, .. } = packet { Some(*n_sq) } else { None }).collect()
}

#[test]
fn a_connection_is_set_up_in_front_of_the_data_and_released_behind_it() {
    let link = run(&config(), 50, |_, _| false);
    let sent: Vec<_> = link.sent().collect();
    assert_eq!(*sent[0], Forward::Bgn { n_sq: 1, n_mr: 0 });
    assert_eq!(**sent.last().unwrap(), Forward::End { by_sscop: false });
    assert_eq!(link.sd(0)[0], at(RTT), "data waits for the BGAK");
    let answers: Vec<_> = link.answers().collect();
    assert_eq!((answers[0], *answers.last().unwrap()), (&Feedback::Bgak { n_mr: 64 }, &Feedback::Endak));
    let poll = link.polls().into_iter().find(|poll| *poll > link.sd(49)[0]).unwrap();
    assert_eq!(link.times_of(|packet| matches!(packet, Forward::End { .. })), [poll + RTT], "when the last SD is acknowledged");
}

#[test]
fn an_empty_stream_is_set_up_and_released() {
    let link = run(&config(), 0, |_, _| false);
    assert_eq!(link.sent().count(), 2);
}

#[test]
fn a_sender_with_nothing_to_send_says_nothing() {
    let mut sender = Sender::new(config(), Instant::ZERO).unwrap();
    assert_eq!((sender.poll_transmit(Instant::ZERO), sender.poll_timeout()), (None, None));
    sender.handle_timeout(at(Duration::from_secs(100)));
    assert_eq!(sender.poll_transmit(at(Duration::from_secs(100))), None);
}

#[test]
fn a_bgn_without_an_answer_leaves_every_timer_cc_and_after_max_cc_as_a_new_attempt() {
    let mut bgns = 0;
    let link = run(&config(), 10, move |packet, _| {
        bgns += u32::from(matches!(packet, Forward::Bgn { .. }));
        matches!(packet, Forward::Bgn { .. }) && bgns <= 9
    });
    assert_eq!(attempts(&link), [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]);
    let left = link.times_of(|packet| matches!(packet, Forward::Bgn { .. }));
    assert!(left.windows(2).all(|pair| pair[1].since(pair[0]) == config().timer_cc));
}

#[test]
fn a_lost_bgak_and_lost_ends_are_made_good() {
    let mut bgak = 0;
    let lose_bgak = move |answer: &Feedback, _: usize| {
        bgak += u32::from(matches!(answer, Feedback::Bgak { .. }));
        matches!(answer, Feedback::Bgak { .. }) && bgak == 1
    };
    let lose_end = |packet: &Forward, times: usize| matches!(packet, Forward::End { .. }) && times < 7;
    let mut link = link(&config(), 10, lose_end, lose_bgak);
    link.settle();
    assert_complete(&link, 0, 10);
    assert_eq!(attempts(&link), [1, 1], "the same attempt");
    let ends = link.times_of(|packet| matches!(packet, Forward::End { .. }));
    assert_eq!(ends.len(), 8);
    assert!(ends.windows(2).all(|pair| pair[1].since(pair[0]) == config().timer_cc));
}

#[test]
fn every_end_is_answered_and_the_stream_ends_once() {
    let mut endak = 0;
    let lose_endak = move |answer: &Feedback, _: usize| {
        endak += u32::from(matches!(answer, Feedback::Endak));
        matches!(answer, Feedback::Endak) && endak < 4
    };
    let mut link = link(&config(), 10, |_, _| Fate::Arrives, lose_endak);
    link.settle();
    assert_complete(&link, 0, 10);
    assert_eq!(link.answers().filter(|answer| matches!(answer, Feedback::Endak)).count(), 4);
}

#[test]
fn polls_leave_more_and_more_seldom_when_nothing_is_under_way() {
    let config = Config { timer_poll: Duration::from_millis(10), ..config() };
    // The first POLL finds an SD that is not acknowledged yet, the second nothing; it and the next two are lost.
    let lose = |packet: &Forward, _: usize| matches!(packet, Forward::Poll { n_ps: 2..5, .. });
    let mut link = link(&config, 1, lose, arrives).endless();
    link.run_until(at(Duration::from_secs(40)));
    let first = at(RTT) + config.timer_poll;
    let second = first + config.timer_poll;
    let [third, fourth, fifth] = [1, 2, 3].map(|times| second + config.timer_keep_alive * times);
    let [idle, again] = [1, 2].map(|times| fifth + (RTT + config.timer_idle) * times);
    assert_eq!(link.polls(), [first, second, third, fourth, fifth, idle, again]);
    assert_eq!(link.gauge("recoveries"), 0.0);
}

#[test]
fn a_new_sd_ends_the_idle_phase() {
    let mut link = link(&config(), 1, |_, _| Fate::Arrives, arrives).endless();
    let later = at(Duration::from_secs(5));
    link.run_until(later);
    link.submit(PAYLOAD);
    link.run_until(later + Duration::from_secs(1));
    assert_eq!(link.delivered, [0, 1]);
    let poll = link.polls().into_iter().find(|poll| *poll > later).unwrap();
    assert_eq!(poll, later + config().timer_poll, "Timer_POLL runs from the SD on");
    assert_eq!(link.judged, [0, 1]);
}

#[test]
fn a_peer_that_answers_no_poll_is_asked_for_a_new_connection() {
    let dead = at(Duration::from_millis(20))..at(Duration::from_secs(9));
    let mut clock = Instant::ZERO;
    let lose = move |packet: &Forward, _: usize| {
        // Every SD takes its time on the line, so the count of packets is a clock; the polls go on alone.
        clock += if matches!(packet, Forward::Poll { .. }) { config().timer_poll } else { PACKET_TIME };
        dead.contains(&clock)
    };
    let mut link = link(&Config { window: 16, ..config() }, 300, lose, arrives);
    link.settle();
    assert_complete(&link, 0, 300);
    assert!(link.gauge("recoveries") >= 1.0);
    assert!(attempts(&link).contains(&2));
}

#[test]
fn numbers_go_on_beyond_24_bits_and_segments_do_not() {
    let from = (1 << 24) - 100;
    let mut random = segstream_base::random::Seed(1).stream("loss");
    let mut link = link_after(from, &config(), 100, move |_, _| random.chance(0.1), arrives);
    link.settle();
    assert_complete(&link, from, 100);
    assert!(link.answers().any(|answer| matches!(answer, Feedback::Stat { n_mr, .. } if *n_mr < 64)), "N(MR) has wrapped");
    let mut sender = Sender::new(config(), Instant::ZERO).unwrap().numbered_from((1 << 24) - 1);
    assert!(sender.submit(Instant::ZERO, super::segment(1)).is_ok());
    assert_eq!(sender.submit(Instant::ZERO, super::segment(1)), Err(super::SubmitError::Finished));
}
