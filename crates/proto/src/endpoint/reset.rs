//! Connections that one side has lost, by a crash for instance: the other hears of it at once (RFC 9000 10.3).
//!
//! Called by the endpoint for sealed shipments of no connection. The side that answers has told a code for the
//! connection in its agreement; whoever has its key alone can make that code, also after the endpoint was started anew.
//!
//! Invariant: a reset is shorter than what it answers and is never answered by another; it ends a connection
//! only if it ends with that connection's code and comes from its peer's address.

use super::Endpoint;
use super::first_contact::ANSWERS_MAX;
use super::proof_of_address::{Purpose, code, message};
use crate::path::Addresses;
use core::net::SocketAddr;
use segstream_base::Instant;
use segstream_base::endpoint::Arrival;
use segstream_wire::header::HEADER_BYTES;

/// A reset looks like a short shipment: a header, then eight bytes in front of the code.
const RESET_BYTES: usize = HEADER_BYTES + 8 + 16;

impl Endpoint {
    /// A sealed shipment for no connection of ours: its sender hears that the connection is lost, or it tells us so.
    pub(super) fn on_unknown(&mut self, now: Instant, arrival: Arrival, identifier: u32, datagram: &[u8]) {
        self.strays.unknown_connection += 1;
        let lost = self.of_reset(datagram).and_then(|index| self.slots.at(index));
        let lost =
            lost.filter(|slot| slot.connection.remote() == arrival.from && slot.connection.is_reset(datagram)).map(|slot| slot.id.index());
        if let Some(slot) = lost.and_then(|index| self.touched(index)) {
            slot.connection.on_reset(now);
            return;
        }
        self.answer_unknown(now, Addresses::back(&arrival), identifier, datagram.len());
    }

    /// The resets of the peer of the connection in slot `index` have this `end`.
    pub(super) fn note_reset(&mut self, index: u32, end: &[u8; 16]) {
        self.slots.note_reset(index, code(&*self.protection, Purpose::PeerReset, end));
    }

    /// The slot of the connection whose peer's resets end as `datagram` does.
    fn of_reset(&self, datagram: &[u8]) -> Option<u32> {
        let end = datagram.last_chunk::<16>().filter(|_| self.slots.has_resets())?;
        // RFC 9000 10.3.1: found by a code that nobody else can make, so that the time it takes tells nothing of the end.
        self.slots.of_reset(&code(&*self.protection, Purpose::PeerReset, end))
    }

    /// What says that the connection is lost which is addressed here by `identifier` and whose peer is at `peer`.
    pub(super) fn reset_code(&self, identifier: u32, peer: SocketAddr) -> Option<[u8; 16]> {
        self.protection.authenticate_lasting(&message(Purpose::Reset, &identifier.to_be_bytes(), peer, true))
    }

    fn answer_unknown(&mut self, now: Instant, addresses: Addresses, identifier: u32, bytes: usize) {
        if !self.config.accept || bytes <= RESET_BYTES || self.answers.len() >= ANSWERS_MAX {
            return;
        }
        let Some(code) = self.reset_code(identifier, addresses.remote) else { return };
        if !self.resets.take(now) {
            self.strays.resets_refused += 1;
            return;
        }
        self.strays.resets += 1;
        let mut out = Vec::with_capacity(RESET_BYTES + 8);
        while out.len() < RESET_BYTES - code.len() {
            out.extend_from_slice(&self.draw().to_be_bytes());
        }
        out.truncate(RESET_BYTES - code.len());
        // It must pass for a shipment of a data level.
        out[0] = 0x60 | (out[0] & 0x1f);
        out.extend_from_slice(&code);
        self.answers.push_back((addresses, out));
    }
}
