//! Set-up with keys: whatever becomes of its datagrams, and what it says when it fails.

use super::network::{Fate, Network, address, count, ms, tls};
use segstream_base::StreamId;
use segstream_base::halves::Verdict;
use segstream_proto::config::Config;
use segstream_proto::connection::ConnectionEvent;
use segstream_proto::endpoint::Endpoint;
use segstream_proto::error::CloseReason;
use segstream_secure::{Admission, Identity, OneTimeCode, Trust};
use segstream_wire::Contract;
use segstream_wire::handshake::RejectReason;

/// Every way in which each of the first `length` datagrams of both ends passes, is lost or comes twice.
fn all_fates(length: u32) -> impl Iterator<Item = Vec<Fate>> {
    (0..3u32.pow(length)).map(move |number| {
        let digit = |place: u32| [Fate::Pass, Fate::Lose, Fate::Twice][(number / 3u32.pow(place) % 3) as usize];
        (0..length).map(digit).collect()
    })
}

#[test]
fn whatever_becomes_of_the_first_datagrams_there_is_one_connection_and_all_arrives() {
    for fates in all_fates(6) {
        let mut network = Network::new();
        network.fates = fates.iter().copied().collect();
        let id = network.connect();
        network.send(id, 20_000);
        network.run_for(ms(9_900));
        assert_eq!(count(&network.client_events, &ConnectionEvent::Connected), 1, "{fates:?}");
        assert_eq!(count(&network.server_events, &ConnectionEvent::Connected), 1, "{fates:?}");
        assert_eq!(network.server_connections(), 1, "{fates:?}");
        assert_eq!(network.received.len(), 1, "{fates:?}");
        assert_eq!(network.received[0].verdict, Verdict::Complete);
        let now = network.now();
        network.client_mut().connection_mut(id).unwrap().close(now, 0, "done");
        network.run_for(ms(3_000));
        assert_eq!(network.ended(), Some(CloseReason::ClosedHere), "{fates:?}");
        let ends: Vec<_> = network.server().connections().collect();
        assert!(ends.iter().all(|&id| network.server().is_drained(id)), "{fates:?}");
    }
}

#[test]
fn both_ends_know_the_other_s_key() {
    let (network, id) = Network::established();
    assert_eq!(network.client().connection(id).unwrap().peer(), Some(network.server_identity.fingerprint()));
    let at_server = network.server().connections().next().unwrap();
    assert_eq!(network.server().connection(at_server).unwrap().peer(), Some(network.client_identity.fingerprint()));
}

#[test]
fn a_proposal_of_many_streams_comes_across_in_several_requests() {
    let mut network = Network::new();
    let trust = Trust::Key(network.server_identity.fingerprint());
    let label = "a label that makes the contract long ".repeat(4);
    let streams = vec![Contract { label, ..Contract::default() }; 60];
    let id = network.connect_with(&trust, streams);
    network.fates = [Fate::Pass, Fate::Pass, Fate::Lose].into_iter().collect();
    network.run_for(ms(3_000));
    assert_eq!(count(&network.client_events, &ConnectionEvent::Connected), 1);
    let now = network.now();
    network.client_mut().connection_mut(id).unwrap().send(now, StreamId(59), vec![1; 10].into(), now, None).unwrap();
    network.run_for(ms(500));
    assert_eq!(network.received.len(), 1);
}

#[test]
fn a_key_that_is_not_the_one_trusted_is_told_and_nothing_is_sent_to_its_holder() {
    for (trust, detail) in [(Trust::Nobody, "SHA256:"), (Trust::Key(Identity::generate().unwrap().fingerprint()), "SHA256:")] {
        let mut network = Network::new();
        let id = network.connect_with(&trust, vec![Contract::default()]);
        network.send(id, 10_000);
        network.run_for(ms(12_000));
        let Some(CloseReason::HandshakeFailed(error)) = network.ended() else { panic!("{:?}", network.ended()) };
        assert_eq!(error.untrusted, Some(network.server_identity.fingerprint()));
        assert!(error.detail.contains(detail), "{}", error.detail);
        let told = network.server_events.iter().find_map(|(_, event)| match event {
            ConnectionEvent::Closed(CloseReason::AbortedByPeer { detail, .. } | CloseReason::Rejected { detail, .. }) => Some(detail),
            _ => None,
        });
        let expected = format!("the key {} is not trusted here", network.server_identity.fingerprint());
        assert_eq!(told, Some(&expected), "an impostor is not told whom it was taken for");
        assert_eq!(count(&network.client_events, &ConnectionEvent::Connected), 0);
        assert_eq!(count(&network.server_events, &ConnectionEvent::Connected), 0);
        let connections: Vec<_> = network.server().connections().collect();
        assert!(connections.iter().all(|&id| network.server().is_drained(id)), "the server need not wait for its time-out");
    }
}

