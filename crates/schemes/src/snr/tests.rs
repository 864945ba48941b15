//! SNR in virtual time: each test names the claim it proves.

mod bytes;
mod link;

use super::{Config, ConfigError, Feedback, Forward, Received, SenderState};
use link::{Clean, Link, Lose, data, ec, full, small};
use proptest::prelude::*;
use segstream_base::halves::{
    Receiver as _, Reconfigure, ReconfigureError, Segment, SegmentNumber, Sender as _, StreamId, SubmitError, Verdict,
};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration, Instant};

fn millis(count: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(count)
}

/// The first transmission of packet 7 of `blocks` is lost.
fn lose_once(blocks: &'static [u32]) -> impl FnMut(Instant, &Forward) -> bool {
    let mut lost = Vec::new();
    move |_, packet| match data(packet) {
        Some((block, 7)) if blocks.contains(&block) && !lost.contains(&block) => {
            lost.push(block);
            true
        }
        _ => false,
    }
}

/// Ten full segments on the small network; packet 7 of `blocks` and the receiver's states of `states_lost` are lost.
fn damaged(count_intervals: bool, blocks: &'static [u32], states_lost: std::ops::Range<u32>) -> Link<impl link::Losses> {
    let config = Config { count_intervals, ..small() };
    let bytes = full(&config);
    let mut link =
        Link::new(config, Lose(lose_once(blocks), move |_, state: &Feedback| states_lost.contains(&state.interval)), [bytes; 10]);
    link.settle();
    link
}

#[test]
fn one_lost_packet_repeats_its_whole_block() {
    let link = damaged(true, &[3], 0..0);
    assert_eq!(link.sender.counters().packets_retransmitted, 8);
    let repeated: Vec<_> = link.sent.iter().filter(|sent| sent.block == 3).map(|sent| sent.packet).collect();
    assert_eq!(repeated, (0..8).chain(0..8).collect::<Vec<_>>(), "all of block 3 leaves twice, in order");
    assert_eq!(link.sent.len(), 88, "and nothing else does");
    assert!(link.delivered.iter().all(|it| (it.1, it.2, it.3) == (Verdict::Complete, 8, 0)));
}

#[test]
fn a_block_is_repeated_by_the_first_state_that_could_have_shown_it() {
    let link = damaged(true, &[9], 0..0);
    let waited = link.pass(9, 1).unwrap().since(link.left(9));
    let period = link.config.status_period;
    assert!(waited > link.config.rtt && waited <= link.config.rtt + period, "{waited}");
}

#[test]
fn a_block_completes_from_the_union_of_its_transmissions() {
    // Packet 2 is lost the first time and packet 5 the second.
    let mut seen = 0;
    let lose = move |_, packet: &Forward| match data(packet) {
        Some((0, 0)) => {
            seen += 1;
            false
        }
        Some((0, index)) => (seen, index) == (1, 2) || (seen, index) == (2, 5),
        _ => false,
    };
    let mut link = Link::new(small(), Lose(lose, |_, _: &Feedback| false), [full(&small()); 2]);
    link.settle();
    assert_eq!(link.sender.counters().packets_retransmitted, 8, "one repetition is enough");
    assert_eq!(link.delivered.len(), 2);
}

