//! First contact keeps nothing, and is answered by less than it sends.

use super::network::{Network, address, count, ms, tls};
use segstream_proto::config::Config;
use segstream_proto::connection::ConnectionEvent;
use segstream_proto::endpoint::Endpoint;
use segstream_secure::{Admission, Identity, Trust};
use segstream_wire::Contract;
use std::net::SocketAddr;

/// A peer that answers the cookie and then says nothing more; `from` is where it is.
fn begin_and_fall_silent(network: &mut Network, from: SocketAddr) {
    let mut silent = Network::new();
    silent.connect_with(&Trust::Anyone, vec![Contract::default()]);
    silent.run_for(ms(1));
    network.sent.clear();
    network.inject(from, true, &silent.sent[0].bytes);
    let cookie = network.sent[0].clone();
    silent.inject(silent.server_address, false, &cookie.bytes);
    network.inject(from, true, &silent.sent[1].bytes);
}

/// The first request of a client, as a stranger can send it from anywhere.
fn first_request() -> Vec<u8> {
    let mut network = Network::new();
    network.connect_with(&Trust::Anyone, vec![Contract::default()]);
    network.run_for(ms(1));
    network.sent[0].bytes.clone()
}

#[test]
fn half_open_set_ups_hold_no_memory() {
    let mut network = Network::new();
    let request = first_request();
    for at in 0..10_000u32 {
        let from = SocketAddr::from(([10, (at >> 16) as u8, (at >> 8) as u8, at as u8], 5000));
        network.inject(from, true, &request);
    }
    assert_eq!((network.server_connections(), network.server().unmatched.cookies), (0, 10_000));
    let answered: usize = network.sent.iter().map(|sent| sent.bytes.len()).sum();
    assert!(answered * 3 < 10_000 * request.len(), "{answered} bytes answer {}", 10_000 * request.len());
}

#[test]
fn a_cookie_from_another_address_is_answered_by_a_cookie() {
    let mut network = Network::new();
    network.connect();
    network.run_for(ms(41));
    let with_cookie = network.sent.iter().filter(|sent| sent.from == network.client_address).nth(1).unwrap().clone();
    network.sent.clear();
    network.inject(address("203.0.113.66:6666"), true, &with_cookie.bytes);
    assert_eq!(network.server_connections(), 0);
    assert!(network.sent.iter().all(|sent| sent.bytes.len() == 43 && sent.to == address("203.0.113.66:6666")));
}

#[test]
fn a_request_that_does_not_fill_its_datagram_is_not_answered() {
    let mut network = Network::new();
    let request = first_request();
    for length in 0..request.len() {
        network.inject(address("203.0.113.66:6666"), true, &request[..length]);
    }
    assert!(network.sent.is_empty());
}

#[test]
fn one_host_cannot_take_all_places_of_set_up() {
    let mut network = Network::new();
    let host = |port| SocketAddr::from(([203, 0, 113, 5], port));
    let mut begun = 0;
    for port in 1..200u16 {
        begin_and_fall_silent(&mut network, host(port));
        begun = begun.max(network.server_connections());
    }
    assert_eq!(begun, 16);
    assert!(network.server().unmatched.setups_full > 100);
    // Someone else is served meanwhile.
    network.connect();
    network.run_for(ms(500));
    assert_eq!(network.client_events.len(), 2, "{:?}", network.client_events);
    // The silent ones are given up.
    network.run_for(ms(11_000));
    let gone = network.server().connections().filter(|&id| network.server().is_drained(id)).count();
    assert_eq!(gone, 16);
}

#[test]
fn many_hosts_that_fall_silent_give_way_to_one_that_does_not() {
    let mut network = Network::new();
    for host in 0..20u8 {
        for port in 1..17 {
            begin_and_fall_silent(&mut network, SocketAddr::from(([203, host, 113, 5], port)));
        }
    }
    assert!(network.server().unmatched.setups_full >= 320 - 256, "{:?}", network.server().unmatched);
    network.run_for(ms(1_100));
    network.connect();
    network.run_for(ms(1_000));
    assert_eq!(count(&network.client_events, &ConnectionEvent::Connected), 1, "{:?}", network.client_events);
}

