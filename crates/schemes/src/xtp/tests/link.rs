//! A pair of halves over a link with a constant delay, in virtual time.
//!
//! Called by the tests. Losses are what the test says; the line is fast enough to take no time.

use crate::xtp::{Config, Feedback, Forward, Options, Receiver, ReceiverStrategy, Sender, SenderStrategy};
use segstream_base::endpoint::Deadline;
use segstream_base::halves::{
    Packet as _, Probe, Receiver as _, ReceiverEvent, Segment, Sender as _, SenderEvent, StreamId, SubmitError, Verdict,
};
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_blocks::RateSpec;
use std::collections::{BTreeMap, VecDeque};

/// The round trip of the link.
pub(super) const RTT: Duration = Duration::from_millis(4);
/// The time of a packet on the line: a window leaves in less than the round trip.
pub(super) const PACKET_TIME: Duration = Duration::from_micros(100);
/// What WTIMER is set to.
pub(super) const WTIMER: Duration = Duration::from_millis(10);
/// The packets of a window.
pub(super) const WINDOW: u64 = 32;
/// The sequence numbers of a full packet of 1000 bytes.
pub(super) const FULL: u64 = 968;

/// A window of 32 packets of 1000 bytes, 100 us apart.
pub(super) fn config(sender: SenderStrategy, receiver: ReceiverStrategy) -> Config {
    Config {
        key: 7,
        packet_bytes: 1000,
        segment_packets: 1,
        window: WINDOW as u32,
        sender,
        receiver,
        wtimer: WTIMER,
        control_rtt: RTT,
        backlog_packets: Some(50),
        rate: Some(RateSpec::smooth(Bandwidth::from_megabits_per_second(80))),
    }
}

/// All nine pairs of strategies.
pub(super) fn pairs() -> impl Iterator<Item = (SenderStrategy, ReceiverStrategy)> {
    SenderStrategy::ALL.into_iter().flat_map(|sender| ReceiverStrategy::ALL.into_iter().map(move |receiver| (sender, receiver)))
}

/// A segment of stream 0.
pub(super) fn segment(bytes: u64) -> Segment {
    Segment { stream: StreamId(0), bytes: Some(bytes), source_time: Instant::ZERO, tolerance: None }
}

pub(super) fn sequence(packet: &Forward) -> u64 {
    match packet {
        Forward::Data { sequence, .. } | Forward::Control { sequence, .. } => *sequence,
    }
}

pub(super) fn asks(packet: &Forward) -> bool {
    match packet {
        Forward::Data { options, .. } | Forward::Control { options, .. } => options.has(Options::SREQ),
    }
}

