//! The receiving half of the flagship: all streams of one direction.
//!
//! It dispatches; its parts decide:
//! - `arrivals`: what the numbers of shipments tell: `arrival_counters` counts them all, `frontier` says up to where in the sending order
//!   missing units are declared lost;
//! - `statements`: what the sender's state says;
//! - `segment`: which positions are present and which are declared lost; `hole_list`: the holes of a large one;
//! - `stream_credit`: how many streams the peer may open; `retirement`: how ended streams are removed;
//! - `stream`: the window, and the order in which segments are delivered;
//! - `window_limits`: how far windows are lowered to what is allowed;
//! - `judge`: verdicts: acceptance, violation, expiry; `unfinished`: those that take more than one turn;
//! - `delivery`: what the application takes; `durability`: what it has in safety;
//! - `repair`: repair units, and the segments that they restore;
//! - `report`: when the receiver's state is due, its frames, and what it repeats;
//! - `pending_events`: what the connection has not asked for yet; `segment_times`, `verdict_log`: what its statistics and its trace are told
//!   of verdicts;
//! - `connection_api`: what the connection reads;
//! - `invariants`: what debug builds check.
//!
//! Called by the connection, and through [`crate::halves`] by the simulator. Payload bytes are elsewhere
//! ([`crate::store`]).
//!
//! Invariant: what a peer sends changes only segments inside the granted window, allocates no more than
//! the window, and never panics.

mod arrival_counters;
mod arrivals;
mod connection_api;
mod delivery;
mod durability;
mod frontier;
mod hole_list;
mod invariants;
mod judge;
mod pending_events;
mod repair;
mod report;
mod retirement;
pub(crate) mod segment;
mod segment_times;
mod statements;
pub(crate) mod stream;
mod stream_credit;
mod unfinished;
mod verdict_log;
mod window_limits;

use crate::endpoint::memory_budget::MemoryAccount;
use crate::live_streams::LiveStreams;
use arrivals::Arrivals;
use durability::Confirmations;
use frontier::Passed;
use judge::Judging;
use pending_events::PendingEvents;
pub(crate) use repair::Recovery;
use repair::Repairs;
use report::Reports;
use segment::{About, RecvSegment};
pub use segment_times::SegmentTimes;
use segstream_base::endpoint::Deadline;
use segstream_base::halves::{Probe, Verdict};
use segstream_base::{Duration, Instant, Position, Run, SegmentNumber, ShipmentNumber, StreamId, UnitIndex};
use segstream_wire::contract::Contract;
use segstream_wire::report::RefuseReason;
use segstream_wire::{Class, Part, ReportFrame};
use stream::{Admission, RecvStream};
use stream_credit::StreamCredit;
use unfinished::Unfinished;
pub use window_limits::SEGMENT_STATE_BYTES;

/// What a receiving half must know of the connection.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// The class in force.
    pub class: Class,
    /// The most that a change of class may ask for.
    pub class_max: Class,
    /// Whether a change of class may leave neither flow control nor rate control.
    pub unlimited: bool,
    /// Bytes of frames a report shipment may carry.
    pub body_bytes: usize,
    /// Bytes a datagram takes on the path beyond itself, when those that arrive are counted: UDP and IP.
    pub overhead_bytes: usize,
    /// The reordering threshold R at first; 3 on UDP.
    pub reorder: u32,
    /// Whether R grows when a shipment declared lost turns out to have been late.
    pub reorder_adapting: bool,
    /// The most streams of the peer that may be live at a time.
    pub streams_max: u32,
    /// The most payload of one stream that is kept, in bytes.
    pub stream_window_bytes: u64,
    /// The most that is kept of all streams together, payload and state, in bytes; a further stream still gets 64 KiB.
    pub connection_window_bytes: u64,
    /// The most segments in the window of one stream.
    pub window_segments_max: u32,
    /// What is really kept of a stream, in bytes, when that is less than the window it advertises (FC 4.3.1,
    /// hard acknowledgment): what does not fit is dropped and asked for again, in the hope that it fits a round
    /// trip later. For study; `None`, the window itself, is what every connection has.
    pub buffer_bytes: Option<u64>,
}

/// The outcome of a part, for the owner of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartOutcome {
    /// At least one of its units is new: the payload must be stored.
    Fresh,
    /// Nothing of it is new.
    Stale,
    /// It exceeds the window or contradicts earlier parts; it is dropped.
    Refused,
}

