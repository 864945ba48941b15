//! A small event loop: two halves, a link of the configured rate each way, a constant delay, and a
//! closure that says which packets are lost.

use super::super::{Config, Feedback, FeedbackMode, Forward, Receiver, Sender};
use segstream_base::halves::{Packet, Receiver as _, ReceiverEvent, Segment, Sender as _, SenderEvent, StreamId, SubmitError};
use segstream_base::quantity::Remainder;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

pub(super) const HALF_TRIP: Duration = Duration::from_millis(30);

/// The fate of the segments.
#[derive(Default, Debug)]
pub(super) struct Outcome {
    pub started: BTreeMap<u64, Instant>,
    pub delivered: BTreeMap<u64, (Instant, u32, u32)>,
    pub judged: BTreeMap<u64, segstream_base::halves::Verdict>,
    pub ended: Option<u64>,
    pub feedback: u64,
    pub control: u64,
    pub sent: u64,
}

impl Outcome {
    pub(super) fn delay_ms_max(&self) -> f64 {
        self.delivered.iter().map(|(n, d)| d.0.since(self.started[n]).as_millis_f64()).fold(0.0, f64::max)
    }

    pub(super) fn delay_ms_mean(&self) -> f64 {
        let sum: f64 = self.delivered.iter().map(|(n, d)| d.0.since(self.started[n]).as_millis_f64()).sum();
        sum / self.delivered.len() as f64
    }

    pub(super) fn efficiency(&self, config: &Config) -> f64 {
        let first = self.started.values().min().unwrap();
        let last = self.delivered.values().map(|d| d.0).max().unwrap();
        let units: u64 = self.delivered.values().map(|d| u64::from(d.1)).sum();
        let took = (last - HALF_TRIP).since(*first);
        (config.packet_time() * units).as_secs_f64() / took.as_secs_f64()
    }
}

/// A packet on its way.
pub(super) enum Way {
    There(Forward),
    Back(Feedback),
}

/// Fate of a packet: `None` lost, otherwise extra delay.
pub(super) type Fate = Option<Duration>;

pub(super) struct Net<F: FnMut(Instant, &Way) -> Fate> {
    pub sender: Sender,
    pub receiver: Receiver,
    pub config: Config,
    pub now: Instant,
    pub outcome: Outcome,
    fate: F,
    /// There and back, by time, then data before control, then order of sending.
    on_the_way: [VecDeque<((Instant, bool), Way)>; 2],
    free: Instant,
    remainder: Remainder,
    rate: Bandwidth,
    left: u64,
    segment_bytes: u64,
    last_bytes: u64,
    waiting: bool,
    /// Timeouts in a row that did not move time.
    idle_steps: u32,
    finished: bool,
}

impl<F: FnMut(Instant, &Way) -> Fate> Net<F> {
    /// `segments` full segments from a source that always has data.
    pub(super) fn new(config: Config, segments: u64, fate: F) -> Self {
        let bytes = u64::from(config.payload_bytes()) * u64::from(config.segment_packets);
        Self {
            sender: Sender::new(config, Instant::ZERO).unwrap(),
            receiver: Receiver::new(config, Instant::ZERO).unwrap(),
            config,
            now: Instant::ZERO,
            outcome: Outcome::default(),
            fate,
            on_the_way: [VecDeque::new(), VecDeque::new()],
            free: Instant::ZERO,
            remainder: Remainder::default(),
            rate: config.rate.peak(),
            left: segments,
            segment_bytes: bytes,
            last_bytes: bytes,
            waiting: false,
            idle_steps: 0,
            finished: false,
        }
    }

    /// The last segment has only this many bytes.
    pub(super) fn last_bytes(mut self, bytes: u64) -> Self {
        self.last_bytes = bytes;
        self
    }

    fn submit(&mut self) {
        while self.left > 0 && !self.waiting {
            let bytes = if self.left == 1 { self.last_bytes } else { self.segment_bytes };
            let segment = Segment { stream: StreamId(0), bytes: Some(bytes), source_time: self.now, tolerance: None };
            match self.sender.submit(self.now, segment) {
                Ok(_) => self.left -= 1,
                Err(SubmitError::Blocked) => self.waiting = true,
                Err(error) => panic!("{error}"),
            }
        }
        if self.left == 0 && !self.finished {
            self.finished = true;
            self.sender.finish(self.now);
        }
    }

