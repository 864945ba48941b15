//! The flagship's halves under the common contract: typed packets, their own shipment counters.
//!
//! Called by the simulator and by tests in virtual time. Segments are released as soon as they are
//! judged, as an application does that reads at once, or as a slower user has done with them.
//!
//! Invariant: these are the very halves a connection uses; only the counter and the release are here.

use crate::number::ShipmentCounter;
use crate::rate::Rate;
use crate::receiver::{ReceiverConfig, RecvHalf};
use crate::sender::{Broken, Outgoing, SendHalf, SenderConfig, SenderHalfEvent};
use crate::session::Plain;
use core::ops::Range;
use segstream_base::codec::{DecodeError, Reader, Writer};
use segstream_base::endpoint::Ecn;
use segstream_base::halves::{
    Deadline, Packet, PayloadSpan, Probe, Receiver, ReceiverEvent, Reconfigure, ReconfigureError, Segment, SegmentNumber, Sender,
    SenderCounters, SenderEvent, StreamId, SubmitError, Verdict,
};
use segstream_base::{Bandwidth, Instant, Position, ShipmentNumber};
use segstream_blocks::user::{Slowdown, User};
use segstream_wire::contract::{Contract, ContractError};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Class, Header, Kind, Level, Part, Repair, Report, State};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Bytes around the body of a simulated shipment: the header and the plain seal.
pub const SHIPMENT_OVERHEAD_BYTES: usize = HEADER_BYTES + Plain::SEAL_BYTES;

/// A shipment from sender to receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The shipment number.
    pub number: ShipmentNumber,
    /// With a codepoint a congested path may mark it instead of dropping it. On a real path the IP header says so; here it is
    /// the connection identifier, which nothing else needs.
    pub ecn: Option<Ecn>,
    /// The length of the body. Why stored: it is read twice for each shipment, and the half knows it already.
    body_bytes: u32,
    /// What it carries.
    pub body: ForwardBody,
}

/// What a forward shipment carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardBody {
    /// Parts of segments.
    Data(SmallVec<[Part; 1]>),
    /// Repair units of a segment.
    Repair(Repair),
    /// The sender's state.
    State(Box<State>),
}

/// A shipment from receiver to sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The shipment number of the reverse direction.
    pub number: ShipmentNumber,
    /// The report.
    pub report: Report,
}

fn header(kind: Kind, number: ShipmentNumber, connection: u32, out: &mut Writer<'_>) {
    Header { level: Level::Data, kind, connection, number: number.0 as u32 }.encode(out);
}

/// A codepoint as a connection identifier.
const fn code(ecn: Option<Ecn>) -> u32 {
    match ecn {
        Some(Ecn::Ect0) => 1,
        Some(Ecn::Ect1) => 2,
        _ => 0,
    }
}

/// The codepoint that a connection identifier stands for.
const fn code_point(connection: u32) -> Option<Ecn> {
    match connection {
        1 => Some(Ecn::Ect0),
        2 => Some(Ecn::Ect1),
        _ => None,
    }
}

/// The plain seal over what was written from `start` on, so that a capture of a simulation can be read.
fn seal(number: ShipmentNumber, start: usize, out: &mut Writer<'_>) {
    let checksum = Plain::checksum(number, out.written(start));
    out.bytes(&checksum);
}

impl Packet for Forward {
    fn encoded_len(&self) -> usize {
        SHIPMENT_OVERHEAD_BYTES + self.body_bytes as usize
    }