#[test]
fn a_segment_is_delivered_when_it_is_accepted_even_before_its_predecessors() {
    let link = damaged(true, &[0], 0..0);
    let order: Vec<_> = link.delivered.iter().map(|it| it.0).collect();
    assert_eq!(order, [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
    assert_eq!(link.judged.last(), Some(&(0, Verdict::Complete)));
}

#[test]
fn repetitions_leave_before_new_data() {
    let mut link = Link::new(small(), Lose(lose_once(&[0]), |_, _: &Feedback| false), [full(&small()); 40]);
    link.settle();
    // The block that has begun is finished, and then the repetition comes although the window has room.
    let repeated_at = link.sent.iter().rposition(|sent| sent.block == 0 && sent.packet == 0).unwrap();
    let (before, after) = (link.sent[repeated_at - 1], link.sent[repeated_at + 8]);
    assert_eq!((before.packet, after.packet, after.block), (7, 0, before.block + 1));
    assert!(after.block < 16, "the window would have let the new block go first");
    assert!(link.left(0) + link.config.rtt + link.config.status_period + Duration::from_millis(8) > link.sent[repeated_at].at);
}

#[test]
fn statuses_need_no_data() {
    // A sender that has not finished and has nothing to send.
    let mut sender = super::Sender::new(small(), Instant::ZERO).unwrap();
    let mut receiver = super::Receiver::new(small(), Instant::ZERO).unwrap();
    let mut states = (0, 0);
    for at in (0..=1000).map(millis) {
        while let Some(packet) = sender.poll_transmit(at) {
            assert!(matches!(packet, Forward::State(SenderState { blocks: 0, end: false, .. })));
            states.0 += 1;
        }
        while let Some(packet) = receiver.poll_transmit(at) {
            assert_eq!(u64::from(packet.interval), at.as_nanos() / 5_000_000, "an interval is 5 ms");
            states.1 += 1;
        }
    }
    assert_eq!(states, (200, 200));
}

#[test]
fn a_late_driver_skips_states_and_the_interval_number_tells() {
    let mut receiver = super::Receiver::new(small(), Instant::ZERO).unwrap();
    assert_eq!(receiver.poll_transmit(millis(23)).map(|state| state.interval), Some(4));
    assert_eq!(receiver.poll_transmit(millis(24)), None);
    assert_eq!(receiver.poll_timeout().map(|deadline| deadline.at), Some(millis(25)));
}

#[test]
fn a_lost_status_slips_time_when_intervals_are_not_counted() {
    // Blocks 8 and 9 have left by 66 ms; the states of intervals 13 to 15 would arrive at 95 to 105 ms.
    let (clean, one, three) = (damaged(false, &[8, 9], 0..0), damaged(false, &[8, 9], 13..14), damaged(false, &[8, 9], 13..16));
    for block in [8, 9] {
        let at = |link: &Link<_>| link.pass(block, 1).unwrap();
        let at_three = three.pass(block, 1).unwrap();
        let (at_clean, at_one) = (at(&clean), one.pass(block, 1).unwrap());
        assert_eq!(at_one.since(at_clean), Duration::from_millis(5), "every waiting block slips by one period");
        assert_eq!(at_three.since(at_clean), Duration::from_millis(15), "and the slip adds up");
    }
}

#[test]
fn counting_intervals_prevents_time_slip() {
    let (clean, three) = (damaged(true, &[8, 9], 0..0), damaged(true, &[8, 9], 13..16));
    for block in [8, 9] {
        assert_eq!(three.pass(block, 1), clean.pass(block, 1));
    }
    // The very first states count as well.
    let (clean, none) = (damaged(true, &[0], 0..0), damaged(true, &[0], 0..8));
    assert_eq!(none.pass(0, 1), clean.pass(0, 1));
}

#[test]
fn a_block_that_leaves_after_lost_states_is_not_charged_for_them() {
    for count_intervals in [true, false] {
        for seed in 0..20 {
            let mut random = Seed(seed).stream("states");
            let config = Config { count_intervals, ..small() };
            let bytes = full(&config);
            let mut link = Link::new(config, Lose(|_, _: &Forward| false, move |_, _: &Feedback| random.chance(0.4)), vec![bytes; 200]);
            link.settle();
            assert_eq!(link.sender.counters().packets_retransmitted, 0, "no data was lost, seed {seed}");
        }
    }
}

#[test]
fn the_window_opens_only_from_the_cumulative_acknowledgment() {
    let mut first = true;
    let lose = move |_, packet: &Forward| data(packet) == Some((0, 0)) && core::mem::take(&mut first);
    // A window shorter than the round trip and the repetition.
    let config = Config { window: 6, ..small() };
    let mut link = Link::new(config, Lose(lose, |_, _: &Feedback| false), [full(&small()); 20]);
    link.settle();
    let repaired = link.delivered.iter().find(|it| it.0 == 0).unwrap().4;
    assert!(link.started[6] > repaired + link.config.rtt / 2, "block 6 waits for block 0 although 1 to 5 are accepted");
    assert_eq!(link.started[..6].iter().filter(|at| **at < millis(40)).count(), 6);
}

#[test]
fn submission_blocks_at_two_windows_and_the_window_opens_again() {
    let mut sender = super::Sender::new(small(), Instant::ZERO).unwrap();
    let segment = |bytes| Segment { stream: StreamId(0), bytes, source_time: Instant::ZERO, tolerance: None };
    for number in 0..32 {
        assert_eq!(sender.submit(Instant::ZERO, segment(Some(9))), Ok(SegmentNumber(number)));
    }
    assert_eq!(sender.submit(Instant::ZERO, segment(Some(9))), Err(SubmitError::Blocked));
    assert_eq!(sender.submit(Instant::ZERO, segment(Some(full(&small()) + 1))), Err(SubmitError::TooLong { units: 9, window: 8 }));
    assert_eq!(sender.submit(Instant::ZERO, segment(None)), Err(SubmitError::Finished), "no segment can be opened");
    assert_eq!(sender.append(Instant::ZERO, StreamId(0), 1, true), Err(SubmitError::Finished));
    sender.finish(Instant::ZERO);
    assert_eq!(sender.submit(Instant::ZERO, segment(Some(1))), Err(SubmitError::Finished));

    let mut link = Link::new(small(), Clean, [full(&small()); 100]);
    link.settle();
    assert_eq!((link.delivered.len(), link.judged.len(), link.ended), (100, 100, Some(100)));
    assert!(link.opened > 10);
}

#[test]
fn short_segments_keep_their_length() {
    let payload = u64::from(small().payload_bytes());
    let lengths = [full(&small()), 1, payload, payload + 1, 0, 3 * payload - 5];
    let mut link = Link::new(small(), Clean, lengths);
    link.settle();
    assert_eq!(link.delivered.iter().map(|it| it.2).collect::<Vec<_>>(), [8, 1, 1, 2, 1, 3]);
    assert_eq!(link.ended, Some(6));
}

#[test]
fn without_reliability_blocks_are_passed_up_as_they_are_and_nothing_is_repeated() {
    // Packet 1 of block 1, all of block 2, and the whole tail from packet 3 of block 5 on.
    let lose = |_, packet: &Forward| {
        data(packet).is_some_and(|(block, index)| (block, index) == (1, 1) || block == 2 || (block == 5 && index >= 3))
    };
    let config = Config { reliable: false, ..small() };
    let mut link = Link::new(config, Lose(lose, |_, _: &Feedback| false), [full(&small()); 6]);
    link.settle();
    assert_eq!(link.sender.counters(), segstream_base::halves::SenderCounters { packets_sent: 48, packets_retransmitted: 0 });
    let verdicts: Vec<_> = link.delivered.iter().map(|it| (it.0, it.1, it.3)).collect();
    let (whole, holes) = (Verdict::Complete, Verdict::WithinTolerance);
    assert_eq!(verdicts, [(0, whole, 0), (1, holes, 1), (2, holes, 8), (3, whole, 0), (4, whole, 0), (5, holes, 5)]);
    assert_eq!(link.ended, Some(6));
    assert!(link.judged.iter().all(|it| it.1 == Verdict::Unknown), "a state does not say what a block lacked");
}

#[test]
fn the_end_is_told_and_both_halves_come_to_rest() {
    let mut link = Link::new(small(), Clean, []);
    link.settle();
    assert_eq!(link.ended, Some(0), "an empty stream ends too");
    assert!(link.sender.poll_timeout().is_none() && link.receiver.poll_timeout().is_none());
    assert!(link.now < millis(400), "{}", link.now);
}

#[test]
fn a_receiver_at_rest_speaks_again_when_the_sender_does() {
    // Every state back is lost for a second, far longer than an ended receiver lingers.
    let mut link = Link::new(small(), Lose(|_, _: &Forward| false, |at, _: &Feedback| at < millis(1000)), [1, 1]);
    link.settle();
    assert_eq!((link.ended, link.judged.len()), (Some(2), 2));
}

#[test]
fn rate_changes_and_a_class_does_not_exist() {
    let mut sender = super::Sender::new(small(), Instant::ZERO).unwrap();
    let change = |sender: &mut super::Sender, to| sender.reconfigure(Instant::ZERO, to);
    assert_eq!(change(&mut sender, Reconfigure::Rate(Bandwidth::ZERO)), Err(ReconfigureError::OutOfRange));
    assert_eq!(change(&mut sender, Reconfigure::Class(7)), Err(ReconfigureError::Unsupported));
    assert_eq!(change(&mut sender, Reconfigure::Rate(Bandwidth::from_megabits_per_second(1))), Ok(()));
    assert!(sender.poll_event().is_some());
}

#[test]
fn impossible_configurations_are_refused() {
    let refused = |change: fn(&mut Config)| {
        let mut config = small();
        change(&mut config);
        config.check().unwrap_err()
    };
    assert_eq!(refused(|it| it.packet_bytes = 18), ConfigError::PacketBytes(18));
    assert_eq!(refused(|it| it.segment_packets = 1 << 16), ConfigError::SegmentPackets(1 << 16));
    assert_eq!(refused(|it| it.window = 513), ConfigError::Window(513));
    assert_eq!(refused(|it| it.status_period = Duration::ZERO), ConfigError::StatusPeriodZero);
    assert!(matches!(refused(|it| it.rate = segstream_blocks::RateSpec::smooth(Bandwidth::ZERO)), ConfigError::Rate(_)));
}

/// Efficiency and mean delay of `segments` full segments on EC's network with independent losses.
fn model(loss: f64, segments: usize) -> (f64, f64) {
    let mut random = Seed(1).stream("data");
    let lose = move |_, packet: &Forward| data(packet).is_some() && random.chance(loss);
    let mut link = Link::new(ec(), Lose(lose, |_, _: &Feedback| false), vec![full(&ec()); segments]);
    link.tracing = false;
    link.settle();
    assert_eq!(link.delivered.len(), segments);
    (link.efficiency(), link.mean_delay_ms())
}

#[test]
fn block_repetition_costs_what_the_light_model_says() {
    let (efficiency, delay_ms) = model(1e-3, 4000);
    assert!((efficiency - 0.815).abs() < 0.012 && (delay_ms - 50.2).abs() < 1.5, "{efficiency} {delay_ms}");
    let (efficiency, _) = model(1e-2, 2000);
    assert!((efficiency - 0.513).abs() < 0.012, "{efficiency}");
    let (efficiency, _) = model(1e-5, 2000);
    assert!(efficiency > 0.99, "{efficiency}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_finite_loss_of_data_and_states_ends_in_full_delivery(
        seed in any::<u64>(),
        loss in 0.0f64..1.0,
        quiet_after in 0u64..4000,
        lengths in prop::collection::vec(0u64..8000, 0..60),
        count_intervals in any::<bool>(),
        reliable in any::<bool>(),
        window in 1u32..20,
    ) {
        let mut forward = Seed(seed).stream("forward");
        let mut back = Seed(seed).stream("back");
        let lossy = move |at: Instant| at < millis(quiet_after);
        let lose = Lose(
            move |at, _: &Forward| lossy(at) && forward.chance(loss),
            move |at, _: &Feedback| lossy(at) && back.chance(loss),
        );
        let mut link = Link::new(Config { count_intervals, reliable, window, ..small() }, lose, lengths.iter().copied());
        link.settle();
        let count = lengths.len();
        prop_assert_eq!(link.ended, Some(count as u64));
        let mut delivered: Vec<_> = link.delivered.iter().map(|it| it.0).collect();
        delivered.sort_unstable();
        prop_assert_eq!(delivered, (0..count as u64).collect::<Vec<_>>(), "each segment is delivered, once");
        prop_assert_eq!((link.judged.len(), link.started.len()), (count, count));
        if reliable {
            for (segment, verdict, units, holes, _) in &link.delivered {
                let packets = lengths[*segment as usize].div_ceil(u64::from(small().payload_bytes())).max(1);
                prop_assert_eq!((*verdict, u64::from(*units), *holes), (Verdict::Complete, packets, 0));
            }
        }
    }

    #[test]
    fn nothing_a_peer_says_makes_a_half_panic_or_lose_what_it_has(
        forward in prop::collection::vec((0u32..40, 0u16..12, 0u16..12, any::<bool>()), 0..200),
        states in prop::collection::vec((any::<u32>(), 0u32..40, any::<bool>(), 0u16..600), 0..60),
        reliable in any::<bool>(),
    ) {
        let config = Config { reliable, ..small() };
        let mut link = Link::new(config.clone(), Clean, [full(&config); 30]);
        link.run(millis(50));
        for (block, packet, packets, is_state) in forward {
            let packet = if is_state {
                Forward::State(SenderState { connection: 7, interval: 0, blocks: block, sent: packet, packets, end: block % 2 == 0 })
            } else {
                Forward::Data { connection: 7, block, packet, packets, stride: 1006, bytes: 1006 }
            };
            link.receiver.handle_forward(link.now, &packet);
        }
        for (interval, cumulative, ended, marked) in states {
            let mut received = Received::new(512);
            received.mark(marked);
            link.sender.handle_feedback(link.now, &Feedback { connection: 7, interval, cumulative, ended, received });
        }
        link.run(millis(3000));
        let mut delivered: Vec<_> = link.delivered.iter().map(|it| it.0).collect();
        delivered.sort_unstable();
        let count = delivered.len();
        delivered.dedup();
        prop_assert_eq!(delivered.len(), count, "no segment is delivered twice");
    }
}
