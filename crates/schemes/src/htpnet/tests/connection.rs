//! Set-up and release: every packet lost or doubled, terms, refusals.

use super::link::{Fate, Link, packets};
use crate::htpnet::{Class, Config, Control, Feedback, Forward, Ranges, Reason, Step};
use segstream_base::halves::{Sender as _, Verdict};
use segstream_base::{Duration, Instant};

fn config() -> Config {
    Config { connect: true, packet_bytes: 114, ..Config::default() }
}

fn class(number: u8) -> Class {
    Class::new(number).unwrap()
}

fn controls(link: &Link) -> (Vec<Control>, Vec<Control>) {
    let forward = link.sent.iter().filter_map(|(_, packet)| match packet {
        Forward::Control(control) => Some(*control),
        _ => None,
    });
    let back = link.answered.iter().filter_map(|(_, packet)| match packet {
        Feedback::Control(control) => Some(*control),
        _ => None,
    });
    (forward.collect(), back.collect())
}

#[test]
fn set_up_and_release_take_three_packets_each() {
    let mut link = Link::new(&config(), packets(&config(), 3));
    link.settle();
    let (forward, back) = controls(&link);
    assert!(matches!(forward[..], [Control::Request { .. }, Control::Release { .. }, Control::Released { step: Step::Last, .. }]));
    assert!(matches!(back[..], [Control::Confirm { .. }, Control::Released { step: Step::Answer, .. }]));
    assert!(matches!(link.sent[1].1, Forward::State(_) | Forward::Data(_)), "the third part of the set-up");
    assert_eq!((link.order(), link.ended), (vec![0, 1, 2], Some(3)));
    assert!(link.sender.is_released() && link.receiver.is_released());
}

#[test]
fn a_connection_without_data_is_confirmed_and_released() {
    for finish in [true, false] {
        let mut link = Link::new(&config(), []);
        link.finish = finish;
        link.settle();
        assert!(link.sender.is_open() && link.sender.failure().is_none());
        assert_eq!((link.ended, link.receiver.is_released()), (finish.then_some(0), finish));
        let (_, back) = controls(&link);
        let confirms = back.iter().filter(|control| matches!(control, Control::Confirm { .. })).count();
        assert_eq!(confirms, 1, "a state packet has confirmed it");
    }
}

#[test]
fn no_single_or_double_loss_or_copy_prevents_set_up_delivery_or_release() {
    // What happens to the first packets of each direction, as digits: 0 passes, 1 is lost, 2 is doubled.
    const FIRST: u32 = 4;
    let digit = |code: u32, at: u32| match code / 3_u32.pow(at) % 3 {
        0 => Fate::Pass,
        1 => Fate::Lose,
        _ => Fate::Twice,
    };
    for segments in [0, 1, 5] {
        for code in 0..3_u32.pow(FIRST) {
            for back_code in 0..3_u32.pow(FIRST) {
                let mut link = Link::new(&config(), packets(&config(), segments));
                let (mut forward, mut back) = (0, 0);
                link.fate_forward = Box::new(move |_, _| {
                    forward += 1;
                    if forward <= FIRST { digit(code, forward - 1) } else { Fate::Pass }
                });
                link.fate_back = Box::new(move |_, _| {
                    back += 1;
                    if back <= FIRST { digit(back_code, back - 1) } else { Fate::Pass }
                });
                link.settle();
                let case = format!("{segments} segments, {code} forward, {back_code} back");
                assert_eq!(link.order(), (0..segments as u64).collect::<Vec<_>>(), "{case}");
                assert_eq!((link.judged.len(), link.ended), (segments, Some(segments as u64)), "{case}");
                assert!(link.sender.is_released() && link.receiver.is_released() && link.sender.failure().is_none(), "{case}");
            }
        }
    }
}

