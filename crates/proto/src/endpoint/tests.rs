//! An endpoint with many connections: what its calls look at, and what they find.

use super::*;
use crate::connection::ConnectionEvent;
use segstream_base::Duration;
use segstream_base::endpoint::Endpoint as _;
use segstream_network::{Fault, HostId, Network};
use segstream_path::PathConfig;

const CLIENT: HostId = HostId(0);
const SERVER: HostId = HostId(1);

/// Two endpoints and nothing between them, in virtual time.
struct Pair(Network<Endpoint>);

fn client_address() -> SocketAddr {
    "192.0.2.1:1".parse().unwrap()
}

fn server_address() -> SocketAddr {
    "192.0.2.2:2".parse().unwrap()
}

impl Pair {
    fn connected(count: usize) -> (Self, Vec<ConnectionId>) {
        let config = Config {
            connections: count,
            setups: count,
            setups_per_host: count,
            handshakes_per_second: 20 * count as u32,
            accept: true,
            ..Config::default()
        };
        let new = |seed| Endpoint::new(config.clone(), Seed(seed)).unwrap();
        let mut pair = Self(Network::new(Seed(3)));
        pair.0.add_host(new(1), client_address());
        pair.0.add_host(new(2), server_address());
        pair.0.link(CLIENT, SERVER, &PathConfig::default()).unwrap();
        let ids: Vec<ConnectionId> = (0..count).map(|_| pair.connect(vec![Contract::default()])).collect();
        pair.run_for(Duration::from_secs(2));
        let connected = |endpoint: &mut Endpoint| {
            let events = core::iter::from_fn(|| endpoint.poll_event());
            events.filter(|(_, event)| *event == ConnectionEvent::Connected).count()
        };
        assert_eq!((connected(pair.client()), connected(pair.server())), (count, count));
        (pair, ids)
    }

    fn now(&self) -> Instant {
        self.0.now()
    }

    fn client(&mut self) -> &mut Endpoint {
        &mut self.0[CLIENT]
    }

    fn server(&mut self) -> &mut Endpoint {
        &mut self.0[SERVER]
    }

    fn connect(&mut self, streams: Vec<Contract>) -> ConnectionId {
        let now = self.now();
        self.client().connect(now, server_address(), &Trust::Anyone, streams).unwrap()
    }

    fn run_for(&mut self, span: Duration) {
        self.0.run_until(self.now() + span);
    }

    fn looks(&self) -> u64 {
        self.0[CLIENT].queue.visits.get() + self.0[SERVER].queue.visits.get()
    }
}

#[test]
fn ten_thousand_idle_connections_cost_nothing_to_ask() {
    const COUNT: usize = 10_000;
    let (mut pair, ids) = Pair::connected(COUNT);
    let before = pair.looks();
    for _ in 0..100 {
        let now = pair.now();
        for endpoint in [CLIENT, SERVER] {
            let endpoint = &mut pair.0[endpoint];
            assert!(endpoint.poll_transmit(now, 16, &mut Vec::new()).is_none() && endpoint.poll_event().is_none());
            assert!(endpoint.poll_deadline().is_some_and(|deadline| deadline.at > now) && !endpoint.all_drained());
            endpoint.handle_timeout(now);
        }
    }
    assert_eq!(pair.looks(), before, "nobody has anything to do");
    let id = ids[COUNT / 2];
    for _ in 0..10 {
        let now = pair.now();
        let connection = pair.client().connection_mut(id).unwrap();
        connection.send(now, StreamId(0), bytes::Bytes::from(vec![7; 100]), now, None).unwrap();
        pair.run_for(Duration::from_millis(2));
        let heard =
            core::iter::from_fn(|| pair.server().poll_event()).any(|(_, event)| matches!(event, ConnectionEvent::Readable(StreamId(0))));
        assert!(heard, "the segment has come");
    }
    let looks = pair.looks() - before;
    assert!((20..1000).contains(&looks), "{looks} looks at connections for ten segments");
}

#[test]
fn every_connection_is_called_when_it_is_due_however_many_there_are() {
    let (mut pair, ids) = Pair::connected(300);
    let quiet = pair.client().config().limits.idle_timeout;
    let sent = |endpoint: &Endpoint| {
        endpoint.connections().filter_map(|id| endpoint.connection(id)).map(|c| c.counters.datagrams_sent).sum::<u64>()
    };
    let before = sent(&pair.0[CLIENT]);
    pair.run_for(quiet * 3);
    assert_eq!(core::iter::from_fn(|| pair.client().poll_event()).count(), 0, "none has fallen silent");
    assert!(sent(&pair.0[CLIENT]) >= before + 300 * 9, "a sign of life each quarter of the timeout");
    // The peer is gone: each ends after the same silence.
    pair.0.fault(Fault::Crash(SERVER));
    pair.run_for(quiet + quiet);
    let closed = core::iter::from_fn(|| pair.client().poll_event()).filter(|(_, event)| matches!(event, ConnectionEvent::Closed(_)));
    assert_eq!(closed.map(|(id, _)| id).collect::<Vec<_>>(), ids, "in the order of their slots");
    assert!(pair.client().all_drained());
    let gone: Vec<_> = core::iter::from_fn(|| pair.client().poll_drained()).collect();
    assert_eq!(gone, ids);
    gone.iter().for_each(|&id| pair.client().release(id));
    assert_eq!((pair.client().connection_count(), pair.client().poll_deadline()), (0, None));
}

#[test]
fn an_identifier_of_the_past_finds_nothing() {
    let (mut pair, ids) = Pair::connected(3);
    let now = pair.now();
    pair.client().connection_mut(ids[1]).unwrap().abort(now, 0, "no more");
    pair.run_for(Duration::from_secs(5));
    pair.client().release(ids[1]);
    let again = pair.connect(Vec::new());
    assert!(again > ids[2], "later ones are greater");
    assert_eq!(again.index(), ids[1].index(), "the slot is used again");
    assert!(pair.client().connection(ids[1]).is_none() && pair.client().connection_mut(ids[1]).is_none());
    pair.client().release(ids[1]);
    assert!(pair.client().connection(again).is_some() && pair.client().connection_count() == 3);
}

#[test]
fn connections_that_have_something_to_send_take_turns() {
    let (mut pair, ids) = Pair::connected(4);
    let now = pair.now();
    for &id in &ids {
        let connection = pair.client().connection_mut(id).unwrap();
        connection.set_rate(now, Rate::Unpaced).unwrap();
        for _ in 0..20 {
            connection.send(now, StreamId(0), bytes::Bytes::from(vec![7; 1000]), now, None).unwrap();
        }
    }
    let sent = |pair: &Pair| -> Vec<u64> { ids.iter().map(|&id| pair.0[CLIENT].connection(id).unwrap().counters.datagrams_sent).collect() };
    let before = sent(&pair);
    for _ in 0..12 {
        assert!(pair.client().poll_transmit(now, 1, &mut Vec::new()).is_some());
    }
    let after = sent(&pair);
    assert!(before.iter().zip(&after).all(|(before, after)| after - before == 3), "{before:?} {after:?}");
}
