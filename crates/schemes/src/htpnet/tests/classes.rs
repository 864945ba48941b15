//! What the classes do, and how they change while data flow.

use super::link::{Fate, Link, packets};
use crate::htpnet::{Class, Config, Feedback, Forward};
use proptest::prelude::*;
use segstream_base::halves::{Reconfigure, ReconfigureError, Sender as _, SenderCounters, Verdict};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration, Instant};

fn class(number: u8) -> Class {
    Class::new(number).unwrap()
}

fn small(number: u8) -> Config {
    Config { packet_bytes: 114, class: class(number), segment_packets: 4, ..Config::default() }
}

fn millis(count: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(count)
}

fn full(config: &Config, count: usize) -> Vec<u64> {
    vec![u64::from(config.payload_bytes()) * 4; count]
}

#[test]
fn without_error_control_nothing_is_repeated_or_waited_for() {
    for number in 0..4 {
        let config = small(number);
        let mut link = Link::new(&config, full(&config, 50));
        // Packet 1 of segment 2, all of segments 4 and 5, the end of segment 49.
        link.fate_forward = Box::new(|_, packet| match packet {
            Forward::Data(data) if [9, 16, 17, 18, 19, 20, 21, 22, 23, 199].contains(&data.seq) => Fate::Lose,
            _ => Fate::Pass,
        });
        link.settle();
        assert_eq!(link.sender.counters(), SenderCounters { packets_sent: 200, packets_retransmitted: 0 });
        let mut holes: Vec<_> = link.delivered.iter().filter(|it| it.3 > 0).map(|it| (it.0, it.1, it.2, it.3)).collect();
        holes.sort_unstable_by_key(|it| it.0);
        let (tolerated, all) = (Verdict::WithinTolerance, 4);
        assert_eq!(holes, [(2, tolerated, all, 1), (4, tolerated, all, 4), (5, tolerated, all, 4), (49, tolerated, all, 1)]);
        assert_eq!((link.delivered.len(), link.judged.len(), link.ended), (50, 50, Some(50)));
        assert!(link.judged.iter().all(|it| it.1 == Verdict::Unknown), "nobody tells the sender what has arrived");
        let position = |segment| link.order().iter().position(|it| *it == segment).unwrap();
        assert!(position(3) < position(2), "segment 3 does not wait for segment 2");
    }
}

#[test]
fn flow_control_keeps_to_the_credit() {
    let config = Config { credit: 20, segment_packets: 1, ..small(6) };
    let mut link = Link::new(&config, packets(&config, 300));
    let mut lost = false;
    // One packet is lost: CREDIT counts from CAACK, not unacknowledged packets.
    link.fate_forward = Box::new(move |_, packet| match packet {
        Forward::Data(data) if data.seq == 30 && !lost => {
            lost = true;
            Fate::Lose
        }
        _ => Fate::Pass,
    });
    link.settle();
    assert_eq!(link.delivered.len(), 300);
    let mut acknowledged = 0u64;
    let mut at = 0;
    for (when, packet) in &link.sent {
        while let Some((_, Feedback::State(state))) =
            link.answered.get(at).filter(|(answered, _)| *answered + Duration::from_millis(10) <= *when)
        {
            acknowledged = u64::from(state.caack.wrapping_add(1));
            at += 1;
        }
        if let Forward::Data(data) = packet {
            assert!(u64::from(data.seq) < acknowledged + 20, "packet {} beyond the credit", data.seq);
        }
    }
}

#[test]
fn the_gap_spaces_packets_and_the_network_may_raise_it() {
    let config = Config { gap: Some(Duration::from_micros(250)), segment_packets: 1, ..small(5) };
    let mut link = Link::new(&config, packets(&config, 2000));
    link.fate_forward = Box::new(|at, packet| {
        if let Forward::State(state) = packet
            && (millis(100)..millis(300)).contains(&at)
        {
            state.raise_gap(Duration::from_micros(500));
        }
        Fate::Pass
    });
    link.settle();
    let in_100_ms = |from: u64| {
        let range = millis(from)..millis(from + 100);
        link.sent.iter().filter(|(at, packet)| range.contains(at) && matches!(packet, Forward::Data(_))).count() as i64
    };
    assert!((in_100_ms(0) - 400).abs() <= 2 && (in_100_ms(150) - 200).abs() <= 2 && (in_100_ms(350) - 400).abs() <= 2);
    assert_eq!(link.rates, 2, "up and down again");
}

