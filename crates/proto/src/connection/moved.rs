//! A peer whose address changes: the new one is challenged before it is used (RFC 9000 8.2, 9.3).
//!
//! Called by the connection for every shipment that has opened. A shipment newer than all others that comes from
//! another address makes that address a candidate; a challenge goes there, and only its answer from there makes it the
//! peer's. What is newer from the present address ends the candidacy, so someone who copies shipments and sends them on
//! from elsewhere changes nothing for long, unless theirs come first for as long as they like; then they carry the
//! connection, as anyone on the path does (RFC 9000 9.3.3), and can still read nothing of it.
//!
//! Invariant: nothing but challenges leaves for an address that has not answered one, and of those at most three times
//! the bytes that came from it.

use super::{Connection, Timer};
use crate::path::Addresses;
use crate::session::{Plain, Protection as _};
use core::net::SocketAddr;
use segstream_base::endpoint::Arrival;
use segstream_base::{Duration, Instant};

/// The pause before a challenge is repeated.
const RETRY: Duration = Duration::from_millis(200);
/// Challenges to one candidate.
const TRIES: u32 = 5;
/// How many times the bytes received may be sent to an address that is not proved (RFC 9000 8.1).
const AMPLIFICATION_MAX: u64 = 3;

/// An address the peer may have moved to.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    addresses: Addresses,
    proof: u64,
    owed: bool,
    tries: u32,
    received_bytes: u64,
    sent_bytes: u64,
}

/// What is known of other addresses of the peer.
#[derive(Debug)]
pub(super) struct Moved {
    candidate: Option<Candidate>,
    key: Plain,
    drawn: u64,
    /// The peer's challenge that is to be answered.
    response_owed: Option<u64>,
}

impl Moved {
    /// `key` makes challenges that nobody can foresee.
    pub(super) const fn new(key: [u8; 16]) -> Self {
        Self { candidate: None, key: Plain::new(key), drawn: 0, response_owed: None }
    }

    /// A shipment of `bytes` has come from a place that is not the peer's address, and is the newest of all. Whether
    /// there is a new candidate.
    fn on_newest_from(&mut self, addresses: Addresses, bytes: u64) -> bool {
        if let Some(candidate) = self.candidate.as_mut().filter(|candidate| candidate.addresses.remote == addresses.remote) {
            candidate.received_bytes += bytes;
            return false;
        }
        let proof = self.draw();
        self.candidate = Some(Candidate { addresses, proof, owed: true, tries: 0, received_bytes: bytes, sent_bytes: 0 });
        true
    }

    /// A number that nobody can foresee, and never the same twice.
    pub(super) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        let code = self.key.authenticate(&self.drawn.to_be_bytes());
        u64::from_be_bytes(core::array::from_fn(|at| code[at])) >> 2
    }

    /// The challenge to send, and where, if `bytes` of it may go there.
    pub(super) fn challenge(&mut self, bytes: u64) -> Option<(Addresses, u64)> {
        let candidate = self.candidate.as_mut().filter(|candidate| candidate.owed)?;
        candidate.owed = false;
        candidate.tries += 1;
        if candidate.sent_bytes + bytes > candidate.received_bytes * AMPLIFICATION_MAX {
            return None;
        }
        candidate.sent_bytes += bytes;
        Some((candidate.addresses, candidate.proof))
    }

    /// Whether a challenge may be waiting to leave.
    pub(super) fn is_owed(&self) -> bool {
        self.candidate.is_some_and(|candidate| candidate.owed)
    }

    pub(super) const fn take_response(&mut self) -> Option<u64> {
        self.response_owed.take()
    }
}

impl Connection {
    /// A shipment has opened that came `from` somewhere; whether it is the `newest` of all.
    pub(super) fn note_address(&mut self, now: Instant, arrival: &Arrival, newest: bool, bytes: u64) {
        if !newest {
            return;
        }
        if arrival.from == self.addresses.remote {
            self.moved.candidate = None;
            self.timers.stop(Timer::Challenge);
        } else if self.moved.on_newest_from(Addresses::back(arrival), bytes) {
            self.timers.set(Timer::Challenge, now + RETRY);
        }
    }

    /// The challenge may have been lost.
    pub(super) fn retry_challenge(&mut self, now: Instant) {
        let Some(candidate) = &mut self.moved.candidate else { return };
        if candidate.tries >= TRIES {
            self.moved.candidate = None;
            return;
        }
        candidate.owed = true;
        self.timers.set(Timer::Challenge, now + RETRY * (1 << candidate.tries));
    }

    /// The peer wants to know whether we are where it thinks.
    pub(super) const fn on_challenge(&mut self, proof: u64) {
        self.moved.response_owed = Some(proof);
    }

    /// The peer has answered from `from`.
    pub(super) fn on_response(&mut self, now: Instant, from: SocketAddr, proof: u64) {
        let Some(candidate) = self.moved.candidate.filter(|candidate| candidate.addresses.remote == from && candidate.proof == proof)
        else {
            return;
        };
        // RFC 9000 9.4: another port alone is a translator's doing; another host is another path.
        let other_path = candidate.addresses.remote.ip() != self.addresses.remote.ip();
        self.addresses = self.addresses.migrated(candidate.addresses);
        self.moved.candidate = None;
        self.timers.stop(Timer::Challenge);
        self.counters.moves += 1;
        if other_path {
            self.send.on_other_path(now);
            self.forget_datagram_size();
        }
    }
}