    fn put(&mut self, at: Instant, data: bool, way: Way) {
        if let Some(extra) = (self.fate)(self.now, &way) {
            let key = (at + extra, !data);
            let queue = &mut self.on_the_way[usize::from(matches!(way, Way::Back(_)))];
            let place = queue.iter().rposition(|(other, _)| *other <= key).map_or(0, |place| place + 1);
            queue.insert(place, (key, way));
        }
    }

    fn drain(&mut self) {
        self.submit();
        while let Some(packet) = self.sender.poll_transmit(self.now) {
            let in_band = packet.is_data() || self.config.feedback == FeedbackMode::Full;
            self.free = self.free.max(self.now);
            if in_band {
                self.free += self.rate.transmit_time(Bytes::new(packet.encoded_len() as u64), &mut self.remainder);
            }
            self.outcome.sent += u64::from(packet.is_data());
            self.outcome.control += u64::from(!packet.is_data());
            self.put(self.free + HALF_TRIP, packet.is_data(), Way::There(packet));
        }
        while let Some(packet) = self.receiver.poll_transmit(self.now) {
            self.outcome.feedback += 1;
            self.put(self.now + HALF_TRIP, false, Way::Back(packet));
        }
        while let Some(event) = self.sender.poll_event() {
            match event {
                SenderEvent::Started { segment, .. } => assert!(self.outcome.started.insert(segment.0, self.now).is_none()),
                SenderEvent::Judged { segment, verdict, .. } => assert!(self.outcome.judged.insert(segment.0, verdict).is_none()),
                SenderEvent::WindowOpen(_) => {
                    self.waiting = false;
                    self.submit();
                }
                _ => {}
            }
        }
        while let Some(event) = self.receiver.poll_event() {
            match event {
                ReceiverEvent::Delivered { segment, units, holes, .. } => {
                    assert!(self.outcome.delivered.insert(segment.0, (self.now, units, holes)).is_none(), "delivered twice");
                }
                ReceiverEvent::Ended { segments, .. } => assert!(self.outcome.ended.replace(segments).is_none()),
                _ => {}
            }
        }
    }

    /// One event. `false` when nothing is left to happen.
    pub(super) fn step(&mut self) -> bool {
        self.drain();
        let there = self.sender.poll_timeout().map(|d| d.at);
        let back = self.receiver.poll_timeout().map(|d| d.at);
        let heads = self.on_the_way.each_ref().map(|queue| queue.front().map(|(key, _)| *key));
        let arrival = heads.into_iter().flatten().map(|key| key.0).min();
        let Some(next) = [there, back, arrival].into_iter().flatten().min() else { return false };
        self.idle_steps = if next > self.now || arrival == Some(next) { 0 } else { self.idle_steps + 1 };
        assert!(self.idle_steps < 3, "stuck at {:?}: {:?} {:?}", self.now, self.sender.poll_timeout(), self.receiver.poll_timeout());
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let there = heads[0].is_some_and(|there| heads[1].is_none_or(|back| there.0 <= back.0));
            let (_, way) = self.on_the_way[usize::from(!there)].pop_front().unwrap();
            match way {
                Way::There(packet) => self.receiver.handle_forward(self.now, &packet),
                Way::Back(packet) => self.sender.handle_feedback(self.now, &packet),
            }
        } else {
            self.sender.handle_timeout(self.now);
            self.receiver.handle_timeout(self.now);
        }
        true
    }

    /// Until nothing more happens, which must be before `limit`.
    pub(super) fn run(&mut self, limit: Duration) -> &Outcome {
        let limit = Instant::ZERO + limit;
        while self.now < limit && self.step() {}
        assert!(self.now < limit, "still busy at {:?}: {:?}", self.now, self.outcome);
        &self.outcome
    }
}
