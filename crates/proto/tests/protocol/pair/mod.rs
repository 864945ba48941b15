//! Both halves with a path between them, in virtual time, watched by an [`oracle::Oracle`].
//!
//! Everything that happens is caused by an arrival or by a deadline of a half; a deadline that does not
//! move although it is served is a fault the pair detects.
//!
//! Why not a [`segstream_network::Network`]: it drives endpoints and carries bytes; here two halves exchange typed packets, whose
//! parts the oracle looks at before they are encoded.

#![allow(dead_code, unreachable_pub, clippy::print_stderr, reason = "each test uses its own part of the harness")]

pub mod oracle;
pub mod path;

use oracle::Oracle;
use path::{Habits, Path};
use segstream_base::codec::{Reader, Writer};
use segstream_base::endpoint::Deadline;
use segstream_base::halves::{Packet, Receiver, Reconfigure, Segment, Sender, StreamId, SubmitError};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration, Instant, SegmentNumber, Tolerance};
use segstream_proto::halves::{Feedback, Forward, ForwardBody, LoneReceiver, LoneSender};
use segstream_proto::rate::Rate;
use segstream_proto::receiver::ReceiverConfig;
use segstream_proto::sender::{SenderConfig, SenderHalfEvent};
use segstream_wire::Class;
use segstream_wire::contract::Contract;
use std::collections::VecDeque;
use std::fmt::Write as _;

/// Iterations at one instant that cannot be progress any more.
const SPINS_MAX: u32 = 10_000;

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn at_ms(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// What a pair is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    pub contracts: Vec<Contract>,
    pub class: u8,
    pub rate: Rate,
    pub forward: Habits,
    pub back: Habits,
    pub seed: u64,
    /// R at first, and whether it grows.
    pub reorder: u32,
    pub adapting: bool,
    /// Encode and decode every packet.
    pub check_mode: bool,
    /// Write down what happens.
    pub log: bool,
    pub body_bytes: usize,
    pub stream_window_bytes: u64,
    /// What is kept of a stream, when it is less than its window.
    pub buffer_bytes: Option<u64>,
}

impl Setup {
    /// One reliable stream of 1 KiB units at 100 Mbit/s over 60 ms.
    pub fn new(contracts: &[Contract]) -> Self {
        Self {
            contracts: contracts.to_vec(),
            class: 7,
            rate: Rate::smooth(Bandwidth::from_megabits_per_second(100)),
            forward: Habits::delay(ms(30)),
            back: Habits::delay(ms(30)),
            seed: 1,
            reorder: 3,
            adapting: true,
            check_mode: false,
            log: false,
            body_bytes: 1100,
            stream_window_bytes: 64 << 20,
            buffer_bytes: None,
        }
    }

    pub fn delay(mut self, delay: Duration) -> Self {
        (self.forward.delay, self.back.delay) = (delay, delay);
        self
    }

    pub fn loss(mut self, forward: f64, back: f64) -> Self {
        (self.forward.loss, self.back.loss) = (forward, back);
        self
    }

    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    pub fn class(mut self, class: u8) -> Self {
        self.class = class;
        self
    }

    pub fn build(self) -> Pair {
        Pair::new(self)
    }
}

/// What the application still has to submit.
#[derive(Clone, Copy, Debug)]
pub enum Offer {
    Whole(u64, Option<Tolerance>),
    Open(Option<Tolerance>),
    Append(u64, bool),
}

/// Both halves, the path and the watcher.
pub struct Pair {
    pub now: Instant,
    pub sender: LoneSender,
    pub receiver: LoneReceiver,
    pub forward: Path<Forward>,
    pub back: Path<Feedback>,
    pub oracle: Oracle,
    /// What each stream's application waits to submit.
    pub backlog: Vec<VecDeque<Offer>>,
    blocked: Vec<bool>,
    /// The receiving application takes segments as they come.
    pub taking: bool,
    pub finished: bool,
    setup: Setup,
    spins: (Instant, u32),
    pub log: String,
    /// When each verdict reached the sender and each segment was judged: (stream, segment, when).
    pub told: Vec<(StreamId, SegmentNumber, Instant)>,
    pub judged: Vec<(StreamId, SegmentNumber, Instant)>,
    pub delivered_units: u64,
    /// The class in force, once it has changed.
    pub reclassed: Option<u8>,
}

