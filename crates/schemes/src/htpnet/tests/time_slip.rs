//! HTPNET beside SNR: what a lost state and a longer way do to each (HT 4).

use super::link::{Fate, Link, packets};
use crate::htpnet::{Config, Feedback, Forward, SyncPeriod};
use crate::snr;
use segstream_base::halves::{Receiver as _, Segment, Sender as _, StreamId};
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_blocks::RateSpec;
use std::collections::VecDeque;

/// Both at a round trip of 60 ms, a state each 5 ms, and a packet a millisecond.
const HALF: Duration = Duration::from_millis(30);
const PERIOD: Duration = Duration::from_millis(5);

/// When HTPNET sends packets 40 and 44 again, which are lost, with the states back of `states` lost too.
fn htpnet(states: std::ops::Range<u16>) -> Vec<Instant> {
    let gap = Some(Duration::from_millis(1));
    let config = Config { packet_bytes: 114, gap, sync_period: SyncPeriod::Fixed(PERIOD), ..Config::default() };
    let mut link = Link::new(&config, packets(&config, 300));
    link.delay = Box::new(|| HALF);
    let mut lost = vec![40, 44];
    link.fate_forward = Box::new(move |_, packet| match packet {
        Forward::Data(data) if lost.contains(&data.seq) => {
            lost.retain(|seq| *seq != data.seq);
            Fate::Lose
        }
        _ => Fate::Pass,
    });
    link.fate_back = Box::new(move |_, packet| match packet {
        Feedback::State(state) if states.contains(&state.esync) => Fate::Lose,
        _ => Fate::Pass,
    });
    link.settle();
    assert_eq!((link.repeated(), link.receiver.duplicates()), (2, 0));
    let of = |seq| link.sent.iter().filter(move |(_, packet)| matches!(packet, Forward::Data(data) if data.seq == seq)).nth(1).unwrap().0;
    [40, 44].map(of).to_vec()
}

/// When SNR sends blocks 8 and 9 of five packets again, each of which has lost one, with the states back of `states` lost too.
fn snr(states: std::ops::Range<u32>) -> Vec<Instant> {
    let config = snr::Config {
        connection: 1,
        packet_bytes: 118,
        segment_packets: 5,
        window: 60,
        rate: RateSpec::smooth(Bandwidth::from_bits_per_second(118 * 8 * 1000)),
        rtt: HALF * 2,
        status_period: PERIOD,
        reliable: true,
        count_intervals: false,
    };
    let mut sender = snr::Sender::new(config.clone(), Instant::ZERO).unwrap();
    let mut receiver = snr::Receiver::new(config, Instant::ZERO).unwrap();
    for _ in 0..60 {
        let segment = Segment { stream: StreamId(0), bytes: Some(500), source_time: Instant::ZERO, tolerance: None };
        sender.submit(Instant::ZERO, segment).unwrap();
    }
    let (mut forward, mut back) = (VecDeque::new(), VecDeque::new());
    let mut begun = [Vec::new(), Vec::new()];
    for now in (0..4000).map(|step| Instant::ZERO + Duration::from_micros(100) * step) {
        while let Some(packet) = pop_due(&mut forward, now) {
            receiver.handle_forward(now, &packet);
        }
        while let Some(packet) = pop_due(&mut back, now) {
            sender.handle_feedback(now, &packet);
        }
        while let Some(packet) = sender.poll_transmit(now) {
            if let snr::Forward::Data { block: block @ (8 | 9), packet: 0, .. } = packet {
                begun[block as usize - 8].push(now);
                if begun[block as usize - 8].len() == 1 {
                    continue;
                }
            }
            forward.push_back((now + HALF, packet));
        }
        while let Some(packet) = receiver.poll_transmit(now) {
            if !states.contains(&packet.interval) {
                back.push_back((now + HALF, packet));
            }
        }
    }
    begun.map(|times| times[1]).to_vec()
}

fn pop_due<P>(queue: &mut VecDeque<(Instant, P)>, now: Instant) -> Option<P> {
    if queue.front().is_some_and(|(at, _)| *at <= now) { queue.pop_front().map(|(_, packet)| packet) } else { None }
}

/// By how much each of `late` comes after its counterpart.
fn slips(clean: &[Instant], late: &[Instant]) -> Vec<Duration> {
    clean.iter().zip(late).map(|(clean, late)| late.since(*clean)).collect()
}

#[test]
fn a_lost_state_delays_all_of_snr_each_time_and_htpnet_not_at_all() {
    let (snr_clean, htpnet_clean) = (snr(0..0), htpnet(0..0));
    for lost in 1..4u16 {
        // States in the middle of the round trip after the loss, when the blocks wait.
        let slipped = slips(&snr_clean, &snr(15..15 + u32::from(lost)));
        assert!(slipped.iter().all(|slip| *slip + Duration::from_millis(2) >= PERIOD * u64::from(lost)), "{lost}: {slipped:?}");
        assert_eq!(slips(&htpnet_clean, &htpnet(3..3 + lost)), [Duration::ZERO; 2], "a later state covers a lost one");
    }
    // The one state that would have told of the loss: the next one does, one period later, and so for any number of them.
    assert_eq!(slips(&htpnet_clean, &htpnet(8..9)), [PERIOD; 2]);
}

#[test]
fn a_longer_way_does_not_make_htpnet_repeat_anything() {
    // The way becomes five times as long, from one packet to the next.
    let gap = Some(Duration::from_millis(1));
    let config = Config { packet_bytes: 114, gap, sync_period: SyncPeriod::Fixed(PERIOD), ..Config::default() };
    let mut link = Link::new(&config, packets(&config, 1000));
    let mut carried = 0;
    link.delay = Box::new(move || {
        carried += 1;
        if carried > 300 { HALF * 5 } else { HALF }
    });
    link.settle();
    assert_eq!((link.delivered.len(), link.repeated(), link.receiver.duplicates()), (1000, 0, 0));
}
