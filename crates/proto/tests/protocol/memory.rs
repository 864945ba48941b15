//! What a stream keeps is bounded by its grant, whatever the shape of its segments.

use crate::network::Network;
use bytes::Bytes;
use segstream_base::halves::SubmitError;
use segstream_base::{Bandwidth, Duration, Instant, StreamId};
use segstream_proto::config::Config;
use segstream_proto::connection::ConnectionEvent;
use segstream_wire::contract::Contract;

/// Sends segments of `bytes` for two seconds to an application that takes nothing, over a lossy path.
fn both_ends_stay_within_the_grant(contract: &Contract, bytes: usize) {
    let config = Config::default().with_rate(Bandwidth::from_megabits_per_second(1000));
    let mut network = Network::new(config.clone(), Config { accept: true, ..config }, Duration::from_millis(5));
    let client = network.connect(vec![contract.clone()]);
    network.run_until(Duration::from_millis(100));
    network.loss = 0.05;
    network.taking = false;
    let window = u64::from(contract.window_units) * u64::from(contract.unit_bytes);
    let segments = u64::from(contract.window_segments);
    let (mut accepted, mut most) = (0u64, (0, 0));
    for millis in (100..2000).step_by(10) {
        let now = network.now();
        loop {
            match network.a_mut().connection_mut(client).unwrap().send(now, StreamId(0), Bytes::from(vec![1; bytes]), Instant::ZERO, None) {
                Ok(_) => accepted += 1,
                Err(error) => {
                    assert_eq!(error, SubmitError::Blocked);
                    break;
                }
            }
        }
        network.run_until(Duration::from_millis(millis));
        let server = network.b().connections().next().unwrap();
        let kept = (network.a().connection(client).unwrap().kept_bytes().0, network.b().connection(server).unwrap().kept_bytes().1);
        most = (most.0.max(kept.0), most.1.max(kept.1));
    }
    assert!(most.0 <= 2 * window, "the sender kept {} bytes of a window of {window}", most.0);
    assert!(most.1 <= window, "the receiver kept {} bytes of a window of {window}", most.1);
    assert!(accepted <= 3 * segments, "{accepted} segments, though the window has {segments}");
    assert!(most.1 * 2 >= window.min(segments * bytes as u64), "the window was used: {} of {window}", most.1);
    assert!(network.received.is_empty());
}

#[test]
fn one_unit_segments_keep_no_more_than_the_grant() {
    let contract = Contract { unit_bytes: 100, window_units: 2000, window_segments: 1500, ..Contract::default() };
    both_ends_stay_within_the_grant(&contract, 100);
    both_ends_stay_within_the_grant(&contract, 1);
}

#[test]
fn huge_segments_keep_no_more_than_the_grant() {
    let contract = Contract { window_units: 4000, ..Contract::default() };
    both_ends_stay_within_the_grant(&contract, 4000 * 1024);
    both_ends_stay_within_the_grant(&contract, 1999 * 1024 + 1);
}

/// Many connections, each with as many streams as it may have, that ask for all there is.
#[test]
fn all_peers_together_are_granted_no_more_than_the_endpoint_has_and_a_newcomer_still_gets_a_stream() {
    const BUDGET: u64 = 64 << 20;
    const CONNECTIONS: usize = 12;
    // The least that the first stream of a connection gets.
    const LEAST: u64 = 160 << 10;
    let greedy = Contract { window_units: 1 << 28, window_segments: 1 << 28, ..Contract::default() };
    let server = Config { accept: true, memory_bytes: BUDGET, memory_bytes_per_peer: BUDGET / 2, ..Config::default() };
    let mut network = Network::new(Config::default(), server, Duration::from_millis(5));
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(network.connect(vec![greedy.clone(); 16]));
        network.run_until((network.now() + Duration::from_secs(1)).since(Instant::ZERO));
        let granted = network.b().granted_bytes(None);
        assert!(granted <= BUDGET + CONNECTIONS as u64 * LEAST, "{granted} bytes are granted");
    }
    let granted = network.b().granted_bytes(None);
    assert!(granted >= BUDGET / 2, "only {granted} bytes are granted");
    let of_each: Vec<u64> = network.b().connections().map(|id| network.b().connection(id).unwrap().kept_and_granted_bytes().1).collect();
    assert_eq!(of_each.iter().sum::<u64>(), granted, "the accounts are what connections have");
    assert!(of_each.iter().all(|&bytes| bytes > 0 && bytes <= BUDGET / 2 + LEAST), "every connection has a stream: {of_each:?}");
    let refused = network.events_a.iter().filter(|(_, event)| matches!(event, ConnectionEvent::Refused(..))).count();
    assert!(refused > 0, "the last ones get less");
    // What goes gives back.
    let now = network.now();
    clients.drain(1..).for_each(|id| network.a_mut().connection_mut(id).unwrap().abort(now, 0, ""));
    network.run_until((now + Duration::from_secs(20)).since(Instant::ZERO));
    assert_eq!(network.b().granted_bytes(None), of_each[0]);
}
