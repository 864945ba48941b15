//! What a connection does, event by event, for tools that record it: qlog, a log of losses.
//!
//! Filled by the connection if [`crate::config::Config::trace`] is on; read with [`crate::endpoint::Endpoint::poll_trace`]. Data shipments
//! that follow each other, and whose units do, are one event.
//!
//! Invariant: no event has payload, a key, a token, or a text of the application, except in [`CloseReason`] and in the contract of a
//! stream. At most [`EVENTS_MAX`] events wait to be read; what does not fit is counted.

use crate::error::CloseReason;
use core::net::SocketAddr;
use core::ops::Range;
use segstream_base::codec::Reader;
use segstream_base::halves::Verdict;
use segstream_base::{Bandwidth, Duration, Instant, Run, SegmentNumber, ShipmentNumber, StreamId, UnitIndex};
use segstream_blocks::loss_detector::LossDetector;
use segstream_wire::{Kind, Part, Repair, Report, ReportFrame, State, StateFrame};

/// How many events of a connection wait to be read.
pub const EVENTS_MAX: usize = 4096;
/// At most so often the state of the path is told, unless the phase of the controller changes.
const PATH_PERIOD: Duration = Duration::from_millis(10);

/// An event and when it happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    /// On the clock of the endpoint.
    pub at: Instant,
    /// What happened.
    pub event: TraceEvent,
}

impl Traced {
    /// About how much memory it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.event {
                TraceEvent::Sent(shipments) | TraceEvent::Received(shipments) => shipments.content.heap_bytes(),
                TraceEvent::SegmentJudged(SegmentJudged { holes, .. }) | TraceEvent::VerdictReceived { holes, .. } => size_of_val(&**holes),
                _ => 0,
            }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TraceEvent {
    /// Set-up is complete.
    Established,
    /// The connection has ended.
    Closed(CloseReason),
    /// The peer has another address.
    Migrated(SocketAddr),
    /// Shipments have left.
    Sent(Shipments),
    /// Shipments have arrived and were authenticated.
    Received(Shipments),
    /// A datagram was dropped.
    Dropped(DropCause),
    /// Shipments of the peer are declared lost (RFC 9002 6.1.1).
    ShipmentsLost {
        /// The number of the first.
        first: ShipmentNumber,
        /// How many follow one another.
        count: u64,
    },
    /// The application has submitted or opened a segment.
    SegmentSubmitted {
        /// The stream.
        stream: StreamId,
        /// The segment.
        segment: SegmentNumber,
        /// Its length; `None` of a segment that was opened before its length was known.
        bytes: Option<u64>,
        /// The source's time, as the peer is told it: in whole microseconds.
        source_time: Instant,
    },
    /// A segment of the peer was judged here.
    SegmentJudged(SegmentJudged),
    /// The verdict on a segment of ours has come, or on a run of segments.
    VerdictReceived {
        /// The stream.
        stream: StreamId,
        /// The segments.
        segments: Range<SegmentNumber>,
        /// The verdict.
        verdict: Verdict,
        /// The holes, in ascending order.
        holes: Vec<Run<UnitIndex>>,
    },
    /// What is known of the path in our direction has changed.
    PathUpdated(PathState),
    /// So many events were not kept.
    Omitted(u64),
}

/// Shipments of one kind with consecutive numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shipments {
    /// Their kind.
    pub kind: Kind,
    /// The number of the first.
    pub first: ShipmentNumber,
    /// How many.
    pub count: u64,
    /// The bytes of their datagrams together.
    pub bytes: u64,
    /// What they carry.
    pub content: Content,
}

/// What shipments carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing that is told: set-up, close, challenges.
    Untold,
    /// Units of one segment, those of all the shipments together.
    Part(Part),
    /// Parts of several segments.
    Parts(Box<[Part]>),
    /// Repair units of one segment.
    Repair(Repair),
    /// The sender's state.
    State(Box<State>),
    /// The receiver's state.
    Report(Box<Report>),
}

