//! The sending half of the flagship: all streams of one direction.
//!
//! It dispatches; its parts decide:
//! - `stream`: the queue of segments of one stream, and its window;
//! - `stream_credit`: how many streams may be opened; `retirement`: how ended streams are removed; `durability`: what the receiver confirms;
//! - `segment`: which units were sent, in which shipment, and which must be retransmitted (exact repair);
//! - `schedule`: the contents of the next data shipment;
//! - `coding`: whether and how repair units are used; `code_ahead`: repair units before anybody asks;
//! - `repair`: repair units, and which leave next;
//! - `hedge`: how many answer a request, and whether in turn with new data;
//! - `continuation`: one decision for several data shipments; `gso_batch`: those that leave together;
//! - `stream_counts`: counts of streams by what they have to do;
//! - `state`: when the sender's state is due, and its frames;
//! - `submission`: what the application hands over;
//! - `feedback`: processing of reports; `unfinished`: what takes more than one turn of it;
//! - `congestion_control`: the congestion-controlled rate, and the in-flight cap;
//! - `connection_api`: what the connection sets and reads;
//! - `counters`: what is counted; `invariants`: what debug builds check.
//!
//! Called by the connection, which lends the shipment counter, and through [`crate::halves`] by the
//! simulator. Payload bytes are elsewhere ([`crate::store`]).
//!
//! Invariant: a unit is retransmitted if and only if it was requested and its last shipment is lost by the echo and the reordering
//! threshold of the report. No timer decides about retransmission.

mod code_ahead;
mod coding;
mod congestion_control;
mod connection_api;
mod continuation;
mod counters;
mod durability;
mod feedback;
mod gso_batch;
mod hedge;
mod invariants;
mod repair;
mod retirement;
mod schedule;
pub(crate) mod segment;
mod state;
pub(crate) mod stream;
mod stream_counts;
mod stream_credit;
mod submission;
mod unfinished;

use crate::live_streams::LiveStreams;
use crate::number::ShipmentCounter;
use crate::path::Path;
pub use crate::path::circuit_breaker::Broken;
use crate::rate::{Rate, RateError};
pub use code_ahead::CodingTarget;
use coding::Coding;
use congestion_control::NotifiedRate;
use continuation::Continuation;
use core::ops::Range;
pub use counters::{SenderCounters, StreamCounters};
pub use durability::Durable;
use segstream_base::endpoint::Deadline;
use segstream_base::halves::{Probe, Verdict};
use segstream_base::{Bandwidth, Bytes, Duration, Instant, Run, SegmentNumber, ShipmentNumber, StreamId, UnitIndex};
use segstream_blocks::histogram::Histogram;
use segstream_wire::contract::Contract;
use segstream_wire::report::RefuseReason;
use segstream_wire::{Class, Part, Repair, State};
use state::StateTimer;
use std::collections::VecDeque;
use stream::SendStream;
use stream_counts::{StreamCounts, StreamFlags};
use stream_credit::StreamCredit;
use unfinished::Unfinished;

/// What a sending half must know of the connection.
#[derive(Clone, Copy, Debug)]
pub struct SenderConfig {
    /// The class in force.
    pub class: Class,
    /// Bytes of parts or frames a shipment may carry: the datagram less header and seal. Parts may take more where a
    /// larger datagram was found to be carried.
    pub body_bytes: usize,
    /// Bytes a shipment costs beyond its body when the rate is counted: header, seal, UDP and IP.
    pub overhead_bytes: usize,
    /// The rate.
    pub rate: Rate,
    /// What the time of day shows at [`Instant::ZERO`]; zero where it is not known. See [`crate::config::Config::epoch`].
    pub epoch: Duration,
    /// Whether a fixed rate is given up on a path that carries almost nothing of it (RFC 8084).
    pub circuit_breaker: bool,
    /// The pacing quantum, as a time: departures of so long share a system call. Zero in a simulation.
    pub pacing_quantum: Duration,
    /// State is sent this often when there is nothing else to say.
    pub keep_alive: Duration,
}

