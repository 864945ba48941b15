//! A pair of halves over a link with a constant delay, in virtual time.
//!
//! Called by the tests of the schemes whose packets leave at a rate: TCP, adaptive acknowledgment, SSCOP and XTP. What becomes
//! of a packet is what the test says; the line is fast enough to take no time.
//!
//! Invariant: what arrives at one time arrives in the order it left, and a half is asked for packets after each that it takes;
//! the sender first hears what there is to hear, and then sends.

mod numbered;

use segstream_base::endpoint::Deadline;
use segstream_base::halves::{Packet, Probe, Receiver, ReceiverEvent, Segment, Sender, SenderEvent, StreamId, SubmitError, Verdict};
use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// The length of a full packet, which no other exceeds, in all tests over a link.
pub(crate) const PACKET_BYTES: u32 = 1000;
/// The time of a full packet on the line, at 80 Mbit/s.
pub(crate) const PACKET_TIME: Duration = Duration::from_micros(100);
/// Halves that say nothing for so long say nothing more.
const REST: Duration = Duration::from_secs(36_000);

/// A segment of stream 0.
pub(crate) const fn segment(bytes: u64) -> Segment {
    Segment { stream: StreamId(0), bytes: Some(bytes), source_time: Instant::ZERO, tolerance: None }
}

/// Draws `true` in `percent` of all cases.
pub(crate) fn draws(seed: u64, percent: u64) -> impl FnMut() -> bool + Copy + 'static {
    let mut state = seed | 1;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 100 < percent
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

