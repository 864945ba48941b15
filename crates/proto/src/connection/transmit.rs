//! Writes the datagrams to send: asks each part of the connection in turn for a shipment.
//!
//! Called by the endpoint. The order is: set-up, end, reports, then the sending half, whose order is due state, retransmissions, new
//! data. Data that may leave precedes reports and state that have just become due.
//!
//! Invariant: a batch has datagrams of one size, the last of which may be shorter; a datagram that does not fit is carried over to the
//! next batch, already numbered and sealed.

use super::Connection;
use super::setup::SetupShipment;
use crate::error::CloseReason;
use crate::initial;
use crate::path::Addresses;
use crate::sender::Outgoing;
use crate::trace::Direction;
use segstream_base::codec::Writer;
use segstream_base::endpoint::Ecn;
use segstream_base::{Instant, ShipmentNumber};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Header, Kind, Level, Part, Repair};

/// How a shipment may leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// Alone in its batch.
    #[default]
    Alone,
    /// Among others of its size.
    Among,
    /// As the first of a GSO batch of data.
    Batch,
}

/// What the sending half has given, written and not sealed yet.
#[derive(Clone, Copy, Debug)]
struct Half {
    kind: Kind,
    number: ShipmentNumber,
}

impl Half {
    const fn place(self) -> Place {
        match self.kind {
            Kind::Data => Place::Batch,
            Kind::Repair => Place::Among,
            _ => Place::Alone,
        }
    }
}

