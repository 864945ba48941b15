//! Datagrams grow to what the path carries.

use crate::loopback::{FAMILIES, PATIENCE, at, ends, pattern};
use segstream::{Bandwidth, Config, Contract, DatagramSize, Peer, Rate, StreamId, blocking};
use std::net::SocketAddr;
use std::thread;

const SEGMENT_BYTES: usize = 1 << 20;
const SEGMENTS_MAX: u64 = 2_000;

/// The datagrams in use in the end: segments are sent until they are `wanted`, or there were many.
fn datagram_bytes(to: SocketAddr, config: Config, family: &str, wanted: u64) -> u64 {
    let mut endpoint = blocking::Endpoint::builder().config(config).bind(at(family)).unwrap();
    let id = endpoint.connect(Peer::anyone(to), vec![Contract::default()]).unwrap();
    let mut connection = endpoint.connection(id);
    let bytes = pattern(0, SEGMENT_BYTES);
    for _ in 0..SEGMENTS_MAX {
        connection.send(StreamId(0), bytes.clone()).unwrap();
        if connection.statistics().unwrap().datagram_bytes == wanted {
            break;
        }
    }
    let found = connection.statistics().unwrap().datagram_bytes;
    connection.close(0, "done").unwrap();
    found
}

/// Takes everything, and checks it.
fn take_all(mut endpoint: blocking::Endpoint) {
    let id = endpoint.accept(PATIENCE).unwrap();
    let mut connection = endpoint.connection(id);
    let bytes = pattern(0, SEGMENT_BYTES);
    while let Some(received) = connection.recv(StreamId(0), PATIENCE).unwrap() {
        assert_eq!(received.bytes, bytes);
    }
    connection.closed(PATIENCE).unwrap();
    endpoint.close().unwrap();
}

#[test]
fn over_loopback_datagrams_grow_to_the_largest_there_are() {
    ends(|| {
        let rate = Rate::smooth(Bandwidth::from_megabits_per_second(3_000));
        let cases = [(DatagramSize::Discover, [65_507, 65_487]), (DatagramSize::Fixed(4_000), [4_000, 4_000])];
        for (size, wanted) in cases {
            for (family, wanted) in FAMILIES.into_iter().zip(wanted) {
                let server = blocking::Endpoint::builder().allow_anyone().listen(at(family)).unwrap();
                let to = server.local_addr();
                let taking = thread::spawn(move || take_all(server));
                let sending = Config { rate, datagram_bytes: size, ..Config::default() };
                assert_eq!(datagram_bytes(to, sending, family, wanted), wanted);
                taking.join().unwrap();
            }
        }
    });
}