impl Pair {
    pub fn new(setup: Setup) -> Self {
        let class = Class::new(setup.class).unwrap();
        let sender = SenderConfig {
            class,
            body_bytes: setup.body_bytes,
            overhead_bytes: 41,
            rate: setup.rate,
            epoch: Duration::ZERO,
            circuit_breaker: true,
            pacing_quantum: Duration::ZERO,
            keep_alive: Duration::from_secs(1),
        };
        let receiver = ReceiverConfig {
            class,
            class_max: Class::ALL,
            unlimited: true,
            body_bytes: setup.body_bytes,
            overhead_bytes: 28,
            reorder: setup.reorder,
            reorder_adapting: setup.adapting,
            streams_max: 256,
            stream_window_bytes: setup.stream_window_bytes,
            connection_window_bytes: u64::MAX,
            window_segments_max: 1 << 20,
            buffer_bytes: setup.buffer_bytes,
        };
        let (now, seed, count) = (Instant::ZERO, Seed(setup.seed), setup.contracts.len());
        Self {
            now,
            sender: LoneSender::new(sender, &setup.contracts, now).unwrap(),
            receiver: LoneReceiver::new(receiver, now),
            forward: Path::new(setup.forward.clone(), seed, "forward"),
            back: Path::new(setup.back.clone(), seed, "back"),
            oracle: Oracle::new(&setup.contracts, setup.reorder, class.flow_control(), setup.buffer_bytes.is_none()),
            backlog: vec![VecDeque::new(); count],
            blocked: vec![false; count],
            taking: true,
            finished: false,
            spins: (now, 0),
            log: String::new(),
            told: Vec::new(),
            judged: Vec::new(),
            delivered_units: 0,
            reclassed: None,
            setup,
        }
    }

    /// The application will submit `count` segments of `bytes` bytes on `stream`, as soon as it may.
    pub fn offer(&mut self, stream: u32, count: usize, bytes: u64) {
        self.backlog[stream as usize].extend(vec![Offer::Whole(bytes, None); count]);
    }

    pub fn offer_one(&mut self, stream: u32, offer: Offer) {
        self.backlog[stream as usize].push_back(offer);
    }

