//! A datagram goes out: each part is asked in turn what it wants to send.
//!
//! Called by the endpoint. The order is: set-up, end, reports, then the sending half, whose own order is
//! state when due, repair, new data.
//!
//! Invariant: a batch holds datagrams of one size, the last of which may be shorter; what would break
//! that is kept for the next batch, already numbered and sealed.

use super::setup::SetupShipment;
use super::{Connection, below_bytes};
use crate::sender::Outgoing;
use segstream_base::Instant;
use segstream_base::codec::Writer;
use segstream_base::endpoint::Ecn;
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Header, Kind, Level};

impl Connection {
    /// Appends up to `max_datagrams` equal datagrams to `out`; their size, or `None` when there is none.
    pub(crate) fn poll_transmit(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<usize> {
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
        self.write_half(now, out)
    }

    /// Writes what is not the sending half's: set-up, end, reports.
    fn write_own(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<bool> {
        if let Some(shipment) = self.setup_shipment(now) {
            let number = self.counter.take();
            match shipment {
                SetupShipment::Request(request) => self.write(Kind::Request, number, out, |body| request.encode(body)),
                SetupShipment::Confirm(confirm) => self.write(Kind::Confirm, number, out, |body| confirm.encode(body)),
            }
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
        let store = core::mem::take(&mut self.send_store);
        let layouts = &self.send;
        let header = self.header(Kind::Data, number);
        let start = self.begin(out);
        let mut writer = Writer::new(&mut out[start..]);
        header.encode(&mut writer);
        for part in parts {
            part.encode_header(&mut writer);
            if let Some(layout) = layouts.segment_layout(part.stream, part.segment) {
                store.write(part, &layout, &mut writer);
            }
        }
        let written = writer.finish().unwrap_or(HEADER_BYTES);
        self.send_store = store;
        self.seal(number, out, start, written);
    }

    fn write(&mut self, kind: Kind, number: u64, out: &mut Vec<u8>, body: impl FnOnce(&mut Writer<'_>)) {
        let header = self.header(kind, number);
        let start = self.begin(out);
        let mut writer = Writer::new(&mut out[start..]);
        header.encode(&mut writer);
        body(&mut writer);
        // Invariant: every body is composed to fit; were one not, an empty shipment is harmless.
        let written = writer.finish().unwrap_or(HEADER_BYTES);
        self.seal(number, out, start, written);
    }

    fn header(&self, kind: Kind, number: u64) -> Header {
        let level = if matches!(kind, Kind::Request | Kind::Confirm) { Level::Initial } else { Level::Data };
        Header { level, kind, connection: self.remote_id, number: number as u32 }
    }

    /// Makes room for a whole datagram at the end of `out`; returns where it starts.
    fn begin(&self, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.resize(start + self.config.datagram_bytes, 0);
        start
    }

    fn seal(&mut self, number: u64, out: &mut Vec<u8>, start: usize, written: usize) {
        out.truncate(start + written + self.session.seal_bytes());
        self.session.seal(Level::Data, number, &mut out[start..]);
    }
}