    fn encode(&self, out: &mut Writer<'_>) {
        let start = out.position();
        match &self.body {
            ForwardBody::Data(parts) => {
                header(Kind::Data, self.number, code(self.ecn), out);
                for part in parts {
                    part.encode_header(out);
                    if let Some(room) = out.reserve(part.payload_bytes as usize) {
                        room.fill(0);
                    }
                }
            }
            ForwardBody::Repair(repair) => {
                header(Kind::Repair, self.number, code(self.ecn), out);
                repair.encode_header(out);
                if let Some(room) = out.reserve(repair.payload_bytes as usize) {
                    room.fill(0);
                }
            }
            ForwardBody::State(state) => {
                header(Kind::State, self.number, code(self.ecn), out);
                state.encode(out);
            }
        }
        seal(self.number, start, out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let header = Header::decode(input)?;
        let body = input.bytes(input.remaining().saturating_sub(4), "body")?;
        input.u32("seal")?;
        let body_bytes = body.len() as u32;
        let mut body = Reader::new(body);
        let (number, ecn) = (ShipmentNumber(header.number.into()), code_point(header.connection));
        if header.kind == Kind::State {
            return Ok(Self { number, ecn, body_bytes, body: ForwardBody::State(Box::new(State::decode(&mut body)?)) });
        }
        if header.kind == Kind::Repair {
            return Ok(Self { number, ecn, body_bytes, body: ForwardBody::Repair(Repair::decode(&mut body)?.0) });
        }
        let mut parts = SmallVec::new();
        while !body.is_empty() {
            parts.push(Part::decode(&mut body)?.0);
        }
        Ok(Self { number, ecn, body_bytes, body: ForwardBody::Data(parts) })
    }

    fn is_data(&self) -> bool {
        matches!(self.body, ForwardBody::Data(_) | ForwardBody::Repair(_))
    }

    /// Always `None`.
    // Limit: a part names positions in sending order, whose bytes a contract places; the store of a
    // connection does that ([`crate::store`]), these halves carry synthetic payload.
    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }

    fn ecn(&self) -> Option<Ecn> {
        self.ecn
    }
}

impl Packet for Feedback {
    fn encoded_len(&self) -> usize {
        SHIPMENT_OVERHEAD_BYTES + self.report.encoded_len()
    }

    fn encode(&self, out: &mut Writer<'_>) {
        let start = out.position();
        header(Kind::Report, self.number, 0, out);
        self.report.encode(out);
        seal(self.number, start, out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let header = Header::decode(input)?;
        let body = input.bytes(input.remaining().saturating_sub(4), "body")?;
        input.u32("seal")?;
        Ok(Self { number: ShipmentNumber(header.number.into()), report: Report::decode(&mut Reader::new(body))? })
    }

    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}

/// The sending half with a counter of its own.
#[derive(Debug)]
pub struct LoneSender {
    /// The half.
    pub half: SendHalf,
    counter: ShipmentCounter,
    parts: Vec<Part>,
    counters: SenderCounters,
    /// Segments whose first part has just left.
    started: VecDeque<(StreamId, SegmentNumber)>,
    /// Verdicts of a run that have not been returned yet.
    judged: Run,
    broken: Option<Broken>,
}

/// One verdict on a run of segments.
#[derive(Debug)]
struct Run {
    stream: StreamId,
    segments: Range<SegmentNumber>,
    verdict: Verdict,
}

impl LoneSender {
    /// A sender with the given streams.
    pub fn new(config: SenderConfig, streams: &[Contract], now: Instant) -> Result<Self, ContractError> {
        let mut half = SendHalf::new(config, now);
        for contract in streams {
            half.open_stream(now, contract.clone())?;
        }
        Ok(Self {
            half,
            counter: ShipmentCounter::default(),
            parts: Vec::new(),
            counters: SenderCounters::default(),
            started: VecDeque::new(),
            judged: Run { stream: StreamId::FIRST, segments: SegmentNumber::FIRST..SegmentNumber::FIRST, verdict: Verdict::Unknown },
            broken: None,
        })
    }

    /// The error of the circuit breaker, once it has opened: a connection ends then, this sender continues.
    pub const fn circuit_broken(&self) -> Option<Broken> {
        self.broken
    }

