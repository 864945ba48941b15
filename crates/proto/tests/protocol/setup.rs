//! Set-up survives whatever becomes of its datagrams, and says why it fails when it is refused.

use crate::network::{Fate, Network};
use bytes::Bytes;
use segstream_base::halves::Verdict;
use segstream_base::{Bandwidth, Duration, Instant, StreamId};
use segstream_proto::config::Config;
use segstream_proto::connection::ConnectionEvent;
use segstream_proto::error::CloseReason;
use segstream_proto::rate::Rate;
use segstream_wire::handshake::RejectReason;
use segstream_wire::{Class, Contract};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn accepting() -> Config {
    Config { accept: true, ..Config::default() }
}

fn count(events: &[(segstream_proto::endpoint::ConnectionId, ConnectionEvent)], wanted: impl Fn(&ConnectionEvent) -> bool) -> usize {
    events.iter().filter(|(_, event)| wanted(event)).count()
}

/// Every way in which each of the first `length` datagrams of both ends passes, is lost or comes twice.
fn all_fates(length: u32) -> impl Iterator<Item = Vec<Fate>> {
    (0..3u32.pow(length)).map(move |number| {
        let digit = |place: u32| [Fate::Pass, Fate::Lose, Fate::Twice][(number / 3u32.pow(place) % 3) as usize];
        (0..length).map(digit).collect()
    })
}

#[test]
fn whatever_becomes_of_the_first_datagrams_there_is_one_connection_and_all_arrives() {
    for rate in [Rate::AUTO, Rate::smooth(Bandwidth::from_megabits_per_second(20))] {
        for fates in all_fates(6) {
            let client = Config { rate, ..Config::default() };
            let mut network = Network::new(client, accepting(), ms(20));
            network.fates = fates.iter().copied().collect();
            let id = network.connect(vec![Contract::default()]);
            network.run_until(ms(9900));
            let connected = |event: &ConnectionEvent| *event == ConnectionEvent::Connected;
            assert_eq!(count(&network.events_a, connected), 1, "{fates:?}");
            assert_eq!(count(&network.events_b, connected), 1, "{fates:?}");
            assert_eq!((network.a().connections().count(), network.b().connections().count()), (1, 1), "{fates:?}");
            let (now, sent) = (network.now(), Bytes::from(vec![5; 20_000]));
            let connection = network.a_mut().connection_mut(id).unwrap();
            connection.send(now, StreamId(0), sent.clone(), Instant::ZERO, None).unwrap();
            connection.close(now, 0, "done");
            network.run_until(ms(14_000));
            assert_eq!(network.received.len(), 1, "{fates:?}");
            assert!(network.received[0].bytes == sent && network.judged() == [(0, 0, Verdict::Complete)], "{fates:?}");
            let closed = |event: &ConnectionEvent| *event == ConnectionEvent::Closed(CloseReason::ClosedHere);
            assert_eq!(count(&network.events_a, closed), 1, "{fates:?}");
            assert_eq!(network.a().connections().count() + network.b().connections().count(), 0, "both ends forget: {fates:?}");
        }
    }
}

#[test]
fn data_that_is_there_from_the_start_survives_the_loss_of_any_of_the_first_datagrams() {
    for fates in all_fates(6) {
        let mut network = Network::new(Config::default(), accepting(), ms(20));
        network.fates = fates.iter().copied().collect();
        let id = network.connect(vec![Contract::default()]);
        let now = network.now();
        network.a_mut().connection_mut(id).unwrap().send(now, StreamId(0), Bytes::from(vec![5; 20_000]), Instant::ZERO, None).unwrap();
        network.run_until(ms(12_000));
        assert_eq!(network.judged(), [(0, 0, Verdict::Complete)], "{fates:?}");
        assert_eq!(network.received.len(), 1, "{fates:?}");
    }
}

/// Why the request of `client` ends at `server`.
fn ending(client: Config, server: Config) -> CloseReason {
    let mut network = Network::new(client, server, ms(20));
    network.connect(vec![Contract::default()]);
    // Whoever is busy is asked again until set-up is given up.
    network.run_until(ms(11_000));
    let ended = network.events_a.iter().find_map(|(_, event)| match event {
        ConnectionEvent::Closed(reason) => Some(reason.clone()),
        _ => None,
    });
    ended.expect("the request is refused")
}