/// The events of the sending half.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderHalfEvent {
    /// The verdict on a segment is known, or on a run of segments that are complete or *unknown*.
    Judged {
        /// The stream.
        stream: StreamId,
        /// The segment, or the run.
        segments: Range<SegmentNumber>,
        /// The receiver's verdict, or *unknown*.
        verdict: Verdict,
        /// The holes, in ascending order.
        holes: Vec<Run<UnitIndex>>,
    },
    /// A refused submission may succeed now.
    WindowOpen(StreamId),
    /// The receiver does not take the stream.
    Refused(StreamId, RefuseReason),
    /// Another stream may be opened, which was refused before.
    StreamsAvailable,
    /// The receiver's application has more of a stream in safety, or will confirm no more of it.
    Durable(StreamId, Durable),
    /// Class and rate are in force.
    Reclassed(Class),
    /// The rate has changed, by more than a twentieth since this was told last.
    RateChanged(Bandwidth),
    /// The path carries almost nothing of the fixed rate; told again after as long a time if nothing is done.
    CircuitBroken(Broken),
}

/// What leaves: the parts of a data shipment (in the caller's buffer) or a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// The parts are in the buffer handed to [`SendHalf::poll_transmit`].
    Data {
        /// What they take, headers and payload.
        body_bytes: usize,
    },
    /// A run of repair units of one segment.
    Repair(Repair),
    /// The sender's state. Boxed: it is rare, and data should not carry its size about.
    State(Box<State>),
}

/// The sending half.
#[derive(Debug)]
pub struct SendHalf {
    pub(crate) config: SenderConfig,
    pub(crate) streams: LiveStreams<SendStream>,
    credit: StreamCredit,
    /// The one path there is.
    pub(crate) path: Path,
    state_timer: StateTimer,
    /// The last shipment that carried data.
    pub(crate) last_data: Option<ShipmentNumber>,
    /// The stream whose turn it is.
    turn: usize,
    stream_counts: StreamCounts,
    /// Whether any stream's segments have a lifetime.
    lifetimes: bool,
    notified_rate: NotifiedRate,
    unfinished: Unfinished,
    coding: Coding,
    continuation: Continuation,
    pub(crate) events: VecDeque<SenderHalfEvent>,
    /// From the source's time of each segment to when its verdict was known here, in nanoseconds.
    verdict_times: Histogram,
    /// Counters.
    pub counters: SenderCounters,
}

impl SendHalf {
    /// A half with no streams, on a path without addresses.
    pub fn new(config: SenderConfig, now: Instant) -> Self {
        Self::on_path(Path::new(config.body_bytes), config, now)
    }

    /// A half with no streams.
    pub(crate) fn on_path(path: Path, config: SenderConfig, now: Instant) -> Self {
        let mut half = Self {
            path,
            config,
            streams: LiveStreams::default(),
            credit: StreamCredit::default(),
            state_timer: StateTimer::new(now),
            last_data: None,
            turn: 0,
            stream_counts: StreamCounts::default(),
            lifetimes: false,
            notified_rate: NotifiedRate::default(),
            unfinished: Unfinished::default(),
            coding: Coding::default(),
            continuation: Continuation::default(),
            events: VecDeque::new(),
            verdict_times: Histogram::default(),
            counters: SenderCounters::default(),
        };
        half.start_controller(now, config.rate, config.rate.start());
        half.set_pacing(now);
        half
    }

    /// Updates the stream counts for stream `id`. To be called after whatever may have changed it.
    fn refresh(&mut self, id: StreamId) {
        if let Some(place) = self.streams.place(id) {
            self.refresh_at(place);
        }
    }

    fn refresh_at(&mut self, place: usize) {
        let flow = self.config.class.flow_control();
        let stream = &mut self.streams[place];
        let flags = StreamFlags::of(stream, flow);
        if flags == stream.flags {
            return;
        }
        self.state_timer.invalidate_due();
        self.stream_counts.replace(stream.flags, flags);
        stream.flags = flags;
    }

    /// Invalidates the cached time of the next state. Called by everything that takes input; sending a data packet needs it
    /// only when the flags of a stream change.
    fn invalidate_due(&mut self) {
        self.state_timer.invalidate_due();
    }

    /// The number of the stream at `place` among those there are, in order: those that are live, and those that have ended
    /// since the last one was opened.
    pub fn stream_at(&self, place: usize) -> Option<StreamId> {
        (place < self.streams.len()).then(|| self.streams.number(place))
    }

    /// The contract of a stream.
    pub fn contract(&self, stream: StreamId) -> Option<&Contract> {
        self.streams.get(stream).map(|stream| &stream.contract)
    }

    /// Asks for a new class; in force once the receiver has echoed it.
    ///
    /// # Errors
    /// When the rate in force cannot be kept under it.
    pub fn set_class(&mut self, now: Instant, class: Class) -> Result<(), RateError> {
        self.config.rate.check(class)?;
        self.invalidate_due();
        self.state_timer.announce_reclass(now, class);
        Ok(())
    }

