//! Stateless reset: tells a peer at once that this side has lost the connection, for example by a crash (RFC 9000 10.3).
//!
//! Called by the endpoint for unmatched sealed shipments. The agreement contained a token for the connection. Only an endpoint with the same
//! key at the same address and port can compute that token, also after a restart.
//!
//! Invariant: no endpoint tells the token of a connection that another endpoint may have, such as another listener with the same key, or
//! another shard (RFC 9000 21.11). A stateless reset is shorter than the datagram that it answers, and is never answered; it ends a connection only if it ends
//! with that connection's token and comes from its peer's address.

use super::Endpoint;
use super::address_validation::{Purpose, code, message, octets};
use super::connection_requests::ANSWERS_MAX;
use crate::path::Addresses;
use segstream_base::Instant;
use segstream_base::endpoint::Arrival;
use segstream_wire::header::HEADER_BYTES;

/// A stateless reset looks like a short shipment: a header, then eight bytes before the token.
const RESET_BYTES: usize = HEADER_BYTES + 8 + 16;

impl Endpoint {
    /// An unmatched sealed shipment: either it is a stateless reset, or it may be answered by one.
    pub(super) fn on_unknown(&mut self, now: Instant, arrival: Arrival, identifier: u32, datagram: &[u8]) {
        self.unmatched.unknown_connection += 1;
        let lost = self.of_reset(datagram).and_then(|index| self.slots.at(index));
        let lost =
            lost.filter(|slot| slot.connection.remote() == arrival.from && slot.connection.is_reset(datagram)).map(|slot| slot.id.index());
        if let Some(slot) = lost.and_then(|index| self.touched(index)) {
            slot.connection.on_reset(now);
            return;
        }
        self.answer_unknown(now, Addresses::back(&arrival), identifier, datagram.len());
    }

    /// The peer of the connection in slot `index` has the stateless reset token `end`.
    pub(super) fn note_reset(&mut self, index: u32, end: &[u8; 16]) {
        self.slots.note_reset(index, code(&*self.protection, Purpose::PeerReset, end));
    }

    /// The slot of the connection whose peer's stateless reset token is at the end of `datagram`.
    fn of_reset(&self, datagram: &[u8]) -> Option<u32> {
        let end = datagram.last_chunk::<16>().filter(|_| self.slots.has_resets())?;
        // RFC 9000 10.3.1: looked up by a keyed MAC of the token, so that the lookup time reveals nothing about the token.
        self.slots.of_reset(&code(&*self.protection, Purpose::PeerReset, end))
    }

    /// The stateless reset token of the connection with our `identifier` over the path `addresses`, as it was when set-up began.
    // Why our own address as well: hosts that share a key may listen at the same port of every address they have.
    pub(super) fn reset_code(&self, identifier: u32, addresses: Addresses) -> Option<[u8; 16]> {
        let local = addresses.local.address.map_or([0; 16], octets);
        let about = [&identifier.to_be_bytes()[..], &local].concat();
        self.protection.lasting_mac(&message(Purpose::Reset, self.config.listener, &about, addresses.remote, true))
    }

    fn answer_unknown(&mut self, now: Instant, addresses: Addresses, identifier: u32, bytes: usize) {
        if !self.config.accept || bytes <= RESET_BYTES || self.answers.len() >= ANSWERS_MAX {
            return;
        }
        let [_, shard, ..] = identifier.to_be_bytes();
        if !self.config.shard.names(shard) {
            // The shard that has the connection is alive.
            return;
        }
        let Some(code) = self.reset_code(identifier, addresses) else { return };
        if !self.resets.take(now) {
            self.unmatched.resets_refused += 1;
            return;
        }
        self.unmatched.resets += 1;
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
