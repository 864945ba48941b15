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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::session::{HandshakeError, Plain, Protection, Session, Trust};
    use core::net::SocketAddr;
    use segstream_base::endpoint::Local;

    /// Plain mode with a key that outlives the endpoint, as encrypted mode has one.
    #[derive(Debug)]
    struct Lasting(Plain);

    impl Protection for Lasting {
        fn mode(&self) -> u8 {
            self.0.mode()
        }
        fn initiate(&mut self, remote: SocketAddr, trust: &Trust, parameters: &[u8]) -> Result<Box<dyn Session>, HandshakeError> {
            self.0.initiate(remote, trust, parameters)
        }
        fn respond(&mut self, remote: SocketAddr) -> Box<dyn Session> {
            self.0.respond(remote)
        }
        fn mac(&self, message: &[u8]) -> [u8; 16] {
            self.0.mac(message)
        }
        fn lasting_mac(&self, message: &[u8]) -> Option<[u8; 16]> {
            Some(self.0.mac(message))
        }
    }

    fn listener(place: &str, key: u8) -> Endpoint {
        let config = Config { accept: true, listener: Some(place.parse().unwrap()), ..Config::default() };
        Endpoint::with_protection(config, Box::new(Lasting(Plain::new([key; 16])))).unwrap()
    }

    #[test]
    fn a_token_is_that_of_one_connection_at_one_listener_and_of_its_next_life() {
        let addresses = |remote: &str, local: &str| {
            let local = Local { address: Some(local.parse().unwrap()), ..Local::ANY };
            Addresses { remote: remote.parse().unwrap(), local }
        };
        let (here, peer) = ("198.51.100.1:4433", addresses("192.0.2.1:9", "198.51.100.1"));
        let token = listener(here, 3).reset_code(77, peer);
        assert!(token.is_some());
        assert_eq!(listener(here, 3).reset_code(77, peer), token, "it was started anew");
        for other in ["198.51.100.1:4434", "198.51.100.2:4433", "0.0.0.0:4433", "[::]:4433"] {
            assert_ne!(listener(other, 3).reset_code(77, peer), token, "{other}");
        }
        for other in ["192.0.2.1:10", "192.0.2.2:9", "[2001:db8::1]:9"] {
            assert_ne!(listener(here, 3).reset_code(77, addresses(other, "198.51.100.1")), token, "a peer at {other}");
        }
        assert_ne!(listener(here, 3).reset_code(77, addresses("192.0.2.1:9", "198.51.100.2")), token, "another address of the host");
        assert_ne!(listener(here, 3).reset_code(78, peer), token, "another connection");
        assert_ne!(listener(here, 4).reset_code(77, peer), token, "another key");
    }
}