impl Content {
    fn heap_bytes(&self) -> usize {
        let of_state = |frame: &StateFrame| match frame {
            StateFrame::Open { contract, .. } => size_of_val(&**contract) + contract.label.len(),
            _ => 0,
        };
        let of_report = |frame: &ReportFrame| match frame {
            ReportFrame::Judged { holes, .. } => size_of_val(&**holes),
            ReportFrame::Request { missing, .. } => size_of_val(&**missing),
            _ => 0,
        };
        match self {
            Self::Untold | Self::Part(_) | Self::Repair(_) => 0,
            Self::Parts(parts) => size_of_val(&**parts),
            Self::State(state) => size_of_val(&**state) + size_of_val(&*state.frames) + state.frames.iter().map(of_state).sum::<usize>(),
            Self::Report(report) => {
                size_of_val(&**report) + size_of_val(&*report.frames) + report.frames.iter().map(of_report).sum::<usize>()
            }
        }
    }
}

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// It failed authentication.
    Authentication,
    /// Its number was seen before.
    Duplicate,
    /// It could not be decoded.
    Malformed,
}

/// A segment of the peer and its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentJudged {
    /// The stream.
    pub stream: StreamId,
    /// The segment.
    pub segment: SegmentNumber,
    /// The verdict.
    pub verdict: Verdict,
    /// How many units it has.
    pub units: u32,
    /// How many of them were declared lost at any time.
    pub units_lost: u32,
    /// Those that are missing, in ascending order.
    pub holes: Vec<Run<UnitIndex>>,
    /// When the first of its units or repair units arrived; `None` when none did.
    pub first_arrival: Option<Instant>,
    /// The source's time, on the clock of the peer.
    pub source_time: Instant,
    /// From the source's time to the verdict, less the least of the connection so far; `None` if it has expired.
    pub delay_over_least: Option<Duration>,
}

/// What is known of the path in our direction. What is not known is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathState {
    /// The smallest and the smoothed round trip.
    pub rtt: Option<(Duration, Duration)>,
    /// The rate in force, in whole IP packets; `None` when unpaced.
    pub rate: Option<Bandwidth>,
    /// Bytes in flight, in whole IP packets.
    pub in_flight_bytes: u64,
    /// The cap of them; `None` without a controller.
    pub in_flight_cap_bytes: Option<u64>,
    /// The standing queue, in milliseconds.
    pub queue_ms: Option<f64>,
    /// The spacing of exchanges where they arrive over their spacing where they left (HT 3.2).
    pub rho: Option<f64>,
    /// The delivery rate, in whole IP packets.
    pub delivery_bps: Option<f64>,
    /// The phase of the controller.
    pub phase: Option<&'static str>,
}

/// Which way shipments go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Sent,
    Received,
}

/// The events of one connection.
#[derive(Debug)]
pub(crate) struct Trace {
    now: Instant,
    events: Vec<Traced>,
    omitted: u64,
    /// Shipments below this number have arrived, or are declared lost.
    judged_until: u64,
    /// The last run of lost shipments, which may go on: the first, and how many.
    lost_run: Option<(u64, u64)>,
    path: PathState,
    path_due: Instant,
}

impl Trace {
    pub(crate) const fn new(now: Instant) -> Self {
        let path = PathState {
            rtt: None,
            rate: None,
            in_flight_bytes: 0,
            in_flight_cap_bytes: None,
            queue_ms: None,
            rho: None,
            delivery_bps: None,
            phase: None,
        };
        Self { now, events: Vec::new(), omitted: 0, judged_until: 0, lost_run: None, path, path_due: now }
    }