#[test]
fn every_packet_of_the_release_may_be_lost_or_doubled() {
    for lost in 0..6 {
        for fate in [Fate::Lose, Fate::Twice] {
            for forward in [true, false] {
                let mut link = Link::new(&config(), packets(&config(), 5));
                let mut seen = 0;
                let mut strike = move |is_release: bool| {
                    seen += usize::from(is_release);
                    if is_release && seen == lost + 1 { fate } else { Fate::Pass }
                };
                if forward {
                    link.fate_forward = Box::new(move |_, packet| {
                        strike(matches!(packet, Forward::Control(Control::Release { .. } | Control::Released { .. })))
                    });
                } else {
                    link.fate_back = Box::new(move |_, packet| strike(matches!(packet, Feedback::Control(Control::Released { .. }))));
                }
                link.settle();
                assert!(link.sender.is_released() && link.receiver.is_released(), "{lost} {fate:?} {forward}");
                assert_eq!(link.ended, Some(5));
            }
        }
    }
}

#[test]
fn the_terms_are_those_that_both_sides_can_hold_to() {
    let sender = Config { class: class(7), credit: 100, gap: Some(Duration::from_micros(200)), ranges: Ranges::Eight, ..config() };
    let receiver = Config { class: class(6), credit: 30, gap: Some(Duration::from_micros(300)), ranges: Ranges::Four, ..config() };
    let mut link = Link::between(&sender, &receiver, packets(&sender, 50));
    link.settle();
    let (forward, back) = controls(&link);
    let Control::Request { terms: offered, .. } = forward[0] else { panic!("{forward:?}") };
    let Control::Confirm { terms, .. } = back[0] else { panic!("{back:?}") };
    assert_eq!((offered.class, offered.rate, offered.credit, offered.pairs.count()), (class(7), 200, 100, 8));
    assert_eq!((terms.class, terms.rate, terms.credit, terms.pairs.count()), (class(6), 300, 30, 4));
    assert_eq!(link.sender.class(), class(6));
    assert_eq!(link.delivered.len(), 50);
}

#[test]
fn a_refusal_says_why_and_ends_the_stream() {
    let insists = Config { class_required: class(4), ..config() };
    let mut link = Link::between(&Config { class: class(3), ..config() }, &insists, packets(&config(), 2));
    link.settle();
    assert_eq!(link.sender.failure(), Some(Reason::Class));
    assert_eq!(link.judged.iter().map(|it| it.1).collect::<Vec<_>>(), [Verdict::Unknown; 2]);
    assert!(link.delivered.is_empty() && link.sender.poll_timeout().is_none());
    let shown = Reason::Class.to_string();
    assert!(shown.contains("offer a higher class"), "{shown}");
}

#[test]
fn a_sender_that_nobody_answers_gives_up() {
    let mut link = Link::new(&config(), packets(&config(), 2));
    link.fate_back = Box::new(|_, _| Fate::Lose);
    link.settle();
    assert_eq!(link.sender.failure(), Some(Reason::Silent));
    assert_eq!(link.judged.len(), 2);
    assert!(link.now < Instant::ZERO + Duration::from_secs(20));
}

#[test]
fn another_request_for_the_same_connection_is_refused() {
    use segstream_base::halves::Receiver as _;
    let mut link = Link::new(&config(), packets(&config(), 1));
    link.finish = false;
    link.settle();
    let Forward::Control(Control::Request { connection, mut terms }) = link.sent[0].1 else { panic!() };
    terms.credit = 1;
    link.receiver.handle_forward(link.now, &Forward::Control(Control::Request { connection, terms }));
    let answer = link.receiver.poll_transmit(link.now);
    assert_eq!(answer, Some(Feedback::Control(Control::Reject { connection, reason: Reason::InUse })));
}

#[test]
fn packets_of_another_connection_are_ignored() {
    let mut link = Link::new(&config(), packets(&config(), 20));
    link.fate_forward = Box::new(|_, packet| {
        if let Forward::Control(Control::Request { connection, .. }) = packet {
            *connection = 9;
        }
        Fate::Pass
    });
    link.settle();
    assert_eq!(link.sender.failure(), Some(Reason::Silent));
    assert!(link.delivered.is_empty() && link.answered.is_empty());
}
