//! What each strategy retransmits, and when a receiver speaks.

use super::link::{FULL, RTT, WINDOW, WTIMER, asks, config, link, pairs, sequence};
use super::{lose, lose_nothing, run};
use crate::link::{PACKET_TIME, draws, gauge, segment};
use crate::xtp::{Config, Feedback, Forward, Options, Place, Question, Receiver, ReceiverStrategy, Sender, SenderStrategy};
use segstream_base::halves::{Receiver as _, Sender as _};
use segstream_base::{Duration, Instant};

use ReceiverStrategy::{Discard, StoreAggressive, StoreConservative};
use SenderStrategy::{GoBackN, Handshake, HandshakeGoBackN, SelectiveRepeat};

/// Full packet `number`, with `options`.
fn data(number: u64, options: Options, sync: u32) -> Forward {
    let place = Place { segment: number as u32, offset: 0 };
    Forward::Data { key: 7, options: options.and(Options::EOM), sync, sequence: number * FULL, place, bytes: 960 }
}

fn receiver(strategy: ReceiverStrategy) -> Receiver {
    Receiver::new(config(SelectiveRepeat, strategy), Instant::ZERO).unwrap()
}

/// What the receiver says to packet `number`.
fn said(receiver: &mut Receiver, number: u64) -> Option<Feedback> {
    receiver.handle_forward(Instant::ZERO, &data(number, Options::NONE, 0));
    receiver.poll_transmit(Instant::ZERO)
}

/// A sender that has sent a window, and the time.
fn after_a_window(strategy: SenderStrategy, control_rtt: Duration) -> (Sender, Instant) {
    let config = Config { control_rtt, ..config(strategy, StoreAggressive) };
    let mut sender = Sender::new(config, Instant::ZERO).unwrap();
    for _ in 0..WINDOW {
        sender.submit(Instant::ZERO, segment(960)).unwrap();
    }
    let mut now = Instant::ZERO;
    assert_eq!(leaving(&mut sender, &mut now), (0..WINDOW).collect::<Vec<_>>());
    (sender, now)
}

/// The numbers of the packets that leave from now on, one in each packet time.
fn leaving(sender: &mut Sender, now: &mut Instant) -> Vec<u64> {
    core::iter::from_fn(|| {
        *now += PACKET_TIME;
        sender.poll_transmit(*now).map(|packet| sequence(&packet) / FULL)
    })
    .collect()
}

/// A state that nobody asked for, in numbers of full packets.
fn state(rseq: u64, spans: &[(u64, u64)]) -> Feedback {
    let spans = spans.iter().map(|span| span.0 * FULL..span.1 * FULL).collect();
    let rseq = rseq * FULL;
    Feedback { key: 7, options: Options::FASTNAK, dseq: rseq, rseq, alloc: rseq + WINDOW * FULL, echo: 0, spans }
}

#[test]
fn what_a_lone_loss_costs_is_a_matter_of_both_strategies() {
    for (sender, receiver) in pairs() {
        let link = run(&config(sender, receiver), 500, lose(10, 0));
        let again = link.sender.counters().packets_retransmitted;
        let expected = match (sender, receiver) {
            // A sender that waits for a handshake goes on with what the first CNTL has allowed.
            (Handshake | HandshakeGoBackN, Discard) | (HandshakeGoBackN, _) => WINDOW,
            (_, Discard) | (GoBackN, _) => WINDOW - 10,
            (SelectiveRepeat | Handshake, _) => 1,
        };
        assert_eq!(again, expected, "{sender} {receiver}");
    }
}

#[test]
fn an_aggressive_receiver_tells_of_the_gap_at_once_a_conservative_one_when_the_window_is_over() {
    for (strategy, receiver) in pairs() {
        let link = run(&config(strategy, receiver), 500, lose(10, 0));
        let told = match (strategy, receiver) {
            // Packet 41 is the last that the first CNTL allows. Its answer ends no handshake, and WTIMER runs anew.
            (Handshake | HandshakeGoBackN, _) => link.left(41, 0) + RTT + WTIMER,
            (_, StoreConservative) => link.left(31, 0),
            (_, Discard | StoreAggressive) => link.left(11, 0),
        };
        assert_eq!(link.left(10, 1), told + RTT, "{strategy} {receiver}");
    }
}

