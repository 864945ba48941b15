//! A datagram comes in: one call for each kind of shipment.
//!
//! Called by the endpoint. Invariant: beyond set-up nothing is looked at before the seal is opened under the rebuilt
//! number, and nothing is looked at twice; once set-up is done nothing without a seal is looked at.

use super::{Connection, ConnectionEvent, Role};
use crate::initial;
use crate::receiver::PartFate;
use core::net::SocketAddr;
use segstream_base::Instant;
use segstream_base::codec::{DecodeError, Reader};
use segstream_base::endpoint::{Arrival, Ecn};
use segstream_base::sequence::expand;
use segstream_wire::handshake::{Confirm, Cookie, Disconnect, Fragment, Reject};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Header, Kind, Level, Part, Report, State};

impl Connection {
    /// Takes a shipment of set-up, which has no keys: only its fields say that it is meant for us.
    pub(crate) fn handle_initial(&mut self, now: Instant, header: &Header, datagram: &[u8]) {
        if self.role == Role::Responder || self.setup.is_done() {
            return;
        }
        let Some(body) = initial::open(header, datagram) else {
            self.counters.seals_broken += 1;
            return;
        };
        let (number, mut input) = (u64::from(header.number), Reader::new(body));
        let decoded = match header.kind {
            Kind::Cookie => Cookie::decode(&mut input).map(|cookie| self.on_cookie(cookie)),
            Kind::Confirm => Confirm::decode(&mut input).map(|confirm| self.on_confirm(now, number, datagram.len(), &confirm)),
            Kind::Reject => Reject::decode(&mut input).map(|reject| self.on_reject(now, reject)),
            _ => Ok(()),
        };
        if decoded.is_err() {
            self.counters.malformed += 1;
        }
        self.after_input(now);
    }

    /// Takes a sealed datagram addressed to this connection.
    pub(crate) fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        self.session.uncover(datagram);
        let Ok(header) = Header::decode(&mut Reader::new(datagram)) else {
            self.counters.seals_broken += 1;
            return;
        };
        let highest = self.recv.highest_shipment();
        // RFC 9000 17.1: the handshake is over long before a number needs more than 32 bits.
        let number = match header.level {
            Level::Handshake => u64::from(header.number),
            _ => expand(u64::from(header.number), 32, highest.map_or(0, |highest| highest + 1)),
        };
        let Some(end) = self.session.open(header.level, number, datagram) else {
            self.counters.seals_broken += 1;
            self.retire_worn_out(now);
            return;
        };
        if arrival.ecn == Some(Ecn::CongestionExperienced) {
            self.recv.note_congestion_mark();
        }
        // Limit: a clock of the kernel that runs ahead of ours would date an arrival after its report.
        if !self.recv.on_shipment(arrival.received.min(now), number, datagram.len() as u64) {
            self.counters.duplicates += 1;
            return;
        }
        self.last_heard = now;
        self.counters.datagrams_received += 1;
        self.counters.bytes_received += datagram.len() as u64;
        self.note_address(now, arrival.from, highest.is_none_or(|highest| number > highest), datagram.len() as u64);
        let body = datagram.get(HEADER_BYTES..end).unwrap_or(&[]);
        let dispatched = match header.level {
            Level::Handshake => self.dispatch_handshake(now, header.kind, body),
            _ => self.dispatch(now, arrival.from, header.kind, number, body),
        };
        if dispatched.is_err() {
            self.counters.malformed += 1;
        }
        self.recv.after_shipment(now);
        self.after_input(now);
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

    fn dispatch(&mut self, now: Instant, from: SocketAddr, kind: Kind, number: u64, body: &[u8]) -> Result<(), DecodeError> {
        self.on_data_level(now);
        if self.close.is_over() && kind != Kind::Disconnect {
            return Ok(());
        }
        let mut input = Reader::new(body);
        match kind {
            Kind::Data => self.on_data(now, number, &mut input)?,
            Kind::State => self.recv.on_state(now, number, &State::decode(&mut input)?),
            Kind::Report => {
                self.send.handle_report(now, &Report::decode(&mut input)?);
                self.share_round_trip();
                self.look_for_lost_probe(now);
            }
            Kind::Disconnect => self.on_disconnect(now, Disconnect::decode(&mut input)?),
            Kind::DisconnectConfirm => self.on_disconnect_confirm(now),
            Kind::Challenge => self.on_challenge(input.u64("challenge")?),
            Kind::Response => {
                let proof = input.u64("response")?;
                // Why both: no two challenges are the same, so it is the answer to one of them at most.
                if from == self.remote {
                    self.on_probe_answered(now, proof);
                }
                self.on_response(now, from, proof);
            }
            // Of set-up, which has levels of its own.
            Kind::Request | Kind::Confirm | Kind::Reject | Kind::Cookie | Kind::Handshake => {}
        }
        Ok(())
    }

    fn on_data(&mut self, now: Instant, number: u64, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        let mut part = Part::default();
        while !input.is_empty() {
            let payload = part.read(input)?;
            if self.payload_fits(&part) && self.recv.on_part(now, number, &part) == PartFate::Fresh {
                self.keep(&part, payload);
            }
        }
        Ok(())
    }

    /// Whether the payload is as long as the part's units; anything else is a peer's mistake.
    fn payload_fits(&mut self, part: &Part) -> bool {
        let fits = self.recv.payload_bytes(part) == Some(part.payload_bytes);
        if !fits {
            self.recv.counters.parts_refused += 1;
        }
        fits
    }

    fn keep(&mut self, part: &Part, payload: &[u8]) {
        let Some(layout) = self.recv.segment_layout(part.stream, part.segment) else { return };
        self.recv_store.write(part, layout, payload);
        if self.progressive.contains(&part.stream) {
            let (stream, segment) = (part.stream, part.segment);
            if layout.order.is_in_order() {
                self.events.push_back(ConnectionEvent::Units { stream, segment, first: part.first, count: part.count });
            } else {
                self.events.extend(layout.units_at(part.first, part.count).map(|first| ConnectionEvent::Units {
                    stream,
                    segment,
                    first,
                    count: 1,
                }));
            }
        }
    }

    /// The receiving half paces its reports by the round trip the sending half has measured.
    pub(super) fn share_round_trip(&mut self) {
        let rtt = self.send.round_trip();
        if !rtt.is_zero() {
            self.recv.set_round_trip(rtt);
        }
    }
}
