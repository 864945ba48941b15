//! A pair of halves over a link with a bandwidth and a constant delay, in virtual time.
//!
//! Called by the tests. As in the papers, control uses no bandwidth; losses are what the test says.

use crate::snr::{Config, Feedback, Forward, Receiver, Sender};
use segstream_base::endpoint::Deadline;
use segstream_base::halves::{
    Packet, Receiver as _, ReceiverEvent, Segment, SegmentNumber, Sender as _, SenderEvent, StreamId, SubmitError, Verdict,
};
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_blocks::RateSpec;
use std::collections::VecDeque;

/// EC's network at 500 Mbit/s: l = 1024, s = 256, W = 36, RTD = 60 ms, T_in = 5 ms.
pub(super) fn ec() -> Config {
    let rtt = Duration::from_millis(60);
    Config {
        connection: 7,
        packet_bytes: 1024,
        segment_packets: 256,
        window: 36,
        rate: RateSpec::smooth(Bandwidth::from_megabits_per_second(500)),
        rtt,
        status_period: Config::status_period_of(rtt),
        reliable: true,
        count_intervals: true,
    }
}

/// A small network: blocks of 8 packets at 10 Mbit/s, so that a block takes 6.5 ms.
pub(super) fn small() -> Config {
    Config { segment_packets: 8, window: 16, rate: RateSpec::smooth(Bandwidth::from_megabits_per_second(10)), ..ec() }
}

/// Bytes of a full segment.
pub(super) fn full(config: &Config) -> u64 {
    u64::from(config.segment_packets) * u64::from(config.payload_bytes())
}

/// When a data packet was handed out, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) block: u32,
    pub(super) packet: u16,
}

/// Says which packets are lost.
pub(super) trait Losses {
    fn forward(&mut self, now: Instant, packet: &Forward) -> bool;
    fn back(&mut self, now: Instant, packet: &Feedback) -> bool;
}

/// Nothing is lost.
pub(super) struct Clean;

impl Losses for Clean {
    fn forward(&mut self, _now: Instant, _packet: &Forward) -> bool {
        false
    }
    fn back(&mut self, _now: Instant, _packet: &Feedback) -> bool {
        false
    }
}

/// Two closures: what is lost forward and what back.
pub(super) struct Lose<F, B>(pub(super) F, pub(super) B);

impl<F: FnMut(Instant, &Forward) -> bool, B: FnMut(Instant, &Feedback) -> bool> Losses for Lose<F, B> {
    fn forward(&mut self, now: Instant, packet: &Forward) -> bool {
        (self.0)(now, packet)
    }
    fn back(&mut self, now: Instant, packet: &Feedback) -> bool {
        (self.1)(now, packet)
    }
}

/// The halves, the link between them and all they have told.
pub(super) struct Link<L> {
    pub(super) config: Config,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    losses: L,
    pub(super) now: Instant,
    forward: VecDeque<(Instant, Forward)>,
    back: VecDeque<(Instant, Feedback)>,
    free_at: Instant,
    /// Lengths of segments not yet taken.
    waiting: VecDeque<u64>,
    /// Whether every data packet is written down.
    pub(super) tracing: bool,
    pub(super) sent: Vec<Sent>,
    pub(super) states_sent: u64,
    pub(super) states_back: u64,
    pub(super) started: Vec<Instant>,
    /// Segment, verdict, units, holes, and when.
    pub(super) delivered: Vec<(u64, Verdict, u32, u32, Instant)>,
    pub(super) judged: Vec<(u64, Verdict)>,
    pub(super) ended: Option<u64>,
    pub(super) opened: u64,
}

impl<L: Losses> Link<L> {
    pub(super) fn new(config: Config, losses: L, segments: impl IntoIterator<Item = u64>) -> Self {
        Self {
            sender: Sender::new(config.clone(), Instant::ZERO).unwrap(),
            receiver: Receiver::new(config.clone(), Instant::ZERO).unwrap(),
            config,
            losses,
            now: Instant::ZERO,
            forward: VecDeque::new(),
            back: VecDeque::new(),
            free_at: Instant::ZERO,
            waiting: segments.into_iter().collect(),
            tracing: true,
            sent: Vec::new(),
            states_sent: 0,
            states_back: 0,
            started: Vec::new(),
            delivered: Vec::new(),
            judged: Vec::new(),
            ended: None,
            opened: 0,
        }
    }

