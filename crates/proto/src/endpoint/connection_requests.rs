//! Connection requests, answered by a cookie, a refusal or a connection.
//!
//! Called by the endpoint. Source: RFC 9000 8.1 for address validation.
//!
//! Invariant: no state is kept for an address that is not validated, and no answer to it is longer than its datagram. Set-ups of
//! unauthenticated peers and handshakes in a second are limited in total, for each host and for the networks that it is in.

use super::address_validation::{Purpose, Validated, code};
use super::networks::{NETWORKS, networks_of};
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

/// When others need its place, a set-up can be evicted after so many round trips of its path: the handshake takes two, and a loss in it
/// one more and the time until it is noticed.
const SPARED_ROUND_TRIPS: u64 = 4;
/// The least and the most that is. Why a most: a peer can return its cookie late to seem far away.
const SPARED_MIN: Duration = Duration::from_secs(1);
const SPARED_MAX: Duration = Duration::from_secs(5);
/// What the set-ups of a site and of a provider may be of all: a quarter and a half.
const SETUP_SHARES: [usize; NETWORKS - 1] = [4, 2];
/// The maximum number of queued answers to unknown peers.
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
            self.unmatched.bad_requests += 1;
            return;
        };
        let Ok((version, identifier, connection)) = Request::decode_version(&mut Reader::new(body)) else {
            self.unmatched.bad_requests += 1;
            return;
        };
        let (from, addresses) = (arrival.from, Addresses::back(&arrival));
        let asked = Asked { addresses, request: identifier, connection, bytes: datagram.len() };
        if version != VERSION {
            self.reject(asked, RejectReason::Version, "choose a version both sides speak");
            return;
        }
        let Ok(request) = Request::decode(&mut Reader::new(body)) else {
            self.unmatched.bad_requests += 1;
            return;
        };
        // RFC 9000 14.1: a request fills its datagram, so that every answer is shorter.
        if datagram.len() < DATAGRAM_BYTES_MIN {
            self.unmatched.short_requests += 1;
            return;
        }
        let number = ShipmentNumber(header.number.into());
        let known = self.slots.of_request(identifier, from);
        if let Some(Slot { connection, .. }) = known.and_then(|index| self.touched(index)) {
            if connection.role() == Role::Responder {
                connection.on_request(now, number, datagram.len(), &request);
            } else {
                // Our own request that came back would make the endpoint its own peer.
                self.unmatched.bad_requests += 1;
            }
            return;
        }
        if let Some((reason, detail)) = self.refusal(&request) {
            self.reject(asked, reason, detail);
        } else if let Some(validated) = self.token_issuer(now).verify(from, identifier, &request.token) {
            self.accept(now, asked, validated, number, &request);
        } else {
            self.ask_for_proof(now, asked);
        }
    }

    /// Why a request is refused, whatever its sender.
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

    fn accept(&mut self, now: Instant, asked: Asked, validated: Validated, number: ShipmentNumber, request: &Request) {
        let from = asked.addresses.remote;
        if !self.has_room_for_setup(now, from) {
            self.unmatched.setups_full += 1;
            self.reject(asked, RejectReason::Busy, "too many connections are being set up");
            return;
        }
        let shares = networks_of(from).map(|network| code(&*self.protection, Purpose::Share, &network.bytes()));
        if !self.handshakes_of_networks.take(now, shares) || !self.handshakes.take(now) {
            self.unmatched.handshakes_refused += 1;
            self.reject(asked, RejectReason::Busy, "too many connections are asked for");
            return;
        }
        let Some(index) = self.vacancy(now) else {
            self.unmatched.connections_full += 1;
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
            extensions: 0,
            streams: Vec::new(),
        };
        let (addresses, Validated { round_trip }) = (asked.addresses, validated);
        let spared = (round_trip * SPARED_ROUND_TRIPS).clamp(SPARED_MIN, SPARED_MAX);
        let new = NewConnection { addresses, role: Role::Responder, proposal, token: Vec::new(), session, spared };
        let token = self.token_issuer(now).address_token(from, round_trip);
        let issued_tokens = IssuedTokens { reset: self.reset_code(local_id, addresses), token: token.into() };
        let id = self.place(now, index, local_id, new, issued_tokens);
        if let Some(connection) = self.connection_mut(id) {
            connection.on_request(now, number, asked.bytes, request);
        }
    }

    /// Whether one more set-up for the host of `from` may begin. At the limit, a set-up that takes long is evicted.
    fn has_room_for_setup(&mut self, now: Instant, from: SocketAddr) -> bool {
        self.queue.process_touched(&mut self.slots);
        let [host, networks @ ..] = networks_of(from);
        let (setups, of_a_host) = (self.config.setups, self.config.setups_per_host);
        let is_full = |(network, share): (_, usize)| self.slots.of_network(network) >= (setups / share).max(of_a_host);
        if self.slots.of_network(host) >= of_a_host || networks.into_iter().zip(SETUP_SHARES).any(is_full) {
            return false;
        }
        if self.slots.setups() < setups {
            return true;
        }
        let first = self.slots.first_spared_setup().filter(|&(spared_until, _)| now >= spared_until);
        let Some(slot) = first.and_then(|(_, index)| self.touched(index)) else { return false };
        slot.connection.give_way(now);
        true
    }

    /// Answers by a cookie.
    fn ask_for_proof(&mut self, now: Instant, asked: Asked) {
        let token = self.token_issuer(now).cookie(asked.addresses.remote, asked.request);
        self.unmatched.cookies += 1;
        self.answer(asked, Kind::Cookie, |out| Cookie { request: asked.request, token }.encode(out));
    }

    fn reject(&mut self, asked: Asked, reason: RejectReason, detail: &str) {
        self.unmatched.rejected += 1;
        // Why: an answer longer than the request would allow amplification attacks with a forged address.
        let room = asked.bytes.saturating_sub(REJECT_BYTES_MIN);
        let detail = detail.get(..detail.len().min(room)).unwrap_or_default().to_owned();
        self.answer(asked, Kind::Reject, |out| Reject { request: asked.request, reason, version: VERSION, detail }.encode(out));
    }

    fn answer(&mut self, asked: Asked, kind: Kind, body: impl FnOnce(&mut Writer<'_>)) {
        if self.answers.len() >= ANSWERS_MAX {
            self.unmatched.answers_full += 1;
            return;
        }
        let mut out = Vec::new();
        initial::write(kind, asked.connection, ShipmentNumber::FIRST, &mut out, body);
        if out.len() <= asked.bytes {
            self.answers.push_back((asked.addresses, out));
        }
    }
}
