//! Path validation: a new address of the peer is challenged before it is used (RFC 9000 8.2, 9.3).
//!
//! Called by the connection for every shipment that has opened. A shipment with the highest number from another address makes that address a
//! candidate. A challenge is sent to it, and only a response from it makes it the peer's address. A higher number from the present
//! address ends the validation. So an attacker that forwards copies of shipments succeeds only while its copies arrive first; then it is
//! on the path (RFC 9000 9.3.3) and can read nothing.
//!
//! Invariant: only challenges are sent to an address that is not validated, and at most three times the bytes received from it.

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
    /// `key` makes unpredictable challenges.
    pub(crate) const fn new(key: [u8; 16]) -> Self {
        Self { candidate: None, key: Plain::new(key), randoms_drawn: 0, pending_response: None }
    }

    /// A shipment of `bytes` with the highest number has arrived from another address than the peer's. Returns whether there is a new
    /// candidate.
    pub(crate) fn on_new_source_address(&mut self, addresses: Addresses, bytes: u64) -> bool {
        if let Some(candidate) = self.candidate.as_mut().filter(|candidate| candidate.addresses.remote == addresses.remote) {
            candidate.received_bytes += bytes;
            return false;
        }
        let token = self.random();
        self.candidate = Some(Box::new(Candidate { addresses, token, pending: true, tries: 0, received_bytes: bytes, sent_bytes: 0 }));
        true
    }

    /// An unpredictable number, never the same twice.
    pub(crate) fn random(&mut self) -> u64 {
        self.randoms_drawn += 1;
        let code = self.key.mac(&self.randoms_drawn.to_be_bytes());
        u64::from_be_bytes(core::array::from_fn(|at| code[at])) >> 2
    }

    /// The shipment with the highest number came from the peer's address: ends the validation of a candidate.
    pub(crate) fn give_up(&mut self) {
        self.candidate = None;
    }

    /// The retransmission timer of the challenge has expired. Returns when the next repetition is due, if there is one.
    pub(crate) fn retry(&mut self) -> Option<Duration> {
        let candidate = self.candidate.as_mut()?;
        if candidate.tries >= TRIES {
            self.candidate = None;
            return None;
        }
        candidate.pending = true;
        Some(RETRY * (1 << candidate.tries))
    }

    /// The peer has sent a challenge.
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
