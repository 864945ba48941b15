//! Connection migration: the peer's address changes, and with it the path (RFC 9000 9).
//!
//! Called by the connection for every shipment that has opened. [`crate::path::validation`] validates the new address.
//!
//! Invariant: another IP address is another path, with the initial state of a path.

use super::{Connection, Timer};
use crate::path::Addresses;
use crate::path::validation::RETRY;
use crate::trace::TraceEvent;
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
        if let Some(trace) = self.events.trace() {
            trace.push(TraceEvent::Migrated(from));
        }
        // RFC 9000 9.4: a change of the port only is NAT rebinding, and the path stays; another IP address is another path.
        if self.send.path.addresses.is_other_host(addresses) {
            self.send.on_path_change(now, addresses);
            self.recv.on_path_change(now);
            self.use_found_size();
        } else {
            self.send.path.addresses = self.send.path.addresses.migrated(addresses);
        }
    }
}