/// A segment the application may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The stream.
    pub stream: StreamId,
    /// The segment.
    pub segment: SegmentNumber,
    /// The verdict.
    pub verdict: Verdict,
    /// Units.
    pub units: u32,
    /// Length in bytes.
    pub length: u64,
    /// The holes, in ascending order.
    pub holes: Vec<Run<UnitIndex>>,
    /// The source's time; zero when nothing of the segment told it.
    pub source_time: Instant,
    /// When the first of its units or repair units arrived; `None` when none did.
    pub first_arrival: Option<Instant>,
    /// When it was judged.
    pub judged_at: Instant,
}

/// Counters of a receiving half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Units that arrived for the first time.
    pub units_received: u64,
    /// Units that arrived although they were present.
    pub units_duplicate: u64,
    /// Units declared lost, including those repaired later.
    pub units_detected_lost: u64,
    /// Units declared lost that the tolerance allowed.
    pub units_tolerated: u64,
    /// Repair units that arrived for the first time and were kept.
    pub repair_units_received: u64,
    /// Units that repair units restored.
    pub units_restored: u64,
    /// Segments of which any unit was restored.
    pub segments_restored: u64,
    /// Of them, those restored before any repair unit that was asked for could come.
    pub round_trips_saved: u64,
    /// Parts outside the window, or contradicting what was known.
    pub parts_refused: u64,
    /// Report shipments made.
    pub report_shipments: u64,
    /// Segments by verdict: complete, within tolerance, expired.
    pub segments: [u64; 3],
    /// Segments that the application has confirmed.
    pub segments_confirmed: u64,
    /// The longest run of missing units in any judged segment.
    pub holes_longest_run: u32,
}

/// The receiving half.
#[derive(Debug)]
pub struct RecvHalf {
    pub(crate) config: ReceiverConfig,
    pub(crate) arrivals: Arrivals,
    pub(crate) streams: LiveStreams<RecvStream>,
    credit: StreamCredit,
    /// A stream can be retired since the application knows of it.
    may_retire: bool,
    reports: Reports,
    confirmations: Confirmations,
    /// What the streams are granted of the endpoint's budgets; none where there is no endpoint.
    memory: Option<MemoryAccount>,
    judging: Judging,
    unfinished: Unfinished,
    events: PendingEvents,
    repairs: Repairs,
    /// Counters.
    pub counters: ReceiverCounters,
}

impl RecvHalf {
    /// A half with no streams.
    pub fn new(config: ReceiverConfig, now: Instant) -> Self {
        Self {
            arrivals: Arrivals::new(config.reorder, config.reorder_adapting),
            config,
            streams: LiveStreams::default(),
            credit: StreamCredit::new(config.streams_max),
            may_retire: false,
            reports: Reports::new(now),
            confirmations: Confirmations::default(),
            memory: None,
            judging: Judging::default(),
            unfinished: Unfinished::default(),
            events: PendingEvents::default(),
            repairs: Repairs::default(),
            counters: ReceiverCounters::default(),
        }
    }

    /// Every authenticated shipment is announced here first, whatever it carries: when it was received, its number and
    /// the length of its datagram. False for a duplicate, which must not be looked at any further.
    #[inline]
    pub fn on_shipment(&mut self, received: Instant, number: ShipmentNumber, datagram_bytes: u64) -> bool {
        self.unfinished.begin_turn();
        self.unfinished.earn(datagram_bytes);
        self.arrivals.on_shipment(received, number, datagram_bytes + self.config.overhead_bytes as u64)
    }

    /// The shipment that is announced next was marked on a congested path (RFC 3168).
    pub const fn note_congestion_mark(&mut self) {
        self.arrivals.counters.note_mark();
    }

    /// Whether [`RecvHalf::after_shipment`] has anything to do.
    #[inline]
    pub(crate) fn has_passed(&self) -> bool {
        self.arrivals.has_passed()
    }

    /// After the contents of a shipment have been taken: what has now been passed.
    #[inline]
    pub fn after_shipment(&mut self, now: Instant) {
        while let Some((stream, passed)) = self.arrivals.pop_passed() {
            match passed {
                Passed::Frontier { segment, position } => self.advance_frontier(now, stream, (segment, position)),
                Passed::Skip { segment } => self.skip(now, stream, segment),
            }
        }
    }

