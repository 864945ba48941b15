//! Stop and wait, as a pair of halves: one unit is under way at a time. A sender that tries each unit only
//! so often leaves holes, which the receiver calls tolerated.

use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{
    Packet, PayloadSpan, Probe, Receiver, ReceiverEvent, Reconfigure, ReconfigureError, Segment, SegmentNumber, Sender, SenderCounters,
    SenderEvent, StreamId, SubmitError, Verdict,
};
use segstream_base::{Duration, Instant, endpoint::Deadline};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const HEADER_BYTES: usize = 1 + 8 + 4 + 4 + 4 + 2;
const WINDOW: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Forward {
    Data { segment: u64, unit: u32, units: u32, unit_bytes: u32, bytes: u16 },
    End { segment: u64, units: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Feedback {
    Ack { segment: u64, unit: u32 },
    Judged { segment: u64, holes: u32 },
}

impl Packet for Forward {
    fn encoded_len(&self) -> usize {
        match self {
            Self::Data { bytes, .. } => HEADER_BYTES + usize::from(*bytes),
            Self::End { .. } => 13,
        }
    }

    fn encode(&self, out: &mut Writer<'_>) {
        match *self {
            Self::Data { segment, unit, units, unit_bytes, bytes } => {
                out.u8(0);
                out.u64(segment);
                out.u32(unit);
                out.u32(units);
                out.u32(unit_bytes);
                out.u16(bytes);
                if let Some(room) = out.reserve(bytes.into()) {
                    room.fill(0);
                }
            }
            Self::End { segment, units } => {
                out.u8(1);
                out.u64(segment);
                out.u32(units);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let packet = match input.u8("type")? {
            0 => {
                let (segment, unit, units) = (input.u64("segment")?, input.u32("unit")?, input.u32("units")?);
                let (unit_bytes, bytes) = (input.u32("unit bytes")?, input.u16("bytes")?);
                input.bytes(bytes.into(), "payload")?;
                Self::Data { segment, unit, units, unit_bytes, bytes }
            }
            1 => Self::End { segment: input.u64("segment")?, units: input.u32("units")? },
            other => return Err(input.error("type", DecodeErrorKind::UnknownType(other.into()))),
        };
        input.finish("packet")?;
        Ok(packet)
    }

    fn is_data(&self) -> bool {
        matches!(self, Self::Data { .. })
    }

    fn payload(&self, index: usize) -> Option<PayloadSpan> {
        let Self::Data { segment, unit, unit_bytes, bytes, .. } = *self else { return None };
        (index == 0).then_some(PayloadSpan {
            at: HEADER_BYTES,
            bytes: bytes.into(),
            stream: StreamId(0),
            segment: SegmentNumber(segment),
            offset: u64::from(unit) * u64::from(unit_bytes),
        })
    }
}

impl Packet for Feedback {
    fn encoded_len(&self) -> usize {
        13
    }

    fn encode(&self, out: &mut Writer<'_>) {
        let (kind, segment, number) = match *self {
            Self::Ack { segment, unit } => (0, segment, unit),
            Self::Judged { segment, holes } => (1, segment, holes),
        };
        out.u8(kind);
        out.u64(segment);
        out.u32(number);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (kind, segment, number) = (input.u8("type")?, input.u64("segment")?, input.u32("number")?);
        input.finish("packet")?;
        match kind {
            0 => Ok(Self::Ack { segment, unit: number }),
            1 => Ok(Self::Judged { segment, holes: number }),
            other => Err(input.error("type", DecodeErrorKind::UnknownType(other.into()))),
        }
    }

    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _: usize) -> Option<PayloadSpan> {
        None
    }
}

#[derive(Debug)]
pub(crate) struct StopAndWaitSender {
    unit_bytes: u32,
    /// How often a unit is sent at most.
    tries: u32,
    timeout: Duration,
    waiting: VecDeque<(u64, u64)>,
    next: u64,
    unit: u32,
    tried: u32,
    due: Option<Instant>,
    blocked: bool,
    events: VecDeque<SenderEvent>,
    counters: SenderCounters,
    pub(crate) finished: bool,
}

impl StopAndWaitSender {
    pub(crate) fn new(unit_bytes: u32, tries: u32, timeout: Duration) -> Self {
        let counters = SenderCounters::default();
        Self {
            unit_bytes,
            tries,
            timeout,
            waiting: VecDeque::new(),
            next: 0,
            unit: 0,
            tried: 0,
            due: None,
            blocked: false,
            events: VecDeque::new(),
            counters,
            finished: false,
        }
    }

    fn units(&self, length: u64) -> u32 {
        length.div_ceil(self.unit_bytes.into()) as u32
    }

    fn advance(&mut self) {
        self.unit += 1;
        self.tried = 0;
        self.due = None;
    }
}

impl Sender for StopAndWaitSender {
    type Forward = Forward;
    type Feedback = Feedback;

    fn submit(&mut self, _: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        let Some(bytes) = segment.bytes.filter(|_| !self.finished) else { return Err(SubmitError::Finished) };
        if self.units(bytes) > 100_000 {
            return Err(SubmitError::TooLong { units: self.units(bytes).into(), window: 100_000 });
        }
        if self.waiting.len() == WINDOW {
            self.blocked = true;
            return Err(SubmitError::Blocked);
        }
        self.waiting.push_back((self.next, bytes));
        self.next += 1;
        Ok(SegmentNumber(self.next - 1))
    }

    fn finish(&mut self, _: Instant) {
        self.finished = true;
    }

    fn reconfigure(&mut self, _: Instant, _: Reconfigure) -> Result<(), ReconfigureError> {
        Err(ReconfigureError::Unsupported)
    }

    fn handle_feedback(&mut self, _: Instant, packet: &Feedback) {
        let Some(&(current, length)) = self.waiting.front() else { return };
        match *packet {
            Feedback::Ack { segment, unit } if segment == current && unit == self.unit => self.advance(),
            Feedback::Judged { segment, holes } if segment == current && self.unit >= self.units(length) => {
                let verdict = if holes == 0 { Verdict::Complete } else { Verdict::WithinTolerance };
                self.events.push_back(SenderEvent::Judged { stream: StreamId(0), segment: SegmentNumber(segment), verdict });
                self.waiting.pop_front();
                (self.unit, self.tried, self.due) = (0, 0, None);
                if std::mem::take(&mut self.blocked) {
                    self.events.push_back(SenderEvent::WindowOpen(StreamId(0)));
                }
            }
            _ => {}
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        let &(segment, length) = self.waiting.front()?;
        if self.due.is_some() {
            return None;
        }
        let units = self.units(length);
        if self.unit < units && self.tried == self.tries {
            self.advance();
        }
        self.due = Some(now + self.timeout);
        self.tried += 1;
        if self.unit >= units {
            return Some(Forward::End { segment, units });
        }
        self.counters.packets_sent += 1;
        self.counters.packets_retransmitted += u64::from(self.tried > 1);
        let bytes = (length - u64::from(self.unit) * u64::from(self.unit_bytes)).min(self.unit_bytes.into()) as u16;
        Some(Forward::Data { segment, unit: self.unit, units, unit_bytes: self.unit_bytes, bytes })
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.due.map(|at| Deadline { at, timer: "again" })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.due = self.due.filter(|due| *due > now);
    }

    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("waiting_segments", self.waiting.len() as f64);
    }
}

#[derive(Debug, Default)]
pub(crate) struct StopAndWaitReceiver {
    came: BTreeMap<u64, BTreeSet<u32>>,
    judged: BTreeMap<u64, u32>,
    out: VecDeque<Feedback>,
    events: VecDeque<ReceiverEvent>,
}

impl Receiver for StopAndWaitReceiver {
    type Forward = Forward;
    type Feedback = Feedback;

    fn handle_forward(&mut self, _: Instant, packet: &Forward) {
        match *packet {
            Forward::Data { segment, unit, .. } => {
                if !self.judged.contains_key(&segment) {
                    self.came.entry(segment).or_default().insert(unit);
                }
                self.out.push_back(Feedback::Ack { segment, unit });
            }
            Forward::End { segment, units } => {
                let came = self.came.remove(&segment).unwrap_or_default();
                let holes = units.saturating_sub(came.len() as u32);
                let (events, stream, segment_number) = (&mut self.events, StreamId(0), SegmentNumber(segment));
                let holes = *self.judged.entry(segment).or_insert_with(|| {
                    let verdict = if holes == 0 { Verdict::Complete } else { Verdict::WithinTolerance };
                    events.push_back(ReceiverEvent::Delivered { stream, segment: segment_number, verdict, units, holes });
                    holes
                });
                self.out.push_back(Feedback::Judged { segment, holes });
            }
        }
    }

    fn poll_transmit(&mut self, _: Instant) -> Option<Feedback> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("judged_segments", self.judged.len() as f64);
    }
}