#[test]
fn a_receiver_that_discards_makes_every_sender_go_back_packet_by_packet() {
    for (seed, percent) in [(1, 1), (2, 5), (3, 20), (4, 40)] {
        let links = [GoBackN, SelectiveRepeat].map(|strategy| {
            let (mut draw, mut draw_back) = (draws(seed, percent), draws(seed + 9, percent));
            let mut link = link(
                &config(strategy, Discard),
                (0..400).map(|_| 960),
                move |_, times| times < 5 && draw(),
                move |_, told| told < 2_000 && draw_back(),
            );
            link.settle();
            assert_eq!(link.delivered.len(), 400);
            link
        });
        assert!(links[0].sender.counters().packets_retransmitted > 0);
        assert_eq!(links[0].sent, links[1].sent);
        assert_eq!(links[0].told, links[1].told);
    }
}

#[test]
fn a_sender_that_goes_back_sends_all_from_rseq_again_whatever_has_come() {
    let (mut sender, mut now) = after_a_window(GoBackN, RTT);
    now += RTT;
    sender.handle_feedback(now, &state(5, &[(6, 30)]));
    assert_eq!(leaving(&mut sender, &mut now), (5..WINDOW).collect::<Vec<_>>());
}

#[test]
fn a_sender_goes_back_once_in_a_round_trip_for_the_same_rseq_and_again_for_another() {
    let (mut sender, mut now) = after_a_window(GoBackN, RTT);
    let first = now;
    sender.handle_feedback(now, &state(20, &[]));
    assert_eq!(leaving(&mut sender, &mut now), (20..32).collect::<Vec<_>>(), "even what has just left");
    sender.handle_feedback(now, &state(20, &[]));
    assert_eq!(leaving(&mut sender, &mut now), []);
    sender.handle_feedback(now, &state(25, &[]));
    assert_eq!(leaving(&mut sender, &mut now), (25..32).collect::<Vec<_>>());
    now = (now + RTT).max(first + RTT * 2);
    sender.handle_feedback(now, &state(25, &[]));
    assert_eq!(leaving(&mut sender, &mut now), (25..32).collect::<Vec<_>>());
    assert_eq!(gauge(&sender, "times_back"), 3.0);
}

#[test]
fn a_selective_sender_repeats_the_gaps_and_no_packet_twice_in_a_round_trip() {
    let (mut sender, mut now) = after_a_window(SelectiveRepeat, RTT);
    now += RTT;
    let gaps = state(3, &[(4, 10), (12, 31)]);
    sender.handle_feedback(now, &gaps);
    assert_eq!(leaving(&mut sender, &mut now), [3, 10, 11], "31 may be on its way: nobody asked behind it");
    sender.handle_feedback(now, &gaps);
    assert_eq!(leaving(&mut sender, &mut now), []);
    now += RTT;
    sender.handle_feedback(now, &gaps);
    assert_eq!(leaving(&mut sender, &mut now), [3, 10, 11]);
    // Without a filter the request that comes twice is served twice.
    let (mut sender, mut now) = after_a_window(SelectiveRepeat, Duration::ZERO);
    for _ in 0..2 {
        sender.handle_feedback(now, &gaps);
        assert_eq!(leaving(&mut sender, &mut now), [3, 10, 11]);
    }
}

#[test]
fn what_a_question_was_asked_behind_is_missing_when_the_answer_does_not_have_it() {
    let (mut sender, mut now) = after_a_window(SelectiveRepeat, RTT);
    now += RTT;
    sender.handle_feedback(now, &Feedback { echo: 1, options: Options::NONE, ..state(3, &[(4, 10), (12, 29)]) });
    assert_eq!(leaving(&mut sender, &mut now), [3, 10, 11, 29, 30, 31]);
}

#[test]
fn a_packet_that_has_come_meanwhile_is_not_repeated_by_a_selective_sender() {
    let (mut sender, mut now) = after_a_window(SelectiveRepeat, RTT);
    now += RTT;
    sender.handle_feedback(now, &state(3, &[(8, 31)]));
    sender.handle_feedback(now, &state(4, &[(5, 6), (8, 31)]));
    assert_eq!(leaving(&mut sender, &mut now), [4, 6, 7]);
}

