//! What an endpoint answers to those it has no connection with.

use segstream_base::codec::{Reader, Writer};
use segstream_base::endpoint::{Arrival, Endpoint as _, Local};
use segstream_base::random::Seed;
use segstream_base::{Instant, ShipmentNumber};
use segstream_proto::config::Config;
use segstream_proto::endpoint::Endpoint;
use segstream_proto::session::Plain;
use segstream_wire::handshake::{Reject, RejectReason, VERSION};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Header, Kind, Level};

/// A request of an unknown version with `more` bytes behind what every version has.
fn request(version: u16, more: usize) -> Vec<u8> {
    let mut datagram = vec![0; HEADER_BYTES + 14 + more + Plain::SEAL_BYTES];
    let mut out = Writer::new(&mut datagram);
    Header { level: Level::Initial, kind: Kind::Request, connection: 0, number: 3 }.encode(&mut out);
    out.u16(version);
    out.u64(77);
    out.u32(5);
    Plain::seal(ShipmentNumber(3), &mut datagram);
    datagram
}

#[test]
fn a_refusal_is_never_longer_than_the_request() {
    for more in [0, 1, 10, 100] {
        let mut endpoint = Endpoint::new(Config { accept: true, ..Config::default() }, Seed(1)).unwrap();
        let mut datagram = request(9, more);
        let asked = datagram.len();
        let arrival = Arrival { from: "10.0.0.9:9".parse().unwrap(), to: Local::ANY, ecn: None, received: Instant::ZERO };
        endpoint.handle_datagram(Instant::ZERO, arrival, &mut datagram);
        let mut out = Vec::new();
        endpoint.poll_transmit(Instant::ZERO, 1, &mut out).unwrap();
        assert!(out.len() <= asked, "{} bytes answer {asked}", out.len());
        let end = Plain::open(ShipmentNumber(0), &out).unwrap();
        let reject = Reject::decode(&mut Reader::new(&out[HEADER_BYTES..end])).unwrap();
        assert_eq!((reject.request, reject.reason, reject.version), (77, RejectReason::Version, VERSION));
        assert!(more < 100 || !reject.detail.is_empty(), "there was room for a sentence");
    }
}