#[test]
fn a_key_that_is_not_served_hears_so() {
    let mut network = Network::new();
    let stranger = Identity::generate().unwrap();
    *network.client_mut() = Endpoint::with_protection(Config::default(), tls(&stranger, Admission::nobody())).unwrap();
    network.connect();
    network.run_for(ms(2_000));
    let Some(CloseReason::Rejected { reason, detail }) = network.ended() else { panic!("{:?}", network.ended()) };
    assert_eq!(reason, RejectReason::Handshake);
    assert!(detail.contains(&stranger.fingerprint().to_string()), "{detail}");
    assert_eq!(count(&network.server_events, &ConnectionEvent::Connected), 0);
}

#[test]
fn a_refusal_that_is_lost_is_said_again() {
    for lost in 4..9 {
        let mut network = Network::new();
        let stranger = Identity::generate().unwrap();
        *network.client_mut() = Endpoint::with_protection(Config::default(), tls(&stranger, Admission::nobody())).unwrap();
        network.fates = (0..10).map(|at| if at == lost { Fate::Lose } else { Fate::Pass }).collect();
        network.connect();
        network.run_for(ms(3_000));
        assert!(matches!(network.ended(), Some(CloseReason::Rejected { .. })), "{lost}: {:?}", network.ended());
    }
}

#[test]
fn a_one_time_code_lets_one_connection_in() {
    let code = OneTimeCode::generate().unwrap();
    let mut network = Network::new();
    let admission = Admission::nobody();
    admission.allow_once(&code).unwrap();
    let accepting = Config { accept: true, ..Config::default() };
    *network.server_mut() = Endpoint::with_protection(accepting, tls(&network.server_identity, admission)).unwrap();
    let identity = Identity::of_code(&code).unwrap();
    *network.client_mut() = Endpoint::with_protection(Config::default(), tls(&identity, Admission::nobody())).unwrap();
    network.connect();
    network.run_for(ms(1_000));
    assert_eq!(count(&network.server_events, &ConnectionEvent::Connected), 1);
    network.connect();
    network.run_for(ms(2_000));
    assert_eq!(count(&network.server_events, &ConnectionEvent::Connected), 1);
    assert!(matches!(network.ended(), Some(CloseReason::Rejected { reason: RejectReason::Handshake, .. })), "{:?}", network.ended());
}

#[test]
fn plain_mode_and_encryption_do_not_talk_to_each_other_and_say_why() {
    use segstream_base::random::Seed;
    let mut network = Network::new();
    *network.client_mut() = Endpoint::new(Config::default(), Seed(1)).unwrap();
    network.connect();
    network.run_for(ms(500));
    let ended = network.ended();
    assert!(matches!(&ended, Some(CloseReason::Rejected { reason: RejectReason::Protection, .. })), "{ended:?}");
    let mut network = Network::new();
    *network.server_mut() = Endpoint::new(Config { accept: true, ..Config::default() }, Seed(1)).unwrap();
    network.connect();
    network.run_for(ms(500));
    let ended = network.ended();
    assert!(matches!(&ended, Some(CloseReason::Rejected { reason: RejectReason::Protection, .. })), "{ended:?}");
}

#[test]
fn whoever_comes_back_needs_one_round_trip_less() {
    let (mut network, id) = Network::established();
    let requests = |network: &Network| network.sent.iter().filter(|sent| sent.bytes.len() == 1200 && sent.bytes[0] == 0x40).count();
    assert_eq!((requests(&network), network.server().unmatched.cookies), (2, 1));
    let now = network.now();
    network.client_mut().connection_mut(id).unwrap().close(now, 0, "done");
    network.run_for(ms(1_000));
    network.client_mut().release(id);
    // From another port of the same host.
    network.move_client(address("192.0.2.1:1001"));
    network.sent.clear();
    network.connect();
    network.run_for(ms(500));
    assert_eq!((requests(&network), network.server().unmatched.cookies), (1, 1), "no cookie was needed");
    assert_eq!(count(&network.client_events, &ConnectionEvent::Connected), 2);
    // From another host the token is worth nothing, and the cookie is needed again.
    let last = network.client().connections().last().unwrap();
    let now = network.now();
    network.client_mut().connection_mut(last).unwrap().close(now, 0, "done");
    network.run_for(ms(1_000));
    network.client_mut().release(last);
    network.move_client(address("192.0.2.7:1001"));
    network.connect();
    network.run_for(ms(500));
    assert_eq!(network.server().unmatched.cookies, 2);
    assert_eq!(count(&network.client_events, &ConnectionEvent::Connected), 3);
}
