//! Datagrams that an attacker who knows the protocol can make without a key.
//!
//! Called by the attacks. Invariant: the integrity check of a request made here holds, so that it is looked at.

use anyhow::Context as _;
use segstream::{Admission, Contract, Identity};
use segstream_base::ShipmentNumber;
use segstream_base::codec::{Reader, Writer};
use segstream_base::endpoint::Endpoint as _;
use segstream_base::random::Random;
use segstream_base::{Duration, Instant};
use segstream_proto::config::{Config, DATAGRAM_BYTES_MIN};
use segstream_proto::endpoint::Endpoint;
use segstream_proto::session::Plain;
use segstream_secure::{Tls, Trust};
use segstream_wire::handshake::{Cookie, Request};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Header, Kind, Level};
use std::net::SocketAddr;

/// `count` requests of honest clients, each of which fits its own handshake.
pub(crate) fn requests(count: usize, victim: SocketAddr) -> anyhow::Result<Vec<Request>> {
    let tls = Tls::new(Identity::generate()?, Admission::nobody(), None)?;
    let config = Config { connections: count, ..Config::default() };
    let mut endpoint = Endpoint::with_protection(config, Box::new(tls))?;
    let now = Instant::ZERO + Duration::from_secs(1);
    let mut requests = Vec::with_capacity(count);
    for _ in 0..count {
        endpoint.connect(now, victim, &Trust::Anyone, vec![Contract::default()])?;
        let mut out = Vec::new();
        if endpoint.poll_transmit(now, 1, &mut out).is_some() {
            requests.extend(request_in(&out));
        }
    }
    Ok(requests)
}

/// One request of an honest client.
pub(crate) fn request(victim: SocketAddr) -> anyhow::Result<Request> {
    requests(1, victim)?.pop().context("an endpoint that connects has a request to send")
}

/// The request in a datagram.
fn request_in(datagram: &[u8]) -> Option<Request> {
    let header = Header::decode(&mut Reader::new(datagram)).ok().filter(|header| header.kind == Kind::Request)?;
    let end = Plain::open(ShipmentNumber(header.number.into()), datagram)?;
    Request::decode(&mut Reader::new(datagram.get(HEADER_BYTES..end)?)).ok()
}

/// The datagram of a request.
pub(crate) fn datagram_of(request: &Request) -> Vec<u8> {
    let mut out = vec![0; DATAGRAM_BYTES_MIN];
    let mut writer = Writer::new(&mut out);
    Header { level: Level::Initial, kind: Kind::Request, connection: 0, number: 0 }.encode(&mut writer);
    request.encode(&mut writer);
    // Why ignored: what does not fit is a request that is cut short, and refused as such.
    let _ = writer.finish();
    Plain::seal(ShipmentNumber(0), &mut out);
    out
}

/// The cookie in an answer, and the request it is for.
pub(crate) fn cookie_in(datagram: &[u8]) -> Option<Cookie> {
    let body = body_of(datagram, Kind::Cookie)?;
    Cookie::decode(&mut Reader::new(body)).ok()
}

/// The request that an answer confirms.
pub(crate) fn confirmed_in(datagram: &[u8]) -> Option<u64> {
    let body = body_of(datagram, Kind::Confirm)?;
    segstream_wire::handshake::Confirm::decode(&mut Reader::new(body)).ok().map(|confirm| confirm.request)
}

fn body_of(datagram: &[u8], kind: Kind) -> Option<&[u8]> {
    let header = Header::decode(&mut Reader::new(datagram)).ok()?;
    let found = header.level == Level::Initial && header.kind == kind;
    found.then(|| datagram.get(HEADER_BYTES..)).flatten()
}

/// This many random bytes.
pub(crate) fn noise(random: &mut Random, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| random.bits().to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}

/// A place in something `length` long, which is not empty.
pub(crate) fn place(random: &mut Random, length: usize) -> usize {
    random.below(length as u64) as usize
}
