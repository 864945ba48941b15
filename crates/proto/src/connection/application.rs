//! The application's interface of a connection: streams, segments, verdicts, statistics.
//!
//! Called by the facade and by tests. Invariant: a call that returns an error changes nothing.

use super::{Connection, ConnectionEvent};
use crate::error::{ConfirmError, OpenStreamError};
use crate::rate::{Rate, RateError};
use crate::receiver::{ReceiverCounters, SegmentTimes};
use crate::sender::{Durable, SenderCounters, StreamCounters};
use bytes::Bytes;
use segstream_base::halves::{Probe, SubmitError, Verdict};
use segstream_base::{Bandwidth, Duration, Instant, Position, Run, SegmentNumber, StreamId, Tolerance, UnitIndex};
use segstream_blocks::Histogram;
use segstream_wire::contract::{Contract, ContractError, check_tolerance};
use segstream_wire::{Class, Limits, Part};

/// A judged segment with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The stream.
    pub stream: StreamId,
    /// The segment.
    pub segment: SegmentNumber,
    /// The verdict.
    pub verdict: Verdict,
    /// The bytes, zero where units are missing. Empty when the segment is longer than the whole window: then nothing
    /// of it was ever sent.
    pub bytes: Bytes,
    /// Units.
    pub units: u32,
    /// The size of a unit.
    pub unit_bytes: u32,
    /// The holes: runs of the units that are missing, in ascending order.
    pub holes: Vec<Run<UnitIndex>>,
    /// The source's time, on its own clock.
    pub source_time: Instant,
    /// When the first unit or repair unit arrived; `None` when none did.
    pub first_arrival: Option<Instant>,
    /// When the segment was judged.
    pub judged_at: Instant,
}

/// What an automatic rate knows of the path it shares. What is not known yet is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedPath {
    /// What the controller is doing, in a word.
    pub phase: &'static str,
    /// How far apart exchanges arrive against how far apart they left; above 1 a queue grows (HT 3.2).
    pub rho: Option<f64>,
    /// The standing queue on the path, in milliseconds.
    pub queue_ms: Option<f64>,
    /// The delivery rate, in whole IP packets.
    pub delivery_bps: Option<f64>,
}

impl Probe for SharedPath {
    fn gauge(&mut self, name: &'static str, value: f64) {
        let known = value.is_finite().then_some(value);
        match name {
            "rho" => self.rho = known,
            "queue_ms" => self.queue_ms = known,
            "delivery_bps" => self.delivery_bps = known,
            _ => {}
        }
    }
}

impl Connection {
    /// Opens a stream. Segments can be submitted at once; they leave when the peer has granted a window. On a
    /// connection that is being closed the stream is finished at once.
    ///
    /// A stream that has ended makes room for another one once the peer has retired it; nothing can be asked about it any more
    /// when another one is opened.
    ///
    /// # Errors
    /// When the contract contradicts itself, or its units do not fit every datagram; when as many streams are live as the
    /// peer allows: then [`ConnectionEvent::StreamsAvailable`] tells when the next one may be opened.
    pub fn open_stream(&mut self, now: Instant, contract: Contract) -> Result<StreamId, OpenStreamError> {
        contract.validate()?;
        Part::check_room(self.send.next_stream(), &contract, None, self.unit_bytes_max())?;
        if !self.send.may_open_stream() {
            return Err(OpenStreamError::TooManyStreams { live_max: self.peer.limits.streams });
        }
        let stream = self.send.open_stream(now, contract)?;
        self.outgoing.store.retain(|kept| self.send.contract(kept).is_some());
        if !self.close.accepts_segments() {
            self.send.finish(now, stream);
        }
        Ok(stream)
    }

    /// Submits a whole segment.
    pub fn send(
        &mut self,
        now: Instant,
        stream: StreamId,
        bytes: Bytes,
        source_time: Instant,
        tolerance: Option<Tolerance>,
    ) -> Result<SegmentNumber, SubmitError> {
        self.accepts_segments()?;
        self.check_room(stream, tolerance)?;
        let length = Some(bytes.len() as u64);
        let mut submitted = self.send.submit(now, stream, length, source_time, tolerance);
        // Why a loop: the oldest segment may be shorter than this one.
        while submitted == Err(SubmitError::Blocked)
            && let Some(dropped) = self.send.drop_oldest(now, stream)
        {
            self.outgoing.store.remove(stream, dropped..dropped.next());
            submitted = self.send.submit(now, stream, length, source_time, tolerance);
        }
        let segment = submitted?;
        self.outgoing.store.push(stream, bytes);
        self.trace_submitted(now, (stream, segment), length, source_time);
        Ok(segment)
    }

