//! A peer whose address changes is followed, but only once it has answered from there.

use super::network::{Fate, Network, address, ms};
use segstream_base::Duration;
use segstream_base::halves::Verdict;

const KIND_HIDDEN: u8 = 0x60;

#[test]
fn a_peer_that_moves_is_challenged_and_then_followed() {
    let (mut network, id) = Network::established();
    let new = address("203.0.113.9:4000");
    network.move_client(new);
    network.sent.clear();
    network.send(id, 200_000);
    network.run_for(ms(3_000));
    assert_eq!(network.received.len(), 2);
    assert_eq!(network.received[1].verdict, Verdict::Complete);
    let at_server = network.server().connections().next().unwrap();
    let connection = network.server().connection(at_server).unwrap();
    assert_eq!((connection.remote(), connection.counters.migrations), (new, 1));
    // Until the answer came, the new address got challenges alone.
    let first = network.sent.iter().position(|sent| sent.to == new).unwrap();
    let answered = network.sent.iter().skip(first).position(|sent| sent.from == new && sent.bytes.len() == 33);
    let before: Vec<_> = network.sent[first..first + answered.unwrap()].iter().filter(|sent| sent.to == new).collect();
    assert!(before.iter().all(|sent| sent.bytes.len() == 33 && sent.bytes[0] & 0xe0 == KIND_HIDDEN), "{before:?}");
}

#[test]
fn a_lost_challenge_is_repeated() {
    let (mut network, id) = Network::established();
    network.move_client(address("203.0.113.9:4000"));
    network.send(id, 1_000);
    // The shipment that moves, then the server's first challenge.
    network.fates = [Fate::Pass, Fate::Lose].into_iter().collect();
    network.run_for(ms(4_000));
    let at_server = network.server().connections().next().unwrap();
    assert_eq!(network.server().connection(at_server).unwrap().remote(), network.client_address);
    assert_eq!(network.received.len(), 2);
}

#[test]
fn what_someone_sends_on_from_elsewhere_moves_nothing_and_is_answered_by_challenges_alone() {
    let (mut network, id) = Network::established();
    let thief = address("203.0.113.66:6666");
    network.sent.clear();
    let mut copied = 0;
    for _ in 0..40 {
        network.send(id, 2_000);
        let before = network.sent.len();
        network.run_for(ms(1));
        // A copy of everything the client has sent arrives before the original, from the thief's address.
        let copies: Vec<_> = network.sent[before..].iter().filter(|sent| sent.from == network.client_address).cloned().collect();
        for copy in copies {
            copied += copy.bytes.len();
            network.inject(thief, true, &copy.bytes);
        }
        network.run_for(ms(60));
    }
    network.run_for(ms(3_000));
    let at_server = network.server().connections().next().unwrap();
    assert_eq!(network.server().connection(at_server).unwrap().remote(), network.client_address);
    assert_eq!(network.received.len(), 41);
    let to_thief: usize = network.sent.iter().filter(|sent| sent.to == thief).map(|sent| sent.bytes.len()).sum();
    assert!(copied > 40_000 && to_thief <= 3 * copied && to_thief < 40 * 33 * 5, "{to_thief} bytes for {copied}");
    assert!(network.sent.iter().filter(|sent| sent.to == thief).all(|sent| sent.bytes.len() == 33));
}

#[test]
fn an_old_shipment_from_another_address_changes_nothing() {
    let (mut network, id) = Network::established();
    network.send(id, 50_000);
    network.run_for(ms(500));
    let old: Vec<_> = network.sent.iter().filter(|sent| sent.from == network.client_address).cloned().collect();
    network.sent.clear();
    for sent in &old {
        network.inject(address("203.0.113.66:6666"), true, &sent.bytes);
    }
    let answers = network.sent.iter().filter(|sent| sent.to == address("203.0.113.66:6666"));
    // The requests among them are first contacts, answered by cookies.
    assert!(answers.clone().all(|sent| sent.bytes.len() == 43), "{:?}", answers.collect::<Vec<_>>());
}

/// What the server has found out about its path to the client: the smallest round trip, and the reordering threshold.
fn found_out(network: &Network) -> (Duration, u32) {
    let id = network.server().connections().next().unwrap();
    let connection = network.server().connection(id).unwrap();
    (connection.rtt().unwrap().0, connection.reorder())
}

/// What the server finds out of a path of 150 ms one way, where the client comes to it `to` there, after one of 20 ms that reorders.
fn found_out_after_moving(to: &str) -> (Duration, u32) {
    let (mut network, id) = Network::established();
    // A copy of what the client sends comes first, and long after it what was lost on its way.
    let early = network.sent.len();
    network.fates = core::iter::repeat_n(Fate::Lose, 1).collect();
    network.send(id, 30_000);
    network.run_for(ms(300));
    let late = network.sent[early..].iter().find(|sent| sent.from == network.client_address).unwrap().clone();
    network.inject(late.from, true, &late.bytes);
    let (round_trip, reorder) = found_out(&network);
    assert!(round_trip < ms(50) && reorder > 3, "{round_trip} {reorder}");
    network.lay_path(ms(150));
    network.move_client(address(to));
    for _ in 0..20 {
        network.send(id, 1_000);
        network.run_for(ms(100));
    }
    let at_server = network.server().connections().next().unwrap();
    assert_eq!(network.server().connection(at_server).unwrap().remote(), address(to));
    found_out(&network)
}

#[test]
fn the_path_to_another_host_is_measured_anew_and_the_path_to_another_port_is_not() {
    let (round_trip, reorder) = found_out_after_moving("203.0.113.9:4000");
    assert!(round_trip >= ms(300), "a round trip of {round_trip} is that of the path before");
    assert_eq!(reorder, 3);
    let (round_trip, reorder) = found_out_after_moving("192.0.2.1:4000");
    assert!(round_trip < ms(50) && reorder > 3, "only the port is another: {round_trip} {reorder}");
}
