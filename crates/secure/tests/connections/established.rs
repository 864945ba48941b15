//! An established connection, and everything someone without its keys can send.

use super::network::{Network, ms};
use segstream_base::StreamId;
use segstream_base::random::Seed;

/// What both endpoints have answered to strangers.
fn answers(network: &Network) -> u64 {
    let unmatched = [network.client().unmatched, network.server().unmatched];
    unmatched.iter().map(|unmatched| unmatched.cookies + unmatched.rejected + unmatched.resets).sum()
}

#[test]
fn no_changed_replayed_or_reflected_datagram_does_anything_to_an_established_connection() {
    let (mut network, id) = Network::established();
    network.send(id, 30_000);
    network.run_for(ms(500));
    let recorded = network.sent.clone();
    let mut random = Seed(7).stream("bits");
    let (mut injected, mut sent) = (0, 0);
    let answered = answers(&network);
    for datagram in &recorded {
        network.sent.clear();
        let to_server = datagram.to == network.server_address;
        for at in 0..datagram.bytes.len() {
            let mut changed = datagram.bytes.clone();
            changed[at] ^= 1 << random.below(8);
            network.inject(datagram.from, to_server, &changed);
            injected += 1;
        }
        network.inject(datagram.from, to_server, &datagram.bytes);
        let back = if to_server { network.server_address } else { network.client_address };
        network.inject(back, !to_server, &datagram.bytes);
        for length in 0..datagram.bytes.len() {
            network.inject(datagram.from, to_server, &datagram.bytes[..length]);
        }
        sent += network.sent.len();
    }
    assert!(injected > 30_000, "{injected}");
    // The endpoint answers first contacts by cookies or refusals, and some of what names no connection by resets.
    assert_eq!(sent as u64, answers(&network) - answered, "the connection itself sends nothing");
    network.send(id, 5_000);
    network.run_for(ms(500));
    assert_eq!((network.ended(), network.received.len()), (None, 3));
}

#[test]
fn no_eight_bytes_of_the_payload_travel_in_clear() {
    let mut network = Network::new();
    let id = network.connect();
    network.run_for(ms(500));
    let mut random = Seed(3).stream("payload");
    let payload: Vec<u8> = (0..100_000).map(|_| random.bits() as u8).collect();
    let now = network.now();
    network.client_mut().connection_mut(id).unwrap().send(now, StreamId(0), payload.clone().into(), now, None).unwrap();
    network.run_for(ms(2_000));
    assert_eq!(network.received.len(), 1);
    let runs: std::collections::BTreeSet<&[u8]> = payload.windows(8).collect();
    for sent in &network.sent {
        assert!(sent.bytes.windows(8).all(|run| !runs.contains(run)));
    }
}

#[test]
fn an_observer_sees_neither_kind_nor_number_of_what_is_sent() {
    let (mut network, id) = Network::established();
    network.sent.clear();
    network.send(id, 400_000);
    network.run_for(ms(3_000));
    let ours: Vec<_> = network.sent.iter().filter(|sent| sent.from == network.client_address).collect();
    assert!(ours.len() > 300);
    let kinds: std::collections::BTreeSet<u8> = ours.iter().map(|sent| sent.bytes[0]).collect();
    assert!(kinds.len() > 20, "almost every value of the five hidden bits is seen: {kinds:?}");
    let growing = ours.windows(2).filter(|pair| pair[0].bytes[5..9] < pair[1].bytes[5..9]).count();
    assert!(growing * 10 < ours.len() * 7 && growing * 10 > ours.len() * 3, "{growing} of {} numbers seem to grow", ours.len());
}