    /// Runs until nothing is pending or `until` has passed. `false` when time ran out.
    pub(super) fn run(&mut self, until: Instant) -> bool {
        self.offer();
        loop {
            self.drain();
            let timers = Deadline::earlier(self.sender.poll_timeout(), self.receiver.poll_timeout()).map(|deadline| deadline.at);
            let arrivals = [self.forward.front().map(|at| at.0), self.back.front().map(|at| at.0)];
            let Some(next) = arrivals.into_iter().chain([timers]).flatten().min() else { return true };
            if next > until {
                return false;
            }
            assert!(next >= self.now, "a deadline lies in the past after everything due was taken");
            self.now = next;
            // Data before states at equal times.
            while self.forward.front().is_some_and(|packet| packet.0 <= next) {
                let (_, packet) = self.forward.pop_front().unwrap();
                self.receiver.handle_forward(next, &packet);
            }
            while self.back.front().is_some_and(|packet| packet.0 <= next) {
                let (_, packet) = self.back.pop_front().unwrap();
                self.sender.handle_feedback(next, &packet);
            }
            self.sender.handle_timeout(next);
            self.receiver.handle_timeout(next);
        }
    }

    /// Runs to the end, which must come within a virtual hour.
    pub(super) fn settle(&mut self) {
        assert!(self.run(Instant::ZERO + Duration::from_secs(3600)), "the halves never came to rest");
    }

    fn offer(&mut self) {
        while let Some(&bytes) = self.waiting.front() {
            let segment = Segment { stream: StreamId(0), bytes: Some(bytes), source_time: self.now, tolerance: None };
            match self.sender.submit(self.now, segment) {
                Ok(_) => self.waiting.pop_front(),
                Err(SubmitError::Blocked) => return,
                Err(error) => panic!("{error}"),
            };
        }
        self.sender.finish(self.now);
    }

    fn drain(&mut self) {
        let half = self.config.rtt / 2;
        while let Some(packet) = self.sender.poll_transmit(self.now) {
            if let Forward::Data { block, packet: index, .. } = packet {
                self.free_at = self.free_at.max(self.now) + self.config.packet_time();
                if self.tracing {
                    self.sent.push(Sent { at: self.now, block, packet: index });
                }
            } else {
                self.states_sent += 1;
            }
            if !self.losses.forward(self.now, &packet) {
                self.forward.push_back((self.free_at.max(self.now) + half, packet));
            }
        }
        while let Some(packet) = self.receiver.poll_transmit(self.now) {
            self.states_back += 1;
            if !self.losses.back(self.now, &packet) {
                self.back.push_back((self.now + half, packet));
            }
        }
        self.events();
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
                SenderEvent::Started { segment: SegmentNumber(number), .. } => {
                    assert_eq!(number, self.started.len() as u64, "segments start in order, once");
                    self.started.push(self.now);
                }
                SenderEvent::Judged { segment, verdict, .. } => self.judged.push((segment.0, verdict)),
                SenderEvent::WindowOpen(_) => opened = true,
                other => panic!("unexpected {other:?}"),
            }
        }
        if opened {
            self.opened += 1;
            self.offer();
            self.drain();
        }
    }

    /// When `block` began to leave for the `pass`-th time, counted from 0.
    pub(super) fn pass(&self, block: u32, pass: usize) -> Option<Instant> {
        self.sent.iter().filter(|sent| sent.block == block && sent.packet == 0).nth(pass).map(|sent| sent.at)
    }

    /// When the last packet of `block` had left completely for the first time.
    pub(super) fn left(&self, block: u32) -> Instant {
        let last = self.sent.iter().filter(|sent| sent.block == block).take(self.config.segment_packets as usize).last().unwrap();
        last.at + self.config.packet_time()
    }

    /// The mean delay of all delivered segments, in milliseconds.
    pub(super) fn mean_delay_ms(&self) -> f64 {
        let sum: f64 = self.delivered.iter().map(|it| it.4.since(self.started[it.0 as usize]).as_millis_f64()).sum();
        sum / self.delivered.len() as f64
    }

    /// Throughput efficiency of full segments as the papers define it.
    pub(super) fn efficiency(&self) -> f64 {
        let last = self.delivered.iter().map(|it| it.4).max().unwrap();
        let span = last.since(self.started[0]).saturating_sub(self.config.rtt / 2).as_secs_f64();
        // Why not the packet time: it is cut to the nanosecond.
        let packet = f64::from(self.config.packet_bytes) * 8.0 / self.config.rate.peak().bits_per_second() as f64;
        self.delivered.iter().map(|it| f64::from(it.2)).sum::<f64>() * packet / span
    }
}

/// Whether `packet` is data, and of which block and packet.
pub(super) fn data(packet: &Forward) -> Option<(u32, u16)> {
    match packet {
        Forward::Data { block, packet: index, .. } => Some((*block, *index)),
        Forward::State(_) => {
            assert!(!packet.is_data());
            None
        }
    }
}
