//! Processes received datagrams: one call for each kind of shipment.
//!
//! Called by the endpoint. Invariant: after set-up nothing is processed before the seal was opened with the reconstructed number, and no
//! shipment is processed twice.

use super::{Connection, ConnectionEvent, Role};
use crate::initial;
use crate::receiver::PartOutcome;
use crate::trace::{Direction, DropCause};
use core::net::SocketAddr;
use segstream_base::codec::{DecodeError, Reader};
use segstream_base::endpoint::{Arrival, Ecn};
use segstream_base::sequence::expand;
use segstream_base::{Instant, Position, Run, SegmentNumber, ShipmentNumber, StreamId};
use segstream_wire::handshake::{Confirm, Cookie, Disconnect, Fragment, Reject};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Header, Kind, Level, Part, Repair, Report, State};
use smallvec::SmallVec;

/// A shipment whose seal has been opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shipment<'a> {
    pub(super) level: Level,
    pub(super) kind: Kind,
    pub(super) number: ShipmentNumber,
    pub(super) datagram_bytes: u64,
    pub(super) body: &'a [u8],
}

impl Connection {
    /// Processes a shipment of set-up, which is not authenticated: only its fields say that it is for us.
    pub(crate) fn handle_initial(&mut self, now: Instant, header: &Header, datagram: &[u8]) {
        self.trace_from(now);
        if self.identity.role == Role::Responder || self.setup.is_done() {
            return;
        }
        let Some(body) = initial::open(header, datagram) else {
            self.on_dropped(DropCause::Authentication);
            return;
        };
        let (number, mut input) = (ShipmentNumber(header.number.into()), Reader::new(body));
        self.trace_shipment(Direction::Received, header.kind, number, datagram.len() as u64, body);
        let decoded = match header.kind {
            Kind::Cookie => Cookie::decode(&mut input).map(|cookie| self.on_cookie(cookie)),
            Kind::Confirm => Confirm::decode(&mut input).map(|confirm| self.on_confirm(now, number, datagram.len(), &confirm)),
            Kind::Reject => Reject::decode(&mut input).map(|reject| self.on_reject(now, reject)),
            _ => Ok(()),
        };
        if decoded.is_err() {
            self.on_dropped(DropCause::Malformed);
        }
        self.after_input(now);
    }

