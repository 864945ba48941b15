//! A datagram comes in: one call for each kind of shipment.
//!
//! Called by the endpoint. Invariant: nothing is looked at before the seal is opened under the rebuilt
//! number, and nothing is looked at twice.

use super::{Connection, ConnectionEvent};
use crate::receiver::PartFate;
use segstream_base::Instant;
use segstream_base::codec::{DecodeError, Reader};
use segstream_base::endpoint::{Arrival, Ecn};
use segstream_base::sequence::expand;
use segstream_wire::handshake::{Confirm, Disconnect, Reject};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Header, Kind, Part, Report, State};

impl Connection {
    /// Takes a datagram addressed to this connection.
    pub(crate) fn handle_datagram(&mut self, now: Instant, arrival: Arrival, header: &Header, datagram: &mut [u8]) {
        let expected = self.recv.highest_shipment().map_or(0, |highest| highest + 1);
        let number = expand(u64::from(header.number), 32, expected);
        let Some(end) = self.session.open(header.level, number, datagram) else {
            self.counters.seals_broken += 1;
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
        let body = datagram.get(HEADER_BYTES..end).unwrap_or(&[]);
        if self.dispatch(now, header.kind, number, body).is_err() {
            self.counters.malformed += 1;
        }
        self.recv.after_shipment(now);
        self.after_input(now);
    }

    fn dispatch(&mut self, now: Instant, kind: Kind, number: u64, body: &[u8]) -> Result<(), DecodeError> {
        if !matches!(kind, Kind::Request | Kind::Confirm | Kind::Reject) {
            self.on_first_shipment(now);
        }
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
            }
            Kind::Confirm => self.on_confirm(now, &Confirm::decode(&mut input)?),
            Kind::Reject => self.on_reject(now, Reject::decode(&mut input)?),
            Kind::Disconnect => self.on_disconnect(now, Disconnect::decode(&mut input)?),
            Kind::DisconnectConfirm => self.on_disconnect_confirm(now),
            // A request has no connection yet; the endpoint has dealt with it.
            Kind::Request => {}
        }
        Ok(())
    }

    fn on_data(&mut self, now: Instant, number: u64, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        while !input.is_empty() {
            let (part, payload) = Part::decode(input)?;
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
        self.recv_store.write(part, &layout, payload);
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
