//! A pair of halves over a link in virtual time: what is lost, doubled or late is what the test says.
//!
//! Called by the tests.

use crate::htpnet::{Config, Feedback, Forward, Receiver, Sender};
use segstream_base::halves::{
    Packet as _, Receiver as _, ReceiverEvent, Segment, Sender as _, SenderEvent, StreamId, SubmitError, Verdict,
};
use segstream_base::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    Lose,
    Twice,
}

/// The fate of each packet.
pub(super) type Rule<P> = Box<dyn FnMut(Instant, &mut P) -> Fate>;

/// A queue that serves at a rate and drops what does not fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bottleneck {
    pub(super) bits_per_second: u64,
    pub(super) packets: usize,
}

/// The halves, the link between them and all they have told.
pub(super) struct Link {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) now: Instant,
    pub(super) fate_forward: Rule<Forward>,
    pub(super) fate_back: Rule<Feedback>,
    /// One way.
    pub(super) delay: Box<dyn FnMut() -> Duration>,
    /// Whether packets may overtake each other.
    pub(super) reorders: bool,
    /// Time of the sender's processor for a packet.
    pub(super) cost: Duration,
    pub(super) bottleneck: Option<Bottleneck>,
    busy_until: Instant,
    served: VecDeque<Instant>,
    forward: BTreeMap<(Instant, u64), Forward>,
    back: BTreeMap<(Instant, u64), Feedback>,
    sequence: u64,
    newest: [Instant; 2],
    waiting: VecDeque<u64>,
    pub(super) finish: bool,
    pub(super) sent: Vec<(Instant, Forward)>,
    pub(super) answered: Vec<(Instant, Feedback)>,
    pub(super) delivered: Vec<(u64, Verdict, u32, u32, Instant)>,
    pub(super) started: Vec<u64>,
    pub(super) judged: Vec<(u64, Verdict, Instant)>,
    pub(super) ended: Option<u64>,
    pub(super) rates: u64,
    pub(super) dropped: u64,
}

impl Link {
    pub(super) fn new(config: &Config, segments: impl IntoIterator<Item = u64>) -> Self {
        Self::between(config, config, segments)
    }

    /// A sender and a receiver that were made differently.
    pub(super) fn between(config: &Config, other: &Config, segments: impl IntoIterator<Item = u64>) -> Self {
        Self {
            sender: Sender::new(config.clone(), Instant::ZERO).unwrap(),
            receiver: Receiver::new(other.clone(), Instant::ZERO).unwrap(),
            now: Instant::ZERO,
            fate_forward: Box::new(|_, _| Fate::Pass),
            fate_back: Box::new(|_, _| Fate::Pass),
            delay: Box::new(|| Duration::from_millis(10)),
            reorders: false,
            cost: Duration::from_micros(100),
            bottleneck: None,
            busy_until: Instant::ZERO,
            served: VecDeque::new(),
            forward: BTreeMap::new(),
            back: BTreeMap::new(),
            sequence: 0,
            newest: [Instant::ZERO; 2],
            waiting: segments.into_iter().collect(),
            finish: true,
            sent: Vec::new(),
            answered: Vec::new(),
            delivered: Vec::new(),
            started: Vec::new(),
            judged: Vec::new(),
            ended: None,
            rates: 0,
            dropped: 0,
        }
    }

    pub(super) fn submit(&mut self, bytes: u64) {
        self.waiting.push_back(bytes);
        self.offer();
    }

    /// Runs until nothing is pending or `until` has passed. `false` when time ran out.
    pub(super) fn run(&mut self, until: Instant) -> bool {
        self.offer();
        loop {
            self.drain();
            let free = self.busy_until.max(self.now);
            let sender = self.sender.poll_timeout().map(|deadline| deadline.at.max(free));
            let receiver = self.receiver.poll_timeout().map(|deadline| deadline.at.max(self.now));
            let arrivals = [self.forward.keys().next().map(|key| key.0), self.back.keys().next().map(|key| key.0)];
            let Some(next) = arrivals.into_iter().chain([sender, receiver]).flatten().min() else { return true };
            if next > until {
                self.now = until;
                return false;
            }
            self.now = next;
            while let Some(entry) = self.forward.first_entry().filter(|entry| entry.key().0 <= next) {
                let packet = entry.remove();
                self.receiver.handle_forward(next, &packet);
                // Answers leave before the next packet is taken.
                self.drain_receiver();
            }
            while let Some(entry) = self.back.first_entry().filter(|entry| entry.key().0 <= next) {
                let packet = entry.remove();
                self.sender.handle_feedback(next, &packet);
                self.events();
            }
            self.sender.handle_timeout(next);
            self.receiver.handle_timeout(next);
        }
    }

