//! Both ends in virtual time: whatever is lost, everything ends, and what arrives is what was sent.

use crate::stop_and_wait::{Forward, StopAndWaitReceiver, StopAndWaitSender};
use proptest::prelude::*;
use segstream_base::codec::Writer;
use segstream_base::endpoint::{Arrival, Endpoint, Local};
use segstream_base::halves::{Packet as _, SegmentNumber, Sender as _, SubmitError, Verdict};
use segstream_base::{Duration, Instant};
use segstream_net::adapter::{
    AdapterError, AdapterHeader, Delivery, Failure, Kind, PARAMETERS_BYTES_MAX, ReceivingConfig, ReceivingEndpoint, SendingEndpoint,
    SendingEvent, StoreLimits, Timing,
};
use std::collections::VecDeque;
use std::net::SocketAddr;

const DELAY: Duration = Duration::from_millis(10);
const PARAMETERS: &str = "stop-and-wait unit_bytes=100";

type Builder = fn(&str) -> Result<StopAndWaitReceiver, String>;

fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn build(parameters: &str) -> Result<StopAndWaitReceiver, String> {
    if parameters == PARAMETERS { Ok(StopAndWaitReceiver::default()) } else { Err(format!("{parameters} is not stop-and-wait")) }
}

fn sender_of(tries: u32) -> SendingEndpoint<StopAndWaitSender> {
    let half = StopAndWaitSender::new(100, tries, Duration::from_millis(50));
    SendingEndpoint::new(Instant::ZERO, half, address(2), 77, PARAMETERS, Timing::default()).unwrap()
}

fn receiver_of(config: ReceivingConfig) -> ReceivingEndpoint<StopAndWaitReceiver, Builder> {
    ReceivingEndpoint::new(build, config)
}

fn segment(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (number * 31 + at * 7 + 1) as u8).collect()
}

type Loss = Box<dyn Fn(usize, &[u8]) -> bool>;

/// A path of fixed delay that loses the datagrams `lost` says by their number in its direction.
struct Direction {
    under_way: VecDeque<(Instant, Vec<u8>)>,
    sent: usize,
    lost: Loss,
}

impl Direction {
    fn new(lost: impl Fn(usize, &[u8]) -> bool + 'static) -> Self {
        Self { under_way: VecDeque::new(), sent: 0, lost: Box::new(lost) }
    }

    fn drain(&mut self, now: Instant, from: &mut impl Endpoint) {
        loop {
            let mut out = Vec::new();
            let Some(transmit) = from.poll_transmit(now, 10, &mut out) else { break };
            for datagram in out.chunks(transmit.datagram_bytes) {
                if !(self.lost)(self.sent, datagram) {
                    self.under_way.push_back((now + DELAY, datagram.to_vec()));
                }
                self.sent += 1;
            }
        }
    }

    fn deliver(&mut self, now: Instant, to: &mut impl Endpoint, from: SocketAddr) {
        while self.under_way.front().is_some_and(|(at, _)| *at <= now) {
            let (_, mut datagram) = self.under_way.pop_front().unwrap();
            to.handle_datagram(now, Arrival { from, to: Local::ANY, ecn: None, received: now }, &mut datagram);
        }
    }
}

/// A sender, a receiver and the paths between them.
struct World {
    now: Instant,
    sender: SendingEndpoint<StopAndWaitSender>,
    receiver: ReceivingEndpoint<StopAndWaitReceiver, Builder>,
    forward: Direction,
    back: Direction,
    /// Segments not handed over yet.
    backlog: VecDeque<Vec<u8>>,
    /// The last so many of them come at a certain time only.
    pause: Option<(usize, Instant)>,
    deliveries: Vec<Delivery>,
    verdicts: Vec<(u64, Verdict)>,
}

