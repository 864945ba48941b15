//! A pair of halves over a link with a constant delay, in virtual time.
//!
//! Called by the tests. What becomes of a packet is what the test says.

use crate::sscop::{Config, Feedback, Forward, Receiver, Sender};
use segstream_base::endpoint::Deadline;
use segstream_base::halves::{
    Packet as _, Probe, Receiver as _, ReceiverEvent, Segment, Sender as _, SenderEvent, StreamId, SubmitError, Verdict,
};
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_blocks::RateSpec;

/// The round trip of the link.
pub(super) const RTT: Duration = Duration::from_millis(4);
/// The time of a full SD on the line.
pub(super) const SD_TIME: Duration = Duration::from_micros(100);
/// The payload of a full SD.
pub(super) const PAYLOAD: u64 = 996;

/// A window of 64 SDs of 1000 bytes, 100 us apart: it does not close within a round trip.
pub(super) fn config() -> Config {
    Config {
        packet_bytes: 1000,
        window: 64,
        rate: RateSpec::smooth(Bandwidth::from_megabits_per_second(80)),
        rtt: RTT,
        timer_poll: Duration::from_millis(2),
        ..Config::default()
    }
}

pub(super) fn segment(bytes: u64) -> Segment {
    Segment { stream: StreamId(0), bytes: Some(bytes), source_time: Instant::ZERO, tolerance: None }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Lost,
    Arrives,
    /// So much later than others: those behind it overtake it.
    Late(Duration),
    /// Twice.
    Doubled,
}

impl From<bool> for Fate {
    fn from(lost: bool) -> Self {
        if lost { Self::Lost } else { Self::Arrives }
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

/// What becomes of a packet that left so often before.
type Fates<P> = Box<dyn FnMut(&P, usize) -> Fate>;

/// One direction of the link.
struct Line<P> {
    fate: Fates<P>,
    under_way: Vec<(Instant, P)>,
    /// Every packet that left, and when.
    sent: Vec<(Instant, P)>,
}

impl<P: Clone + PartialEq> Line<P> {
    fn new(fate: impl FnMut(&P, usize) -> Fate + 'static) -> Self {
        Self { fate: Box::new(fate), under_way: Vec::new(), sent: Vec::new() }
    }

    fn send(&mut self, now: Instant, packet: P) {
        let times = self.sent.iter().filter(|sent| sent.1 == packet).count();
        let (copies, extra) = match (self.fate)(&packet, times) {
            Fate::Lost => (0, Duration::ZERO),
            Fate::Arrives => (1, Duration::ZERO),
            Fate::Late(extra) => (1, extra),
            Fate::Doubled => (2, Duration::ZERO),
        };
        self.sent.push((now, packet.clone()));
        self.under_way.extend(std::iter::repeat_n((now + RTT / 2 + extra, packet), copies));
        // Stable: what arrives at one time arrives in the order it left.
        self.under_way.sort_by_key(|packet| packet.0);
    }

    fn next_at(&self) -> Option<Instant> {
        self.under_way.first().map(|packet| packet.0)
    }

    fn arrived(&mut self, now: Instant) -> Option<P> {
        (self.next_at()? <= now).then(|| self.under_way.remove(0).1)
    }
}

/// The halves, the link between them and all they have told.
pub(super) struct Link {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) now: Instant,
    forward: Line<Forward>,
    back: Line<Feedback>,
    waiting: u64,
    finish: bool,
    pub(super) delivered: Vec<u64>,
    pub(super) judged: Vec<u64>,
    pub(super) ended: Option<u64>,
}

impl Link {
    pub(super) fn new(
        config: &Config,
        segments: u64,
        forward: impl FnMut(&Forward, usize) -> Fate + 'static,
        back: impl FnMut(&Feedback, usize) -> Fate + 'static,
    ) -> Self {
        Self {
            sender: Sender::new(config.clone(), Instant::ZERO).unwrap(),
            receiver: Receiver::new(config.clone(), Instant::ZERO).unwrap(),
            now: Instant::ZERO,
            forward: Line::new(forward),
            back: Line::new(back),
            waiting: segments,
            finish: true,
            delivered: Vec::new(),
            judged: Vec::new(),
            ended: None,
        }
    }

