//! Plain repeat-request pairs with closed forms for their efficiency: stop-and-wait, go-back-N and selective
//! repeat (Bertsekas and Gallager, Data Networks, 2.4). One segment is one packet.
//!
//! The sender works in slots of one packet time. A packet that is not acknowledged within the timeout is sent
//! again: with all that followed it, or alone.

#![allow(dead_code, unreachable_pub, reason = "every test binary uses its own part of the pair")]

use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{
    Deadline, Operations, Packet, PayloadSpan, Probe, Receiver, ReceiverEvent, Reconfigure, ReconfigureError, Segment, SegmentNumber,
    Sender, SenderCounters, SenderEvent, StreamId, SubmitError, Verdict,
};
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_path::{PathConfig, QueueLimit};
use segstream_sim::{Observer, Setup, Simulation, Source};
use std::collections::VecDeque;

/// The packet time of 1000 bytes at 8 Mbit/s.
pub const SLOT: Duration = Duration::from_millis(1);
pub const PACKET_BYTES: u32 = 1000;
const STREAM: StreamId = StreamId(0);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forward {
    Data {
        number: u64,
        last: bool,
        bytes: u32,
    },
    Marker {
        behind: u64,
    },
    /// Says it is shorter than it is.
    TooShort,
    /// Does not decode.
    Garbled,
}

impl Packet for Forward {
    fn encoded_len(&self) -> usize {
        match self {
            Self::Data { bytes, .. } => *bytes as usize,
            Self::Marker { .. } => 9,
            Self::TooShort => 5,
            Self::Garbled => 1,
        }
    }

    fn encode(&self, out: &mut Writer<'_>) {
        match self {
            Self::Data { number, last, bytes } => {
                out.u8(u8::from(*last));
                out.u64(*number);
                out.reserve(*bytes as usize - 9);
            }
            Self::Marker { behind } => {
                out.u8(2);
                out.u64(*behind);
            }
            Self::TooShort => out.bytes(&[3; 6]),
            Self::Garbled => out.u8(4),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bytes = input.remaining() as u32;
        let kind = input.u8("kind")?;
        if kind > 2 {
            return Err(input.error("kind", DecodeErrorKind::UnknownType(kind.into())));
        }
        let number = input.u64("number")?;
        if kind == 2 {
            return Ok(Self::Marker { behind: number });
        }
        input.bytes(input.remaining(), "payload")?;
        Ok(Self::Data { number, last: kind == 1, bytes })
    }

    fn is_data(&self) -> bool {
        matches!(self, Self::Data { .. })
    }

    fn payload(&self, index: usize) -> Option<PayloadSpan> {
        match self {
            Self::Data { number, bytes, .. } if index == 0 => {
                Some(PayloadSpan { at: 9, bytes: *bytes as usize - 9, stream: STREAM, segment: SegmentNumber(*number), offset: 0 })
            }
            _ => None,
        }
    }
}

/// Every packet before `below` has arrived, or packet `only` has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    pub below: u64,
    pub only: u64,
}

impl Packet for Acknowledgement {
    fn encoded_len(&self) -> usize {
        16
    }

    fn encode(&self, out: &mut Writer<'_>) {
        out.u64(self.below);
        out.u64(self.only);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { below: input.u64("below")?, only: input.u64("only")? })
    }

    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// With a window of one packet this is stop-and-wait.
    GoBackN,
    SelectiveRepeat,
}

/// What is wrong with a sender on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Its deadline does not move.
    FrozenTimer,
    /// It sends without end.
    Endless,
    /// Its third packet is this one.
    Third(&'static Forward),
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub mode: Mode,
    pub window: u64,
    pub slot: Duration,
    /// `None`: nothing is ever sent again.
    pub timeout: Option<Duration>,
    /// A control packet follows every data packet.
    pub markers: bool,
    pub defect: Option<Defect>,
}

impl Settings {
    /// A window that just fills a round trip of `round_trip` slots, and a timeout as long.
    pub fn filling(mode: Mode, round_trip: u64) -> Self {
        let window = if mode == Mode::GoBackN { round_trip + 1 } else { 4096 };
        Self { mode, window, slot: SLOT, timeout: Some(SLOT * (round_trip + 1)), markers: false, defect: None }
    }
}