    /// Processes a sealed datagram addressed to this connection.
    pub(crate) fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        self.trace_from(now);
        match self.open(datagram) {
            Some(shipment) if self.count(now, arrival, &shipment) => self.take(now, arrival.from, &shipment),
            Some(_) => {}
            None => self.close_on_aead_limit(now),
        }
    }

    /// Opens a datagram; `None` if its seal is broken, which may reach the AEAD usage limit ([`Connection::close_on_aead_limit`]).
    pub(super) fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<Shipment<'a>> {
        self.protection.session.unprotect_header(datagram);
        let Ok(header) = Header::decode(&mut Reader::new(datagram)) else {
            self.on_dropped(DropCause::Authentication);
            return None;
        };
        // RFC 9000 17.1: the handshake is over long before a number needs more than 32 bits.
        let number = match header.level {
            Level::Handshake => ShipmentNumber(header.number.into()),
            _ => ShipmentNumber(expand(header.number.into(), 32, self.recv.highest_shipment().map_or(0, |highest| highest.0 + 1))),
        };
        let Some(end) = self.protection.session.open(header.level, number, datagram) else {
            self.on_dropped(DropCause::Authentication);
            return None;
        };
        let datagram_bytes = datagram.len() as u64;
        let body = datagram.get(HEADER_BYTES..end).unwrap_or(&[]);
        Some(Shipment { level: header.level, kind: header.kind, number, datagram_bytes, body })
    }

    /// Counts a shipment of any kind; false for a duplicate, which is then dropped.
    pub(super) fn count(&mut self, now: Instant, arrival: Arrival, shipment: &Shipment<'_>) -> bool {
        let newest = self.recv.highest_shipment().is_none_or(|highest| shipment.number > highest);
        if arrival.ecn == Some(Ecn::CongestionExperienced) {
            self.recv.note_congestion_mark();
        }
        self.trace_losses(shipment.number);
        // Limit: with a kernel clock ahead of ours an arrival would be later than its report.
        if !self.recv.on_shipment(arrival.received.min(now), shipment.number, shipment.datagram_bytes) {
            self.on_dropped(DropCause::Duplicate);
            return false;
        }
        self.trace_arrival(shipment);
        self.idle.last_heard = now;
        self.counters.datagrams_received += 1;
        self.counters.bytes_received += shipment.datagram_bytes;
        self.on_source_address(now, &arrival, newest, shipment.datagram_bytes);
        true
    }

    /// Processes the body of a shipment that was opened and counted.
    pub(super) fn take(&mut self, now: Instant, from: SocketAddr, shipment: &Shipment<'_>) {
        let dispatched = match shipment.level {
            Level::Handshake => self.dispatch_handshake(now, shipment.kind, shipment.body),
            _ => self.dispatch(now, from, shipment.kind, shipment.number, shipment.body),
        };
        if dispatched.is_err() {
            self.on_dropped(DropCause::Malformed);
        }
        self.restore(now);
        self.recv.after_shipment(now);
        self.after_input(now);
    }

    fn on_repair(&mut self, now: Instant, number: ShipmentNumber, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        let (repair, payload) = Repair::decode(input)?;
        if self.recv.on_repair(now, number, &repair) == PartOutcome::Fresh {
            self.incoming.store.keep_repairs(&repair, payload);
        }
        Ok(())
    }

    /// Restores the segments that can be restored by repair units.
    pub(super) fn restore(&mut self, now: Instant) {
        while let Some((stream, segment, recovery)) = self.recv.poll_restorable() {
            if !self.incoming.store.restore(stream, segment, &recovery) {
                self.recv.on_not_restored(stream, segment);
                continue;
            }
            let restored = self.recv.on_restored(now, stream, segment);
            if self.incoming.progressive.contains(&stream) {
                self.tell_units(stream, segment, &restored);
            }
        }
    }

    fn dispatch_handshake(&mut self, now: Instant, kind: Kind, body: &[u8]) -> Result<(), DecodeError> {
        let mut input = Reader::new(body);
        match kind {
            Kind::Handshake => self.on_fragment(now, Level::Handshake, &Fragment::decode(&mut input)?),
            Kind::Disconnect => self.on_refusal(now, Disconnect::decode(&mut input)?),
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, now: Instant, from: SocketAddr, kind: Kind, number: ShipmentNumber, body: &[u8]) -> Result<(), DecodeError> {
        self.on_data_level(now);
        if self.close.is_over() && kind != Kind::Disconnect {
            return Ok(());
        }
        let mut input = Reader::new(body);
        match kind {
            Kind::Data => self.on_data(now, number, &mut input)?,
            Kind::Repair => self.on_repair(now, number, &mut input)?,
            Kind::State => self.recv.on_state(now, number, &State::decode(&mut input)?),
            Kind::Report => self.on_report(now, &Report::decode(&mut input)?),
            Kind::Disconnect => self.on_disconnect(now, Disconnect::decode(&mut input)?),
            Kind::DisconnectConfirm => self.on_disconnect_confirm(now),
            Kind::Challenge => self.send.path.validation.on_challenge(input.u64("challenge")?),
            Kind::Response => {
                let proof = input.u64("response")?;
                // Why both: no two challenges are the same, so it is the answer to one of them at most.
                if from == self.send.path.addresses.remote {
                    self.on_probe_answered(now, proof);
                }
                self.on_response(now, from, proof);
            }
            // Of set-up, which has levels of its own.
            Kind::Request | Kind::Confirm | Kind::Reject | Kind::Cookie | Kind::Handshake => {}
        }
        Ok(())
    }

    fn on_data(&mut self, now: Instant, number: ShipmentNumber, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        let mut part = Part::default();
        while !input.is_empty() {
            let payload = part.read(input)?;
            self.take_part(now, number, &part, payload);
        }
        Ok(())
    }

    /// Takes a part that came in shipment `number`.
    pub(super) fn take_part(&mut self, now: Instant, number: ShipmentNumber, part: &Part, payload: &[u8]) {
        if !self.payload_fits(part) {
            return;
        }
        let news = self.news_in(part);
        if self.recv.on_part(now, number, part) == PartOutcome::Fresh {
            self.store(part, [payload]);
            self.tell_units(part.stream, part.segment, &news);
        }
    }

    /// Whether the payload is as long as the part's units; anything else is a peer's mistake.
    fn payload_fits(&mut self, part: &Part) -> bool {
        let fits = self.recv.payload_bytes(part) == Some(part.payload_bytes);
        // A late part of a stream that has ended is not an error.
        if !fits && !self.recv.has_retired(part.stream) {
            self.recv.counters.parts_refused += 1;
        }
        fits
    }

    /// Keeps the payload of a part, in pieces of whole units.
    pub(super) fn store<'a>(&mut self, part: &Part, payloads: impl IntoIterator<Item = &'a [u8]>) {
        if let Some(layout) = self.recv.segment_layout(part.stream, part.segment) {
            self.incoming.store.write(part, layout, payloads);
        }
    }

    /// What is to be reported of a part that is about to be taken, if the stream is read progressively: the positions that are missing. Others
    /// may have been restored before they came.
    pub(super) fn news_in(&self, part: &Part) -> SmallVec<[Run<Position>; 4]> {
        if self.incoming.progressive.contains(&part.stream) { self.recv.missing_of(part) } else { SmallVec::new() }
    }

    /// Reports units of a segment.
    pub(super) fn tell_units(&mut self, stream: StreamId, segment: SegmentNumber, positions: &[Run<Position>]) {
        if positions.is_empty() {
            return;
        }
        let Some(layout) = self.recv.segment_layout(stream, segment) else { return };
        for units in positions.iter().flat_map(|&positions| layout.unit_runs(positions)) {
            self.events.push(ConnectionEvent::Units { stream, segment, units });
        }
    }

    /// Passes the round trip that the sending half has measured to the receiving half, which schedules its reports by it.
    pub(super) fn share_round_trip(&mut self) {
        let rtt = self.send.round_trip();
        if !rtt.is_zero() {
            self.recv.set_rtt(rtt);
        }
    }
}