/// A gauge by its name.
struct Wanted(&'static str, f64);

impl Probe for Wanted {
    fn gauge(&mut self, name: &'static str, value: f64) {
        if name == self.0 {
            self.1 = value;
        }
    }
}

/// A gauge of the sender; not a number when it has none of that name.
pub(super) fn gauge(sender: &Sender, name: &'static str) -> f64 {
    let mut wanted = Wanted(name, f64::NAN);
    sender.probe(&mut wanted);
    wanted.1
}

/// What is lost forward: the packet, and how often one with its first byte left before.
pub(super) type Lose = Box<dyn FnMut(&Forward, usize) -> bool>;
/// What is lost back: the state, and how many were told before.
pub(super) type LoseBack = Box<dyn FnMut(&Feedback, usize) -> bool>;

/// The halves, the link between them and all they have told.
pub(super) struct Link {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    lose: Lose,
    lose_back: LoseBack,
    pub(super) now: Instant,
    forward: VecDeque<(Instant, Forward)>,
    back: VecDeque<(Instant, Feedback)>,
    /// The lengths of the segments that are still to be submitted.
    waiting: VecDeque<u64>,
    times: BTreeMap<u64, usize>,
    /// Every packet that left, and when.
    pub(super) sent: Vec<(Forward, Instant)>,
    /// Every state that was told, and when.
    pub(super) told: Vec<(Feedback, Instant)>,
    pub(super) delivered: Vec<u64>,
    pub(super) judged: Vec<u64>,
    pub(super) ended: Option<u64>,
}

impl Link {
    pub(super) fn new(config: &Config, segments: impl IntoIterator<Item = u64>, lose: Lose, lose_back: LoseBack) -> Self {
        Self {
            sender: Sender::new(config.clone(), Instant::ZERO).unwrap(),
            receiver: Receiver::new(config.clone(), Instant::ZERO).unwrap(),
            lose,
            lose_back,
            now: Instant::ZERO,
            forward: VecDeque::new(),
            back: VecDeque::new(),
            waiting: segments.into_iter().collect(),
            times: BTreeMap::new(),
            sent: Vec::new(),
            told: Vec::new(),
            delivered: Vec::new(),
            judged: Vec::new(),
            ended: None,
        }
    }

    /// Submits what waits and the end, and runs until nothing is pending.
    pub(super) fn settle(&mut self) -> &mut Self {
        self.offer();
        self.run()
    }

    /// Runs until nothing is pending.
    pub(super) fn run(&mut self) -> &mut Self {
        loop {
            self.drain();
            let timers = Deadline::earlier(self.sender.poll_timeout(), self.receiver.poll_timeout()).map(|deadline| deadline.at);
            let arrivals = [self.forward.front().map(|at| at.0), self.back.front().map(|at| at.0)];
            let Some(next) = arrivals.into_iter().chain([timers]).flatten().min() else { return self };
            assert!(next < Instant::ZERO + Duration::from_secs(3_600), "the halves never came to rest");
            self.now = self.now.max(next);
            while self.forward.front().is_some_and(|packet| packet.0 <= self.now) {
                let (_, packet) = self.forward.pop_front().unwrap();
                self.receiver.handle_forward(self.now, &packet);
                self.answer();
            }
            while self.back.front().is_some_and(|packet| packet.0 <= self.now) {
                let (_, packet) = self.back.pop_front().unwrap();
                self.sender.handle_feedback(self.now, &packet);
            }
            self.sender.handle_timeout(self.now);
        }
    }

    /// When full packet `number` left for the `time`-th time, counted from 0.
    pub(super) fn left(&self, number: u64, time: usize) -> Instant {
        let of = |packet: &Forward| packet.is_data() && sequence(packet) == number * FULL;
        self.sent.iter().filter(|sent| of(&sent.0)).nth(time).unwrap_or_else(|| panic!("{number} never left so often")).1
    }

    /// The numbers of the full packets that left, in their order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.sent.iter().filter(|sent| sent.0.is_data()).map(|sent| sequence(&sent.0) / FULL)
    }

    /// The CNTL that left, and when.
    pub(super) fn controls(&self) -> impl Iterator<Item = &(Forward, Instant)> {
        self.sent.iter().filter(|sent| !sent.0.is_data())
    }

    fn offer(&mut self) {
        while let Some(bytes) = self.waiting.front() {
            match self.sender.submit(self.now, segment(*bytes)) {
                Ok(_) => self.waiting.pop_front(),
                Err(SubmitError::Blocked) => return,
                Err(error) => panic!("{error}"),
            };
        }
        self.sender.finish(self.now);
    }

    fn answer(&mut self) {
        while let Some(state) = self.receiver.poll_transmit(self.now) {
            assert!(state.encoded_len() <= 1000, "no CNTL is longer than a DATA packet");
            assert!(state.is_consistent());
            if !(self.lose_back)(&state, self.told.len()) {
                self.back.push_back((self.now + RTT / 2, state.clone()));
            }
            self.told.push((state, self.now));
        }
    }

    fn drain(&mut self) {
        while let Some(packet) = self.sender.poll_transmit(self.now) {
            let times = if packet.is_data() { self.times.entry(sequence(&packet)).or_default() } else { &mut 0 };
            let lost = (self.lose)(&packet, *times);
            *times += 1;
            self.sent.push((packet, self.now));
            if !lost {
                self.forward.push_back((self.now + RTT / 2, packet));
            }
        }
        self.events();
    }

    fn events(&mut self) {
        while let Some(event) = self.receiver.poll_event() {
            match event {
                ReceiverEvent::Delivered { segment, verdict: Verdict::Complete, holes: 0, .. } => self.delivered.push(segment.0),
                ReceiverEvent::Ended { segments, .. } => assert_eq!(self.ended.replace(segments), None, "the end is told once"),
                other => panic!("unexpected {other:?}"),
            }
        }
        let mut opened = false;
        while let Some(event) = self.sender.poll_event() {
            match event {
                SenderEvent::Judged { segment, verdict: Verdict::Complete, .. } => self.judged.push(segment.0),
                SenderEvent::Started { .. } => {}
                SenderEvent::WindowOpen(_) => opened = true,
                other => panic!("unexpected {other:?}"),
            }
        }
        if opened {
            self.offer();
            self.drain();
        }
    }
}