#[derive(Debug)]
pub struct ArqSender {
    settings: Settings,
    submitted: u64,
    finished: bool,
    refused: bool,
    base: u64,
    next: u64,
    /// Packets sent before, at or above `base`: the highest such number.
    highest: u64,
    /// Acknowledged packets from `base` on.
    acknowledged: VecDeque<bool>,
    in_flight: VecDeque<(Instant, u64)>,
    again: VecDeque<u64>,
    marker: Option<u64>,
    slot_at: Instant,
    events: VecDeque<SenderEvent>,
    counters: SenderCounters,
    /// Acknowledgments that came, each of which costs an operation.
    heard: u64,
}

impl ArqSender {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            submitted: 0,
            finished: false,
            refused: false,
            base: 0,
            next: 0,
            highest: 0,
            acknowledged: VecDeque::new(),
            in_flight: VecDeque::new(),
            again: VecDeque::new(),
            marker: None,
            slot_at: Instant::ZERO,
            events: VecDeque::new(),
            counters: SenderCounters::default(),
            heard: 0,
        }
    }

    fn is_acknowledged(&self, number: u64) -> bool {
        number < self.base || self.acknowledged.get((number - self.base) as usize).copied().unwrap_or(false)
    }

    fn give_up_waiting(&mut self, now: Instant) {
        while let Some(&(deadline, number)) = self.in_flight.front()
            && deadline <= now
        {
            self.in_flight.pop_front();
            match self.settings.mode {
                _ if self.is_acknowledged(number) => {}
                Mode::GoBackN => {
                    self.in_flight.clear();
                    self.next = self.base;
                }
                Mode::SelectiveRepeat => self.again.push_back(number),
            }
        }
    }

    fn ready(&self) -> bool {
        !self.again.is_empty() || (self.next < self.submitted && self.next < self.base + self.settings.window)
    }

    fn choose(&mut self) -> Option<u64> {
        if !self.ready() {
            return None;
        }
        self.again.pop_front().or_else(|| {
            self.next += 1;
            Some(self.next - 1)
        })
    }

    fn acknowledge(&mut self, number: u64) {
        if self.is_acknowledged(number) {
            return;
        }
        let place = (number - self.base) as usize;
        if self.acknowledged.len() <= place {
            self.acknowledged.resize(place + 1, false);
        }
        self.acknowledged[place] = true;
        let event = SenderEvent::Judged { stream: STREAM, segment: SegmentNumber(number), verdict: Verdict::Complete };
        self.events.push_back(event);
        while self.acknowledged.front() == Some(&true) {
            self.acknowledged.pop_front();
            self.base += 1;
            if std::mem::take(&mut self.refused) {
                self.events.push_back(SenderEvent::WindowOpen(STREAM));
            }
        }
        self.next = self.next.max(self.base);
    }
}

impl Sender for ArqSender {
    type Forward = Forward;
    type Feedback = Acknowledgement;

    fn submit(&mut self, _now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        if segment.bytes != Some(u64::from(PACKET_BYTES)) {
            return Err(SubmitError::TooLong { units: segment.bytes.unwrap_or(0), window: u64::from(PACKET_BYTES) });
        }
        if self.submitted > self.base + self.settings.window {
            self.refused = true;
            return Err(SubmitError::Blocked);
        }
        self.submitted += 1;
        Ok(SegmentNumber(self.submitted - 1))
    }

    fn finish(&mut self, _now: Instant) {
        self.finished = true;
    }

    fn reconfigure(&mut self, _now: Instant, _change: Reconfigure) -> Result<(), ReconfigureError> {
        Err(ReconfigureError::Unsupported)
    }

    fn handle_feedback(&mut self, _now: Instant, packet: &Acknowledgement) {
        self.heard += 1;
        for number in self.base..packet.below {
            self.acknowledge(number);
        }
        self.acknowledge(packet.only);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        if let Some(behind) = self.marker.take() {
            return Some(Forward::Marker { behind });
        }
        if self.settings.defect == Some(Defect::Endless) {
            return Some(Forward::Marker { behind: 0 });
        }
        if now < self.slot_at {
            return None;
        }
        self.give_up_waiting(now);
        let number = self.choose()?;
        self.slot_at = now + self.settings.slot;
        if let Some(timeout) = self.settings.timeout {
            self.in_flight.push_back((now + timeout, number));
        }
        self.counters.packets_sent += 1;
        if number >= self.highest {
            self.highest = number + 1;
            self.events.push_back(SenderEvent::Started { stream: STREAM, segment: SegmentNumber(number) });
        } else {
            self.counters.packets_retransmitted += 1;
        }
        self.marker = self.settings.markers.then_some(number);
        if let (3, Some(Defect::Third(packet))) = (self.counters.packets_sent, self.settings.defect) {
            return Some(packet.clone());
        }
        Some(Forward::Data { number, last: self.finished && number + 1 == self.submitted, bytes: PACKET_BYTES })
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        if self.settings.defect == Some(Defect::FrozenTimer) && self.slot_at > Instant::ZERO {
            return Some(Deadline { at: Instant::from_nanos(1), timer: "frozen" });
        }
        if self.ready() {
            return Some(Deadline { at: self.slot_at, timer: "slot" });
        }
        self.in_flight.front().map(|(at, _)| Deadline { at: (*at).max(self.slot_at), timer: "timeout" })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.give_up_waiting(now);
    }

    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }

    fn operations(&self) -> Operations {
        Operations { timer_operations: self.heard, ..Operations::default() }
    }

    fn probe(&self, _out: &mut dyn Probe) {}
}