    /// The parts in the buffer.
    #[inline]
    fn sent_parts(&self) -> SmallVec<[Part; 1]> {
        // Why: mostly there is one, and copying a slice calls a function.
        if let [part] = self.parts[..] { SmallVec::from_buf([part]) } else { SmallVec::from_slice(&self.parts) }
    }

    /// Counts the data shipment in the buffer of parts.
    fn count(&mut self) {
        let mut retransmitted = false;
        for part in &self.parts {
            retransmitted |= part.retransmission;
            if part.first == Position::FIRST && !part.retransmission {
                self.started.push_back((part.stream, part.segment));
            }
        }
        self.counters.packets_sent += 1;
        self.counters.packets_retransmitted += u64::from(retransmitted);
    }
}

impl Sender for LoneSender {
    type Forward = Forward;
    type Feedback = Feedback;

    fn submit(&mut self, now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        self.half.submit(now, segment.stream, segment.bytes, segment.source_time, segment.tolerance)
    }

    fn append(&mut self, now: Instant, stream: StreamId, bytes: u64, last: bool) -> Result<(), SubmitError> {
        self.half.append(now, stream, bytes, last).map(|_| ())
    }

    fn finish(&mut self, now: Instant) {
        let mut place = 0;
        while let Some(stream) = self.half.stream_at(place) {
            self.half.finish(now, stream);
            place += 1;
        }
    }

    fn reconfigure(&mut self, now: Instant, change: Reconfigure) -> Result<(), ReconfigureError> {
        match change {
            Reconfigure::Rate(rate) if !rate.is_zero() => {
                self.half.set_rate(now, Rate::smooth(rate)).map_err(|_| ReconfigureError::OutOfRange)?;
            }
            Reconfigure::Class(number) => {
                let class = Class::new(number).ok_or(ReconfigureError::OutOfRange)?;
                self.half.set_class(now, class).map_err(|_| ReconfigureError::OutOfRange)?;
            }
            Reconfigure::Rate(_) => return Err(ReconfigureError::OutOfRange),
            _ => return Err(ReconfigureError::Unsupported),
        }
        Ok(())
    }

    fn handle_feedback(&mut self, now: Instant, packet: &Feedback) {
        self.half.handle_report(now, &packet.report);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        let (number, outgoing) = self.half.poll_transmit(now, &mut self.counter, &mut self.parts)?;
        let ecn = self.half.ecn();
        Some(match outgoing {
            Outgoing::Data { body_bytes } => {
                self.count();
                Forward { number, ecn, body_bytes: body_bytes as u32, body: ForwardBody::Data(self.sent_parts()) }
            }
            Outgoing::Repair(repair) => {
                self.counters.packets_sent += 1;
                self.counters.packets_retransmitted += 1;
                Forward { number, ecn, body_bytes: repair.encoded_len() as u32, body: ForwardBody::Repair(repair) }
            }
            Outgoing::State(state) => Forward { number, ecn, body_bytes: state.encoded_len() as u32, body: ForwardBody::State(state) },
        })
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.half.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.half.handle_timeout(now);
    }

