//! A peer that has lost the connection says so, in a way that nobody else can.

use super::network::{Network, Sent, address, ms, tls};
use core::net::SocketAddr;
use core::num::NonZeroU8;
use segstream_proto::config::{Config, Shard};
use segstream_proto::endpoint::Endpoint;
use segstream_proto::error::CloseReason;
use segstream_secure::Admission;

fn restart(network: &mut Network) {
    restart_as(network, Config { accept: true, listener: Some(network.server_address), ..Config::default() });
}

fn restart_as(network: &mut Network, accepting: Config) {
    *network.server_mut() = Endpoint::with_protection(accepting, tls(&network.server_identity, Admission::anyone())).unwrap();
}

#[test]
fn a_server_that_was_started_anew_tells_its_old_peers_at_once() {
    let (mut network, id) = Network::established();
    restart(&mut network);
    network.sent.clear();
    network.send(id, 5_000);
    network.run_for(ms(100));
    assert_eq!(network.ended(), Some(CloseReason::ResetByPeer));
    assert!(network.server().unmatched.resets > 0);
    let (resets, ours): (Vec<_>, Vec<_>) = network.sent.iter().partition(|sent| sent.from == network.server_address);
    let longest = resets.iter().map(|sent| sent.bytes.len()).max();
    assert!(longest < ours.iter().map(|sent| sent.bytes.len()).min(), "each is shorter than what it answers");
}

#[test]
fn a_reset_of_one_connection_ends_no_other() {
    let (mut network, id) = Network::established();
    let (mut other, other_id) = Network::established();
    restart(&mut network);
    network.sent.clear();
    network.send(id, 5_000);
    network.run_for(ms(100));
    let resets: Vec<_> = network.sent.iter().filter(|sent| sent.from == network.server_address).cloned().collect();
    assert!(!resets.is_empty());
    for reset in &resets {
        other.inject(other.server_address, false, &reset.bytes);
        for at in 0..reset.bytes.len() {
            let mut changed = reset.bytes.clone();
            changed[at] ^= 1;
            other.inject(other.server_address, false, &changed);
        }
    }
    other.send(other_id, 1_000);
    other.run_for(ms(500));
    assert_eq!((other.ended(), other.received.len()), (None, 2));
}

#[test]
fn two_endpoints_that_know_no_connection_do_not_answer_each_other_for_ever() {
    let (mut network, id) = Network::established();
    network.send(id, 5_000);
    network.run_for(ms(10));
    restart(&mut network);
    let accepting = Config { accept: true, ..Config::default() };
    *network.client_mut() = Endpoint::with_protection(accepting, tls(&network.client_identity, Admission::anyone())).unwrap();
    network.sent.clear();
    network.run_for(ms(5_000));
    assert!(network.sent.len() <= 32, "{} datagrams about nothing", network.sent.len());
}

#[test]
fn resets_are_so_many_a_second() {
    let (mut network, _) = Network::established();
    let shipment = network.sent.iter().rfind(|sent| sent.from == network.client_address).unwrap().clone();
    restart(&mut network);
    network.sent.clear();
    for at in 0..10_000u16 {
        let mut copy = shipment.bytes.clone();
        copy.resize(100, 7);
        copy[1..3].copy_from_slice(&at.to_be_bytes());
        network.inject(address("203.0.113.66:6666"), true, &copy);
    }
    assert!(network.sent.len() <= 100, "{}", network.sent.len());
    assert_eq!(network.server().unmatched.resets + network.server().unmatched.resets_refused, 10_000);
}

/// What an endpoint with the server's key answers to a shipment of a connection of the server, if it listens at `listener`.
fn answers(asked: &Sent, network: &mut Network, listener: SocketAddr, shard: Shard) -> Vec<Sent> {
    restart_as(network, Config { accept: true, listener: Some(listener), shard, ..Config::default() });
    network.sent.clear();
    // As a spy does it: from the address of the server's peer, which it may forge.
    network.inject(asked.from, true, &asked.bytes);
    network.sent.clone()
}

#[test]
fn another_listener_of_the_same_key_tells_nobody_how_to_end_a_connection() {
    let (mut network, id) = Network::established();
    let shipment = network.sent.iter().rfind(|sent| sent.from == network.client_address).unwrap().clone();
    // A second network, whose server shall be the other listener of the same user.
    let (mut other, _) = Network::established();
    other.server_identity = network.server_identity.clone();
    let place = network.server_address;
    let elsewhere = ["198.51.100.2:2001", "198.51.100.3:2000", "0.0.0.0:2000"].map(address);
    for listener in elsewhere {
        let told = answers(&shipment, &mut other, listener, Shard::ONLY);
        assert_eq!(told.len(), 1, "it does answer: the shipment may be of an earlier life of its own");
        network.inject(place, false, &told[0].bytes);
    }
    network.send(id, 1_000);
    network.run_for(ms(500));
    assert_eq!((network.ended(), network.received.len()), (None, 2));
    // The same at the same place is what a restarted server says.
    let told = answers(&shipment, &mut other, place, Shard::ONLY);
    network.inject(place, false, &told[0].bytes);
    assert_eq!(network.ended(), Some(CloseReason::ResetByPeer));
}

#[test]
fn a_shard_says_nothing_of_the_connections_of_another() {
    let (mut network, id) = Network::established();
    let shipment = network.sent.iter().rfind(|sent| sent.from == network.client_address).unwrap().clone();
    let (mut other, _) = Network::established();
    other.server_identity = network.server_identity.clone();
    let place = network.server_address;
    let mut answered = 0;
    for shard in Shard::all(NonZeroU8::new(4).unwrap()) {
        let told = answers(&shipment, &mut other, place, shard);
        assert_eq!(told.len(), usize::from(shard.names(shipment.bytes[2])), "only the shard that would have the connection answers");
        answered += told.len();
    }
    assert_eq!(answered, 1);
    network.send(id, 1_000);
    network.run_for(ms(500));
    assert_eq!((network.ended(), network.received.len()), (None, 2));
}

#[test]
fn a_token_of_an_earlier_life_saves_a_round_trip_and_one_of_another_listener_does_not() {
    for (listener, cookies) in [("198.51.100.2:2000", 0), ("198.51.100.2:2001", 1)] {
        let mut network = Network::new();
        restart(&mut network);
        let first = network.connect();
        network.run_for(ms(500));
        let now = network.now();
        network.client_mut().connection_mut(first).unwrap().close(now, 0, "done");
        network.run_for(ms(3_000));
        network.client_mut().release(first);
        restart_as(&mut network, Config { accept: true, listener: Some(address(listener)), ..Config::default() });
        network.connect();
        network.run_for(ms(500));
        assert_eq!(network.server().unmatched.cookies, cookies, "{listener}");
        assert_eq!(network.server_connections(), 1);
    }
}
