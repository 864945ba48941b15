//! What the trace of a connection is told: shipments where they are not sealed, verdicts, the path.
//!
//! Called by the connection's other parts. Without a trace each call is one comparison.
//!
//! Invariant: nothing here changes what the connection does, but for the counters of dropped datagrams.

use super::Connection;
use super::receive::Shipment;
use crate::sender::stream::whole_micros;
use crate::trace::{Direction, DropCause, PathState, TraceEvent, Traced};
use segstream_base::{Instant, SegmentNumber, ShipmentNumber, StreamId};
use segstream_wire::Kind;
use segstream_wire::header::HEADER_BYTES;

impl Connection {
    /// What is traced from here on happens at `now`.
    #[inline]
    pub(super) fn trace_from(&mut self, now: Instant) {
        if let Some(trace) = self.events.trace() {
            trace.set_now(now);
        }
    }

    /// Counts a datagram that is dropped.
    pub(super) fn on_dropped(&mut self, cause: DropCause) {
        match cause {
            DropCause::Authentication => self.counters.authentication_failures += 1,
            DropCause::Duplicate => self.counters.duplicates += 1,
            DropCause::Malformed => self.counters.malformed += 1,
        }
        if let Some(trace) = self.events.trace() {
            trace.push(TraceEvent::Dropped(cause));
        }
    }

    #[inline]
    pub(super) fn trace_shipment(&mut self, direction: Direction, kind: Kind, number: ShipmentNumber, datagram_bytes: u64, body: &[u8]) {
        if let Some(trace) = self.events.trace() {
            trace.on_shipment(direction, kind, number, datagram_bytes, body);
        }
    }

    /// A shipment leaves that has its header and room for its seal.
    #[inline]
    pub(super) fn trace_unsealed(&mut self, kind: Kind, number: ShipmentNumber, shipment: &[u8]) {
        if let Some(trace) = self.events.trace() {
            let end = shipment.len().saturating_sub(self.protection.session.seal_bytes());
            let body = shipment.get(HEADER_BYTES..end).unwrap_or_default();
            trace.on_shipment(Direction::Sent, kind, number, shipment.len() as u64, body);
        }
    }

    /// A shipment has arrived for the first time.
    #[inline]
    pub(super) fn trace_arrival(&mut self, shipment: &Shipment<'_>) {
        if let Some(trace) = self.events.trace() {
            trace.on_shipment(Direction::Received, shipment.kind, shipment.number, shipment.datagram_bytes, shipment.body);
        }
    }

    /// A shipment has opened and is counted next.
    #[inline]
    pub(super) fn trace_losses(&mut self, number: ShipmentNumber) {
        if let Some(trace) = self.events.trace() {
            trace.before_arrival(&self.recv.arrivals.detector, number.0);
        }
    }

    pub(super) fn trace_submitted(
        &mut self,
        now: Instant,
        (stream, segment): (StreamId, SegmentNumber),
        bytes: Option<u64>,
        source_time: Instant,
    ) {
        if let Some(trace) = self.events.trace() {
            trace.set_now(now);
            trace.push(TraceEvent::SegmentSubmitted { stream, segment, bytes, source_time: whole_micros(source_time) });
        }
    }

    /// The verdicts that were given here since this was last called.
    #[inline]
    pub(super) fn trace_verdicts(&mut self) {
        let Some(trace) = self.events.trace() else { return };
        for judged in self.recv.take_logged_verdicts() {
            trace.push(TraceEvent::SegmentJudged(judged));
        }
    }

    /// Whether the trace has events.
    pub(crate) fn has_trace(&self) -> bool {
        self.events.has_trace()
    }

    /// Takes the events of the trace.
    pub(crate) fn take_trace(&mut self) -> Vec<Traced> {
        let phase = self.send.controller().map(|controller| controller.phase());
        // Why asked first: there are thousands of turns a second, and to sum up the path costs more than to hand the events over.
        let path = self.events.trace().is_some_and(|trace| trace.wants_path(phase)).then(|| self.path_state());
        self.events.trace().map_or_else(Vec::new, |trace| {
            path.into_iter().for_each(|path| trace.on_path(path));
            trace.take()
        })
    }

    fn path_state(&self) -> PathState {
        let shared = self.shared_path();
        let cap = self.send.in_flight_cap();
        PathState {
            rtt: self.rtt(),
            rate: self.rate(),
            in_flight_bytes: self.send.in_flight(),
            in_flight_cap_bytes: (cap < u64::MAX).then_some(cap),
            queue_ms: shared.and_then(|shared| shared.queue_ms),
            rho: shared.and_then(|shared| shared.rho),
            delivery_bps: shared.and_then(|shared| shared.delivery_bps),
            phase: shared.map(|shared| shared.phase),
        }
    }
}
