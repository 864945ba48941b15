//! Protocol errors, and outdated statements.

use super::{Link, PAYLOAD, RTT, answers, arrives, assert_complete, config, hear, link, poll, receiver};
use crate::sscop::{Feedback, Forward, Sender};
use segstream_base::halves::{Receiver as _, Sender as _};
use segstream_base::{Duration, Instant};

/// A link in the middle of 500 segments: SD 60 and its first repetition are lost, and it is requested.
fn under_way() -> Link {
    let lose = |packet: &Forward, times: usize| matches!(packet, Forward::Sd { n_s: 60, .. } if times < 2);
    let mut link = link(&config(), 500, lose, arrives);
    link.run_until(Instant::ZERO + RTT * 3 + Duration::from_micros(50));
    assert!(link.gauge("in_flight_packets") > 30.0 && !link.judged.is_empty());
    link
}

fn stat(list: &[u32], n_ps: u32, n_mr: u32, n_r: u32) -> Feedback {
    Feedback::Stat { list: list.to_vec(), n_ps, n_mr, n_r }
}

#[test]
fn what_was_never_sent_or_polled_leads_to_a_new_connection_and_no_harm() {
    let impossible = [
        stat(&[], 100, 500, 60),
        stat(&[], 1, 500, 300),
        stat(&[], 1, 500, 0xff_fff0),
        stat(&[60, 300], 1, 500, 60),
        stat(&[62, 61], 1, 500, 60),
        stat(&[61, 61], 1, 500, 60),
        stat(&[58, 61], 1, 500, 60),
        Feedback::Ustat { list: [60, 300], n_mr: 500, n_r: 60 },
        Feedback::Ustat { list: [62, 61], n_mr: 500, n_r: 60 },
        Feedback::Ustat { list: [60, 61], n_mr: 500, n_r: 300 },
    ];
    for packet in impossible {
        let mut link = under_way();
        let poll = link.sent().filter(|sent| matches!(sent, Forward::Poll { .. })).count() as u32;
        // Of the polls so far, the newest may be answered.
        let packet = if let Feedback::Stat { list, n_ps: 1, n_mr, n_r } = packet { stat(&list, poll, n_mr, n_r) } else { packet };
        let judged = link.judged.len();
        link.hand_back(&packet);
        assert_eq!(link.judged.len(), judged, "nothing of it is believed: {packet:?}");
        assert_eq!(link.gauge("recoveries"), 1.0, "{packet:?}");
        assert_eq!(link.sent().last(), Some(&Forward::Bgn { n_sq: 2, n_mr: 0 }));
        link.settle();
        assert_complete(&link, 0, 500);
        assert_eq!(link.gauge("recoveries"), 1.0);
    }
}

#[test]
fn after_a_new_connection_only_what_is_missing_leaves_again() {
    let mut link = under_way();
    link.hand_back(&stat(&[], 100, 500, 60));
    link.settle();
    assert_complete(&link, 0, 500);
    assert_eq!(link.gauge("received_again_packets"), 0.0);
    let sent: Vec<_> = link.sent().collect();
    let again = sent.iter().position(|packet| matches!(packet, Forward::Bgn { n_sq: 2, .. })).unwrap();
    assert!(matches!(sent[again + 1], Forward::Poll { .. }), "{:?}", sent[again + 1]);
}

#[test]
fn what_was_overtaken_or_doubled_is_no_error() {
    let old = [
        stat(&[], 1, 64, 0),
        stat(&[], 0, 64, 0),
        Feedback::Ustat { list: [3, 5], n_mr: 64, n_r: 0 },
        Feedback::Bgak { n_mr: 64 },
        Feedback::Endak,
        stat(&[61], 1, 124, 60),
    ];
    let mut link = under_way();
    let before = (link.judged.len(), link.gauge("credit_packets"), link.sent().count());
    for packet in old {
        link.hand_back(&packet);
        assert_eq!((link.judged.len(), link.gauge("credit_packets"), link.sent().count()), before, "{packet:?}");
    }
    link.settle();
    assert_complete(&link, 0, 500);
    assert_eq!(link.gauge("recoveries"), 0.0);
}

#[test]
fn a_credit_beyond_the_window_is_not_believed() {
    let mut link = under_way();
    let polls = link.polls().len() as u32;
    link.hand_back(&stat(&[60, 61], polls, 4000, 60));
    assert!(link.gauge("credit_packets") + link.gauge("in_flight_packets") <= 64.0);
    link.settle();
    assert_complete(&link, 0, 500);
}

#[test]
fn a_forged_poll_or_sd_cannot_break_the_transfer() {
    let forged = [
        Forward::Poll { n_ps: 9, n_s: 4000 },
        Forward::Poll { n_ps: 0xff_ffff, n_s: 0x80_0000 },
        Forward::Sd { n_s: 4000, bytes: PAYLOAD as u16 },
        Forward::Sd { n_s: 1, bytes: PAYLOAD as u16 },
        Forward::Bgn { n_sq: 200, n_mr: 7 },
    ];
    for packet in forged {
        let mut link = under_way();
        link.hand_forward(&packet);
        link.settle();
        assert_complete(&link, 0, 500);
        assert!(link.gauge("recoveries") <= 1.0, "{packet:?}");
    }
}

#[test]
fn a_receiver_without_a_connection_takes_nothing() {
    let mut receiver = crate::sscop::Receiver::new(config(), Instant::ZERO).unwrap();
    assert_eq!(hear(&mut receiver, [0]), []);
    assert_eq!(poll(&mut receiver, 1, 1), []);
    receiver.handle_forward(Instant::ZERO, &Forward::End { by_sscop: true });
    assert_eq!(answers(&mut receiver), [Feedback::Endak], "as the standard's idle state answers");
    assert_eq!(receiver.poll_event(), None);
}

#[test]
fn an_sd_beyond_the_credit_is_not_taken_and_what_may_be_sent_is_asked_for_once() {
    let mut receiver = receiver(config());
    let ustat = Feedback::Ustat { list: [0, 64], n_mr: 64, n_r: 0 };
    assert_eq!(hear(&mut receiver, [64, 65, 0x80_0000]), [ustat]);
    assert_eq!(receiver.poll_event(), None);
    assert_eq!(hear(&mut receiver, 0..64), []);
    assert_eq!(std::iter::from_fn(|| receiver.poll_event()).count(), 64);
}

#[test]
fn answers_that_nobody_takes_do_not_pile_up() {
    let mut receiver = receiver(config());
    for n_ps in 0..100_000 {
        receiver.handle_forward(Instant::ZERO, &Forward::Poll { n_ps, n_s: 0 });
    }
    assert_eq!(answers(&mut receiver).len(), 4096);
}

#[test]
fn feedback_before_the_connection_does_nothing() {
    let mut sender = Sender::new(config(), Instant::ZERO).unwrap();
    for packet in [Feedback::Bgak { n_mr: 64 }, stat(&[], 1, 64, 0), Feedback::Ustat { list: [0, 1], n_mr: 64, n_r: 0 }, Feedback::Endak] {
        sender.handle_feedback(Instant::ZERO, &packet);
        assert_eq!((sender.poll_transmit(Instant::ZERO), sender.poll_timeout()), (None, None));
    }
}