impl Connection {
    /// Appends up to `max_datagrams` equal datagrams to `out`; where they go and their size, or `None` when there is none.
    pub(crate) fn poll_transmit(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<(Addresses, usize)> {
        self.trace_from(now);
        if self.send.path.validation.has_pending_challenge()
            && let Some(sent) = self.write_challenge(out)
        {
            return Some(sent);
        }
        let size = self.write_batch(now, max_datagrams, out)?;
        self.close_on_aead_limit(now);
        Some((self.send.path.addresses, size))
    }

    /// A challenge leaves alone, for an address that is not the peer's yet.
    fn write_challenge(&mut self, out: &mut Vec<u8>) -> Option<(Addresses, usize)> {
        let bytes = HEADER_BYTES + 8 + self.protection.session.seal_bytes();
        let (to, proof) = self.send.path.validation.challenge(bytes as u64)?;
        let number = self.protection.counter.take();
        let start = out.len();
        self.write(Kind::Challenge, number, out, |body| body.u64(proof));
        self.counters.datagrams_sent += 1;
        self.counters.bytes_sent += bytes as u64;
        self.send.note_sent(bytes as u64 + to.ip_udp_header_bytes());
        Some((to, out.len() - start))
    }

    fn write_batch(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<usize> {
        let mut size = None;
        let mut count = 0;
        while count < max_datagrams {
            let start = out.len();
            let place = if self.outgoing.carried_over.is_empty() {
                match self.write_next(now, out) {
                    Some(place) => place,
                    None => break,
                }
            } else {
                out.append(&mut self.outgoing.carried_over);
                self.outgoing.carried_over_batching
            };
            let length = out.len() - start;
            let first = *size.get_or_insert(length);
            if length > first || (place == Place::Alone && count > 0) {
                self.carry_over(start, place, out);
                break;
            }
            count += 1;
            self.note_sent(1, length);
            // HT 3.1: state leaves alone in its batch, so that its spacing tells of the path alone.
            if length < first || place == Place::Alone {
                break;
            }
            if place == Place::Batch {
                self.write_data_batch(now, first, max_datagrams - count, out);
                break;
            }
        }
        (count > 0).then_some(size?)
    }

    /// Writes up to `room` more data shipments of `size`, the last of which may be shorter, behind one of that size.
    ///
    /// Why only the sending half is asked: within one batch nothing arrives and no time passes, so no other part has anything new to send.
    fn write_data_batch(&mut self, now: Instant, size: usize, room: usize, out: &mut Vec<u8>) {
        let (begin, first) = (out.len(), self.protection.counter.peek());
        let (mut count, mut odd) = (0, None);
        while count < room {
            count += self.write_alike(now, room - count, out);
            if count == room {
                break;
            }
            let start = out.len();
            let Some(half) = self.write_half(now, out) else { break };
            let length = out.len() - start;
            if half.kind != Kind::Data || length > size {
                odd = Some((half, start));
                break;
            }
            count += 1;
            if length < size {
                break;
            }
        }
        let end = odd.map_or(out.len(), |(_, start)| start);
        debug_assert_eq!((end - begin).div_ceil(size), count, "a shipment of the batch has another size");
        debug_assert_eq!(self.protection.counter.peek() - first, count as u64 + u64::from(odd.is_some()), "a number is left out");
        // Invariant: all of it is data, so its numbers follow one another, and it is sealed in the order of its numbers.
        self.seal_batch(first, &mut out[begin..end], size);
        self.note_sent(count as u64, end - begin);
        if let Some((half, start)) = odd {
            self.seal(half, &mut out[start..]);
            self.carry_over(start, half.place(), out);
        }
    }

    /// Writes up to `room` shipments that differ from the last one only in where their units lie. Returns how many.
    fn write_alike(&mut self, now: Instant, room: usize, out: &mut Vec<u8>) -> usize {
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let count = self.send.extend_batch(now, &mut self.protection.counter, &self.outgoing.parts, room);
        let Some(part) = self.outgoing.parts.first_mut().filter(|_| count > 0) else { return 0 };
        let Some(layout) = self.send.segment_layout(part.stream, part.segment) else { return 0 };
        let mut head = [0; HEADER_BYTES + HEAD_BYTES_MAX];
        let (_, of_part) = head.split_at_mut(HEADER_BYTES);
        let mut writer = Writer::new(of_part);
        part.encode_header(&mut writer);
        let (head_bytes, first_at) = (HEADER_BYTES + writer.position(), HEADER_BYTES + part.first_at());
        for _ in 0..count {
            part.first += part.count;
            Writer::new(&mut head[first_at..]).varint(u64::from(part.first));
            out.extend_from_slice(&head[..head_bytes]);
            self.outgoing.store.append_to(part, &layout, out);
            out.resize(out.len() + self.protection.session.seal_bytes(), 0);
        }
        count as usize
    }

    /// Carries what was written from `start` on over to the next batch.
    fn carry_over(&mut self, start: usize, place: Place, out: &mut Vec<u8>) {
        self.outgoing.carried_over.extend_from_slice(&out[start..]);
        self.outgoing.carried_over_batching = place;
        out.truncate(start);
    }

    fn note_sent(&mut self, datagrams: u64, bytes: usize) {
        self.counters.datagrams_sent += datagrams;
        self.counters.bytes_sent += bytes as u64;
    }

    /// Writes the next shipment.
    fn write_next(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Place> {
        let start = out.len();
        if let Some(place) = self.write_own(now, out) {
            // Why: it uses the same path as the shipments that the sending half counts itself.
            self.send.note_sent((out.len() - start) as u64 + self.send.path.addresses.ip_udp_header_bytes());
            return Some(place);
        }
        if !self.setup.is_done() || self.close.is_over() {
            return None;
        }
        if self.write_probe(now, out) {
            return Some(Place::Alone);
        }
        let half = self.write_half(now, out)?;
        self.seal(half, &mut out[start..]);
        Some(half.place())
    }

    /// Writes what is not the sending half's: set-up, end, reports.
    fn write_own(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Place> {
        if let Some(shipment) = self.setup_shipment(now) {
            self.write_setup(&shipment, out);
            return Some(Place::Alone);
        }
        if let Some(proof) = self.send.path.validation.take_response() {
            let number = self.protection.counter.take();
            self.write(Kind::Response, number, out, |body| body.u64(proof));
            return Some(Place::Alone);
        }
        if let Some((kind, disconnect)) = self.close.shipment() {
            let number = self.protection.counter.take();
            self.write(kind, number, out, |body| {
                if let Some(disconnect) = &disconnect {
                    disconnect.encode(body);
                }
            });
            return Some(Place::Alone);
        }
        if !self.setup.is_done() || self.close.is_over() {
            return None;
        }
        let report_due = self.recv.report_due().filter(|deadline| deadline.at <= now);
        if report_due.is_some_and(|deadline| self.send.data_precedes_control(now, deadline.at)) {
            return None;
        }
        let report = self.recv.poll_report(now);
        self.follow_windows();
        if let Some(report) = report {
            let number = self.protection.counter.take();
            self.write(Kind::Report, number, out, |body| report.encode(body));
            return Some(Place::Among);
        }
        None
    }

    /// Writes what the sending half wants to send, which is to be sealed.
    fn write_half(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Half> {
        let mut parts = core::mem::take(&mut self.outgoing.parts);
        let outgoing = self.send.poll_transmit(now, &mut self.protection.counter, &mut parts);
        let half = outgoing.map(|(number, outgoing)| match outgoing {
            Outgoing::State(state) => {
                self.write_body(self.send.path.pmtu.control_bytes, out, |body| state.encode(body));
                Half { kind: Kind::State, number }
            }
            Outgoing::Repair(repair) => {
                self.write_repair(&repair, out);
                Half { kind: Kind::Repair, number }
            }
            Outgoing::Data { .. } => {
                self.write_data(&parts, out);
                Half { kind: Kind::Data, number }
            }
        });
        self.outgoing.parts = parts;
        half
    }

    /// The ECN codepoint of sent datagrams: after set-up, a congestion-controlled sender is ECN-capable (RFC 3168).
    pub(crate) fn ecn(&self) -> Option<Ecn> {
        self.send.ecn().filter(|_| self.setup.is_done())
    }

    /// Writes data, with room for its header and its seal.
    fn write_data(&self, parts: &[Part], out: &mut Vec<u8>) {
        // Why in pieces: room for a whole datagram would have to be zeroed first, which costs as much as the copy.
        out.extend_from_slice(&[0; HEADER_BYTES]);
        for part in parts {
            append_encoded(out, |head| part.encode_header(head));
            if let Some(layout) = self.send.segment_layout(part.stream, part.segment) {
                self.outgoing.store.append_to(part, &layout, out);
            }
        }
        out.resize(out.len() + self.protection.session.seal_bytes(), 0);
    }

    /// Writes repair units, with room for the header and the seal.
    fn write_repair(&mut self, repair: &Repair, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; HEADER_BYTES]);
        append_encoded(out, |head| repair.encode_header(head));
        let layout = self.send.segment_layout(repair.stream, repair.segment);
        if let (Some(layout), Some(fence)) = (layout, self.send.fence(repair.stream, repair.segment)) {
            self.outgoing.store.append_repairs(repair, &layout, fence, out);
        }
        out.resize(out.len() + self.protection.session.seal_bytes(), 0);
    }

    /// Heads and seals what the sending half has given. Why both at a time: the header names the keys, which change with what
    /// they have sealed.
    fn seal(&mut self, half: Half, shipment: &mut [u8]) {
        self.seal_at(self.level(), half.kind, half.number, shipment);
    }

    /// Heads and seals data shipments of `size`, the last of which may be shorter, numbered from `first` on.
    fn seal_batch(&mut self, first: ShipmentNumber, batch: &mut [u8], size: usize) {
        // Why all heads first: a seal begins by reading its head in one piece, and would wait for what has just been written in
        // several.
        let headed = self.level();
        for (number, shipment) in first.onward().zip(batch.chunks_mut(size)) {
            self.head(headed, Kind::Data, number, shipment);
        }
        for (number, shipment) in first.onward().zip(batch.chunks_mut(size)) {
            self.trace_unsealed(Kind::Data, number, shipment);
            let level = self.level();
            if level != headed {
                self.head(level, Kind::Data, number, shipment);
            }
            self.protection.session.seal(level, number, shipment);
        }
    }

    /// Writes a shipment of set-up.
    fn write_setup(&mut self, shipment: &SetupShipment, out: &mut Vec<u8>) {
        let number = self.protection.counter.take();
        let start = out.len();
        match shipment {
            // A CR is for an endpoint, which knows no connection yet.
            SetupShipment::Request(request) => initial::write(Kind::Request, 0, number, out, |body| request.encode(body)),
            SetupShipment::Confirm(confirm) => {
                initial::write(Kind::Confirm, self.identity.remote_id, number, out, |body| confirm.encode(body));
            }
            // An RJ belongs to no connection of its sender.
            SetupShipment::Reject(reject) => {
                initial::write(Kind::Reject, self.identity.remote_id, ShipmentNumber::FIRST, out, |body| reject.encode(body));
            }
            SetupShipment::Handshake(fragment) => {
                self.write_at(Level::Handshake, Kind::Handshake, number, out, |body| fragment.encode(body));
                return;
            }
        }
        let kind = match shipment {
            SetupShipment::Request(_) => Kind::Request,
            SetupShipment::Confirm(_) => Kind::Confirm,
            SetupShipment::Reject(_) => Kind::Reject,
            SetupShipment::Handshake(_) => Kind::Handshake,
        };
        self.trace_shipment(Direction::Sent, kind, number, (out.len() - start) as u64, &[]);
    }

    /// The level of what is neither handshake nor before it.
    fn level(&self) -> Level {
        if self.protection.session.is_complete() { self.protection.session.data_level() } else { Level::Handshake }
    }

    fn write(&mut self, kind: Kind, number: ShipmentNumber, out: &mut Vec<u8>, body: impl FnOnce(&mut Writer<'_>)) {
        self.write_at(self.level(), kind, number, out, body);
    }

    /// Writes a shipment of up to `bytes`.
    pub(super) fn write_sized(
        &mut self,
        kind: Kind,
        number: ShipmentNumber,
        bytes: usize,
        out: &mut Vec<u8>,
        body: impl FnOnce(&mut Writer<'_>),
    ) {
        let start = out.len();
        self.write_body(bytes, out, body);
        self.seal_at(self.level(), kind, number, &mut out[start..]);
    }

    fn write_at(&mut self, level: Level, kind: Kind, number: ShipmentNumber, out: &mut Vec<u8>, body: impl FnOnce(&mut Writer<'_>)) {
        let start = out.len();
        self.write_body(self.send.path.pmtu.control_bytes, out, body);
        self.seal_at(level, kind, number, &mut out[start..]);
    }

    /// Writes a body, with room for its header and its seal, of up to `bytes` in all.
    fn write_body(&self, bytes: usize, out: &mut Vec<u8>, body: impl FnOnce(&mut Writer<'_>)) {
        let start = out.len();
        out.resize(start + bytes, 0);
        let mut writer = Writer::new(&mut out[start..]);
        writer.reserve(HEADER_BYTES);
        body(&mut writer);
        // Invariant: every body is composed to fit; were one not, an empty shipment is harmless.
        let written = writer.finish().unwrap_or(HEADER_BYTES);
        out.truncate(start + written + self.protection.session.seal_bytes());
    }

    fn head(&self, level: Level, kind: Kind, number: ShipmentNumber, shipment: &mut [u8]) {
        let header = Header { level, kind, connection: self.identity.remote_id, number: number.0 as u32 };
        header.encode(&mut Writer::new(shipment));
    }

    fn seal_at(&mut self, level: Level, kind: Kind, number: ShipmentNumber, shipment: &mut [u8]) {
        self.head(level, kind, number, shipment);
        self.trace_unsealed(kind, number, shipment);
        self.protection.session.seal(level, number, shipment);
    }

    /// Ends the connection when its keys have reached their AEAD usage limit.
    pub(super) fn close_on_aead_limit(&mut self, now: Instant) {
        if self.protection.session.aead_limit_reached() {
            self.end(now, CloseReason::AeadLimitReached);
        }
    }
}

/// Longer than the header of a shipment or a part ever is.
const HEAD_BYTES_MAX: usize = 96;

/// Appends what `encode` writes.
fn append_encoded(out: &mut Vec<u8>, encode: impl FnOnce(&mut Writer<'_>)) {
    let mut head = [0; HEAD_BYTES_MAX];
    let mut writer = Writer::new(&mut head);
    encode(&mut writer);
    // Invariant: a head fits; were one not to, the shipment is malformed and harmless.
    let written = writer.finish().unwrap_or(0);
    out.extend_from_slice(&head[..written]);
}