/// A gauge of a sender; not a number when it has none of that name.
pub(crate) fn gauge(sender: &impl Sender, name: &'static str) -> f64 {
    let mut wanted = Wanted(name, f64::NAN);
    sender.probe(&mut wanted);
    wanted.1
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
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

/// The fate of a packet that left so often before.
type Fates<P> = Box<dyn FnMut(&P, usize) -> Fate>;

/// One direction of the link.
struct Line<P> {
    delay: Duration,
    fate: Fates<P>,
    under_way: VecDeque<(Instant, P)>,
}

impl<P: Clone + PartialEq> Line<P> {
    fn new<T: Into<Fate>>(delay: Duration, mut fate: impl FnMut(&P, usize) -> T + 'static) -> Self {
        Self { delay, fate: Box::new(move |packet, times| fate(packet, times).into()), under_way: VecDeque::new() }
    }

    /// A packet leaves, after those that `sent` holds.
    fn send(&mut self, now: Instant, packet: &P, sent: &[(P, Instant)]) {
        let times = sent.iter().filter(|sent| sent.0 == *packet).count();
        let (copies, extra) = match (self.fate)(packet, times) {
            Fate::Lost => (0, Duration::ZERO),
            Fate::Arrives => (1, Duration::ZERO),
            Fate::Late(extra) => (1, extra),
            Fate::Doubled => (2, Duration::ZERO),
        };
        let at = now + self.delay + extra;
        let place = self.under_way.partition_point(|packet| packet.0 <= at);
        for _ in 0..copies {
            self.under_way.insert(place, (at, packet.clone()));
        }
    }

    fn next_at(&self) -> Option<Instant> {
        self.under_way.front().map(|packet| packet.0)
    }

    fn arrived(&mut self, now: Instant) -> Option<P> {
        if self.next_at()? > now {
            return None;
        }
        self.under_way.pop_front().map(|packet| packet.1)
    }
}

/// The halves, the link between them and all their events.
pub(crate) struct Link<S: Sender, R> {
    pub(crate) sender: S,
    pub(crate) receiver: R,
    pub(crate) now: Instant,
    forward: Line<S::Forward>,
    back: Line<S::Feedback>,
    /// The lengths of the segments that are still to be submitted.
    waiting: VecDeque<u64>,
    submitted: u64,
    finish: bool,
    /// Every packet of the sender that left, and when.
    pub(crate) sent: Vec<(S::Forward, Instant)>,
    /// Every packet of the receiver that left, and when.
    pub(crate) told: Vec<(S::Feedback, Instant)>,
    pub(crate) delivered: Vec<u64>,
    /// The units of what is delivered.
    pub(crate) units: u64,
    pub(crate) judged: Vec<u64>,
    pub(crate) ended: Option<u64>,
}

impl<S, R> Link<S, R>
where
    S: Sender<Forward: PartialEq, Feedback: PartialEq>,
    R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
{
    /// A link with a round trip of `rtt` and `segments` of these lengths to be transferred. `forward` and `back` say what becomes
    /// of a packet that left so often before, or whether it is lost.
    pub(crate) fn new<F: Into<Fate>, B: Into<Fate>>(
        (sender, receiver): (S, R),
        rtt: Duration,
        segments: impl IntoIterator<Item = u64>,
        forward: impl FnMut(&S::Forward, usize) -> F + 'static,
        back: impl FnMut(&S::Feedback, usize) -> B + 'static,
    ) -> Self {
        Self {
            sender,
            receiver,
            now: Instant::ZERO,
            forward: Line::new(rtt / 2, forward),
            back: Line::new(rtt / 2, back),
            waiting: segments.into_iter().collect(),
            submitted: 0,
            finish: true,
            sent: Vec::new(),
            told: Vec::new(),
            delivered: Vec::new(),
            units: 0,
            judged: Vec::new(),
            ended: None,
        }
    }

    /// No end of the stream is announced.
    pub(crate) fn endless(self) -> Self {
        Self { finish: false, ..self }
    }

    /// Runs until nothing is pending.
    pub(crate) fn settle(&mut self) {
        let end = self.now + REST;
        self.begin();
        while self.step(end) {}
        assert_eq!(self.next_at(), None, "the halves never came to rest");
    }

    /// Runs until `end`, and what happens then has happened.
    pub(crate) fn run_until(&mut self, end: Instant) {
        self.begin();
        while self.step(end) {}
        self.now = self.now.max(end);
    }

    /// Runs until both halves know of the end, or for `longest`. Whether they do.
    pub(crate) fn run_to_end(&mut self, longest: Duration) -> bool {
        let end = self.now + longest;
        self.begin();
        loop {
            if self.ended.is_some() && self.judged.len() as u64 == self.submitted {
                return true;
            }
            if !self.step(end) {
                return false;
            }
        }
    }

    fn begin(&mut self) {
        self.offer();
        self.drain();
    }

    /// Lets what comes next happen, unless it comes behind `end`.
    fn step(&mut self, end: Instant) -> bool {
        let Some(next) = self.next_at().filter(|next| *next <= end) else { return false };
        self.now = self.now.max(next);
        while let Some(packet) = self.forward.arrived(self.now) {
            self.receiver.handle_forward(self.now, &packet);
            self.answer();
        }
        while let Some(packet) = self.back.arrived(self.now) {
            self.hand_back(&packet);
        }
        self.sender.handle_timeout(self.now);
        self.receiver.handle_timeout(self.now);
        self.drain();
        true
    }

    fn next_at(&self) -> Option<Instant> {
        let timers = Deadline::earlier(self.sender.poll_timeout(), self.receiver.poll_timeout()).map(|deadline| deadline.at);
        [self.forward.next_at(), self.back.next_at(), timers].into_iter().flatten().min()
    }

    /// One segment more.
    pub(crate) fn submit(&mut self, bytes: u64) {
        self.waiting.push_back(bytes);
        self.begin();
    }

    /// The receiver takes a packet, which may be forged.
    pub(crate) fn hand_forward(&mut self, packet: &S::Forward) {
        self.receiver.handle_forward(self.now, packet);
        self.drain();
    }

    /// The sender takes a packet, which may be forged.
    pub(crate) fn hand_back(&mut self, packet: &S::Feedback) {
        self.sender.handle_feedback(self.now, packet);
        self.drain();
    }

    /// When each packet left that `which` says.
    pub(crate) fn times_of(&self, which: impl Fn(&S::Forward) -> bool) -> Vec<Instant> {
        self.sent.iter().filter(|sent| which(&sent.0)).map(|sent| sent.1).collect()
    }

    /// A gauge of the sender or the receiver; not a number when neither has one of that name.
    pub(crate) fn gauge(&self, name: &'static str) -> f64 {
        let mut wanted = Wanted(name, gauge(&self.sender, name));
        self.receiver.probe(&mut wanted);
        wanted.1
    }

    fn offer(&mut self) {
        while let Some(bytes) = self.waiting.front() {
            match self.sender.submit(self.now, Segment { source_time: self.now, ..segment(*bytes) }) {
                Ok(_) => self.waiting.pop_front(),
                Err(SubmitError::Blocked) => return,
                Err(error) => panic!("{error}"),
            };
            self.submitted += 1;
        }
        if self.finish {
            self.sender.finish(self.now);
        }
    }

    fn drain(&mut self) {
        while let Some(packet) = self.sender.poll_transmit(self.now) {
            assert!(packet.encoded_len() <= PACKET_BYTES as usize);
            self.forward.send(self.now, &packet, &self.sent);
            self.sent.push((packet, self.now));
        }
        self.answer();
        self.events();
    }

    fn answer(&mut self) {
        while let Some(packet) = self.receiver.poll_transmit(self.now) {
            assert!(packet.encoded_len() <= PACKET_BYTES as usize);
            self.back.send(self.now, &packet, &self.told);
            self.told.push((packet, self.now));
        }
    }

    fn events(&mut self) {
        while let Some(event) = self.receiver.poll_event() {
            match event {
                ReceiverEvent::Delivered { segment, verdict: Verdict::Complete, units, holes: 0, .. } => {
                    self.delivered.push(segment.0);
                    self.units += u64::from(units);
                }
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
            self.begin();
        }
    }
}
