//! A datagram goes out: each part is asked in turn what it wants to send.
//!
//! Called by the endpoint. The order is: set-up, end, reports, then the sending half, whose own order is
//! state when due, repair, new data.
//!
//! Invariant: a batch holds datagrams of one size, the last of which may be shorter; what would break
//! that is kept for the next batch, already numbered and sealed.

use super::setup::SetupShipment;
use super::{Connection, below_bytes};
use crate::error::CloseReason;
use crate::initial;
use crate::sender::Outgoing;
use core::net::SocketAddr;
use segstream_base::Instant;
use segstream_base::codec::Writer;
use segstream_base::endpoint::Ecn;
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Header, Kind, Level};

impl Connection {
    /// Appends up to `max_datagrams` equal datagrams to `out`; where they go and their size, or `None` when there is none.
    pub(crate) fn poll_transmit(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<(SocketAddr, usize)> {
        if self.moved.is_owed()
            && let Some(sent) = self.write_challenge(out)
        {
            return Some(sent);
        }
        let size = self.write_batch(now, max_datagrams, out)?;
        self.retire_worn_out(now);
        Some((self.remote, size))
    }

    /// A challenge leaves alone, for an address that is not the peer's yet.
    fn write_challenge(&mut self, out: &mut Vec<u8>) -> Option<(SocketAddr, usize)> {
        let bytes = HEADER_BYTES + 8 + self.session.seal_bytes();
        let (to, proof) = self.moved.challenge(bytes as u64)?;
        let number = self.counter.take();
        let start = out.len();
        self.write(Kind::Challenge, number, out, |body| body.u64(proof));
        self.counters.datagrams_sent += 1;
        self.counters.bytes_sent += bytes as u64;
        Some((to, out.len() - start))
    }

    fn write_batch(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<usize> {
        let mut size = None;
        let mut count = 0;
        while count < max_datagrams {
            let start = out.len();
            let alone = if self.stashed.is_empty() {
                match self.write_next(now, out) {
                    Some(alone) => alone,
                    None => break,
                }
            } else {
                out.append(&mut self.stashed);
                self.stashed_alone
            };
            let length = out.len() - start;
            let first = *size.get_or_insert(length);
            if length > first || (alone && count > 0) {
                self.stashed.extend_from_slice(&out[start..]);
                self.stashed_alone = alone;
                out.truncate(start);
                break;
            }
            count += 1;
            self.counters.datagrams_sent += 1;
            self.counters.bytes_sent += length as u64;
            // HT 3.1: state leaves alone in its batch, so that its spacing tells of the path alone.
            if length < first || alone {
                break;
            }
        }
        (count > 0).then_some(size?)
    }

    /// Writes the next shipment. `Some(true)` when it must be alone in its batch.
    fn write_next(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<bool> {
        let start = out.len();
        if let Some(alone) = self.write_own(now, out) {
            // Why: it goes the same way as what the sending half counts itself.
            self.send.note_sent((out.len() - start) as u64 + below_bytes(self.remote));
            return Some(alone);
        }
        if !self.setup.is_done() || self.close.is_over() {
            return None;
        }
        if let Some(alone) = self.write_probe(now, out) {
            return Some(alone);
        }
        self.write_half(now, out)
    }

    /// Writes what is not the sending half's: set-up, end, reports.
    fn write_own(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<bool> {
        if let Some(shipment) = self.setup_shipment(now) {
            self.write_setup(&shipment, out);
            return Some(true);
        }
        if let Some(proof) = self.moved.take_response() {
            let number = self.counter.take();
            self.write(Kind::Response, number, out, |body| body.u64(proof));
            return Some(true);
        }
        if let Some((kind, disconnect)) = self.close.shipment() {
            let number = self.counter.take();
            self.write(kind, number, out, |body| {
                if let Some(disconnect) = &disconnect {
                    disconnect.encode(body);
                }
            });
            return Some(true);
        }
        if !self.setup.is_done() || self.close.is_over() {
            return None;
        }
        if let Some(report) = self.recv.poll_report(now) {
            let number = self.counter.take();
            self.write(Kind::Report, number, out, |body| report.encode(body));
            return Some(false);
        }
        None
    }

    /// Writes what the sending half wants to send.
    fn write_half(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<bool> {
        let mut parts = core::mem::take(&mut self.parts);
        let outgoing = self.send.poll_transmit(now, &mut self.counter, &mut parts);
        let alone = match outgoing {
            None => None,
            Some((number, Outgoing::State(state))) => {
                self.write(Kind::State, number, out, |body| state.encode(body));
                Some(true)
            }
            Some((number, Outgoing::Data { .. })) => {
                self.write_data(number, &parts, out);
                Some(false)
            }
        };
        self.parts = parts;
        alone
    }

    /// The mark that what leaves carries: once set-up has shown that the path is there, a sender that gives way says that it
    /// heeds marks (RFC 3168).
    pub(crate) fn ecn(&self) -> Option<Ecn> {
        (self.setup.is_done() && self.send.is_markable()).then_some(Ecn::Ect0)
    }

    fn write_data(&mut self, number: u64, parts: &[segstream_wire::Part], out: &mut Vec<u8>) {
        let level = self.level();
        let header = Header { level, kind: Kind::Data, connection: self.remote_id, number: number as u32 };
        let start = out.len();
        // Why in pieces: room for a whole datagram would have to be zeroed first, which costs as much as the copy.
        append_encoded(out, |head| header.encode(head));
        for part in parts {
            append_encoded(out, |head| part.encode_header(head));
            if let Some(layout) = self.send.segment_layout(part.stream, part.segment) {
                self.send_store.append_to(part, &layout, out);
            }
        }
        out.resize(out.len() + self.session.seal_bytes(), 0);
        self.session.seal(level, number, &mut out[start..]);
    }

    /// Writes a shipment of set-up.
    fn write_setup(&mut self, shipment: &SetupShipment, out: &mut Vec<u8>) {
        let number = self.counter.take();
        match shipment {
            // A CR is for an endpoint, which knows no connection yet.
            SetupShipment::Request(request) => initial::write(Kind::Request, 0, number, out, |body| request.encode(body)),
            SetupShipment::Confirm(confirm) => initial::write(Kind::Confirm, self.remote_id, number, out, |body| confirm.encode(body)),
            // An RJ belongs to no connection of its sender.
            SetupShipment::Reject(reject) => initial::write(Kind::Reject, self.remote_id, 0, out, |body| reject.encode(body)),
            SetupShipment::Handshake(fragment) => {
                self.write_at(Level::Handshake, Kind::Handshake, number, out, |body| fragment.encode(body));
            }
        }
    }

    /// The level of what is neither handshake nor before it.
    fn level(&self) -> Level {
        if self.session.is_complete() { self.session.data_level() } else { Level::Handshake }
    }

    fn write(&mut self, kind: Kind, number: u64, out: &mut Vec<u8>, body: impl FnOnce(&mut Writer<'_>)) {
        self.write_at(self.level(), kind, number, out, body);
    }

    /// Writes a shipment of up to `bytes`.
    pub(super) fn write_sized(&mut self, kind: Kind, number: u64, bytes: usize, out: &mut Vec<u8>, body: impl FnOnce(&mut Writer<'_>)) {
        let header = Header { level: self.level(), kind, connection: self.remote_id, number: number as u32 };
        self.write_whole(&header, number, bytes, out, body);
    }

    fn write_at(&mut self, level: Level, kind: Kind, number: u64, out: &mut Vec<u8>, body: impl FnOnce(&mut Writer<'_>)) {
        let header = Header { level, kind, connection: self.remote_id, number: number as u32 };
        self.write_whole(&header, number, self.control_bytes, out, body);
    }

    fn write_whole(&mut self, header: &Header, number: u64, bytes: usize, out: &mut Vec<u8>, body: impl FnOnce(&mut Writer<'_>)) {
        let start = begin(out, bytes);
        let mut writer = Writer::new(&mut out[start..]);
        header.encode(&mut writer);
        body(&mut writer);
        // Invariant: every body is composed to fit; were one not, an empty shipment is harmless.
        let written = writer.finish().unwrap_or(HEADER_BYTES);
        self.seal(header.level, number, out, start, written);
    }

    fn seal(&mut self, level: Level, number: u64, out: &mut Vec<u8>, start: usize, written: usize) {
        out.truncate(start + written + self.session.seal_bytes());
        self.session.seal(level, number, &mut out[start..]);
    }

    /// Ends the connection when its keys have been used as often as they may.
    pub(super) fn retire_worn_out(&mut self, now: Instant) {
        if self.session.is_worn_out() {
            self.end(now, CloseReason::KeysWornOut);
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

/// Makes room for a whole datagram of up to `bytes` at the end of `out`; returns where it starts.
fn begin(out: &mut Vec<u8>, bytes: usize) -> usize {
    let start = out.len();
    out.resize(start + bytes, 0);
    start
}