    /// What [`Connection::send`] does when the send buffer of `stream` is full: it gives up the oldest segment of which nothing has
    /// left (`true`), or refuses the new one (`false`, the default).
    pub fn set_drop_oldest(&mut self, stream: StreamId, drops_oldest: bool) {
        self.send.set_drop_oldest(stream, drops_oldest);
    }

    /// Opens a segment whose length is not known yet.
    pub fn open_segment(
        &mut self,
        now: Instant,
        stream: StreamId,
        source_time: Instant,
        tolerance: Option<Tolerance>,
    ) -> Result<SegmentNumber, SubmitError> {
        self.accepts_segments()?;
        self.check_room(stream, tolerance)?;
        let segment = self.send.submit(now, stream, None, source_time, tolerance)?;
        self.outgoing.store.open(stream);
        self.trace_submitted(now, (stream, segment), None, source_time);
        Ok(segment)
    }

    /// Appends to the open segment of `stream`; with `last` the segment is finished. `Some(verdict)` when
    /// it is already judged or given up, and the bytes are not taken.
    pub fn append(&mut self, now: Instant, stream: StreamId, bytes: &[u8], last: bool) -> Result<Option<Verdict>, SubmitError> {
        let verdict = self.send.append(now, stream, bytes.len() as u64, last)?;
        if verdict.is_none() {
            self.outgoing.store.append(stream, bytes);
        }
        Ok(verdict)
    }

    /// Whether a segment with this tolerance of its own has units that fit.
    #[inline]
    fn check_room(&self, stream: StreamId, own: Option<Tolerance>) -> Result<(), SubmitError> {
        let own = own.filter(|own| check_tolerance(*own).is_ok());
        let (Some(_), Some(contract)) = (own, self.send.contract(stream)) else { return Ok(()) };
        match Part::check_room(stream, contract, own, self.unit_bytes_max()) {
            Err(ContractError::UnitRoom { unit_bytes, fits }) => Err(SubmitError::NoRoom { unit_bytes, fits }),
            _ => Ok(()),
        }
    }

    fn accepts_segments(&self) -> Result<(), SubmitError> {
        if self.close.accepts_segments() { Ok(()) } else { Err(SubmitError::Finished) }
    }

    /// No more segments will come on `stream`.
    pub fn finish_stream(&mut self, now: Instant, stream: StreamId) {
        self.send.finish(now, stream);
    }

    /// The next judged segment of a stream of the peer.
    pub fn recv(&mut self, now: Instant, stream: StreamId) -> Option<Received> {
        let delivery = self.recv.poll_delivery(stream)?;
        let contract = self.recv.contract(stream)?;
        let (unit_bytes, window) = (contract.unit_bytes, contract.window_units);
        // Limit: a segment given up before anything of it left has whatever length its sender says.
        let length = if delivery.units > window { 0 } else { delivery.length };
        let bytes = self.incoming.store.take(stream, delivery.segment, length, &delivery.holes, unit_bytes);
        self.recv.release(now, stream, delivery.segment);
        if self.incoming.progressive.contains(&stream) {
            // What was not told of its units is told with the whole now.
            let taken = (stream, delivery.segment);
            self.events.withdraw(|event| matches!(*event, ConnectionEvent::Units { stream, segment, .. } if (stream, segment) == taken));
        }
        self.tell_ended(now);
        Some(Received {
            stream,
            segment: delivery.segment,
            verdict: delivery.verdict,
            bytes,
            units: delivery.units,
            unit_bytes,
            holes: delivery.holes,
            source_time: delivery.source_time,
            first_arrival: delivery.first_arrival,
            judged_at: delivery.judged_at,
        })
    }

