//! Path validation: a new address of the peer is challenged before it is used (RFC 9000 8.2, 9.3).
//!
//! Called by the connection for every shipment that has opened. A shipment newer than all others that comes from
//! another address makes that address a candidate; a challenge goes there, and only its answer from there makes it the
//! peer's. What is newer from the present address ends the candidacy, so someone who copies shipments and sends them on
//! from elsewhere changes nothing for long, unless theirs come first for as long as they like; then they carry the
//! connection, as anyone on the path does (RFC 9000 9.3.3), and can still read nothing of it.
//!
//! Invariant: nothing but challenges leaves for an address that has not answered one, and of those at most three times
//! the bytes that came from it.

use super::Addresses;
use crate::session::{Plain, Protection as _};
use core::net::SocketAddr;
use segstream_base::Duration;

/// The pause before a challenge is repeated.
pub(crate) const RETRY: Duration = Duration::from_millis(200);
/// Challenges to one candidate.
const TRIES: u32 = 5;
/// How many times the bytes received may be sent to an address that is not proved (RFC 9000 8.1).
const AMPLIFICATION_MAX: u64 = 3;

/// An address the peer may have moved to.
#[derive(Debug)]
struct Candidate {
    addresses: Addresses,
    token: u64,
    pending: bool,
    tries: u32,
    received_bytes: u64,
    sent_bytes: u64,
}

/// The validation of other addresses of the peer, and the answers to its own challenges.
#[derive(Debug)]
pub(crate) struct Validation {
    /// Boxed: few connections ever have one, and each would carry its size.
    candidate: Option<Box<Candidate>>,
    key: Plain,
    randoms_drawn: u64,
    /// The peer's challenge that is to be answered.
    pending_response: Option<u64>,
}

impl Validation {
    /// `key` makes challenges that nobody can foresee.
    pub(crate) const fn new(key: [u8; 16]) -> Self {
        Self { candidate: None, key: Plain::new(key), randoms_drawn: 0, pending_response: None }
    }

    /// A shipment of `bytes` has come from a place that is not the peer's address, and is the newest of all. Whether
    /// there is a new candidate.
    pub(crate) fn on_new_source_address(&mut self, addresses: Addresses, bytes: u64) -> bool {
        if let Some(candidate) = self.candidate.as_mut().filter(|candidate| candidate.addresses.remote == addresses.remote) {
            candidate.received_bytes += bytes;
            return false;
        }
        let token = self.random();
        self.candidate = Some(Box::new(Candidate { addresses, token, pending: true, tries: 0, received_bytes: bytes, sent_bytes: 0 }));
        true
    }

    /// A number that nobody can foresee, and never the same twice.
    pub(crate) fn random(&mut self) -> u64 {
        self.randoms_drawn += 1;
        let code = self.key.authenticate(&self.randoms_drawn.to_be_bytes());
        u64::from_be_bytes(core::array::from_fn(|at| code[at])) >> 2
    }

    /// What is newest has come from the peer's address: it is nowhere else.
    pub(crate) fn give_up(&mut self) {
        self.candidate = None;
    }

    /// The challenge may have been lost: when to repeat it again, if it is to be.
    pub(crate) fn retry(&mut self) -> Option<Duration> {
        let candidate = self.candidate.as_mut()?;
        if candidate.tries >= TRIES {
            self.candidate = None;
            return None;
        }
        candidate.pending = true;
        Some(RETRY * (1 << candidate.tries))
    }

    /// The peer wants to know whether we are where it thinks.
    pub(crate) const fn on_challenge(&mut self, token: u64) {
        self.pending_response = Some(token);
    }

    /// The peer has answered a challenge from `from`: the addresses that are valid then.
    pub(crate) fn on_response(&mut self, from: SocketAddr, token: u64) -> Option<Addresses> {
        let candidate = self.candidate.take_if(|candidate| candidate.addresses.remote == from && candidate.token == token)?;
        Some(candidate.addresses)
    }

    /// The challenge to send, and where, if `bytes` of it may go there.
    pub(crate) fn challenge(&mut self, bytes: u64) -> Option<(Addresses, u64)> {
        let candidate = self.candidate.as_mut().filter(|candidate| candidate.pending)?;
        candidate.pending = false;
        candidate.tries += 1;
        if candidate.sent_bytes + bytes > candidate.received_bytes * AMPLIFICATION_MAX {
            return None;
        }
        candidate.sent_bytes += bytes;
        debug_assert!(candidate.sent_bytes <= candidate.received_bytes * AMPLIFICATION_MAX && candidate.tries <= TRIES);
        Some((candidate.addresses, candidate.token))
    }

    /// Whether a challenge may be waiting to leave.
    pub(crate) fn has_pending_challenge(&self) -> bool {
        self.candidate.as_ref().is_some_and(|candidate| candidate.pending)
    }

    pub(crate) const fn take_response(&mut self) -> Option<u64> {
        self.pending_response.take()
    }
}