    /// Takes a part that arrived in shipment `number`.
    #[inline]
    pub fn on_part(&mut self, now: Instant, number: ShipmentNumber, part: &Part) -> PartOutcome {
        if let Some(outcome) = self.on_part_in_sequence(now, part) {
            return outcome;
        }
        let id = part.stream;
        let about = About { opened: part.opened, length: part.length, own: part.tolerance, source_time: part.source_time };
        let admission = self.admit(now, id, part.segment, &about, part.end());
        if matches!(admission, Admission::Refused | Admission::NoRoom) {
            self.counters.parts_refused += 1;
            return PartOutcome::Refused;
        }
        let Some(stream) = self.streams.get_mut(id) else { return PartOutcome::Refused };
        let (mut fresh, mut present, mut evaluate, mut restorable, mut last) = (0, 0, false, false, None);
        if admission == Admission::Open
            && let Some(segment) = stream.segments.get_mut(part.segment)
        {
            fresh = segment.mark(part.first, part.count);
            present = part.count - fresh;
            segment.first_arrival.get_or_insert(now);
            restorable = fresh > 0 && segment.code.is_some();
            evaluate = segment.needs_judging();
            last = segment.layout.units;
        } else if let Some(segment) = stream.segments.get(part.segment) {
            present = if segment.judgement.verdict == Some(Verdict::Complete) { part.count } else { 0 };
            last = segment.layout.units;
        }
        self.counters.units_received += u64::from(fresh);
        self.counters.units_duplicate += u64::from(present);
        if !part.retransmission {
            self.on_first_time(now, number, part, last == Some(part.end().0));
        }
        if evaluate {
            self.reevaluate(now, id, part.segment);
        }
        if restorable {
            self.note_restorable(id, part.segment);
        }
        self.reports.schedule.on_data();
        if fresh > 0 { PartOutcome::Fresh } else { PartOutcome::Stale }
    }

    /// Takes a part that goes on where the stream has come to, in the middle of a segment of which everything is known; `None` for any other.
    ///
    /// Why: most parts do, and only its positions and the frontier change then.
    #[inline]
    fn on_part_in_sequence(&mut self, now: Instant, part: &Part) -> Option<PartOutcome> {
        let stream = self.streams.get_mut(part.stream)?;
        let segment = stream.segments.get_mut(part.segment)?;
        let (start, end) = ((part.segment, part.first), part.end());
        let is_within = segment.has_room_for(part.length, end) && segment.layout.units.is_some_and(|units| end.0 < units);
        if part.retransmission || !is_within || segment.code.is_some() || !stream.progress.is_at(start) {
            return None;
        }
        let fresh = segment.mark(part.first, part.count);
        segment.first_arrival.get_or_insert(now);
        segment.presence.due = end;
        stream.progress.step((part.segment, end));
        self.counters.units_received += u64::from(fresh);
        self.counters.units_duplicate += u64::from(part.count - fresh);
        self.reports.schedule.on_data();
        if segment.needs_judging() {
            self.reevaluate(now, part.stream, part.segment);
        }
        Some(if fresh > 0 { PartOutcome::Fresh } else { PartOutcome::Stale })
    }

    #[inline]
    fn admit(&mut self, now: Instant, id: StreamId, segment: SegmentNumber, about: &About, end: Position) -> Admission {
        loop {
            let Some(stream) = self.streams.get_mut(id) else { return Admission::Refused };
            let admission = stream.admit(segment, about, end, self.config.class, &mut self.unfinished.places_left);
            let full = admission == Admission::NoRoom && !self.config.class.flow_control();
            if !full || !self.make_room(now, id, segment, about) {
                return admission;
            }
        }
    }

    /// A first-time part: everything before it in sending order has left in earlier shipments. `whole`: its segment ends with it.
    #[inline]
    fn on_first_time(&mut self, now: Instant, number: ShipmentNumber, part: &Part, whole: bool) {
        let Some(stream) = self.streams.get_mut(part.stream) else { return };
        let (start, end) = ((part.segment, part.first), (part.segment, part.end()));
        let end = if whole { (part.segment + 1, Position::FIRST) } else { end };
        if stream.progress.on_first_time(start, end) {
            // Nothing before it is missing that is not known already: no need to wait for R more.
            if stream.step_frontier(part.segment, end) {
                self.reevaluate(now, part.stream, part.segment);
            }
        } else if stream.progress.begins_run(start) {
            self.arrivals.frontier.push(number, part.stream, Passed::Frontier { segment: start.0, position: start.1 });
        }
    }