    /// No more will be offered.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    fn line(&mut self, what: std::fmt::Arguments<'_>) {
        if self.setup.log {
            let micros = self.now.as_nanos() / 1000;
            writeln!(self.log, "{:>6}.{:03} {what}", micros / 1000, micros % 1000).unwrap();
        }
    }

    /// Submits what may be submitted.
    fn submit_backlog(&mut self) {
        for id in 0..self.backlog.len() {
            while !self.blocked[id]
                && let Some(&offer) = self.backlog[id].front()
            {
                match self.submit(StreamId(id as u32), offer) {
                    Ok(()) => {
                        self.backlog[id].pop_front();
                    }
                    Err(SubmitError::Blocked) => self.blocked[id] = true,
                    // The open segment was judged or given up: the rest of it is not wanted any more.
                    Err(SubmitError::Finished) if matches!(offer, Offer::Append(..)) => {
                        self.backlog[id].pop_front();
                    }
                    Err(SubmitError::TooLong { .. }) => {
                        self.backlog[id].pop_front();
                        if matches!(offer, Offer::Append(_, true)) {
                            self.backlog[id].push_front(Offer::Append(0, true));
                        }
                    }
                    Err(error) => panic!("{offer:?}: {error}"),
                }
            }
        }
        if self.finished && self.backlog.iter().all(VecDeque::is_empty) {
            self.sender.finish(self.now);
        }
    }

    fn submit(&mut self, stream: StreamId, offer: Offer) -> Result<(), SubmitError> {
        let now = self.now;
        let segment = |bytes, tolerance| Segment { stream, bytes, source_time: now, tolerance };
        match offer {
            Offer::Whole(bytes, own) => {
                self.sender.submit(now, segment(Some(bytes), own))?;
                self.oracle.on_submit(stream, Some(bytes), own);
            }
            Offer::Open(own) => {
                self.sender.submit(now, segment(None, own))?;
                self.oracle.on_submit(stream, None, own);
            }
            Offer::Append(bytes, last) => {
                // The common contract does not say when the segment is over; the half does.
                if self.sender.half.append(now, stream, bytes, last)?.is_none() {
                    self.oracle.on_append(stream, bytes, last);
                }
            }
        }
        Ok(())
    }

    /// A new class; what the oracle can promise depends on it.
    pub fn set_class(&mut self, class: u8) {
        assert!(self.try_class(class), "class {class} is refused");
    }

    /// The same, unless the rate does not allow it.
    pub fn try_class(&mut self, class: u8) -> bool {
        let taken = self.sender.reconfigure(self.now, Reconfigure::Class(class)).is_ok();
        if taken {
            (self.oracle.flow, self.oracle.roomy) = (false, false);
        }
        taken
    }

    /// Lets everything leave that may leave now, and hands out what is to be told.
    fn pump(&mut self) {
        self.submit_backlog();
        while let Some(packet) = self.sender.poll_transmit(self.now) {
            let kept = self.forward.send(self.now, packet.clone());
            if self.setup.log {
                let text = describe(&packet);
                self.line(format_args!("{} {text}", if kept { "->" } else { "-x" }));
            }
            self.oracle.on_departure(&packet, kept);
        }
        while let Some(packet) = self.receiver.poll_transmit(self.now) {
            let kept = self.back.send(self.now, packet.clone());
            if self.setup.log {
                let frames: Vec<String> = packet.report.frames.iter().map(|frame| format!("{frame:?}")).collect();
                let (number, echo) = (packet.report.number, packet.report.echo);
                self.line(format_args!("{} report {number} echo {echo:?} [{}]", if kept { "<-" } else { "x-" }, frames.join("; ")));
            }
        }
        while let Some(event) = self.sender.half.poll_event() {
            match event {
                SenderHalfEvent::Judged { stream, segments, verdict, holes } => {
                    for segment in segments.start.up_to(segments.end) {
                        self.oracle.on_acked(stream, segment, verdict, &holes);
                        self.told.push((stream, segment, self.now));
                        self.line(format_args!("sender learns {stream}/{segment} {verdict} {holes:?}"));
                    }
                }
                SenderHalfEvent::Reclassed(class) => self.reclassed = Some(class.number()),
                SenderHalfEvent::WindowOpen(stream) => self.blocked[stream.0 as usize] = false,
                _ => {}
            }
        }
    }

    /// The receiving application takes what is there.
    pub fn take(&mut self) {
        let half = &mut self.receiver.half;
        let mut lines = Vec::new();
        let mut place = 0;
        while let Some(id) = half.stream_at(place) {
            place += 1;
            while let Some(delivery) = half.poll_delivery(id) {
                self.oracle.on_delivery(&delivery);
                half.release(self.now, id, delivery.segment);
                self.judged.push((id, delivery.segment, delivery.judged_at));
                self.delivered_units += u64::from(delivery.units) - delivery.holes.iter().map(|hole| u64::from(hole.len())).sum::<u64>();
                lines.push(format!("delivered {id}/{} {} {:?}", delivery.segment, delivery.verdict, delivery.holes));
            }
            if let Some(segments) = half.poll_ended(self.now, id) {
                self.oracle.on_ended(id, segments);
                lines.push(format!("ended {id} {segments}"));
            }
        }
        for line in lines {
            self.line(format_args!("{line}"));
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        Deadline::earlier(self.sender.poll_timeout(), self.receiver.poll_timeout())
    }

    /// Goes on to the next thing that happens, at most to `limit`. False when that was reached.
    pub fn step(&mut self, limit: Instant) -> bool {
        self.pump();
        let deadline = self.deadline();
        let next = [deadline.map(|deadline| deadline.at), self.forward.next_arrival(), self.back.next_arrival()];
        let next = next.into_iter().flatten().min().unwrap_or(limit).max(self.now);
        if next > limit || next == limit && self.now == limit && deadline.is_none_or(|deadline| deadline.at > limit) {
            self.now = limit;
            return false;
        }
        self.now = next;
        self.spins = if self.spins.0 == next { (next, self.spins.1 + 1) } else { (next, 0) };
        assert!(self.spins.1 < SPINS_MAX, "at {next} the deadline {deadline:?} does not move");
        while let Some(packet) = self.forward.arrive(next) {
            self.on_forward(&packet);
        }
        while let Some(packet) = self.back.arrive(next) {
            let packet = if self.setup.check_mode { through_bytes(&packet) } else { packet };
            self.oracle.on_report_arrival(&packet.report.frames);
            self.sender.handle_feedback(next, &packet);
        }
        if deadline.is_some_and(|deadline| deadline.at <= next) {
            self.sender.handle_timeout(next);
            // Why not the receiver's own: it would take segments that the oracle does not see.
            self.receiver.half.handle_timeout(next);
            if self.taking && self.receiver.half.take_deliverable() {
                self.take();
            }
        }
        true
    }

    fn on_forward(&mut self, packet: &Forward) {
        let decoded = self.setup.check_mode.then(|| through_bytes(packet));
        let packet = decoded.as_ref().unwrap_or(packet);
        self.oracle.on_arrival(self.now, packet);
        let half = &mut self.receiver.half;
        if !half.on_shipment(self.now, packet.number, packet.encoded_len() as u64) {
            return;
        }
        match &packet.body {
            ForwardBody::Data(parts) => {
                for part in parts {
                    half.on_part(self.now, packet.number, part);
                }
            }
            ForwardBody::Repair(repair) => _ = half.on_repair(self.now, packet.number, repair),
            ForwardBody::State(state) => half.on_state(self.now, packet.number, state),
        }
        half.after_shipment(self.now);
        if self.taking && half.take_deliverable() {
            self.take();
        }
    }

    /// Runs to `limit`.
    pub fn run_to(&mut self, limit: Instant) {
        while self.step(limit) {}
        self.oracle.check_agreement();
    }

    pub fn run_for(&mut self, span: Duration) {
        self.run_to(self.now + span);
    }

    fn is_over(&self) -> bool {
        self.finished
            && self.backlog.iter().all(VecDeque::is_empty)
            && self.sender.half.is_over()
            && (self.backlog.is_empty() || self.receiver.half.stream_at(self.backlog.len() - 1).is_some())
            && !self.receiver.half.has_unfinished()
    }

    /// Finishes and runs until both ends know everything; fails when that takes longer than `limit`.
    pub fn run_over(&mut self, limit: Duration) {
        self.finish();
        let limit = self.now + limit;
        while !self.is_over() {
            if !self.step(limit) {
                let lines: Vec<&str> = self.log.lines().rev().take(400).collect();
                lines.iter().rev().for_each(|line| eprintln!("{line}"));
                self.oracle.check_over();
                panic!("not over at {limit}, next {:?}", self.deadline());
            }
        }
        self.oracle.check_over();
    }
}