    /// The application has all segments of `stream`, one of the peer's, below `segments` in safety; the peer is told, and repeats this to
    /// its own application. Told again or lower, it changes nothing.
    ///
    /// # Errors
    /// When [`crate::config::Config::confirms`] is not set or the peer does not know confirmations, when there is no such stream, and when
    /// the application has not taken so many segments.
    pub fn confirm(&mut self, now: Instant, stream: StreamId, segments: SegmentNumber) -> Result<(), ConfirmError> {
        self.recv.confirm(now, stream, segments, false)
    }

    /// The application will confirm no more of `stream` than it has: the peer is told, and the stream can end. Nothing where the peer takes
    /// no confirmations.
    pub fn confirm_no_more(&mut self, now: Instant, stream: StreamId) {
        // Why ignored: what is not to be confirmed needs no word of that.
        let _ = self.recv.confirm(now, stream, SegmentNumber::FIRST, true);
    }

    /// Up to where `stream`, one of the peer's, may be confirmed: all segments below were taken.
    pub fn taken(&self, stream: StreamId) -> Option<SegmentNumber> {
        self.recv.taken(stream)
    }

    /// Whether this end confirms what it receives, and the peer takes that.
    pub const fn confirms(&self) -> bool {
        self.recv.confirms()
    }

    /// Whether the peer confirms what it receives.
    pub const fn peer_confirms(&self) -> bool {
        self.send.has_confirmations()
    }

    /// What the peer's application has of a stream of ours in safety; `None` if it confirms nothing, or the stream has ended and another
    /// one was opened.
    pub fn durable(&self, stream: StreamId) -> Option<Durable> {
        self.send.durable(stream)
    }

    /// Whether a report is due for another reason than its timer: the peer may wait for it.
    pub fn wants_report(&self, now: Instant) -> bool {
        self.recv.has_immediate_report(now)
    }

    /// From now on [`ConnectionEvent::Units`] tells of every unit of `stream` as it arrives, until its segment is
    /// taken. Gives the units that are there already, of segments that are not judged yet.
    pub fn read_progressively(&mut self, stream: StreamId) -> Vec<(SegmentNumber, Run<UnitIndex>)> {
        if self.incoming.progressive.contains(&stream) {
            return Vec::new();
        }
        self.incoming.progressive.push(stream);
        let Some(incoming) = self.recv.streams.get(stream) else { return Vec::new() };
        let mut there = Vec::new();
        for number in incoming.segments.base.up_to(incoming.segments.next_number()) {
            let Some(segment) = incoming.segments.get(number).filter(|segment| !segment.judged()) else { continue };
            for positions in segment.presence.positions.one_runs(Position::FIRST, segment.presence.positions.end()) {
                there.extend(segment.layout.unit_runs(positions).map(|units| (number, units)));
            }
        }
        there
    }

    /// The bytes so far of a segment that was not taken yet, from its start; bytes of missing units are undefined.
    pub fn peek(&self, stream: StreamId, segment: SegmentNumber) -> &[u8] {
        self.incoming.store.peek(stream, segment)
    }

    /// Whether a stream of the peer is retired, so that no state of it is kept.
    pub fn has_retired(&self, stream: StreamId) -> bool {
        self.recv.has_retired(stream)
    }

    /// How many streams are kept: of ours, and of the peer.
    pub fn streams_kept(&self) -> (usize, usize) {
        (self.send.streams.len(), self.recv.streams.len())
    }

    /// The contract of a stream of ours.
    pub fn sending_contract(&self, stream: StreamId) -> Option<&Contract> {
        self.send.contract(stream)
    }

    /// The contract of a stream of the peer, with the window as granted.
    pub fn receiving_contract(&self, stream: StreamId) -> Option<&Contract> {
        self.recv.contract(stream)
    }