#[test]
fn a_handshake_sender_acts_only_on_the_answer_to_a_cntl() {
    let (mut sender, mut now) = after_a_window(Handshake, RTT);
    now += RTT;
    for asked in [state(3, &[(4, 10)]), Feedback { echo: 1, ..state(3, &[(4, 10), (12, 32)]) }] {
        sender.handle_feedback(now, &asked);
        assert_eq!(leaving(&mut sender, &mut now), []);
    }
    let due = sender.poll_timeout().unwrap();
    assert_eq!(due.timer, "wtimer");
    sender.handle_timeout(due.at);
    assert!(matches!(sender.poll_transmit(due.at), Some(Forward::Control { sync: 2, options: Options::SREQ, .. })));
    now = due.at + RTT;
    sender.handle_feedback(now, &Feedback { echo: 2, ..state(3, &[(4, 10), (12, 32)]) });
    assert_eq!(leaving(&mut sender, &mut now), [3, 10, 11]);
}

#[test]
fn repetitions_leave_before_new_packets() {
    for (sender, receiver) in pairs() {
        let link = run(&config(sender, receiver), 300, |packet, times| times == 0 && sequence(packet) / FULL % 9 == 4);
        let numbers: Vec<u64> = link.numbers().collect();
        let mut highest = 0;
        for pair in numbers.windows(2) {
            highest = highest.max(pair[0]);
            // From an old packet it goes on upwards, to an older one only by a new request.
            assert!(pair[1] <= highest + 1, "{sender} {receiver}");
        }
    }
}

#[test]
fn a_discarding_receiver_tells_once_of_every_new_gap() {
    let mut receiver = receiver(Discard);
    let heard: Vec<(u64, bool)> =
        [0, 2, 3, 4, 6, 7, 1, 2, 2, 5, 6, 3, 5].map(|number| (number, said(&mut receiver, number).is_some())).into();
    let told: Vec<u64> = heard.iter().filter(|heard| heard.1).map(|heard| heard.0).collect();
    // 2 opens the first, 6 the next; then 1 and 2 come in sequence, 2 comes again, and 5 opens one, twice.
    assert_eq!(told, [2, 6, 5, 5]);
    let state = said(&mut receiver, 9).unwrap();
    assert_eq!((state.rseq, state.options, state.spans.len()), (4 * FULL, Options::FASTNAK, 0), "nothing is kept");
}

#[test]
fn an_aggressive_receiver_tells_of_a_gap_only_when_it_is_the_only_one() {
    let mut aggressive = receiver(StoreAggressive);
    let told: Vec<u64> =
        [0, 2, 3, 6, 8, 1, 10, 4, 5, 7, 9, 11, 13].into_iter().filter(|number| said(&mut aggressive, *number).is_some()).collect();
    assert_eq!(told, [2, 13], "at 6, 8 and 10 there was another gap");
    let mut conservative = receiver(StoreConservative);
    assert!([0, 2, 3, 6, 8, 1, 10, 4, 5, 7, 9, 11, 13].into_iter().all(|number| said(&mut conservative, number).is_none()));
}

#[test]
fn where_the_user_reads_at_once_sreq_and_dreq_are_answered_alike() {
    for strategy in ReceiverStrategy::ALL {
        for ask in [Options::SREQ, Options::DREQ] {
            let mut receiver = receiver(strategy);
            assert_eq!(said(&mut receiver, 0), None);
            receiver.handle_forward(Instant::ZERO, &data(1, ask, 5));
            let state = receiver.poll_transmit(Instant::ZERO).unwrap();
            assert_eq!((state.dseq, state.rseq, state.echo, state.options), (2 * FULL, 2 * FULL, 5, Options::NONE));
            assert_eq!(receiver.poll_transmit(Instant::ZERO), None, "one answer");
            receiver.handle_forward(Instant::ZERO, &Forward::Control { key: 7, options: ask, sync: 4, sequence: 2 * FULL });
            assert_eq!(receiver.poll_transmit(Instant::ZERO).map(|state| state.echo), Some(5), "an echo never falls");
            receiver.handle_forward(Instant::ZERO, &data(9, ask, 6));
            let state = receiver.poll_transmit(Instant::ZERO).unwrap();
            assert_eq!((state.echo, state.options.has(Options::FASTNAK)), (6, strategy != StoreConservative), "one CNTL says both");
        }
    }
}

#[test]
fn a_list_of_spans_is_no_longer_than_a_packet_and_what_lies_behind_a_cut_is_not_repeated() {
    let config = Config { packet_bytes: 100, window: 64, ..config(SelectiveRepeat, StoreConservative) };
    assert_eq!(config.spans_max(), 2);
    let mut link = link(&config, (0..60).map(|_| 60), |packet, times| times == 0 && sequence(packet) / 68 % 4 == 1, |_, _| false);
    link.settle();
    assert_eq!(link.delivered.len(), 60);
    assert!(link.told.iter().any(|told| told.0.spans.len() == 2) && link.told.iter().all(|told| told.0.spans.len() <= 2));
    assert_eq!(link.sender.counters().packets_retransmitted, 15, "each of those that were lost, once");
}