    /// Moves the frontier of a stream as far as the turn goes, and in further turns the rest of the way.
    fn advance_frontier(&mut self, now: Instant, id: StreamId, to: (SegmentNumber, Position)) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Some((touched, lost, arrived)) = stream.advance_frontier(to, self.unfinished.segments_left) else { return };
        self.unfinished.segments_left -= touched.end.since(touched.start).min(self.unfinished.segments_left);
        if !arrived {
            self.unfinished.go_on_to(id, to);
        }
        self.counters.units_detected_lost += u64::from(lost);
        for number in touched.start.up_to(touched.end) {
            let Some(stream) = self.streams.get(id) else { return };
            if stream.segments.get(number).is_some_and(RecvSegment::needs_judging) {
                self.reevaluate(now, id, number);
            }
        }
    }

    fn skip(&mut self, now: Instant, id: StreamId, number: SegmentNumber) {
        if let Some(stream) = self.streams.get_mut(id)
            && let Some(segment) = stream.segments.get_mut(number)
        {
            segment.skipped = true;
        }
        self.reevaluate(now, id, number);
    }

    /// Opens a stream the peer announces, with the window lowered to what is allowed here.
    pub fn open(&mut self, now: Instant, id: StreamId, contract: &Contract) {
        if self.streams.get(id).is_some() {
            self.reports.schedule.report_delayed(now);
            return;
        }
        if self.has_retired(id) {
            self.answer_for_retired(now, id);
            return;
        }
        if self.may_retire {
            self.retire_ended(now);
        }
        self.reports.schedule.report_now(now);
        if !self.credit.allows_one_more() {
            self.reports.composition.on_refused(id, RefuseReason::TooManyStreams);
            return;
        }
        self.remove_retired();
        let Some((contract, kept_max)) = self.limited_to_budget(contract) else {
            self.reports.composition.on_refused(id, RefuseReason::TooManyStreams);
            return;
        };
        let buffer_units = self.config.buffer_bytes.map(|bytes| bytes / u64::from(contract.unit_bytes.max(1)));
        let mut stream = RecvStream::new(contract, kept_max, buffer_units);
        stream.durability = self.confirmations.of_new_stream();
        self.streams.insert(id, stream);
        self.credit.on_opened(id);
        self.events.opened.push_back(id);
        self.events.streams_changed = true;
    }

    /// The grant frames of the streams that are open, for a connection confirm.
    pub fn grants(&self) -> Vec<ReportFrame> {
        self.streams.numbers().zip(self.streams.iter()).map(|(id, stream)| report::grant(id, stream)).collect()
    }

    /// The contract of a stream.
    pub fn contract(&self, stream: StreamId) -> Option<&Contract> {
        self.streams.get(stream).map(|stream| &stream.contract)
    }

    /// The round trip as the peer's side of the connection measures it, which paces reports.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.reports.schedule.set_rtt(rtt);
    }

    /// When and why the half wants to be polled for a report, or wants [`RecvHalf::handle_timeout`].
    #[inline]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        Deadline::earlier(self.turn_due(), self.report_due())
    }

    /// The number of the stream at `place` among those there are, in order: those that are live, and those that have ended
    /// since the last one was opened.
    pub fn stream_at(&self, place: usize) -> Option<StreamId> {
        (place < self.streams.len()).then(|| self.streams.number(place))
    }

    /// Writes the half's gauges.
    pub fn probe(&self, out: &mut dyn Probe) {
        out.gauge("segments_wanting", self.judging.in_repair as f64);
        out.gauge("verdicts_unconfirmed", self.reports.verdicts.unconfirmed() as f64);
        out.gauge("reordering_threshold_shipments", f64::from(self.arrivals.detector.reorder()));
        let free: u64 = self.streams.iter().map(|stream| stream.room.free_units()).sum();
        out.gauge("units_free", free as f64);
    }

    /// Whether any stream has segments that are not judged, or an end that has not come.
    pub fn has_unfinished(&self) -> bool {
        self.streams.iter().any(|stream| !stream.is_over())
    }

    /// The state of a segment that is not delivered yet: (present positions, layout), for progressive reading.
    pub fn segment_layout(&self, stream: StreamId, segment: SegmentNumber) -> Option<&crate::layout::Layout> {
        Some(&self.streams.get(stream)?.segments.get(segment)?.layout)
    }
}
