//! Connection migration: the peer's address changes, and with it the path (RFC 9000 9).
//!
//! Called by the connection for every shipment that has opened. Whether the new address is the peer's,
//! [`crate::path::validation`] finds out.
//!
//! Invariant: another host is another path, of which nothing is known but its addresses.

use super::{Connection, Timer};
use crate::path::Addresses;
use crate::path::validation::RETRY;
use core::net::SocketAddr;
use segstream_base::Instant;
use segstream_base::endpoint::Arrival;

impl Connection {
    /// A shipment has opened that came `from` somewhere; whether it is the `newest` of all.
    pub(super) fn on_source_address(&mut self, now: Instant, arrival: &Arrival, newest: bool, bytes: u64) {
        if !newest {
            return;
        }
        let path = &mut self.send.path;
        if arrival.from == path.addresses.remote {
            path.validation.give_up();
            self.timers.stop(Timer::PathValidation);
        } else if path.validation.on_new_source_address(Addresses::back(arrival), bytes) {
            self.timers.set(Timer::PathValidation, now + RETRY);
        }
    }

    /// The challenge may have been lost.
    pub(super) fn retry_challenge(&mut self, now: Instant) {
        if let Some(pause) = self.send.path.validation.retry() {
            self.timers.set(Timer::PathValidation, now + pause);
        }
    }

    /// The peer has answered from `from`.
    pub(super) fn on_response(&mut self, now: Instant, from: SocketAddr, token: u64) {
        let Some(addresses) = self.send.path.validation.on_response(from, token) else { return };
        self.timers.stop(Timer::PathValidation);
        self.counters.migrations += 1;
        // RFC 9000 9.4: another port alone is a translator's doing, and the path stays; another host is another path.
        if self.send.path.addresses.is_other_host(addresses) {
            self.send.on_path_change(now, addresses);
            self.recv.on_path_change(now);
            self.use_found_size();
        } else {
            self.send.path.addresses = self.send.path.addresses.migrated(addresses);
        }
    }
}