#[test]
fn the_first_packet_of_a_window_lost_does_not_move_alloc_and_wtimer_asks() {
    let link = run(&config(SelectiveRepeat, StoreConservative), 100, lose(0, 0));
    assert_eq!(link.left(0, 1), link.left(31, 0) + RTT);
    // The repetition is not the last packet of the window, so nothing asks until WTIMER runs out.
    let (control, at) = link.controls().next().unwrap();
    assert!(asks(control));
    assert_eq!(*at, link.left(0, 1) + WTIMER);
    assert_eq!(link.left(32, 0), *at + RTT);
    assert_eq!(run(&config(SelectiveRepeat, StoreConservative), 100, lose_nothing).controls().count(), 0);
}

#[test]
fn a_sender_of_case_1_2_goes_back_but_only_on_the_answer_to_a_cntl() {
    let (mut sender, mut now) = after_a_window(HandshakeGoBackN, RTT);
    now += RTT;
    sender.handle_feedback(now, &Feedback { echo: 1, ..state(3, &[(4, 10), (12, 32)]) });
    assert_eq!(leaving(&mut sender, &mut now), []);
    let due = sender.poll_timeout().unwrap();
    sender.handle_timeout(due.at);
    assert!(matches!(sender.poll_transmit(due.at), Some(Forward::Control { sync: 2, options: Options::SREQ, .. })));
    now = due.at + RTT;
    sender.handle_feedback(now, &Feedback { echo: 2, ..state(3, &[(4, 10), (12, 32)]) });
    assert_eq!(leaving(&mut sender, &mut now), (3..WINDOW).collect::<Vec<_>>(), "what has come too");
}

/// A receiver whose user takes a millisecond for a packet.
fn slow_reader() -> Receiver {
    Receiver::new(Config { reads: Duration::from_millis(1), ..config(SelectiveRepeat, StoreAggressive) }, Instant::ZERO).unwrap()
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn sreq_is_answered_at_once_and_dreq_when_what_had_come_has_been_read() {
    let mut receiver = slow_reader();
    for number in 0..3 {
        receiver.handle_forward(at(0), &data(number, Options::NONE, 0));
    }
    receiver.handle_forward(at(0), &data(3, Options::SREQ, 1));
    let state = receiver.poll_transmit(at(0)).unwrap();
    assert_eq!((state.dseq, state.rseq, state.alloc, state.echo), (0, 4 * FULL, WINDOW * FULL, 1), "nothing has been read");
    receiver.handle_forward(at(0), &data(4, Options::DREQ, 2));
    receiver.handle_forward(at(1), &data(5, Options::NONE, 2));
    for time in 1..5 {
        receiver.handle_timeout(at(time));
        assert_eq!(receiver.poll_transmit(at(time)), None, "{time} of 5 packets have been read");
    }
    receiver.handle_timeout(at(5));
    let state = receiver.poll_transmit(at(5)).unwrap();
    assert_eq!((state.dseq, state.rseq, state.alloc, state.echo), (5 * FULL, 6 * FULL, (5 + WINDOW) * FULL, 2), "6 came later");
}

#[test]
fn a_report_of_a_gap_does_not_answer_a_dreq_that_waits() {
    let mut receiver = slow_reader();
    receiver.handle_forward(at(0), &data(0, Options::DREQ, 1));
    receiver.handle_forward(at(0), &data(2, Options::NONE, 1));
    let state = receiver.poll_transmit(at(0)).unwrap();
    assert_eq!((state.echo, state.options), (0, Options::FASTNAK));
    receiver.handle_timeout(at(1));
    assert_eq!(receiver.poll_transmit(at(1)).map(|state| state.echo), Some(1));
}

#[test]
fn a_user_that_reads_slower_than_packets_come_sets_the_pace_whatever_is_asked() {
    for asks in [Question::Status, Question::Delivery] {
        for (sender, receiver) in pairs() {
            let reads = PACKET_TIME * 3;
            let link = run(&Config { asks, reads, ..config(sender, receiver) }, 400, lose(10, 0));
            assert!(link.now >= Instant::ZERO + reads * 400, "{asks:?} {sender} {receiver}");
            assert!(link.now <= Instant::ZERO + reads * 400 * 3, "{asks:?} {sender} {receiver}: {:?}", link.now);
        }
    }
}