    /// What happens from here on happens at `now`.
    pub(crate) const fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    pub(crate) fn push(&mut self, event: TraceEvent) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(Traced { at: self.now, event });
        } else {
            self.omitted += 1;
        }
    }

    /// A shipment with this body leaves or has arrived.
    pub(crate) fn on_shipment(&mut self, direction: Direction, kind: Kind, number: ShipmentNumber, datagram_bytes: u64, body: &[u8]) {
        let content = content(kind, body);
        if let Content::Part(part) = &content
            && self.continues(direction, number, datagram_bytes, part)
        {
            return;
        }
        let shipments = Shipments { kind, first: number, count: 1, bytes: datagram_bytes, content };
        self.push(match direction {
            Direction::Sent => TraceEvent::Sent(shipments),
            Direction::Received => TraceEvent::Received(shipments),
        });
    }

    /// Adds a data shipment to the last event, if it continues that.
    fn continues(&mut self, direction: Direction, number: ShipmentNumber, datagram_bytes: u64, part: &Part) -> bool {
        let Some(Traced { at, event }) = self.events.last_mut() else { return false };
        let ((TraceEvent::Sent(last), Direction::Sent) | (TraceEvent::Received(last), Direction::Received)) = (event, direction) else {
            return false;
        };
        let Content::Part(before) = &mut last.content else { return false };
        let continued = Part { first: part.first, count: part.count, payload_bytes: part.payload_bytes, ..*before };
        if *at != self.now || last.first + last.count != number || before.end() != part.first || continued != *part {
            return false;
        }
        before.count += part.count;
        before.payload_bytes += part.payload_bytes;
        last.count += 1;
        last.bytes += datagram_bytes;
        true
    }

    /// Shipment `number` of the peer is about to be taken by `detector`: notes the numbers that it thereby declares lost.
    pub(crate) fn before_arrival(&mut self, detector: &LossDetector, number: u64) {
        let expected = detector.highest().map_or(0, |highest| highest + 1);
        if number < expected {
            return;
        }
        let until = number.saturating_sub(u64::from(detector.reorder()));
        while self.judged_until < until.min(expected) {
            let judged = self.judged_until;
            self.judged_until += 1;
            if detector.has_arrived(judged) {
                self.end_lost_run();
            } else {
                self.add_lost(judged, 1);
            }
        }
        // Nothing of these has come.
        if self.judged_until < until {
            let first = core::mem::replace(&mut self.judged_until, until);
            self.add_lost(first, until - first);
        }
    }

    fn add_lost(&mut self, first: u64, count: u64) {
        match &mut self.lost_run {
            Some((_, before)) => *before += count,
            None => self.lost_run = Some((first, count)),
        }
    }

    /// Tells the run of lost shipments that has ended.
    pub(crate) fn end_lost_run(&mut self) {
        if let Some((first, count)) = self.lost_run.take() {
            self.push(TraceEvent::ShipmentsLost { first: ShipmentNumber(first), count });
        }
    }

    /// Whether the state of the path may be told now, whose controller is in `phase`.
    pub(crate) fn wants_path(&self, phase: Option<&'static str>) -> bool {
        phase != self.path.phase || self.now >= self.path_due
    }

    /// The state of the path is `path` now; asked for after [`Trace::wants_path`].
    pub(crate) fn on_path(&mut self, path: PathState) {
        debug_assert!(self.wants_path(path.phase), "the state of the path comes before it is due");
        if path != self.path {
            self.path = path;
            self.path_due = self.now + PATH_PERIOD;
            self.push(TraceEvent::PathUpdated(path));
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Takes what has happened.
    pub(crate) fn take(&mut self) -> Vec<Traced> {
        let mut events = core::mem::take(&mut self.events);
        if self.omitted > 0 {
            events.push(Traced { at: self.now, event: TraceEvent::Omitted(core::mem::take(&mut self.omitted)) });
        }
        events
    }
}

/// What a data shipment carries.
///
/// Why the first by itself: most shipments have one part, and an allocation for each would cost more than all else that is traced of them.
fn parts(input: &mut Reader<'_>) -> Content {
    let mut first = Part::default();
    if first.read(input).is_err() {
        return Content::Parts(Box::default());
    }
    let mut others = Vec::new();
    while !input.is_empty() {
        let mut part = Part::default();
        if part.read(input).is_err() {
            break;
        }
        if others.is_empty() {
            others.push(first);
        }
        others.push(part);
    }
    if others.is_empty() { Content::Part(first) } else { Content::Parts(others.into()) }
}

/// What a shipment of `kind` carries.
fn content(kind: Kind, body: &[u8]) -> Content {
    let mut input = Reader::new(body);
    match kind {
        Kind::Data => parts(&mut input),
        Kind::Repair => Repair::decode(&mut input).map_or(Content::Untold, |(repair, _)| Content::Repair(repair)),
        Kind::State => State::decode(&mut input).map_or(Content::Untold, |state| Content::State(state.into())),
        Kind::Report => Report::decode(&mut input).map_or(Content::Untold, |report| Content::Report(report.into())),
        _ => Content::Untold,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::Position;
    use segstream_base::codec::Writer;

    fn body(parts: &[Part]) -> Vec<u8> {
        let mut body = vec![0; 4096];
        let mut writer = Writer::new(&mut body);
        for part in parts {
            part.encode_header(&mut writer);
            writer.bytes(&vec![7; part.payload_bytes as usize]);
        }
        let length = writer.finish().unwrap();
        body.truncate(length);
        body
    }

    fn part(first: u32) -> Part {
        Part { first: Position(first), count: 2, length: Some(1000), payload_bytes: 20, ..Part::default() }
    }

    #[test]
    fn data_shipments_that_continue_each_other_are_one_event_and_others_are_not() {
        let mut trace = Trace::new(Instant::ZERO);
        for (number, first) in [(5, 0), (6, 2), (7, 4), (9, 6), (10, 9)] {
            trace.on_shipment(Direction::Sent, Kind::Data, ShipmentNumber(number), 100, &body(&[part(first)]));
        }
        trace.on_shipment(Direction::Received, Kind::Data, ShipmentNumber(11), 100, &body(&[part(11)]));
        trace.on_shipment(Direction::Received, Kind::Data, ShipmentNumber(12), 100, &body(&[part(13), part(40)]));
        let events = trace.take();
        let runs: Vec<(u64, u64, u64)> = events
            .iter()
            .map(|traced| match &traced.event {
                TraceEvent::Sent(run) | TraceEvent::Received(run) => (run.first.0, run.count, run.bytes),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(runs, [(5, 3, 300), (9, 1, 100), (10, 1, 100), (11, 1, 100), (12, 1, 100)]);
        let TraceEvent::Sent(Shipments { content: Content::Part(whole), .. }) = &events[0].event else { panic!("{:?}", events[0]) };
        assert_eq!((whole.first, whole.count, whole.payload_bytes), (Position(0), 6, 60));
        assert!(matches!(&events[4].event, TraceEvent::Received(Shipments { content: Content::Parts(parts), .. }) if parts.len() == 2));
    }

    #[test]
    fn every_number_declared_lost_is_told_once_in_runs() {
        let (mut detector, mut trace) = (LossDetector::new(3, true), Trace::new(Instant::ZERO));
        for number in [0, 1, 4, 5, 6, 9, 10, 11, 8, 12, 13, 14, 5000, 5001, 5004, 5005, 5006, 5007, 5008, 5003] {
            trace.before_arrival(&detector, number);
            detector.on_arrival(number);
        }
        trace.end_lost_run();
        let told: Vec<(u64, u64)> = trace
            .take()
            .into_iter()
            .filter_map(|traced| if let TraceEvent::ShipmentsLost { first, count } = traced.event { Some((first.0, count)) } else { None })
            .collect();
        assert_eq!(told.iter().map(|(_, count)| count).sum::<u64>(), detector.newly_lost(), "{told:?}");
        assert_eq!(told, [(2, 2), (7, 1), (15, 4985), (5002, 2)]);
    }

    #[test]
    fn what_nobody_reads_is_counted_and_not_kept() {
        let mut trace = Trace::new(Instant::ZERO);
        (0..EVENTS_MAX + 10).for_each(|_| trace.push(TraceEvent::Established));
        let events = trace.take();
        assert_eq!(events.len(), EVENTS_MAX + 1);
        assert_eq!(events.last().map(|traced| traced.event.clone()), Some(TraceEvent::Omitted(10)));
        assert!(trace.is_empty());
    }
}