#[test]
fn no_site_and_no_provider_takes_all_places_of_set_up() {
    let begun = |sites: u8| {
        let mut network = Network::new();
        for host in 0..160 {
            for port in 1..3 {
                begin_and_fall_silent(&mut network, SocketAddr::from(([203, 0, host % sites, host], port)));
            }
        }
        let begun = network.server_connections();
        // Someone else is served meanwhile.
        network.connect();
        network.run_for(ms(500));
        assert_eq!(count(&network.client_events, &ConnectionEvent::Connected), 1, "{:?}", network.client_events);
        begun
    };
    assert_eq!((begun(1), begun(100)), (64, 128), "a quarter and a half of 256");
}

#[test]
fn a_set_up_over_a_long_path_lives_when_others_want_its_place() {
    let mut network = Network::new();
    network.lay_path(ms(700));
    network.connect();
    // The request with the cookie is there after three quarters of the 2.8 s that one round trip of cookies and one of the handshake take.
    network.run_for(ms(2_200));
    for _ in 0..5 {
        for host in 0..40u8 {
            for port in 1..17 {
                begin_and_fall_silent(&mut network, SocketAddr::from(([203, host, 113, 5], port)));
            }
        }
        network.run_for(ms(350));
    }
    network.run_for(ms(2_000));
    assert_eq!(count(&network.client_events, &ConnectionEvent::Connected), 1, "{:?}", network.client_events);
    assert_eq!(count(&network.server_events, &ConnectionEvent::Connected), 1, "{:?}", network.server_events);
}

#[test]
fn refused_strangers_leave_room_for_those_who_are_served() {
    let mut network = Network::new();
    let admission = Admission::nobody();
    admission.allow(network.client_identity.fingerprint());
    let few = Config { accept: true, connections: 4, ..Config::default() };
    *network.server_mut() = Endpoint::with_protection(few, tls(&network.server_identity, admission)).unwrap();
    let (served, address) = (core::mem::replace(network.client_mut(), stranger()), network.client_address);
    for port in 1..9 {
        network.move_client(SocketAddr::from(([203, 0, 113, 5], port)));
        network.connect();
        network.run_for(ms(90));
    }
    assert_eq!(count(&network.server_events, &ConnectionEvent::Connected), 0);
    *network.client_mut() = served;
    network.move_client(address);
    network.client_events.clear();
    network.connect();
    network.run_for(ms(500));
    assert_eq!(count(&network.client_events, &ConnectionEvent::Connected), 1, "{:?}", network.client_events);
}

fn stranger() -> Endpoint {
    Endpoint::with_protection(Config::default(), tls(&Identity::generate().unwrap(), Admission::nobody())).unwrap()
}

#[test]
fn whoever_is_told_that_the_peer_is_busy_asks_again() {
    let mut network = Network::new();
    let admission = Admission::nobody();
    admission.allow(network.client_identity.fingerprint());
    let few = Config { accept: true, connections: 1, ..Config::default() };
    *network.server_mut() = Endpoint::with_protection(few, tls(&network.server_identity, admission)).unwrap();
    let first = network.connect();
    network.run_for(ms(500));
    network.connect();
    network.run_for(ms(500));
    assert_eq!(count(&network.client_events, &ConnectionEvent::Connected), 1);
    let now = network.now();
    network.client_mut().connection_mut(first).unwrap().close(now, 0, "done");
    // The server says its goodbyes first.
    network.run_for(ms(1_500));
    let old: Vec<_> = network.server().connections().collect();
    old.into_iter().for_each(|id| network.server_mut().release(id));
    network.run_for(ms(5_000));
    assert_eq!(count(&network.client_events, &ConnectionEvent::Connected), 2, "{:?}", network.client_events);
}