    /// The class in force once what was asked for is.
    pub(crate) fn class_to_come(&self) -> Class {
        self.state_timer.class_asked().unwrap_or(self.config.class)
    }

    /// The rate in force.
    pub fn rate(&self) -> Option<Bandwidth> {
        self.path.pacer.average().or_else(|| self.path.pacer.spec().map(|spec| spec.peak()))
    }

    /// A measured round trip, such as that of the set-up.
    pub fn on_rtt_sample(&mut self, now: Instant, sample: Duration) {
        self.invalidate_due();
        let first = self.path.rtt.latest().is_none();
        self.path.rtt.on_sample(now, sample);
        if first {
            self.on_first_round_trip(now, sample);
        }
        let window = self.streams.iter().map(|stream| u64::from(stream.contract.window_units)).min().unwrap_or(0);
        self.state_timer.set_round_trip(self.path.rtt.smoothed().unwrap_or(sample), self.shipment_time(), window);
    }

    /// The mean time between full datagrams.
    fn shipment_time(&self) -> Duration {
        let datagram = Bytes::new((self.path.pmtu.data_bytes + self.config.overhead_bytes) as u64);
        // Why not the rate so far: before the first full datagram left, a rate in bursts is that of small ones.
        let rate = self.path.pacer.spec().map(|spec| spec.average_of(datagram));
        rate.map_or(Duration::ZERO, |rate| rate.transmit_time(datagram, &mut segstream_base::quantity::Remainder::default()))
    }