/// The packet as it comes out of its bytes; the number's upper half is rebuilt as a connection does.
fn through_bytes<P: Packet + Numbered + PartialEq>(packet: &P) -> P {
    let mut buffer = vec![0; packet.encoded_len()];
    let mut writer = Writer::new(&mut buffer);
    packet.encode(&mut writer);
    assert_eq!(writer.finish().unwrap(), packet.encoded_len());
    let mut decoded = P::decode(&mut Reader::new(&buffer)).unwrap();
    *decoded.number() += packet.clone().number().wrapping_shr(32) << 32;
    assert_eq!(&decoded, packet, "a packet comes out of its bytes as it went in");
    decoded
}

trait Numbered {
    fn number(&mut self) -> &mut u64;
}

impl Numbered for Forward {
    fn number(&mut self) -> &mut u64 {
        &mut self.number.0
    }
}

impl Numbered for Feedback {
    fn number(&mut self) -> &mut u64 {
        &mut self.number.0
    }
}

fn describe(packet: &Forward) -> String {
    match &packet.body {
        ForwardBody::Data(parts) => {
            let parts: Vec<String> = parts
                .iter()
                .map(|part| {
                    format!(
                        "{}/{} {}+{}{}",
                        part.stream,
                        part.segment,
                        part.first,
                        part.count,
                        if part.retransmission { " again" } else { "" }
                    )
                })
                .collect();
            format!("{} data {}", packet.number, parts.join(", "))
        }
        ForwardBody::Repair(repair) => {
            format!("{} repair {}/{} {}+{}", packet.number, repair.stream, repair.segment, repair.first, repair.count)
        }
        ForwardBody::State(state) => {
            let frames: Vec<String> = state.frames.iter().map(|frame| format!("{frame:?}")).collect();
            format!("{} state {} [{}]", packet.number, state.sync, frames.join("; "))
        }
    }
}