#[test]
fn each_refusal_is_told_as_a_sentence() {
    let window = Config { class: Class::new(2).unwrap(), rate: Rate::Unpaced, ..Config::default() };
    let error_control = Config { class: Class::new(4).unwrap(), unlimited: false, ..accepting() };
    let refusals = [
        (ending(Config::default(), Config::default()), RejectReason::NotAccepting, "it accepts no connections"),
        (ending(Config::default(), Config { connections: 0, ..accepting() }), RejectReason::Busy, "try again later"),
        (ending(window, error_control), RejectReason::Unacceptable, "it does not accept the class"),
    ];
    for (ended, expected, part) in refusals {
        let CloseReason::Rejected { reason, .. } = &ended else { panic!("{ended}") };
        assert_eq!(*reason, expected);
        assert!(ended.to_string().starts_with("refused by the peer: ") && ended.to_string().contains(part), "{ended}");
    }
    let all = [
        RejectReason::Version,
        RejectReason::Busy,
        RejectReason::NotAccepting,
        RejectReason::Unacceptable,
        RejectReason::Refused,
        RejectReason::Other(77),
    ];
    let sentences: Vec<String> =
        all.map(|reason| CloseReason::Rejected { reason, detail: "because".to_owned() }.to_string()).into_iter().collect();
    for (index, sentence) in sentences.iter().enumerate() {
        assert!(sentence.split(' ').count() > 8 && sentence.contains("(because)"), "{sentence}");
        assert!(!sentences[..index].contains(sentence), "{sentence} is said of two reasons");
    }
}

#[test]
fn only_a_sender_that_gives_way_says_that_it_heeds_marks() {
    let server = Config { rate: Rate::smooth(Bandwidth::from_megabits_per_second(20)), ..accepting() };
    let mut network = Network::new(Config::default(), server, ms(20));
    network.marking = true;
    let id = network.connect(vec![Contract::default()]);
    network.run_until(ms(100));
    let now = network.now();
    network.a_mut().connection_mut(id).unwrap().send(now, StreamId(0), Bytes::from(vec![5; 2_000_000]), Instant::ZERO, None).unwrap();
    network.run_until(ms(4000));
    let [ours, theirs] = network.markable;
    assert!(ours > 1000 && theirs == 0, "{ours} and {theirs}");
    assert_eq!(network.received.len(), 1, "marks alone lose nothing");
}

#[test]
fn a_fixed_rate_ends_with_a_sentence_on_a_path_that_loses_almost_everything() {
    let client = Config::default().with_rate(Bandwidth::from_megabits_per_second(10));
    let mut network = Network::new(client, accepting(), ms(20));
    let id = network.connect(vec![Contract::default()]);
    network.run_until(ms(200));
    (network.loss, network.loss_back) = (0.95, Some(0.0));
    let now = network.now();
    for _ in 0..4 {
        let _ = network.a_mut().connection_mut(id).unwrap().send(now, StreamId(0), Bytes::from(vec![5; 8_000_000]), Instant::ZERO, None);
    }
    network.run_until(Duration::from_secs(60));
    let ended = network.events_a.iter().find_map(|(_, event)| match event {
        ConnectionEvent::Closed(reason) => Some(reason.clone()),
        _ => None,
    });
    let ended = ended.expect("the circuit breaks");
    assert!(matches!(ended, CloseReason::PathOverloaded { .. }), "{ended}");
    assert!(ended.to_string().contains("give a lower rate, or use congestion control (auto)"), "{ended}");
}

#[test]
fn a_handshake_that_was_repeated_is_no_measure_of_the_round_trip() {
    // Karn's rule: an answer to one of two copies does not tell to which.
    let mut measured = 0;
    for fates in all_fates(6) {
        let mut network = Network::new(Config::default(), accepting(), ms(20));
        network.fates = fates.iter().copied().collect();
        let id = network.connect(vec![Contract::default()]);
        network.run_until(ms(3000));
        // Limit: a responder waits for the third leg, which the initiator repeats when it is lost; so only the initiator.
        let Some((least, smoothed)) = network.a().connection(id).and_then(|connection| connection.rtt()) else { continue };
        measured += 1;
        assert!(least >= ms(40) && smoothed < ms(60), "{least} and {smoothed} of 40 ms: {fates:?}");
    }
    assert!(measured > 500, "{measured} round trips");
}