impl World {
    fn new(tries: u32, forward: Direction, back: Direction) -> Self {
        Self {
            now: Instant::ZERO,
            sender: sender_of(tries),
            receiver: receiver_of(ReceivingConfig::default()),
            forward,
            back,
            backlog: VecDeque::new(),
            pause: None,
            deliveries: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    fn with_segments(mut self, lengths: &[usize]) -> Self {
        self.backlog = lengths.iter().enumerate().map(|(number, bytes)| segment(number, *bytes)).collect();
        self
    }

    fn feed(&mut self) {
        self.pause = self.pause.filter(|(_, until)| *until > self.now);
        while self.pause.is_none_or(|(left, _)| self.backlog.len() > left)
            && let Some(bytes) = self.backlog.pop_front()
        {
            match self.sender.submit(self.now, bytes, None) {
                Ok(_) => {}
                Err(refused) => {
                    if refused.cause == SubmitError::Blocked {
                        self.backlog.push_front(refused.bytes);
                    }
                    return;
                }
            }
        }
        if self.backlog.is_empty() {
            self.sender.finish(self.now);
        }
    }

    fn is_over(&self) -> bool {
        self.sender.has_ended() && (self.receiver.has_ended() || !self.receiver.is_connected())
    }

    /// Runs until both ends have ended or nothing can happen any more; fails after ten minutes.
    fn run(&mut self, mut each: impl FnMut(&mut Self)) {
        loop {
            self.forward.deliver(self.now, &mut self.receiver, address(1));
            self.back.deliver(self.now, &mut self.sender, address(2));
            self.sender.handle_timeout(self.now);
            self.receiver.handle_timeout(self.now);
            self.feed();
            each(self);
            self.forward.drain(self.now, &mut self.sender);
            self.back.drain(self.now, &mut self.receiver);
            self.deliveries.extend(std::iter::from_fn(|| self.receiver.poll_delivery()));
            while let Some(event) = self.sender.poll_event() {
                if let SendingEvent::Judged { segment, verdict, .. } = event {
                    self.verdicts.push((segment.0, verdict));
                }
            }
            let arrivals = [&self.forward, &self.back].into_iter().filter_map(|path| path.under_way.front().map(|(at, _)| *at));
            let deadlines = [self.sender.poll_deadline(), self.receiver.poll_deadline()].into_iter().flatten().map(|deadline| deadline.at);
            let Some(next) = arrivals.chain(deadlines).chain(self.pause.map(|(_, until)| until)).min() else { return };
            if self.is_over() {
                return;
            }
            assert!(next < Instant::ZERO + Duration::from_secs(600), "it does not end");
            self.now = self.now.max(next);
        }
    }
}

fn lose(numbers: &'static [usize]) -> Direction {
    Direction::new(|number, _| numbers.contains(&number))
}

/// Loses every datagram of one kind.
fn lose_kind(kind: Kind) -> Direction {
    Direction::new(move |_, datagram| AdapterHeader::decode(datagram).unwrap().0.kind == kind)
}

#[test]
fn what_arrives_is_what_was_sent_and_every_segment_is_judged_once() {
    let lengths = [250, 100, 1, 999, 300, 300, 301];
    let mut world = World::new(u32::MAX, lose(&[3, 4, 9]), lose(&[2, 7])).with_segments(&lengths);
    world.run(|_| {});
    assert_eq!(world.verdicts, (0..7).map(|number| (number, Verdict::Complete)).collect::<Vec<_>>());
    for (number, delivery) in world.deliveries.iter().enumerate() {
        assert_eq!((delivery.segment, delivery.length), (SegmentNumber(number as u64), lengths[number] as u64));
        assert_eq!(delivery.clone().zero_filled(), segment(number, lengths[number]));
        assert!(delivery.missing.is_empty());
    }
    assert_eq!(world.deliveries.len(), 7);
    assert!(world.sender.is_confirmed() && world.sender.failure().is_none() && world.receiver.failure().is_none());
    assert_eq!(world.sender.rtt_min(), Some(DELAY * 2));
    let counters = world.sender.counters();
    let (units, ends) = (3 + 1 + 1 + 10 + 3 + 3 + 4, 7);
    assert_eq!(counters.datagrams_sent, units + ends + 5 + 2, "each of five losses costs one repetition; OPEN and CLOSE");
    assert_eq!(counters.data_sent, world.sender.half().counters().packets_sent);
}

#[test]
fn lost_units_are_holes_of_the_right_bytes_even_at_the_end() {
    // Datagram 0 is OPEN; then units 0, 1, 2 of segment 0 (250 bytes), END, and units 0, 1 of segment 1 (150 bytes).
    let mut world = World::new(1, lose(&[2, 6]), lose(&[])).with_segments(&[250, 150]);
    world.run(|_| {});
    assert_eq!(world.verdicts, [(0, Verdict::WithinTolerance), (1, Verdict::WithinTolerance)]);
    let [first, second] = &world.deliveries[..] else { panic!("{:?}", world.deliveries) };
    assert_eq!((&first.missing[0], first.missing.len(), first.holes, first.units), (&(100..200), 1, 1, 3));
    assert_eq!((second.length, &second.missing[0], second.missing.len()), (150, &(100..150), 1), "the short unit at the end never came");
    let mut expected = segment(0, 250);
    expected[100..200].fill(0);
    assert_eq!(first.clone().zero_filled(), expected);
    expected.drain(100..200);
    assert_eq!(first.clone().without_holes(), expected);
    assert_eq!(second.clone().zero_filled().len(), 150);
    assert_eq!(second.clone().without_holes(), segment(1, 150)[..100]);
}

#[test]
fn a_lost_request_or_answer_delays_the_opening_by_a_repetition() {
    for (forward, back) in [(lose(&[0, 1]), lose(&[])), (lose(&[]), lose(&[0, 1])), (lose(&[0]), lose(&[0]))] {
        let mut world = World::new(u32::MAX, forward, back).with_segments(&[100]);
        let mut opened = None;
        world.run(|world| opened = opened.or(world.sender.is_open().then_some(world.now)));
        assert_eq!(opened, Some(Instant::ZERO + Duration::from_millis(200) + DELAY * 2));
        assert_eq!(world.sender.rtt_min(), Some(DELAY * 2), "the answer names the try it answers");
        assert!(world.sender.is_confirmed());
    }
}

#[test]
fn nobody_who_answers_is_a_failure_after_the_timeout() {
    let mut world = World::new(u32::MAX, lose_kind(Kind::Open), lose(&[])).with_segments(&[100, 100]);
    world.run(|_| {});
    assert_eq!(world.now, Instant::ZERO + Timing::default().open_timeout);
    assert!(matches!(world.sender.failure(), Some(Failure::NotAnswered { .. })));
    assert_eq!(world.verdicts, [(0, Verdict::Unknown), (1, Verdict::Unknown)]);
    assert!(!world.receiver.is_connected());
}

#[test]
fn refused_parameters_come_back_with_the_reason_and_the_receiver_listens_on() {
    let mut world = World::new(u32::MAX, lose(&[]), lose(&[])).with_segments(&[100]);
    let half = StopAndWaitSender::new(100, 1, DELAY);
    world.sender = SendingEndpoint::new(Instant::ZERO, half, address(2), 77, "go\x1bback", Timing::default()).unwrap();
    world.run(|_| {});
    let reason = "go?back is not stop-and-wait".to_owned();
    assert_eq!(world.sender.failure(), Some(&Failure::Refused { reason }));
    assert_eq!(world.receiver.counters().requests_refused, 1);
    world.sender =
        SendingEndpoint::new(world.now, StopAndWaitSender::new(100, 9, DELAY * 5), address(2), 78, PARAMETERS, Timing::default()).unwrap();
    world.backlog.push_back(segment(0, 500));
    world.run(|_| {});
    assert_eq!(world.deliveries.len(), 1);
    let long = SendingEndpoint::new(
        Instant::ZERO,
        StopAndWaitSender::new(100, 1, DELAY),
        address(2),
        1,
        "x".repeat(PARAMETERS_BYTES_MAX + 1),
        Timing::default(),
    );
    assert!(matches!(long, Err(AdapterError::LongParameters { .. })));
}

#[test]
fn a_lost_close_or_confirmation_hangs_neither_end() {
    let mut world = World::new(u32::MAX, lose(&[]), lose_kind(Kind::Closed)).with_segments(&[100]);
    world.run(|_| {});
    assert!(world.sender.has_ended() && !world.sender.is_confirmed() && world.sender.failure().is_none());
    assert!(world.receiver.has_ended() && world.receiver.failure().is_none());
    assert!(world.now < Instant::ZERO + Duration::from_secs(2));

    let mut world = World::new(u32::MAX, lose_kind(Kind::Close), lose(&[])).with_segments(&[100]);
    world.run(|_| {});
    assert!(world.sender.has_ended() && world.sender.failure().is_none());
    assert!(matches!(world.receiver.failure(), Some(Failure::Silent { .. })));
    assert_eq!(world.deliveries.len(), 1, "what was judged is delivered all the same");
}

#[test]
fn an_interrupted_end_tells_the_other() {
    let mut world = World::new(u32::MAX, lose(&[]), lose(&[])).with_segments(&[1_000_000]);
    world.run(|world| {
        if world.now > Instant::ZERO + Duration::from_secs(1) {
            world.sender.abort(world.now, Failure::Interrupted);
        }
    });
    assert_eq!(world.sender.failure(), Some(&Failure::Interrupted));
    assert_eq!(world.receiver.failure(), Some(&Failure::EndedByPeer { peer: address(1) }));
    assert_eq!((world.verdicts, world.receiver.unfinished_segments()), (vec![(0, Verdict::Unknown)], 1));

    let mut world = World::new(u32::MAX, lose(&[]), lose(&[])).with_segments(&[1_000_000]);
    world.run(|world| {
        if world.now > Instant::ZERO + Duration::from_secs(1) {
            world.receiver.abort(world.now, Failure::Interrupted);
        }
    });
    assert_eq!(world.sender.failure(), Some(&Failure::EndedByPeer { peer: address(2) }));
    assert_eq!(world.receiver.failure(), Some(&Failure::Interrupted));
    assert!(world.now < Instant::ZERO + Duration::from_secs(2));
}

#[test]
fn a_source_that_pauses_for_long_keeps_the_connection() {
    // The second segment comes after a minute in which the scheme is silent.
    let mut world = World::new(u32::MAX, lose(&[]), lose(&[])).with_segments(&[300, 300]);
    world.pause = Some((1, Instant::ZERO + Duration::from_secs(60)));
    world.run(|_| {});
    assert!(world.now > Instant::ZERO + Duration::from_secs(60));
    assert!(world.sender.failure().is_none() && world.receiver.failure().is_none());
    assert_eq!(world.deliveries.len(), 2);
}

#[test]
fn strangers_and_other_connections_change_nothing() {
    let mut world = World::new(u32::MAX, lose(&[]), lose(&[])).with_segments(&[500]);
    let mut end = Vec::new();
    AdapterHeader { kind: Kind::Close, detail: 0, connection: 77 }.append(&mut end);
    let mut other = Vec::new();
    AdapterHeader { kind: Kind::Close, detail: 0, connection: 78 }.append(&mut other);
    world.run(|world| {
        let now = world.now;
        let arrival = |port| Arrival { from: address(port), to: Local::ANY, ecn: None, received: now };
        for (port, bytes) in [(9, &end), (1, &other), (1, &vec![0x41; 40])] {
            world.receiver.handle_datagram(now, arrival(port), &mut bytes.clone());
        }
        for (port, bytes) in [(9, &end), (2, &other), (2, &vec![0x41; 40])] {
            world.sender.handle_datagram(now, arrival(port), &mut bytes.clone());
        }
    });
    assert!(world.sender.is_confirmed());
    assert_eq!(world.verdicts, [(0, Verdict::Complete)]);
    let counters = world.receiver.counters();
    assert!(counters.stray > 1 && counters.foreign > 1 && counters.unexpected == 0, "{counters:?}");
}

#[test]
fn in_order_holds_back_what_was_accepted_early() {
    let config = ReceivingConfig { in_order: true, ..ReceivingConfig::default() };
    let mut receiver = receiver_of(config);
    hand(&mut receiver, Kind::Open, 1, PARAMETERS.as_bytes());
    for number in [2, 1] {
        end_segment(&mut receiver, number);
        assert_eq!(receiver.poll_delivery(), None);
    }
    end_segment(&mut receiver, 0);
    let order: Vec<u64> = std::iter::from_fn(|| receiver.poll_delivery()).map(|delivery| delivery.segment.0).collect();
    assert_eq!(order, [0, 1, 2]);
}

#[test]
fn a_packet_without_a_place_is_lost_to_the_scheme() {
    let limits = StoreLimits { bytes: 2_000, segment_bytes: 500, segments: 2 };
    let mut receiver = receiver_of(ReceivingConfig { limits, ..ReceivingConfig::default() });
    hand(&mut receiver, Kind::Open, 1, PARAMETERS.as_bytes());
    let answer = |receiver: &mut ReceivingEndpoint<StopAndWaitReceiver, Builder>| {
        receiver.poll_transmit(Instant::ZERO, 1, &mut Vec::new()).is_some()
    };
    assert!(answer(&mut receiver), "OPENED");
    for (number, unit, expected) in [(0, 0, true), (1, 0, true), (2, 0, false), (0, 5, false), (0, u32::MAX, false), (u64::MAX, 0, false)] {
        send_unit(&mut receiver, number, unit);
        assert_eq!(answer(&mut receiver), expected, "segment {number}, unit {unit}");
    }
    assert_eq!(receiver.counters().refused_by_store, 4);
}

fn hand(receiver: &mut ReceivingEndpoint<StopAndWaitReceiver, Builder>, kind: Kind, detail: u16, body: &[u8]) {
    let mut datagram = Vec::new();
    AdapterHeader { kind, detail, connection: 5 }.append(&mut datagram);
    datagram.extend_from_slice(body);
    receiver.handle_datagram(
        Instant::ZERO,
        Arrival { from: address(1), to: Local::ANY, ecn: None, received: Instant::ZERO },
        &mut datagram,
    );
}

fn hand_packet(receiver: &mut ReceivingEndpoint<StopAndWaitReceiver, Builder>, packet: &Forward) {
    let mut body = vec![0; packet.encoded_len()];
    packet.encode(&mut Writer::new(&mut body));
    hand(receiver, Kind::Packet, 100, &body);
}

fn send_unit(receiver: &mut ReceivingEndpoint<StopAndWaitReceiver, Builder>, segment: u64, unit: u32) {
    hand_packet(receiver, &Forward::Data { segment, unit, units: 1, unit_bytes: 100, bytes: 100 });
}

fn end_segment(receiver: &mut ReceivingEndpoint<StopAndWaitReceiver, Builder>, segment: u64) {
    send_unit(receiver, segment, 0);
    hand_packet(receiver, &Forward::End { segment, units: 1 });
}

/// Bytes that are often nearly right.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let body = prop_oneof![Just(PARAMETERS.as_bytes().to_vec()), proptest::collection::vec(any::<u8>(), 0..60), data()];
    let header = (prop_oneof![9 => Just(0xA1u8), 1 => any::<u8>()], 0u8..8, any::<u16>(), prop_oneof![9 => Just(5u32), 1 => any::<u32>()]);
    (header, body).prop_map(|((magic, kind, detail, connection), body)| {
        let mut bytes = vec![magic, kind];
        bytes.extend(detail.to_be_bytes());
        bytes.extend(connection.to_be_bytes());
        bytes.extend(body);
        bytes
    })
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    (0u64..3, any::<u32>(), any::<u32>(), any::<u32>(), 0u16..40).prop_map(|(segment, unit, units, unit_bytes, bytes)| {
        let packet = Forward::Data { segment, unit: unit % 5, units, unit_bytes, bytes };
        let mut encoded = vec![0; packet.encoded_len()];
        packet.encode(&mut Writer::new(&mut encoded));
        encoded
    })
}

proptest! {
    #[test]
    fn nothing_from_the_network_makes_an_end_panic(datagrams in proptest::collection::vec(datagram(), 0..60)) {
        let mut receiver = receiver_of(ReceivingConfig::default());
        let half = StopAndWaitSender::new(100, 3, DELAY);
        let mut sender = SendingEndpoint::new(Instant::ZERO, half, address(1), 5, PARAMETERS, Timing::default()).unwrap();
        let mut now = Instant::ZERO;
        sender.submit(now, segment(0, 350), None).unwrap();
        for mut bytes in datagrams {
            let arrival = Arrival { from: address(1), to: Local::ANY, ecn: None, received: now };
            receiver.handle_datagram(now, arrival, &mut bytes.clone());
            sender.handle_datagram(now, arrival, &mut bytes);
            while receiver.poll_transmit(now, 3, &mut Vec::new()).is_some() {}
            while sender.poll_transmit(now, 3, &mut Vec::new()).is_some() {}
            let _ = (receiver.poll_delivery(), receiver.poll_deadline(), sender.poll_deadline());
            now += Duration::from_millis(7);
            receiver.handle_timeout(now);
            sender.handle_timeout(now);
        }
    }

    #[test]
    fn whatever_is_lost_both_ends_agree_on_every_verdict(
        forward in proptest::collection::vec(any::<bool>(), 0..60),
        back in proptest::collection::vec(any::<bool>(), 0..60),
        lengths in proptest::collection::vec(1usize..600, 1..8),
    ) {
        let path = |lost: Vec<bool>| Direction::new(move |number, _| lost.get(number).copied().unwrap_or(false));
        let mut world = World::new(2, path(forward), path(back)).with_segments(&lengths);
        world.run(|_| {});
        prop_assert!(world.sender.failure().is_none());
        prop_assert_eq!(world.deliveries.len(), lengths.len());
        for (number, (delivery, length)) in world.deliveries.iter().zip(&lengths).enumerate() {
            prop_assert_eq!(world.verdicts[number], (number as u64, delivery.verdict));
            let original = segment(number, *length);
            let holes = delivery.missing.clone();
            if delivery.holes < delivery.units {
                prop_assert_eq!(delivery.length, *length as u64);
            }
            for (at, byte) in delivery.bytes.iter().enumerate() {
                let hole = holes.iter().any(|hole| hole.contains(&(at as u64)));
                prop_assert_eq!(*byte, if hole { 0 } else { original[at] });
            }
        }
    }
}