    /// A new rate in our direction, in force at once.
    ///
    /// # Errors
    /// When it cannot be kept under the class in force or asked for.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) -> Result<(), RateError> {
        let changed = self.send.set_rate(now, rate);
        self.after_input(now);
        changed
    }

    /// Requests a class change in our direction.
    ///
    /// # Errors
    /// When the rate cannot be kept under it.
    pub fn set_class(&mut self, now: Instant, class: Class) -> Result<(), RateError> {
        self.send.set_class(now, class)
    }

    /// The class in force in our direction.
    pub fn class(&self) -> Class {
        self.send.class()
    }

    /// The rate in force in our direction; `None` when unpaced.
    pub fn rate(&self) -> Option<Bandwidth> {
        self.send.rate()
    }

    /// The class in force in our direction once what was asked for is.
    pub fn class_to_come(&self) -> Class {
        self.send.class_to_come()
    }

    /// What is known of the path of an automatic rate; `None` for any other.
    pub fn shared_path(&self) -> Option<SharedPath> {
        let mut shared = SharedPath { phase: self.send.controller()?.phase(), rho: None, queue_ms: None, delivery_bps: None };
        self.send.controller()?.probe(&mut shared);
        Some(shared)
    }

    /// The smallest and the smoothed round trip; `None` before the first measurement.
    pub fn rtt(&self) -> Option<(Duration, Duration)> {
        self.send.rtt_min().zip(self.send.rtt_smoothed())
    }

    /// What the peer allows.
    pub const fn peer_limits(&self) -> &Limits {
        &self.peer.limits
    }

    /// Counters of our direction.
    pub const fn sender_counters(&self) -> &SenderCounters {
        &self.send.counters
    }

    /// Counters of one stream of ours; `None` once it has ended and another one was opened.
    pub fn stream_counters(&self, stream: StreamId) -> Option<StreamCounters> {
        self.send.stream_counters(stream)
    }

    /// Counters of the peer's direction.
    pub const fn receiver_counters(&self) -> &ReceiverCounters {
        &self.recv.counters
    }

    /// Shipments of the peer declared lost so far, and those that were reordered.
    pub fn shipments_lost(&self) -> (u64, u64) {
        (self.recv.shipments_lost(), self.recv.shipments_late())
    }

    /// In how many runs of consecutive numbers the lost shipments of the peer were.
    pub fn shipment_runs_lost(&self) -> u64 {
        self.recv.shipment_runs_lost()
    }

    /// How long the runs were that have ended, in shipments, by [`RUN_BOUNDS`](segstream_blocks::loss_detector::RUN_BOUNDS).
    pub fn lost_run_lengths(&self) -> &Histogram {
        self.recv.lost_run_lengths()
    }

    /// How long the peer's segments took, in nanoseconds, by [`TIME_BOUNDS_NANOS`](segstream_blocks::histogram::TIME_BOUNDS_NANOS).
    pub const fn segment_times(&self) -> &SegmentTimes {
        self.recv.segment_times()
    }

    /// How long it took from the source's time of each segment of ours until its verdict was known here, in nanoseconds, by the same bounds.
    pub const fn verdict_times(&self) -> &Histogram {
        self.send.verdict_times()
    }

    /// Bytes in flight in our direction, and how many may be, in whole IP packets; `None` unless the rate is automatic.
    pub fn in_flight(&self) -> Option<(u64, u64)> {
        let cap = self.send.in_flight_cap();
        (cap < u64::MAX).then(|| (self.send.in_flight(), cap))
    }

    /// The reordering threshold we receive with, in shipments.
    pub fn reorder(&self) -> u32 {
        self.recv.reorder()
    }

    /// Units kept for `stream` until their verdict comes.
    pub fn buffered_units(&self, stream: StreamId) -> u64 {
        self.send.buffered_units(stream)
    }

    /// Units kept for all streams of ours until their verdicts come.
    pub fn buffered_units_total(&self) -> u64 {
        self.send.streams.iter().map(|stream| stream.buffer.units).sum()
    }

    /// Payload bytes kept in our direction, and in the peer's.
    pub fn kept_bytes(&self) -> (u64, u64) {
        (self.outgoing.store.kept_bytes(), self.incoming.store.kept_bytes())
    }

    /// What is kept of the peer's streams, payload and state, and what these were granted, both in bytes. Looks at every segment: for tests.
    pub fn kept_and_granted_bytes(&self) -> (u64, u64) {
        let store = &self.incoming.store;
        (store.kept_bytes() + store.spare_bytes() + self.recv.kept_bytes(), self.recv.granted_bytes())
    }

    /// Whether both ends can handle repair units, known once the connection is set up.
    pub fn has_repair_units(&self) -> bool {
        self.recv.takes_repairs()
    }

    /// Whether any segment of ours has no verdict yet.
    pub fn has_unjudged(&self) -> bool {
        self.send.has_unjudged()
    }
}
