//! A pair of halves over a link with a constant delay, in virtual time.
//!
//! Called by the tests. Losses are what the test says; the line is fast enough to take no time.

use crate::adaptive_ack::{Config, Feedback, Forward, Receiver, Sender};
use segstream_base::endpoint::Deadline;
use segstream_base::halves::{
    Packet as _, Probe, Receiver as _, ReceiverEvent, Segment, Sender as _, SenderEvent, StreamId, SubmitError, Verdict,
};
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_blocks::RateSpec;
use std::collections::VecDeque;

/// The round trip of the link.
pub(super) const RTT: Duration = Duration::from_millis(2);
/// The time of a packet on the line.
pub(super) const PACKET_TIME: Duration = Duration::from_micros(100);
/// The periods of the paper's optimum (AA 3.2.2).
pub(super) const T_NORMAL: Duration = Duration::from_millis(40);
pub(super) const T_ERROR: Duration = Duration::from_millis(5);

/// A window of 32 packets of 1000 bytes, 100 us apart, with the paper's periods.
pub(super) fn config() -> Config {
    Config {
        connection: 7,
        packet_bytes: 1000,
        segment_packets: 1,
        window: 32,
        rate: RateSpec::smooth(Bandwidth::from_megabits_per_second(80)),
        rtt: RTT,
        t_normal: T_NORMAL,
        t_error: T_ERROR,
        tail_rule: true,
    }
}

pub(super) fn sequence(packet: &Forward) -> u32 {
    match packet {
        Forward::Data { sequence, .. } | Forward::End { sequence, .. } => *sequence,
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

/// The halves, the link between them and all they have told.
pub(super) struct Link<F, B> {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// What is lost forward: the packet, and how often it left before.
    lose: F,
    lose_back: B,
    rtt: Duration,
    pub(super) now: Instant,
    forward: VecDeque<(Instant, Forward)>,
    back: VecDeque<(Instant, Feedback)>,
    segments: u64,
    waiting: u64,
    segment_bytes: u64,
    /// Every packet that left, and when.
    pub(super) sent: Vec<(u32, Instant)>,
    /// Every acknowledgment that left, and when.
    pub(super) answers: Vec<(Feedback, Instant)>,
    pub(super) delivered: Vec<u64>,
    pub(super) judged: Vec<u64>,
    pub(super) ended: Option<u64>,
}

impl<F: FnMut(u32, usize) -> bool, B: FnMut(&Feedback) -> bool> Link<F, B> {
    pub(super) fn new(config: &Config, rtt: Duration, segments: u64, lose: F, lose_back: B) -> Self {
        Self {
            sender: Sender::new(config.clone(), Instant::ZERO).unwrap(),
            receiver: Receiver::new(config.clone(), Instant::ZERO).unwrap(),
            lose,
            lose_back,
            rtt,
            now: Instant::ZERO,
            forward: VecDeque::new(),
            back: VecDeque::new(),
            segments,
            waiting: segments,
            segment_bytes: u64::from(config.segment_packets) * u64::from(config.payload_bytes()),
            sent: Vec::new(),
            answers: Vec::new(),
            delivered: Vec::new(),
            judged: Vec::new(),
            ended: None,
        }
    }

    /// Runs until both halves know of the end, or for `longest`. Whether they do.
    pub(super) fn run(&mut self, longest: Duration) -> bool {
        self.offer();
        loop {
            self.drain();
            if self.ended.is_some() && self.judged.len() as u64 == self.segments {
                return true;
            }
            let timers = Deadline::earlier(self.sender.poll_timeout(), self.receiver.poll_timeout()).map(|deadline| deadline.at);
            let arrivals = [self.forward.front().map(|at| at.0), self.back.front().map(|at| at.0)];
            let next = arrivals.into_iter().chain([timers]).flatten().min().unwrap_or(Instant::FAR_FUTURE);
            if next > Instant::ZERO + longest {
                return false;
            }
            self.now = self.now.max(next);
            while self.forward.front().is_some_and(|packet| packet.0 <= self.now) {
                let (_, packet) = self.forward.pop_front().unwrap();
                self.receiver.handle_forward(self.now, &packet);
            }
            while self.back.front().is_some_and(|packet| packet.0 <= self.now) {
                let (_, packet) = self.back.pop_front().unwrap();
                self.sender.handle_feedback(self.now, &packet);
            }
            self.receiver.handle_timeout(self.now);
        }
    }

    /// When `sequence` left for the `time`-th time, counted from 0.
    pub(super) fn left(&self, sequence: u32, time: usize) -> Instant {
        self.sent.iter().filter(|sent| sent.0 == sequence).nth(time).unwrap_or_else(|| panic!("{sequence} never left so often")).1
    }

    /// How often `sequence` left.
    pub(super) fn times(&self, sequence: u32) -> usize {
        self.sent.iter().filter(|sent| sent.0 == sequence).count()
    }

    /// Packets that the receiver had already.
    pub(super) fn received_again(&self) -> f64 {
        let mut wanted = Wanted("received_again_packets", f64::NAN);
        self.receiver.probe(&mut wanted);
        wanted.1
    }

    fn offer(&mut self) {
        while self.waiting > 0 {
            let segment = Segment { stream: StreamId(0), bytes: Some(self.segment_bytes), source_time: self.now, tolerance: None };
            match self.sender.submit(self.now, segment) {
                Ok(_) => self.waiting -= 1,
                Err(SubmitError::Blocked) => return,
                Err(error) => panic!("{error}"),
            }
        }
        self.sender.finish(self.now);
    }

    fn drain(&mut self) {
        while let Some(packet) = self.sender.poll_transmit(self.now) {
            let number = sequence(&packet);
            let times = self.times(number);
            let lost = (self.lose)(number, times);
            self.sent.push((number, self.now));
            assert!(packet.encoded_len() <= 1000);
            if !lost {
                self.forward.push_back((self.now + self.rtt / 2, packet));
            }
        }
        while let Some(packet) = self.receiver.poll_transmit(self.now) {
            self.answers.push((packet, self.now));
            if !(self.lose_back)(&packet) {
                self.back.push_back((self.now + self.rtt / 2, packet));
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