#[test]
fn a_rate_is_adopted_at_once_and_says_what_it_cannot_be() {
    let config = Config { segment_packets: 1, ..small(5) };
    let mut link = Link::new(&config, packets(&config, 2000));
    link.run(millis(20));
    let rate = Bandwidth::from_bits_per_second(114 * 8 * 1000);
    assert_eq!(link.sender.reconfigure(link.now, Reconfigure::Rate(rate)), Ok(()));
    assert_eq!(link.sender.gap(), Duration::from_millis(1));
    link.run(millis(220));
    assert_eq!(link.sender.gap(), Duration::from_millis(1));
    let refuse = |link: &mut Link, change| link.sender.reconfigure(link.now, change);
    let out = Err(ReconfigureError::OutOfRange);
    assert_eq!(refuse(&mut link, Reconfigure::Rate(Bandwidth::ZERO)), out);
    assert_eq!(refuse(&mut link, Reconfigure::Rate(Bandwidth::from_bits_per_second(100))), out);
    assert_eq!(refuse(&mut link, Reconfigure::Class(8)), out);
    let mut link = Link::new(&small(4), []);
    assert_eq!(refuse(&mut link, Reconfigure::Rate(rate)), Err(ReconfigureError::Unsupported));
}

#[test]
fn a_class_changes_between_two_exchanges_after_the_receiver_has_granted_it() {
    let config = Config { segment_packets: 1, ..small(7) };
    let mut link = Link::new(&config, packets(&config, 3000));
    link.run(millis(52));
    assert_eq!(link.sender.reconfigure(link.now, Reconfigure::Class(1)), Ok(()));
    link.run(millis(74));
    assert_eq!(link.sender.class(), class(7), "asked for at 55 ms, granted at 75 ms");
    link.run(millis(81));
    assert_eq!(link.sender.class(), class(1), "from the exchange of 80 ms on");
    link.settle();
    assert_eq!(link.delivered.len(), 3000);
}

#[test]
fn a_receiver_does_not_grant_what_it_does_not_have() {
    let config = Config { segment_packets: 1, ..small(7) };
    let receiver = Config { class: class(5), ..config.clone() };
    let mut link =
        Link::between(&Config { connect: true, ..config.clone() }, &Config { connect: true, ..receiver }, packets(&config, 1000));
    link.run(millis(60));
    assert_eq!(link.sender.class(), class(5));
    assert_eq!(link.sender.reconfigure(link.now, Reconfigure::Class(6)), Ok(()));
    link.settle();
    assert_eq!(link.sender.class(), class(4));
    assert_eq!(link.delivered.len(), 1000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_class_may_change_at_any_time_under_any_loss(
        seed in any::<u64>(),
        loss in 0.0f64..0.4,
        changes in prop::collection::vec((1u64..200, 0u8..8), 1..8),
        offset in 0u16..3,
    ) {
        let config = Config { offset, gap: Some(Duration::from_micros(100)), ..small(5) };
        let mut link = Link::new(&config, full(&config, 400));
        let mut forward = Seed(seed).stream("forward");
        let mut back = Seed(seed).stream("back");
        link.fate_forward = Box::new(move |_, _| if forward.chance(loss) { Fate::Lose } else { Fate::Pass });
        link.fate_back = Box::new(move |_, _| if back.chance(loss) { Fate::Lose } else { Fate::Pass });
        for (wait_ms, number) in changes {
            link.run_for(Duration::from_millis(wait_ms));
            link.sender.reconfigure(link.now, Reconfigure::Class(number)).unwrap();
        }
        link.settle();
        let mut order = link.order();
        order.sort_unstable();
        prop_assert_eq!(order, (0..400).collect::<Vec<_>>());
        prop_assert_eq!((link.judged.len(), link.ended), (400, Some(400)));
        prop_assert_eq!(link.receiver.duplicates(), 0);
        for (segment, verdict, _) in &link.judged {
            let delivered = link.delivered.iter().find(|it| it.0 == *segment).unwrap();
            prop_assert!(*verdict == Verdict::Unknown || delivered.1 == Verdict::Complete, "segment {}", segment);
        }
    }

    #[test]
    fn error_control_that_is_switched_on_holds_for_all_that_is_sent_then(seed in any::<u64>(), loss in 0.0f64..0.3) {
        let config = Config { gap: Some(Duration::from_micros(500)), connect: true, ..small(1) };
        let mut link = Link::between(&config, &Config { class: class(5), ..config.clone() }, full(&config, 300));
        let mut forward = Seed(seed).stream("forward");
        link.fate_forward = Box::new(move |_, _| if forward.chance(loss) { Fate::Lose } else { Fate::Pass });
        link.run(millis(100));
        link.sender.reconfigure(link.now, Reconfigure::Class(5)).unwrap();
        while link.sender.class() != class(5) {
            link.run_for(Duration::from_millis(1));
            prop_assert!(link.now < millis(5_000));
        }
        // A transmitter repeats from the moment it asks, a receiver waits from the moment it is asked.
        link.run_for(Duration::from_millis(100));
        let begun = link.started.iter().copied().max().unwrap_or(0);
        link.settle();
        for (segment, verdict, _, holes, _) in &link.delivered {
            prop_assert!(*segment <= begun || (*verdict == Verdict::Complete && *holes == 0), "segment {}", segment);
        }
    }
}