/// What a receiver was handed, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handed {
    Data(u64),
    Marker(u64),
}

#[derive(Debug)]
pub struct ArqReceiver {
    mode: Mode,
    below: u64,
    arrived: VecDeque<bool>,
    total: Option<u64>,
    answers: VecDeque<Acknowledgement>,
    events: VecDeque<ReceiverEvent>,
    /// Kept only where markers are used.
    pub handed: Vec<(Instant, Handed)>,
    keeps: bool,
}

impl ArqReceiver {
    pub fn new(settings: &Settings) -> Self {
        Self {
            mode: settings.mode,
            below: 0,
            arrived: VecDeque::new(),
            total: None,
            answers: VecDeque::new(),
            events: VecDeque::new(),
            handed: Vec::new(),
            keeps: settings.markers,
        }
    }

    fn accept(&mut self, number: u64) {
        let Some(place) = number.checked_sub(self.below) else { return };
        let place = place as usize;
        if (self.mode == Mode::GoBackN && place > 0) || self.arrived.get(place) == Some(&true) {
            return;
        }
        if self.arrived.len() <= place {
            self.arrived.resize(place + 1, false);
        }
        self.arrived[place] = true;
        let segment = SegmentNumber(number);
        self.events.push_back(ReceiverEvent::Delivered { stream: STREAM, segment, verdict: Verdict::Complete, units: 1, holes: 0 });
        while self.arrived.front() == Some(&true) {
            self.arrived.pop_front();
            self.below += 1;
            if self.total == Some(self.below) {
                self.events.push_back(ReceiverEvent::Ended { stream: STREAM, segments: self.below });
            }
        }
    }
}

impl Receiver for ArqReceiver {
    type Forward = Forward;
    type Feedback = Acknowledgement;

    fn handle_forward(&mut self, now: Instant, packet: &Forward) {
        match *packet {
            Forward::Data { number, last, .. } => {
                if last {
                    self.total = Some(number + 1);
                }
                if self.keeps {
                    self.handed.push((now, Handed::Data(number)));
                }
                self.accept(number);
                match self.mode {
                    Mode::GoBackN if self.below == 0 => {}
                    Mode::GoBackN => self.answers.push_back(Acknowledgement { below: self.below, only: self.below - 1 }),
                    Mode::SelectiveRepeat => self.answers.push_back(Acknowledgement { below: 0, only: number }),
                }
            }
            Forward::Marker { behind } => self.handed.push((now, Handed::Marker(behind))),
            Forward::TooShort | Forward::Garbled => {}
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Acknowledgement> {
        self.answers.pop_front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn probe(&self, _out: &mut dyn Probe) {}
}

/// A path with the bandwidth of one packet a slot and the delay of half a round trip in slots; the return path
/// has no bandwidth to wait for, so that an acknowledgement comes exactly one round trip behind its packet.
pub fn setup(round_trip: u64) -> Setup {
    let delay = SLOT * round_trip / 2;
    Setup {
        forward: PathConfig {
            bandwidth: Some(Bandwidth::from_megabits_per_second(8)),
            queue: QueueLimit::UNLIMITED,
            delay,
            ..PathConfig::default()
        },
        back: PathConfig { delay, ..PathConfig::default() },
        ..Setup::default()
    }
}

pub fn backlog(segments: u64) -> Source {
    Source::Backlog { segments, segment_bytes: u64::from(PACKET_BYTES) }
}

pub type Pair<O> = Simulation<ArqSender, ArqReceiver, O>;

pub fn pair<O: Observer>(settings: &Settings, source: Source, setup: &Setup, seed: u64, observer: O) -> Pair<O> {
    let (sender, receiver) = (ArqSender::new(settings.clone()), ArqReceiver::new(settings));
    Simulation::new(sender, receiver, source, setup, segstream_base::random::Seed(seed), observer).unwrap()
}