    /// Runs to the end, which must come within a virtual hour.
    pub(super) fn settle(&mut self) {
        assert!(self.run(Instant::ZERO + Duration::from_secs(3600)), "the halves never came to rest");
    }

    pub(super) fn run_for(&mut self, span: Duration) {
        self.run(self.now + span);
    }

    fn offer(&mut self) {
        while let Some(&bytes) = self.waiting.front() {
            let segment = Segment { stream: StreamId(0), bytes: Some(bytes), source_time: self.now, tolerance: None };
            match self.sender.submit(self.now, segment) {
                Ok(_) => self.waiting.pop_front(),
                Err(SubmitError::Blocked) => return,
                Err(SubmitError::Finished) if self.sender.failure().is_some() => return,
                Err(error) => panic!("{error}"),
            };
        }
        if self.finish {
            self.sender.finish(self.now);
        }
    }

    fn drain(&mut self) {
        while self.now >= self.busy_until
            && let Some(packet) = self.sender.poll_transmit(self.now)
        {
            self.busy_until = self.now + self.cost;
            self.events();
            self.sent.push((self.now, packet));
            self.carry(packet);
        }
        self.drain_receiver();
        self.events();
    }

    fn carry(&mut self, mut packet: Forward) {
        let times = match (self.fate_forward)(self.now, &mut packet) {
            Fate::Lose => return,
            Fate::Pass => 1,
            Fate::Twice => 2,
        };
        let mut leaves = self.now;
        if let Some(bottleneck) = self.bottleneck {
            while self.served.front().is_some_and(|at| *at <= self.now) {
                self.served.pop_front();
            }
            if self.served.len() > bottleneck.packets {
                self.dropped += 1;
                return;
            }
            let nanos = packet.encoded_len() as u64 * 8_000_000_000 / bottleneck.bits_per_second;
            leaves = self.served.back().copied().unwrap_or(self.now).max(self.now) + Duration::from_nanos(nanos);
            self.served.push_back(leaves);
        }
        for _ in 0..times {
            let at = self.arrival(0, leaves);
            self.forward.insert(at, packet);
        }
    }

    fn drain_receiver(&mut self) {
        while let Some(mut packet) = self.receiver.poll_transmit(self.now) {
            self.answered.push((self.now, packet));
            let times = match (self.fate_back)(self.now, &mut packet) {
                Fate::Lose => 0,
                Fate::Pass => 1,
                Fate::Twice => 2,
            };
            for _ in 0..times {
                let at = self.arrival(1, self.now);
                self.back.insert(at, packet);
            }
        }
    }

    fn arrival(&mut self, direction: usize, leaves: Instant) -> (Instant, u64) {
        let mut at = leaves + (self.delay)();
        if !self.reorders {
            at = at.max(self.newest[direction]);
            self.newest[direction] = at;
        }
        self.sequence += 1;
        (at, self.sequence)
    }

    fn events(&mut self) {
        while let Some(event) = self.receiver.poll_event() {
            match event {
                ReceiverEvent::Delivered { segment, verdict, units, holes, .. } => {
                    self.delivered.push((segment.0, verdict, units, holes, self.now));
                }
                ReceiverEvent::Ended { segments, .. } => assert_eq!(self.ended.replace(segments), None, "the end is told once"),
                other => panic!("unexpected {other:?}"),
            }
        }
        let mut opened = false;
        while let Some(event) = self.sender.poll_event() {
            match event {
                SenderEvent::Started { segment, .. } => self.started.push(segment.0),
                SenderEvent::Judged { segment, verdict, .. } => self.judged.push((segment.0, verdict, self.now)),
                SenderEvent::WindowOpen(_) => opened = true,
                SenderEvent::RateChanged(_) => self.rates += 1,
                other => panic!("unexpected {other:?}"),
            }
        }
        if opened {
            self.offer();
        }
    }

    /// Segments that were delivered, in the order in which they were.
    pub(super) fn order(&self) -> Vec<u64> {
        self.delivered.iter().map(|it| it.0).collect()
    }

    /// Data packets that were retransmitted.
    pub(super) fn repeated(&self) -> u64 {
        self.sender.counters().packets_retransmitted
    }

    /// When the state packets left.
    pub(super) fn exchanges(&self) -> Vec<Instant> {
        self.sent.iter().filter(|(_, packet)| matches!(packet, Forward::State(_))).map(|(at, _)| *at).collect()
    }
}

/// `count` segments of one full packet.
pub(super) fn packets(config: &Config, count: usize) -> Vec<u64> {
    vec![u64::from(config.payload_bytes()); count]
}
