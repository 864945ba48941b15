//! Both halves with a real bottleneck between them, in virtual time: bandwidth, queue and delay of `segstream_path`.
//!
//! Why not a [`segstream_network::Network`]: it drives endpoints and carries bytes; here two halves exchange typed packets, of which
//! tests hold back some by what is in them.

#![allow(dead_code, unreachable_pub, reason = "each test uses its own part of the harness")]

use segstream_base::halves::{Packet, Receiver, ReceiverEvent, Segment, Sender, SenderEvent, StreamId, SubmitError, Verdict};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant, SegmentNumber};
use segstream_path::loss::Loss;
use segstream_path::{Fate, Path, PathConfig};
use segstream_proto::halves::{Feedback, Forward, ForwardBody, LoneReceiver, LoneSender};
use segstream_proto::rate::Rate;
use segstream_proto::receiver::ReceiverConfig;
use segstream_proto::sender::SenderConfig;
use segstream_wire::{Class, Contract, ReportFrame};
use std::collections::BTreeMap;

/// IP and UDP in front of a datagram.
const BELOW: usize = 28;
/// Header and seal around a body.
const AROUND: usize = 13;

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn at_ms(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// One direction.
struct Way<P> {
    path: Path,
    on_way: BTreeMap<(Instant, u64), (P, bool)>,
    order: u64,
    /// What is lost before the path: everything in one of these spans,
    outages: Vec<(Instant, Instant)>,
    /// and what the process takes that began last, of those that begin at these times, ascending.
    losses: Vec<(Instant, Loss)>,
    /// How many packets came to it, and their bytes.
    offered: u64,
    offered_bytes: u64,
}

impl<P: Packet> Way<P> {
    fn new(config: &PathConfig, name: &str, seed: u64) -> Self {
        let path = Path::new(config, Seed(seed), name).unwrap();
        Self { path, on_way: BTreeMap::new(), order: 0, outages: Vec::new(), losses: Vec::new(), offered: 0, offered_bytes: 0 }
    }

    /// How long it waits in the queue; `None` when it does not arrive.
    fn send(&mut self, now: Instant, packet: P) -> Option<Duration> {
        let bytes = Bytes::new((packet.encoded_len() + BELOW) as u64);
        self.offered += 1;
        self.offered_bytes += bytes.get();
        if self.outages.iter().any(|&(from, to)| from <= now && now < to) {
            return None;
        }
        if let Some((_, loss)) = self.losses.iter_mut().rfind(|(from, _)| *from <= now)
            && loss.takes(self.offered, now)
        {
            return None;
        }
        let passage = if packet.ecn().is_some() { self.path.send_markable(now, bytes) } else { self.path.send(now, bytes) };
        let Fate::Delivered { at } = passage.fate else { return None };
        self.order += 1;
        self.on_way.insert((at, self.order), (packet, passage.marked));
        Some(passage.queued)
    }

    fn next(&self) -> Option<Instant> {
        self.on_way.first_key_value().map(|(key, _)| key.0)
    }

    fn arrive(&mut self, now: Instant) -> Option<(P, bool)> {
        let first = self.on_way.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

/// Where segments come from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// There is always one more.
    Greedy,
    /// One so often.
    Every(Duration),
}

/// A transfer over a bottleneck.
pub struct Transfer {
    pub now: Instant,
    pub sender: LoneSender,
    pub receiver: LoneReceiver,
    forward: Way<Forward>,
    back: Way<Feedback>,
    source: Source,
    segment_bytes: u64,
    next_segment: Instant,
    blocked: bool,
    finished: bool,
    /// TXS are lost while this holds.
    pub states_lost: bool,
    /// The receiver reports, but never when an exchange arrived.
    pub arrivals_kept_back: bool,
    /// Bytes of segments judged so far, and their verdicts at the sender.
    pub judged: u64,
    pub verdicts: Vec<Verdict>,
    /// When each segment was due; and each as it was delivered, with how long after that.
    due: Vec<Instant>,
    pub delivered: Vec<(SegmentNumber, Duration)>,
    pub rates: Vec<(Instant, Bandwidth)>,
    /// The longest wait in the queue since this was last taken.
    pub queued_max: Duration,
    pub in_flight_over: bool,
}

impl Transfer {
    pub fn new(rate: Rate, forward: &PathConfig, source: Source, segment_bytes: u64) -> Self {
        let back = PathConfig { delay: forward.delay, ..PathConfig::default() };
        Self::between(rate, (forward, &back), source, segment_bytes, &Contract::default(), 7)
    }

    /// The same with a way back and a contract of its own.
    pub fn between(
        rate: Rate,
        (forward, back): (&PathConfig, &PathConfig),
        source: Source,
        segment_bytes: u64,
        contract: &Contract,
        seed: u64,
    ) -> Self {
        let now = Instant::ZERO;
        let body_bytes = 1200 - AROUND;
        let sender = SenderConfig {
            class: Class::ALL,
            body_bytes,
            overhead_bytes: AROUND + BELOW,
            rate,
            epoch: Duration::ZERO,
            circuit_breaker: true,
            pacing_quantum: Duration::ZERO,
            keep_alive: Duration::from_secs(1),
        };
        let receiver = ReceiverConfig {
            class: Class::ALL,
            class_max: Class::ALL,
            unlimited: false,
            body_bytes,
            overhead_bytes: BELOW,
            reorder: 3,
            reorder_adapting: true,
            streams_max: 4,
            stream_window_bytes: 64 << 20,
            connection_window_bytes: 64 << 20,
            window_segments_max: 1 << 16,
            buffer_bytes: None,
        };
        Self {
            now,
            sender: LoneSender::new(sender, core::slice::from_ref(contract), now).unwrap(),
            receiver: LoneReceiver::new(receiver, now),
            forward: Way::new(forward, "forward", seed),
            back: Way::new(back, "back", seed),
            source,
            segment_bytes,
            next_segment: now,
            blocked: false,
            finished: false,
            states_lost: false,
            arrivals_kept_back: false,
            judged: 0,
            verdicts: Vec::new(),
            due: Vec::new(),
            delivered: Vec::new(),
            rates: Vec::new(),
            queued_max: Duration::ZERO,
            in_flight_over: false,
        }
    }

    /// Everything is lost, both ways.
    pub fn outage(mut self, from: Instant, to: Instant) -> Self {
        self.forward.outages.push((from, to));
        self.back.outages.push((from, to));
        self
    }

    /// From each of these times on another loss process is in force, both ways; the seed is that of none.
    pub fn losing(mut self, processes: &[(Instant, &str)], seed: u64) -> Self {
        let process = |&(from, spec): &(Instant, &str), way: &str| {
            let loss = Loss::new(&spec.parse().unwrap(), Seed(seed), &format!("{way} from {from}")).unwrap();
            (from, loss)
        };
        self.forward.losses = processes.iter().map(|part| process(part, "forward")).collect();
        self.back.losses = processes.iter().map(|part| process(part, "back")).collect();
        self
    }

    /// The first segment is due then, and not at once.
    pub fn begin_at(&mut self, at: Instant) {
        self.next_segment = at;
    }

    fn submit(&mut self) {
        while !self.blocked && !self.finished && self.next_segment <= self.now {
            let segment = Segment { stream: StreamId(0), bytes: Some(self.segment_bytes), source_time: self.now, tolerance: None };
            match self.sender.submit(self.now, segment) {
                Ok(_) => {
                    self.due.push(if matches!(self.source, Source::Every(_)) { self.next_segment } else { self.now });
                    if let Source::Every(period) = self.source {
                        self.next_segment += period;
                    }
                }
                Err(SubmitError::Blocked) => self.blocked = true,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn pump(&mut self) {
        self.submit();
        while let Some(packet) = self.sender.poll_transmit(self.now) {
            let state = matches!(packet.body, ForwardBody::State(_));
            if state && self.states_lost {
                continue;
            }
            if let Some(queued) = self.forward.send(self.now, packet) {
                self.queued_max = self.queued_max.max(queued);
            }
        }
        while let Some(mut packet) = self.receiver.poll_transmit(self.now) {
            if self.arrivals_kept_back {
                packet.report.frames.retain(|frame| !matches!(frame, ReportFrame::Arrival(_)));
            }
            self.back.send(self.now, packet);
        }
        while let Some(event) = self.receiver.poll_event() {
            if let ReceiverEvent::Delivered { segment, .. } = event {
                self.delivered.push((segment, self.now.since(self.due[segment.0 as usize])));
            }
        }
        while let Some(event) = self.sender.poll_event() {
            match event {
                SenderEvent::WindowOpen(_) => self.blocked = false,
                SenderEvent::RateChanged(rate) => self.rates.push((self.now, rate)),
                SenderEvent::Judged { verdict, .. } => {
                    self.verdicts.push(verdict);
                    self.judged += self.segment_bytes;
                }
                _ => {}
            }
        }
    }

    /// Runs to `limit`.
    pub fn run_to(&mut self, limit: Instant) {
        let mut spins = 0;
        loop {
            self.pump();
            let deadlines = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
            let source = (!self.blocked && !self.finished).then_some(self.next_segment);
            let times =
                deadlines.iter().flatten().map(|deadline| deadline.at).chain(source).chain(self.forward.next()).chain(self.back.next());
            let next = times.min().unwrap_or(limit).max(self.now);
            if next > limit {
                self.now = limit;
                return;
            }
            spins = if next == self.now { spins + 1 } else { 0 };
            assert!(spins < 10_000, "at {next} a deadline of {deadlines:?} does not move");
            self.now = next;
            while let Some((packet, marked)) = self.forward.arrive(next) {
                if marked {
                    self.receiver.note_congestion_mark(next);
                }
                self.receiver.handle_forward(next, &packet);
            }
            while let Some((packet, _)) = self.back.arrive(next) {
                self.sender.handle_feedback(next, &packet);
            }
            self.sender.handle_timeout(next);
            self.receiver.handle_timeout(next);
        }
    }

    /// Bits a second of judged segments in the next `span`.
    pub fn goodput_over(&mut self, span: Duration) -> f64 {
        let before = self.judged;
        self.run_to(self.now + span);
        (self.judged - before) as f64 * 8.0 / span.as_secs_f64()
    }

    /// No more segments; whether everything is judged by `limit`.
    pub fn finish_by(&mut self, limit: Instant) -> bool {
        self.finished = true;
        self.sender.finish(self.now);
        self.run_to(limit);
        self.sender.half.is_over()
    }

    /// What counters of the path say of drops.
    pub fn dropped(&self) -> u64 {
        self.forward.path.counters().dropped_queue
    }

    pub fn sent(&self) -> u64 {
        self.forward.path.counters().sent
    }

    /// Bytes of all packets that left, of each direction.
    pub fn sent_bytes(&self) -> [u64; 2] {
        [self.forward.offered_bytes, self.back.offered_bytes]
    }

    pub fn marked(&self) -> u64 {
        self.forward.path.counters().marked
    }
}

/// A bottleneck of `megabits` with a round trip of 40 ms and a queue of one bandwidth-delay product.
pub fn bottleneck(megabits: u64) -> PathConfig {
    let bandwidth = Bandwidth::from_megabits_per_second(megabits);
    PathConfig { bandwidth: Some(bandwidth), queue: PathConfig::default_queue(bandwidth, ms(40)), delay: ms(20), ..PathConfig::default() }
}
