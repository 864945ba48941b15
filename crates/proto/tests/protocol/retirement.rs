//! Streams one after another: any number of them, of which only the live ones are limited and kept.

use crate::network::Network;
use segstream_base::halves::Verdict;
use segstream_base::{Duration, Instant, SegmentNumber, StreamId};
use segstream_proto::config::Config;
use segstream_proto::connection::ConnectionEvent;
use segstream_proto::endpoint::ConnectionId;
use segstream_proto::error::OpenStreamError;
use segstream_wire::Limits;
use segstream_wire::contract::Contract;

const LIVE_MAX: u32 = 8;

fn config() -> Config {
    Config { limits: Limits { streams: LIVE_MAX, ..Config::default().limits }, accept: true, ..Config::default() }
}

fn network(loss: f64) -> (Network, ConnectionId) {
    let mut network = Network::new(config(), config(), Duration::from_millis(5));
    network.loss = loss;
    let id = network.connect(Vec::new());
    network.run_until(Duration::from_secs(2));
    assert!(network.events_a.contains(&(id, ConnectionEvent::Connected)));
    (network, id)
}

/// Opens streams one after another, each with one segment, as soon as the peer allows it, until there were `count`.
fn open_one_after_another(network: &mut Network, id: ConnectionId, count: u32) {
    let (mut opened, mut kept_max) = (0, (0, 0));
    let limit = network.now() + Duration::from_secs(600);
    while opened < count {
        let now = network.now();
        assert!(now < limit, "only {opened} streams were opened");
        let connection = network.a_mut().connection_mut(id).unwrap();
        match connection.open_stream(now, Contract::default()) {
            Ok(stream) => {
                assert_eq!(stream, StreamId(opened), "numbers ascend, and none is used twice");
                connection.send(now, stream, vec![stream.0 as u8; 3000].into(), now, None).unwrap();
                connection.finish_stream(now, stream);
                opened += 1;
            }
            Err(error) => {
                assert_eq!(error, OpenStreamError::TooManyStreams { live_max: LIVE_MAX });
                network.run_until((now + Duration::from_millis(1)).since(Instant::ZERO));
            }
        }
        let peer = network.b().connections().next().unwrap();
        let sending = network.a().connection(id).unwrap().streams_kept().0;
        let receiving = network.b().connection(peer).unwrap().streams_kept().1;
        kept_max = (kept_max.0.max(sending), kept_max.1.max(receiving));
    }
    assert!(kept_max.0 <= LIVE_MAX as usize && kept_max.1 <= LIVE_MAX as usize, "{kept_max:?} streams were kept");
}

fn a_thousand_streams(loss: f64) {
    let (mut network, id) = network(loss);
    open_one_after_another(&mut network, id, 1000);
    let now = network.now();
    network.a_mut().connection_mut(id).unwrap().close(now, 0, "");
    network.run_until((now + Duration::from_secs(60)).since(Instant::ZERO));
    let judged = network.judged();
    assert_eq!(judged.len(), 1000);
    assert!(judged.iter().all(|(_, segment, verdict)| (*segment, *verdict) == (SegmentNumber(0).0, Verdict::Complete)));
    let mut received: Vec<u32> = network.received.iter().map(|received| received.stream.0).collect();
    received.sort_unstable();
    assert_eq!(received, (0..1000).collect::<Vec<_>>(), "each stream is opened once at the peer and gives its segment once");
    assert!(network.received.iter().all(|received| received.bytes == vec![received.stream.0 as u8; 3000]));
    let ended = network.events_b.iter().filter(|(_, event)| matches!(event, ConnectionEvent::Ended { segments: 1, .. })).count();
    assert_eq!(ended, 1000);
    let refused = network.events_a.iter().any(|(_, event)| matches!(event, ConnectionEvent::Refused(..)));
    assert!(!refused, "a sender that waits for its turn is never refused");
}

#[test]
fn a_thousand_streams_go_one_after_another_where_eight_may_be_live() {
    a_thousand_streams(0.0);
}

#[test]
fn a_thousand_streams_go_one_after_another_whatever_is_lost() {
    a_thousand_streams(0.1);
}

#[test]
fn a_sender_that_was_refused_is_told_when_it_may_open_the_next() {
    let (mut network, id) = network(0.0);
    let now = network.now();
    let connection = network.a_mut().connection_mut(id).unwrap();
    for stream in 0..LIVE_MAX {
        assert_eq!(connection.open_stream(now, Contract::default()), Ok(StreamId(stream)));
    }
    assert!(connection.open_stream(now, Contract::default()).is_err());
    network.run_until(Duration::from_secs(3));
    assert!(!network.events_a.contains(&(id, ConnectionEvent::StreamsAvailable)), "all of them are live");
    let now = network.now();
    network.a_mut().connection_mut(id).unwrap().finish_stream(now, StreamId(3));
    network.run_until(Duration::from_secs(4));
    assert!(network.events_a.contains(&(id, ConnectionEvent::StreamsAvailable)));
    let now = network.now();
    let connection = network.a_mut().connection_mut(id).unwrap();
    assert_eq!(connection.open_stream(now, Contract::default()), Ok(StreamId(LIVE_MAX)));
    assert!(connection.open_stream(now, Contract::default()).is_err(), "one has ended, one may be opened");
}

#[test]
fn a_stream_that_the_application_does_not_read_to_its_end_stays_live() {
    let (mut network, id) = network(0.0);
    network.taking = false;
    let now = network.now();
    let connection = network.a_mut().connection_mut(id).unwrap();
    for _ in 0..LIVE_MAX {
        let stream = connection.open_stream(now, Contract::default()).unwrap();
        connection.send(now, stream, vec![1; 100].into(), now, None).unwrap();
        connection.finish_stream(now, stream);
    }
    network.run_until(Duration::from_secs(4));
    assert_eq!(network.judged().len(), LIVE_MAX as usize);
    let now = network.now();
    assert!(network.a_mut().connection_mut(id).unwrap().open_stream(now, Contract::default()).is_err());
}

#[test]
fn nothing_is_said_of_credit_while_more_than_half_of_the_streams_are_left() {
    let (mut network, id) = network(0.0);
    let reports = |network: &Network| {
        let peer = network.b().connections().next().unwrap();
        network.b().connection(peer).unwrap().receiver_counters().report_shipments
    };
    open_one_after_another(&mut network, id, 3);
    network.run_until(Duration::from_secs(3));
    let before = reports(&network);
    network.run_until(Duration::from_secs(4));
    assert_eq!(reports(&network), before, "a connection whose streams have ended is quiet");
}
