//! The queue as its users see it: CoDel, marks, the policer and traces of the bandwidth, on a whole path.

use proptest::prelude::*;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_path::{Aqm, Fate, Passage, Path, PathConfig, PathCounters, Probability, QueueLimit, RateTrace};
use std::collections::VecDeque;

const PACKET: Bytes = Bytes::new(1000);

/// 8 Mbit/s: a packet of 1000 bytes takes exactly 1 ms.
fn one_packet_a_millisecond() -> PathConfig {
    PathConfig { bandwidth: Some(Bandwidth::from_megabits_per_second(8)), queue: QueueLimit::UNLIMITED, ..PathConfig::default() }
}

fn path(config: &PathConfig) -> Path {
    Path::new(config, Seed(11), "forward").unwrap()
}

fn at_micros(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

fn assert_conserved(counters: PathCounters) {
    let PathCounters { sent, delivered, duplicated, lost, dropped_queue, dropped_aqm, dropped_policer, marked, .. } = counters;
    assert_eq!(sent, delivered - duplicated + lost + dropped_queue + dropped_aqm + dropped_policer, "{counters:?}");
    assert!(marked <= delivered - duplicated, "{counters:?}");
}

/// Packets every 0.8 ms for a link that takes 1 ms. Which were not simply delivered, and at what millisecond the link took
/// them.
fn overload(config: &PathConfig, send: impl Fn(&mut Path, Instant) -> Passage) -> (Vec<(u64, u64)>, PathCounters) {
    let mut path = path(config);
    let mut touched = Vec::new();
    for n in 0..700 {
        let now = at_micros(n * 800);
        let passage = send(&mut path, now);
        if passage.fate == Fate::Dropped || passage.marked {
            touched.push((n, (now + passage.queued).as_nanos() / 1_000_000));
        }
    }
    assert_conserved(path.counters());
    (touched, path.counters())
}

/// The wait grows by 0.2 ms a packet and reaches 5 ms with packet 25 at 25 ms, so the first drop is at 125 ms, the second
/// 100 ms later, then 100 ms / sqrt(n): due at 295.711, 353.446, 403.446, 448.167, 488.992, 526.788, 562.144, 595.477, 627.100,
/// 657.251 and 686.118 ms, each done at the next whole millisecond, when the link is free.
const DROPS_MILLIS: [u64; 13] = [125, 225, 296, 354, 404, 449, 489, 527, 563, 596, 628, 658, 687];

#[test]
fn codel_drops_an_unresponsive_overload_by_the_control_law() {
    let config = PathConfig { aqm: Aqm::CODEL, ..one_packet_a_millisecond() };
    let (drops, counters) = overload(&config, |path, now| path.send(now, PACKET));
    // By millisecond t the link has taken t packets and the drops before.
    let expected: Vec<(u64, u64)> = (0..).zip(DROPS_MILLIS).map(|(before, millis)| (millis + before, millis)).collect();
    assert_eq!(drops, expected);
    assert_eq!((counters.dropped_aqm, counters.marked), (13, 0));
}

#[test]
fn codel_marks_where_it_would_drop_and_loses_nothing() {
    let config = PathConfig { aqm: Aqm::CODEL, ..one_packet_a_millisecond() };
    let (marks, counters) = overload(&config, |path, now| path.send_markable(now, PACKET));
    assert_eq!(marks, DROPS_MILLIS.map(|millis| (millis, millis)));
    assert_eq!((counters.dropped_aqm, counters.marked, counters.delivered), (0, 13, 700));
}

#[test]
fn markable_packets_that_wait_too_long_are_marked_and_others_are_not() {
    let config = PathConfig { mark_above: Some(Duration::from_millis(3)), ..one_packet_a_millisecond() };
    let mut path = path(&config);
    for n in 0..100 {
        // Packet n waits 0.2 n ms.
        let sent = at_micros(n * 800);
        let passage = if n % 2 == 0 { path.send_markable(sent, PACKET) } else { path.send(sent, PACKET) };
        assert_eq!(passage.queued, Duration::from_micros(n * 200));
        assert_eq!(passage.marked, n > 15 && n % 2 == 0, "{n}");
        assert!(matches!(passage.fate, Fate::Delivered { .. }));
    }
    assert_eq!(path.counters().marked, 42);
}

#[test]
fn a_packet_that_codel_drops_takes_its_room_until_then_and_no_time() {
    let config = PathConfig { aqm: Aqm::CODEL, queue: QueueLimit::Packets(130), ..one_packet_a_millisecond() };
    let mut path = path(&config);
    let fates: Vec<Fate> = (0..200).map(|_| path.send(Instant::ZERO, PACKET).fate).collect();
    // At the start one is on the link and 130 wait. The wait is 5 ms with packet 5, so the packet at 105 ms is dropped.
    let waiting = |path: &mut Path, millis: u64| path.waiting_bytes(at_micros(millis * 1000)).get() / 1000;
    assert_eq!(fates.iter().filter(|fate| **fate == Fate::Dropped).count() as u64, 69 + path.counters().dropped_aqm);
    assert_eq!((fates[105], fates[106]), (Fate::Dropped, Fate::Delivered { at: at_micros(106_000) }));
    assert_eq!([0, 104, 105].map(|millis| waiting(&mut path, millis)), [130, 26, 24]);
}

#[test]
fn a_policer_passes_its_rate_and_its_burst_and_delays_nothing() {
    let config = PathConfig { policer: Some("4mbit,5000B".parse().unwrap()), delay: Duration::from_millis(7), ..PathConfig::default() };
    let mut path = path(&config);
    for n in 0..10_001 {
        let now = at_micros(n * 1000);
        if let Fate::Delivered { at } = path.send_markable(now, PACKET).fate {
            assert_eq!(at, now + Duration::from_millis(7));
        }
    }
    // Five packets of burst, and half of one each millisecond of ten seconds.
    let counters = path.counters();
    assert_conserved(counters);
    assert_eq!((counters.delivered, counters.dropped_policer, counters.marked), (5 + 5_000, 10_001 - 5_005, 0));
}

#[test]
fn a_busy_link_sends_the_integral_of_its_trace_in_every_interval() {
    let trace: RateTrace = "0s:10mbit,5s:5mbit,8s:10mbit,9s:0bit,10s:333333333bit,repeat=11s".parse().unwrap();
    let mut path = path(&PathConfig { trace: trace.clone(), queue: QueueLimit::UNLIMITED, ..PathConfig::default() });
    let departures: Vec<Instant> = (0..100_000)
        .map(|_| match path.send(Instant::ZERO, PACKET).fate {
            Fate::Delivered { at } => at,
            Fate::Lost | Fate::Dropped => panic!("nothing is dropped"),
        })
        .collect();
    assert!(departures.last().is_some_and(|last| *last > Instant::ZERO + Duration::from_secs(15)));
    let mut random = Seed(14).stream("intervals");
    for _ in 0..2000 {
        let [one, other] = [0; 2].map(|_| Instant::from_nanos(random.below(15_000_000_000)));
        let (from, to) = (one.min(other), one.max(other));
        let whole = departures.iter().filter(|left| **left > from && **left <= to).count() as u64 * 1000;
        // A packet that is on the link at either end is not whole.
        assert!(whole.abs_diff(trace.bytes_between(from, to).get()) <= 1000, "{from} to {to}");
    }
}

#[test]
fn codel_keeps_the_wait_of_a_responsive_source_near_its_target_and_the_link_busy() {
    let deep = PathConfig { queue: QueueLimit::Bytes(Bytes::new(600_000)), delay: Duration::from_millis(40), ..one_packet_a_millisecond() };
    let managed = PathConfig { aqm: Aqm::CODEL, ..deep.clone() };
    // Why three quarters: half a window right after a drop leaves half the link idle when hardly anything waits.
    let cases = [(&deep, false, 100.0..600.0, 0.99), (&managed, false, 1.0..7.5, 0.75), (&managed, true, 1.0..7.5, 0.75)];
    for (config, markable, wait, share) in cases {
        let (mean_wait, delivered) = additive_increase(config, markable);
        assert!(wait.contains(&mean_wait), "{} markable {markable}: {mean_wait} ms", config.aqm);
        assert!(delivered > share * 60_000.0, "{} markable {markable}: {delivered}", config.aqm);
    }
}

/// A source that adds a packet to its window each round trip and halves it when one is missing or marked, for 60 s behind
/// the first 20 s. Returns the mean wait in milliseconds and the packets delivered.
fn additive_increase(config: &PathConfig, markable: bool) -> (f64, f64) {
    let mut path = path(config);
    let mut in_flight: VecDeque<(Instant, bool)> = VecDeque::new();
    let (mut window, mut now, mut calm_at) = (10.0_f64, Instant::ZERO, Instant::ZERO);
    let (mut waited, mut delivered, mut last_told) = (0.0, 0.0, Instant::ZERO);
    while now < at_micros(80_000_000) {
        while (in_flight.len() as f64) < window {
            let passage = if markable { path.send_markable(now, PACKET) } else { path.send(now, PACKET) };
            // A missing packet is noticed when the next one is told of.
            let (told, alarm) = match passage.fate {
                Fate::Delivered { at } => (at + config.delay, passage.marked),
                Fate::Lost | Fate::Dropped => (last_told.max(now + config.delay * 2), true),
            };
            last_told = told;
            in_flight.push_back((told, alarm));
            if !alarm && now > at_micros(20_000_000) {
                waited += passage.queued.as_millis_f64();
                delivered += 1.0;
            }
        }
        let Some((told, alarm)) = in_flight.pop_front() else { break };
        now = now.max(told);
        if !alarm {
            window += 1.0 / window;
        } else if now >= calm_at {
            window = (window / 2.0).max(2.0);
            calm_at = now + config.delay * 2;
        }
    }
    assert_conserved(path.counters());
    (waited / delivered, delivered)
}

/// Everything a queue can have.
fn everything() -> PathConfig {
    PathConfig {
        trace: "0s:8mbit,20ms:0bit,30ms:16mbit,60ms:4mbit,repeat=90ms".parse().unwrap(),
        aqm: Aqm::CoDel { target: Duration::from_millis(3), interval: Duration::from_millis(10) },
        mark_above: Some(Duration::from_millis(2)),
        policer: Some("12mbit,20kB".parse().unwrap()),
        queue: QueueLimit::Packets(30),
        delay: Duration::from_millis(5),
        jitter: Duration::from_millis(1).into(),
        loss: "gilbert:rate=2%,burst=3".parse().unwrap(),
        duplicate: Probability::new(0.02).unwrap(),
        reorder: "1%:distance=5".parse().unwrap(),
        ..PathConfig::default()
    }
}

/// A link, its queue and CoDel as RFC 8289 5 writes them: packets are dequeued one by one when the link is free, with one
/// change: the target instead of the bytes that are left in the queue.
#[derive(Default)]
struct Reference {
    queue: VecDeque<(usize, Instant)>,
    target: Duration,
    interval: Duration,
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u64,
    lastcount: u64,
    dropping: bool,
    dropped: Vec<(usize, Instant)>,
}

impl Reference {
    fn dodeque(&mut self, now: Instant) -> (Option<(usize, Instant)>, bool) {
        let Some(packet) = self.queue.pop_front() else {
            self.first_above_time = None;
            return (None, false);
        };
        if now.since(packet.1) < self.target {
            self.first_above_time = None;
            return (Some(packet), false);
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + self.interval);
                (Some(packet), false)
            }
            Some(above) => (Some(packet), now >= above),
        }
    }

    fn control_law(&self, t: Instant) -> Instant {
        t + Duration::from_nanos((self.interval.as_nanos() as f64 / (self.count as f64).sqrt()).round() as u64)
    }

    fn drop_packet(&mut self, packet: Option<(usize, Instant)>, now: Instant) {
        self.dropped.extend(packet.map(|(number, _)| (number, now)));
    }

    fn deque(&mut self, now: Instant) -> Option<(usize, Instant)> {
        let (mut packet, mut ok_to_drop) = self.dodeque(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.drop_packet(packet, now);
                self.count += 1;
                (packet, ok_to_drop) = self.dodeque(now);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            self.drop_packet(packet, now);
            (packet, _) = self.dodeque(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = if delta > 1 && now.since(self.drop_next) < self.interval * 16 { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
        }
        packet
    }

    /// Runs the packets, each of which takes `service`; returns which were sent and when they left.
    fn run(&mut self, arrivals: &[Instant], service: Duration) -> Vec<(usize, Instant)> {
        let mut sent = Vec::new();
        let mut coming = arrivals.iter().copied().enumerate().peekable();
        let mut free_at = Instant::ZERO;
        loop {
            while let Some(packet) = coming.next_if(|(_, at)| *at <= free_at) {
                self.queue.push_back(packet);
            }
            match self.deque(free_at) {
                Some((number, _)) => {
                    free_at += service;
                    sent.push((number, free_at));
                }
                // Idle until the next packet arrives.
                None => match coming.peek() {
                    Some((_, at)) => free_at = free_at.max(*at),
                    None if self.queue.is_empty() => return sent,
                    None => {}
                },
            }
        }
    }
}

proptest! {
    #[test]
    fn deciding_at_arrival_is_deciding_at_dequeue(
        seed in any::<u64>(),
        target in 1u64..20,
        interval in 20u64..120,
        load in 50u64..400,
    ) {
        // Loads that come and go, of bursts and single packets, until both have been in and out of the dropping state.
        let mut random = Seed(seed).stream("arrivals");
        let mut now = Instant::ZERO;
        let mut arrivals: Vec<Instant> = Vec::new();
        for phase in 0..20u64 {
            let gap_nanos = if phase % 3 == 2 { 2_000_000 } else { 1_000_000 * 100 / load };
            for _ in 0..random.below(400) {
                now += random.exponential(Duration::from_nanos(gap_nanos));
                arrivals.extend(std::iter::repeat_n(now, 1 + random.below(3) as usize * usize::from(phase % 4 == 1)));
            }
        }
        let (target, interval) = (Duration::from_millis(target), Duration::from_millis(interval));
        let mut reference = Reference { target: target.max(Duration::from_micros(1500)), interval, ..Reference::default() };
        let sent = reference.run(&arrivals, Duration::from_millis(1));

        let mut path = path(&PathConfig { aqm: Aqm::CoDel { target, interval }, ..one_packet_a_millisecond() });
        let (mut passed, mut dropped) = (Vec::new(), Vec::new());
        for (number, now) in arrivals.into_iter().enumerate() {
            let passage = path.send(now, PACKET);
            match passage.fate {
                Fate::Delivered { at } => passed.push((number, at)),
                Fate::Lost | Fate::Dropped => dropped.push((number, now + passage.queued)),
            }
        }
        prop_assert_eq!(dropped, reference.dropped);
        prop_assert_eq!(passed, sent);
    }

    #[test]
    fn every_packet_is_accounted_for_and_only_markable_ones_are_marked(
        seed in any::<u64>(),
        packets in proptest::collection::vec((0u64..1_500_000, 0u64..2000, any::<bool>()), 1..600),
    ) {
        let config = everything();
        let run = || {
            let mut path = Path::new(&config, Seed(seed), "forward").unwrap();
            let mut now = Instant::ZERO;
            let send = |(gap, bytes, markable): &(u64, u64, bool)| {
                now += Duration::from_nanos(*gap);
                let passage = if *markable { path.send_markable(now, Bytes::new(*bytes)) } else { path.send(now, Bytes::new(*bytes)) };
                (now, passage)
            };
            let passages: Vec<(Instant, Passage)> = packets.iter().map(send).collect();
            (passages, path.counters())
        };
        let (passages, counters) = run();
        assert_conserved(counters);
        prop_assert_eq!(counters.marked, passages.iter().filter(|(_, passage)| passage.marked).count() as u64);
        for ((now, passage), (_, _, markable)) in passages.iter().zip(&packets) {
            prop_assert!(!passage.marked || *markable);
            if let Fate::Delivered { at } = passage.fate {
                prop_assert!(at >= *now + passage.queued + config.delay);
                prop_assert!(!markable || passage.marked || passage.queued <= Duration::from_millis(2));
            }
        }
        prop_assert_eq!(run(), (passages, counters));
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC{0,40}", kind in 0usize..6) {
        let text = ["", "codel:target=", "0s:10mbit,", "0s:10mbit,repeat=", "10mbit,", "1s:"][kind].to_owned() + &text;
        let _ = text.parse::<Aqm>();
        let _ = text.parse::<RateTrace>();
        let _ = text.parse::<segstream_path::Policer>();
    }
}
