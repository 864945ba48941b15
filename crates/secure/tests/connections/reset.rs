//! A peer that has lost the connection says so, in a way that nobody else can.

use super::network::{Network, address, ms, tls};
use segstream_proto::config::Config;
use segstream_proto::endpoint::Endpoint;
use segstream_proto::error::CloseReason;
use segstream_secure::Admission;

fn restart(network: &mut Network) {
    let accepting = Config { accept: true, ..Config::default() };
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
    assert!(network.server().strays.resets > 0);
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
    assert_eq!(network.server().strays.resets + network.server().strays.resets_refused, 10_000);
}
