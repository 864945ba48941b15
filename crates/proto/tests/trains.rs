//! What leaves in a train is what would have left shipment by shipment.

use bytes::Bytes;
use proptest::prelude::*;
use segstream_base::endpoint::{Arrival, Endpoint as _};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_proto::config::{Config, DatagramSize};
use segstream_proto::connection::ConnectionEvent;
use segstream_proto::endpoint::Endpoint;
use segstream_proto::rate::Rate;
use segstream_proto::session::Trust;
use segstream_wire::{Class, Contract};
use std::net::SocketAddr;

#[derive(Clone, Debug)]
struct Plan {
    /// Megabits a second; none is without rate control.
    rate: Option<u64>,
    streams: usize,
    unit_bytes: u32,
    tolerance: (u32, u32, u32),
    datagram_bytes: usize,
    segments: Vec<usize>,
    /// Of so many datagrams one is lost.
    lose_every: usize,
}

fn plans() -> impl Strategy<Value = Plan> {
    let tolerance = prop_oneof![Just((256, 0, 0)), Just((256, 32, 3)), Just((64, 4, 1)), Just((8, 8, 8))];
    let segments = proptest::collection::vec(prop_oneof![1usize..3000, 60_000usize..200_000], 1..12);
    (
        proptest::option::of(prop_oneof![Just(20u64), Just(200), Just(2000)]),
        1usize..4,
        prop_oneof![Just(100u32), Just(1000), Just(1120)],
        tolerance,
        prop_oneof![Just(1200usize), Just(4000), Just(9000)],
        segments,
        3usize..200,
    )
        .prop_map(|(rate, streams, unit_bytes, tolerance, datagram_bytes, segments, lose_every)| Plan {
            rate,
            streams,
            unit_bytes,
            tolerance,
            datagram_bytes,
            segments,
            lose_every,
        })
}

fn endpoints(plan: &Plan) -> [Endpoint; 2] {
    let config = Config {
        class: Class::new(if plan.rate.is_some() { 7 } else { 6 }).unwrap(),
        rate: plan.rate.map_or(Rate::Unpaced, |rate| Rate::smooth(Bandwidth::from_megabits_per_second(rate))),
        unlimited: true,
        circuit_breaker: false,
        datagram_bytes: DatagramSize::Fixed(plan.datagram_bytes),
        accept: true,
        ..Config::default()
    };
    [Endpoint::new(config.clone(), Seed(1)).unwrap(), Endpoint::new(config, Seed(2)).unwrap()]
}

/// Everything that left, in order, with the time, when a call gives at most `most` datagrams.
fn departures(plan: &Plan, most: usize) -> Vec<(Instant, Vec<u8>)> {
    let addresses: [SocketAddr; 2] = ["10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap()];
    let mut ends = endpoints(plan);
    let contract = Contract { unit_bytes: plan.unit_bytes, tolerance: plan.tolerance, ..Contract::default() };
    let id = ends[0].connect(Instant::ZERO, addresses[1], &Trust::Anyone, vec![contract; plan.streams]).unwrap();
    let (mut segments, mut left, mut count) = (plan.segments.iter().enumerate().peekable(), Vec::new(), 0);
    for step in 0..1500u64 {
        let now = Instant::ZERO + Duration::from_millis(step);
        if ends[0].connection(id).is_some_and(|connection| connection.is_established()) {
            while let Some(&(turn, &bytes)) = segments.peek() {
                let stream = (turn % plan.streams) as u32;
                let sent = ends[0].connection_mut(id).unwrap().send(now, stream, Bytes::from(vec![turn as u8; bytes]), now, None);
                if sent.is_err() {
                    break;
                }
                segments.next();
            }
        }
        for from in [0, 1] {
            ends[from].handle_timeout(now);
            let mut out = Vec::new();
            while let Some(transmit) = ends[from].poll_transmit(now, most, &mut out) {
                for datagram in out.chunks_mut(transmit.datagram_bytes) {
                    left.push((now, datagram.to_vec()));
                    count += 1;
                    if count % plan.lose_every != 0 {
                        ends[1 - from].handle_datagram(now, Arrival { from: addresses[from], ecn: None, received: now }, datagram);
                    }
                }
                out.clear();
            }
            while let Some((id, event)) = ends[from].poll_event() {
                if let ConnectionEvent::Readable(stream) = event {
                    while ends[from].connection_mut(id).unwrap().recv(now, stream).is_some() {}
                }
            }
        }
    }
    left
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn trains_change_nothing_that_leaves(plan in plans()) {
        let (one, many) = (departures(&plan, 1), departures(&plan, 54));
        prop_assert!(one.len() > 3);
        for (at, (alone, among)) in one.iter().zip(&many).enumerate() {
            prop_assert!(alone == among, "departure {} differs: {} and {} bytes at {} and {}", at, alone.1.len(), among.1.len(), alone.0, among.0);
        }
        prop_assert_eq!(one.len(), many.len());
    }
}

/// Found by the test above.
#[test]
fn a_last_unit_that_is_so_short_that_it_fits_in_ends_a_train() {
    let plan = Plan {
        rate: None,
        streams: 1,
        unit_bytes: 1000,
        tolerance: (8, 8, 8),
        datagram_bytes: 4000,
        segments: vec![84_001],
        lose_every: 3,
    };
    assert_eq!(departures(&plan, 1), departures(&plan, 54));
}