    /// The next shipment that may leave now, numbered from `counter`. Data parts go to `parts`, which is
    /// cleared first.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        counter: &mut ShipmentCounter,
        parts: &mut Vec<Part>,
    ) -> Option<(ShipmentNumber, Outgoing)> {
        parts.clear();
        self.debug_assert_counts();
        if self.path.congestion.controller.is_some() {
            self.note_limit(now);
        }
        if self.state_due().is_some_and(|deadline| deadline.at <= now && !self.data_precedes_control(now, deadline.at)) {
            return Some(self.emit_state(now, counter));
        }
        if self.exchange_due().is_some_and(|deadline| deadline.at <= now) {
            return Some(self.emit_exchange(now, counter));
        }
        if !self.has_eligible() || self.in_flight_cap_reached() || !self.path.pacer.ready(now) {
            return None;
        }
        self.emit_data(now, counter, parts)
    }

    /// The next shipment of data or repair units. Why not part of the caller: most calls of that end without one, and would save its registers.
    #[inline(never)]
    fn emit_data(&mut self, now: Instant, counter: &mut ShipmentCounter, parts: &mut Vec<Part>) -> Option<(ShipmentNumber, Outgoing)> {
        let number = counter.peek();
        let (outgoing, body_bytes) = if let Some((_, body_bytes)) = self.continuations() {
            parts.push(self.continue_with(now, number, 1));
            (Outgoing::Data { body_bytes }, body_bytes)
        } else {
            let contents = self.contents(now, number, parts)?;
            self.note_contents(parts, contents.1);
            contents
        };
        counter.take();
        self.last_data = Some(number);
        if self.state_timer.on_data() {
            self.invalidate_due();
        }
        self.note_data(now, number, body_bytes);
        if !self.has_eligible() {
            self.invalidate_due();
            self.state_timer.on_idle(now);
            self.path.pacer.on_idle(now);
        }
        Some((number, outgoing))
    }

    /// What shipment `number` contains, and the bytes of its body; data parts go to `parts`.
    fn contents(&mut self, now: Instant, number: ShipmentNumber, parts: &mut Vec<Part>) -> Option<(Outgoing, usize)> {
        if self.is_turn_of_new_data() {
            let body_bytes = self.fill_new(now, number, parts, 0);
            // Why not in any case: a unit of new data that does not fit any more must not keep the answers back.
            if !parts.is_empty() {
                return Some((Outgoing::Data { body_bytes }, body_bytes));
            }
        }
        if let Some(repair) = self.take_repairs(now, number) {
            self.note_answer();
            return Some((Outgoing::Repair(repair), repair.encoded_len()));
        }
        let body_bytes = self.fill(now, number, parts);
        if parts.first()?.retransmission {
            self.note_answer();
        }
        Some((Outgoing::Data { body_bytes }, body_bytes))
    }

    /// Data shipment `number` with so many bytes of parts leaves: what counts against the rate.
    #[inline]
    fn note_data(&mut self, now: Instant, number: ShipmentNumber, body_bytes: usize) {
        let bytes = (body_bytes + self.config.overhead_bytes) as u64;
        self.counters.data_shipments += 1;
        self.path.congestion.exchanges.on_sent(bytes);
        if let Some(delivery) = &mut self.path.congestion.delivery {
            delivery.on_sent(now, number, bytes);
        }
        self.path.pacer.on_sent(now, Bytes::new(bytes));
    }

    /// When and why the half wants to be polled again.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let pace = if self.has_eligible() && !self.in_flight_cap_reached() {
            // Why: a departure that waits a little shares its system call with those after it; the pacer
            // keeps the ideal times, so no rate is lost.
            self.path.pacer.next_departure().map(|at| Deadline { at: at + self.pacing_quantum(), timer: "departure" })
        } else {
            None
        };
        let mut next = Deadline::earlier(pace, self.state_due());
        if self.path.congestion.controller.is_some() {
            next = Deadline::earlier(next, self.exchange_due());
        }
        next = Deadline::earlier(self.unfinished.due(), next);
        if !self.lifetimes {
            return next;
        }
        let expiry = self.streams.iter().filter_map(SendStream::next_expiry).min();
        Deadline::earlier(next, expiry.map(|at| Deadline { at, timer: "lifetime" }))
    }

    /// Goes on with what is unfinished, and gives up what is too old.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.take_turn(now);
        // Why the count before the streams: it is known without a look at each.
        if self.events.is_empty() && self.events.capacity() > 0 && !self.has_unjudged() && self.is_over() {
            // Why: an idle sender keeps no memory for events that were taken.
            self.events = VecDeque::new();
        }
        if !self.lifetimes {
            return;
        }
        for place in 0..self.streams.len() {
            let stream = &mut self.streams[place];
            if stream.next_expiry().is_none_or(|at| at > now) {
                continue;
            }
            while stream.next_expiry().is_some_and(|at| at <= now) {
                stream.expire_one();
                self.counters.segments_skipped += 1;
            }
            self.invalidate_due();
            self.state_timer.schedule_immediate(now);
            self.refresh_at(place);
        }
    }

    /// The next thing to tell.
    pub fn poll_event(&mut self) -> Option<SenderHalfEvent> {
        self.events.pop_front()
    }

    /// Whether everything submitted on every stream is judged and every stream's end is known to the
    /// receiver.
    pub fn is_over(&self) -> bool {
        self.streams.iter().all(SendStream::is_over)
    }

    /// Whether any segment is without a verdict.
    pub const fn has_unjudged(&self) -> bool {
        self.stream_counts.unjudged > 0
    }

    /// The connection is gone: whatever has no verdict is *unknown*.
    pub fn abandon(&mut self) {
        self.invalidate_due();
        for place in 0..self.streams.len() {
            self.abandon_stream(self.streams.number(place));
        }
    }

    fn abandon_stream(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(id) else { return };
        let all = stream.segments.base..stream.segments.next_number();
        self.settle_all(id, all, Verdict::Unknown, None);
        self.refresh(id);
    }

    /// Writes the half's gauges.
    pub fn probe(&self, out: &mut dyn Probe) {
        let unjudged: u64 = self.streams.iter().map(|stream| stream.buffer.unjudged).sum();
        let buffered: u64 = self.streams.iter().map(|stream| stream.buffer.units).sum();
        out.gauge("segments_unjudged", unjudged as f64);
        out.gauge("units_buffered", buffered as f64);
        out.gauge("reordering_threshold_shipments", f64::from(self.path.reordering_threshold));
        out.gauge("rate_bps", self.rate().map_or(f64::NAN, |rate| rate.bits_per_second() as f64));
        out.gauge("rtt_ms_min", self.path.rtt.min().map_or(f64::NAN, Duration::as_millis_f64));
        if let Some(controller) = &self.path.congestion.controller {
            out.gauge("in_flight_bytes", self.path.congestion.exchanges.in_flight() as f64);
            controller.probe(out);
        }
    }

    /// Units kept for stream `stream`: those of segments without a verdict.
    pub fn buffered_units(&self, stream: StreamId) -> u64 {
        self.streams.get(stream).map_or(0, |stream| stream.buffer.units)
    }
}
