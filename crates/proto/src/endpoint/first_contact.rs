//! What comes from strangers: requests, answered by a cookie, a refusal or a connection.
//!
//! Called by the endpoint. Source: RFC 9000 8.1 for the proof of an address before anything is kept.
//!
//! Invariant: nothing is kept for an address that has not proved that it receives; no answer to it is longer than what
//! it sent. Set-ups of peers that are not known yet are bounded, in all, for each host, and in a second.

use super::proof_of_address::{Purpose, address_token, code, cookie, proves};
use super::slots::host_of;
use super::{Endpoint, NewConnection, Slot};
use crate::config::DATAGRAM_BYTES_MIN;
use crate::connection::{IssuedTokens, Role};
use crate::initial;
use crate::path::Addresses;
use crate::session::Plain;
use core::net::SocketAddr;
use segstream_base::codec::{Reader, Writer};
use segstream_base::endpoint::Arrival;
use segstream_base::{Bandwidth, Duration, Instant, ShipmentNumber};
use segstream_wire::handshake::{Cookie, Reject, RejectReason, Request, VERSION};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::proposal::Proposal;
use segstream_wire::{Class, Header, Kind, Limits};

/// How long a set-up keeps its place when others need it: some round trips of a long path.
const SETUP_SPARED: Duration = Duration::from_secs(1);
/// Answers to strangers waiting to leave.
pub(super) const ANSWERS_MAX: usize = 64;
/// The length of a reject without its detail.
const REJECT_BYTES_MIN: usize = HEADER_BYTES + 12 + Plain::SEAL_BYTES;

/// A request, and where it came from.
#[derive(Clone, Copy, Debug)]
struct Asked {
    addresses: Addresses,
    request: u64,
    connection: u32,
    /// The length of its datagram, which no answer may exceed.
    bytes: usize,
}

impl Endpoint {
    pub(super) fn on_request(&mut self, now: Instant, arrival: Arrival, header: &Header, datagram: &[u8]) {
        let Some(body) = initial::open(header, datagram) else {
            self.strays.bad_requests += 1;
            return;
        };
        let Ok((version, identifier, connection)) = Request::decode_version(&mut Reader::new(body)) else {
            self.strays.bad_requests += 1;
            return;
        };
        let (from, addresses) = (arrival.from, Addresses::back(&arrival));
        let asked = Asked { addresses, request: identifier, connection, bytes: datagram.len() };
        if version != VERSION {
            self.reject(asked, RejectReason::Version, "choose a version both sides speak");
            return;
        }
        let Ok(request) = Request::decode(&mut Reader::new(body)) else {
            self.strays.bad_requests += 1;
            return;
        };
        // RFC 9000 14.1: a request fills its datagram, so that every answer is shorter.
        if datagram.len() < DATAGRAM_BYTES_MIN {
            self.strays.short_requests += 1;
            return;
        }
        let number = ShipmentNumber(header.number.into());
        let known = self.slots.of_request(identifier, from);
        if let Some(Slot { connection, .. }) = known.and_then(|index| self.touched(index)) {
            if connection.role() == Role::Responder {
                connection.on_request(now, number, datagram.len(), &request);
            } else {
                // A request that comes back to where it began would make an endpoint its own peer.
                self.strays.bad_requests += 1;
            }
            return;
        }
        if let Some((reason, detail)) = self.refusal(&request) {
            self.reject(asked, reason, detail);
        } else if proves(&*self.protection, now, from, identifier, &request.token) {
            self.accept(now, asked, number, &request);
        } else {
            self.ask_for_proof(now, asked);
        }
    }

    /// Why a request is not served whoever sends it.
    fn refusal(&self, request: &Request) -> Option<(RejectReason, &'static str)> {
        if !self.config.accept {
            Some((RejectReason::NotAccepting, "this endpoint only makes connections"))
        } else if request.protection != self.protection.mode() {
            let detail = if request.protection == Plain::MODE { "encryption is wanted here" } else { "plain mode is wanted here" };
            Some((RejectReason::Protection, detail))
        } else {
            None
        }
    }

    fn accept(&mut self, now: Instant, asked: Asked, number: ShipmentNumber, request: &Request) {
        let from = asked.addresses.remote;
        if !self.has_room_for_setup(now, from) {
            self.strays.setups_full += 1;
            self.reject(asked, RejectReason::Busy, "too many connections are being set up");
            return;
        }
        let share = code(&*self.protection, Purpose::Share, &host_of(from));
        if !self.handshakes_of_hosts.take(now, share) || !self.handshakes.take(now) {
            self.strays.handshakes_refused += 1;
            self.reject(asked, RejectReason::Busy, "too many connections are asked for");
            return;
        }
        let Some(index) = self.vacancy(now) else {
            self.strays.connections_full += 1;
            self.reject(asked, RejectReason::Busy, "too many connections");
            return;
        };
        let local_id = self.identifier(index);
        let session = self.protection.respond(from);
        // What the peer proposes is inside the handshake.
        let proposal = Proposal {
            version: VERSION,
            request: asked.request,
            connection: asked.connection,
            class: Class::ALL,
            rate: Bandwidth::ZERO,
            limits: Limits::default(),
            streams: Vec::new(),
        };
        let new = NewConnection { addresses: asked.addresses, role: Role::Responder, proposal, token: Vec::new(), session };
        let issued_tokens =
            IssuedTokens { reset: self.reset_code(local_id, from), token: address_token(&*self.protection, now, from).into() };
        let id = self.place(now, index, local_id, new, issued_tokens);
        if let Some(connection) = self.connection_mut(id) {
            connection.on_request(now, number, asked.bytes, request);
        }
    }

    /// Whether one more set-up for the host of `from` may begin. When all places are taken, a set-up that takes long
    /// gives way.
    fn has_room_for_setup(&mut self, now: Instant, from: SocketAddr) -> bool {
        self.queue.settle(&mut self.slots);
        if self.slots.of_host(host_of(from)) >= self.config.setups_per_host {
            return false;
        }
        if self.slots.setups() < self.config.setups {
            return true;
        }
        let oldest = self.slots.oldest_setup().filter(|&(began, _)| now.since(began) >= SETUP_SPARED);
        let Some(slot) = oldest.and_then(|(_, index)| self.touched(index)) else { return false };
        slot.connection.give_way(now);
        true
    }

    /// Asks for the request once more, from where this answer arrives.
    fn ask_for_proof(&mut self, now: Instant, asked: Asked) {
        let token = cookie(&*self.protection, now, asked.addresses.remote, asked.request);
        self.strays.cookies += 1;
        self.answer(asked, Kind::Cookie, |out| Cookie { request: asked.request, token }.encode(out));
    }

    fn reject(&mut self, asked: Asked, reason: RejectReason, detail: &str) {
        self.strays.rejected += 1;
        // Why: an answer longer than the request would lend itself to floods from a forged address.
        let room = asked.bytes.saturating_sub(REJECT_BYTES_MIN);
        let detail = detail.get(..detail.len().min(room)).unwrap_or_default().to_owned();
        self.answer(asked, Kind::Reject, |out| Reject { request: asked.request, reason, version: VERSION, detail }.encode(out));
    }

    fn answer(&mut self, asked: Asked, kind: Kind, body: impl FnOnce(&mut Writer<'_>)) {
        if self.answers.len() >= ANSWERS_MAX {
            self.strays.answers_full += 1;
            return;
        }
        let mut out = Vec::new();
        initial::write(kind, asked.connection, ShipmentNumber::FIRST, &mut out, body);
        if out.len() <= asked.bytes {
            self.answers.push_back((asked.addresses, out));
        }
    }
}