    fn poll_event(&mut self) -> Option<SenderEvent> {
        if let Some((stream, segment)) = self.started.pop_front() {
            return Some(SenderEvent::Started { stream, segment });
        }
        loop {
            if !self.judged.segments.is_empty() {
                let (stream, segment, verdict) = (self.judged.stream, self.judged.segments.start, self.judged.verdict);
                self.judged.segments.start = segment.next();
                return Some(SenderEvent::Judged { stream, segment, verdict });
            }
            return Some(match self.half.poll_event()? {
                SenderHalfEvent::Judged { stream, segments, verdict, .. } => {
                    self.judged = Run { stream, segments, verdict };
                    continue;
                }
                SenderHalfEvent::WindowOpen(stream) => SenderEvent::WindowOpen(stream),
                SenderHalfEvent::Reclassed(_) => SenderEvent::RateChanged(self.half.rate().unwrap_or(Bandwidth::ZERO)),
                SenderHalfEvent::RateChanged(rate) => SenderEvent::RateChanged(rate),
                SenderHalfEvent::CircuitBroken(broken) => {
                    self.broken.get_or_insert(broken);
                    continue;
                }
                SenderHalfEvent::Refused(..) | SenderHalfEvent::StreamsAvailable | SenderHalfEvent::Durable(..) => continue,
            });
        }
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.half.probe(out);
    }
}

/// The receiving half with a counter of its own, and an application that reads at once.
#[derive(Debug)]
pub struct LoneReceiver {
    /// The half.
    pub half: RecvHalf,
    counter: ShipmentCounter,
    events: VecDeque<ReceiverEvent>,
    /// The user, and the segments that it has not taken: their room stays theirs.
    user: User,
    unread: VecDeque<(StreamId, SegmentNumber)>,
}

impl LoneReceiver {
    /// A receiver; streams come from the sender's state.
    pub fn new(config: ReceiverConfig, now: Instant) -> Self {
        Self {
            half: RecvHalf::new(config, now),
            counter: ShipmentCounter::default(),
            events: VecDeque::new(),
            user: User::default(),
            unread: VecDeque::new(),
        }
    }

    /// The same with a user who is slow for a while (FC 3.4): the window follows what it has taken.
    #[must_use]
    pub fn with_slowdown(self, slowdown: Option<Slowdown>) -> Self {
        Self { user: User::new(slowdown), ..self }
    }

    /// The user takes what it can.
    fn read(&mut self, now: Instant) {
        while !self.unread.is_empty() && self.user.take(now) {
            if let Some((stream, segment)) = self.unread.pop_front() {
                self.half.release(now, stream, segment);
            }
        }
    }

    fn drain_deliveries(&mut self, now: Instant) {
        let mut place = 0;
        while let Some(id) = self.half.stream_at(place) {
            place += 1;
            while let Some(delivery) = self.half.poll_delivery(id) {
                self.unread.push_back((id, delivery.segment));
                self.events.push_back(ReceiverEvent::Delivered {
                    stream: id,
                    segment: delivery.segment,
                    verdict: delivery.verdict,
                    units: delivery.units,
                    holes: delivery.holes.iter().map(|hole| hole.len()).sum(),
                });
            }
            self.read(now);
            if let Some(segments) = self.half.poll_ended(now, id) {
                self.events.push_back(ReceiverEvent::Ended { stream: id, segments });
            }
        }
    }
}

impl Receiver for LoneReceiver {
    type Forward = Forward;
    type Feedback = Feedback;

    #[inline]
    fn handle_forward(&mut self, now: Instant, packet: &Forward) {
        if !self.half.on_shipment(now, packet.number, packet.encoded_len() as u64) {
            return;
        }
        match &packet.body {
            ForwardBody::Data(parts) => {
                for part in parts {
                    self.half.on_part(now, packet.number, part);
                }
            }
            ForwardBody::Repair(repair) => _ = self.half.on_repair(now, packet.number, repair),
            ForwardBody::State(state) => self.half.on_state(now, packet.number, state),
        }
        self.half.restore_synthetic(now);
        self.half.after_shipment(now);
        if self.half.take_deliverable() {
            self.drain_deliveries(now);
        }
    }

    fn note_congestion_mark(&mut self, _now: Instant) {
        self.half.note_congestion_mark();
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Feedback> {
        let report = self.half.poll_report(now)?;
        Some(Feedback { number: self.counter.take(), report })
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let reads = self.user.done_at().map(|at| Deadline { at, timer: "user" });
        Deadline::earlier(self.half.poll_timeout(), reads)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.user.done_at().is_some_and(|at| at <= now) {
            self.drain_deliveries(now);
        }
        if self.half.handle_timeout(now) && self.half.take_deliverable() {
            self.drain_deliveries(now);
        }
    }

    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.half.probe(out);
    }
}