    /// No end of the stream is announced.
    pub(super) fn endless(self) -> Self {
        Self { finish: false, ..self }
    }

    /// Both halves have transferred so many segments before.
    pub(super) fn numbered_from(self, number: u64) -> Self {
        Self { sender: self.sender.numbered_from(number), receiver: self.receiver.numbered_from(number), ..self }
    }

    /// Runs until nothing is pending.
    pub(super) fn settle(&mut self) {
        self.run_until(Instant::ZERO + Duration::from_secs(36_000));
        assert_eq!(self.next_at(), None, "the halves never came to rest");
    }

    /// Runs until `end`, and what happens then has happened.
    pub(super) fn run_until(&mut self, end: Instant) {
        self.offer();
        self.drain();
        while let Some(next) = self.next_at().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            while let Some(packet) = self.forward.arrived(self.now) {
                self.receiver.handle_forward(self.now, &packet);
                self.drain();
            }
            while let Some(packet) = self.back.arrived(self.now) {
                self.sender.handle_feedback(self.now, &packet);
                self.drain();
            }
            self.sender.handle_timeout(self.now);
            self.drain();
        }
        self.now = self.now.max(end);
    }

    fn next_at(&self) -> Option<Instant> {
        let timers = Deadline::earlier(self.sender.poll_timeout(), self.receiver.poll_timeout()).map(|deadline| deadline.at);
        [self.forward.next_at(), self.back.next_at(), timers].into_iter().flatten().min()
    }

    /// So many segments more.
    pub(super) fn submit(&mut self, segments: u64) {
        self.waiting += segments;
        self.offer();
        self.drain();
    }

    /// A packet that the sender never sent.
    pub(super) fn forge(&mut self, packet: &Forward) {
        self.receiver.handle_forward(self.now, packet);
        self.drain();
    }

    /// A packet that the receiver never sent.
    pub(super) fn forge_back(&mut self, packet: &Feedback) {
        self.sender.handle_feedback(self.now, packet);
        self.drain();
    }

    /// When each packet left that `which` says.
    pub(super) fn left(&self, which: impl Fn(&Forward) -> bool) -> Vec<Instant> {
        self.forward.sent.iter().filter(|sent| which(&sent.1)).map(|sent| sent.0).collect()
    }

    /// When each transmission of an SD left.
    pub(super) fn sd(&self, number: u32) -> Vec<Instant> {
        self.left(|packet| matches!(packet, Forward::Sd { n_s, .. } if *n_s == number))
    }

    pub(super) fn polls(&self) -> Vec<Instant> {
        self.left(|packet| matches!(packet, Forward::Poll { .. }))
    }

    pub(super) fn sent(&self) -> impl Iterator<Item = &Forward> {
        self.forward.sent.iter().map(|sent| &sent.1)
    }

    pub(super) fn answers(&self) -> impl Iterator<Item = &Feedback> {
        self.back.sent.iter().map(|sent| &sent.1)
    }

    /// A gauge of the sender or the receiver; not a number when neither has one of that name.
    pub(super) fn gauge(&self, name: &'static str) -> f64 {
        let mut wanted = Wanted(name, f64::NAN);
        self.sender.probe(&mut wanted);
        self.receiver.probe(&mut wanted);
        wanted.1
    }

    fn offer(&mut self) {
        while self.waiting > 0 {
            match self.sender.submit(self.now, segment(PAYLOAD)) {
                Ok(_) => self.waiting -= 1,
                Err(SubmitError::Blocked) => return,
                Err(error) => panic!("{error}"),
            }
        }
        if self.finish {
            self.sender.finish(self.now);
        }
    }

    fn drain(&mut self) {
        while let Some(packet) = self.sender.poll_transmit(self.now) {
            assert!(packet.encoded_len() <= 1000);
            self.forward.send(self.now, packet);
        }
        while let Some(packet) = self.receiver.poll_transmit(self.now) {
            self.back.send(self.now, packet);
        }
        while let Some(event) = self.receiver.poll_event() {
            match event {
                ReceiverEvent::Delivered { segment, verdict: Verdict::Complete, holes: 0, units: 1, .. } => self.delivered.push(segment.0),
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
