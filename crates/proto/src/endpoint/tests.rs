//! An endpoint with many connections: what its calls look at, and what they find.

use super::*;
use crate::connection::ConnectionEvent;
use segstream_base::Duration;
use segstream_base::endpoint::{Endpoint as _, Local};

/// Two endpoints and nothing between them, in virtual time.
struct Pair {
    client: Endpoint,
    server: Endpoint,
    now: Instant,
}

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
        let mut pair = Self { client: new(1), server: new(2), now: Instant::ZERO };
        let connect = |_| pair.client.connect(pair.now, server_address(), &Trust::Anyone, vec![Contract::default()]).unwrap();
        let ids: Vec<ConnectionId> = (0..count).map(connect).collect();
        pair.run_for(Duration::from_secs(2));
        let connected = |endpoint: &mut Endpoint| {
            let events = core::iter::from_fn(|| endpoint.poll_event());
            events.filter(|(_, event)| *event == ConnectionEvent::Connected).count()
        };
        assert_eq!((connected(&mut pair.client), connected(&mut pair.server)), (count, count));
        (pair, ids)
    }

    fn exchange(&mut self) {
        let mut out = Vec::new();
        loop {
            out.clear();
            // Why the server first: it keeps few answers to strangers.
            let from_server = self.server.poll_transmit(self.now, 16, &mut out);
            let Some(transmit) = from_server.or_else(|| self.client.poll_transmit(self.now, 16, &mut out)) else { return };
            let from = if from_server.is_some() { server_address() } else { client_address() };
            let to = if from_server.is_some() { &mut self.client } else { &mut self.server };
            for datagram in out.chunks_mut(transmit.datagram_bytes) {
                to.handle_datagram(self.now, Arrival { from, to: Local::ANY, ecn: None, received: self.now }, datagram);
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        Deadline::earlier(self.client.poll_deadline(), self.server.poll_deadline()).map(|deadline| deadline.at)
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.exchange();
        while let Some(next) = self.next_deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            self.exchange();
        }
        self.now = end;
    }

    fn looks(&self) -> u64 {
        self.client.queue.looks.get() + self.server.queue.looks.get()
    }
}

#[test]
fn ten_thousand_idle_connections_cost_nothing_to_ask() {
    const COUNT: usize = 10_000;
    let (mut pair, ids) = Pair::connected(COUNT);
    let before = pair.looks();
    for _ in 0..100 {
        for endpoint in [&mut pair.client, &mut pair.server] {
            assert!(endpoint.poll_transmit(pair.now, 16, &mut Vec::new()).is_none() && endpoint.poll_event().is_none());
            assert!(endpoint.poll_deadline().is_some_and(|deadline| deadline.at > pair.now) && !endpoint.is_quiet());
            endpoint.handle_timeout(pair.now);
        }
    }
    assert_eq!(pair.looks(), before, "nobody has anything to do");
    let id = ids[COUNT / 2];
    for _ in 0..10 {
        let now = pair.now;
        let connection = pair.client.connection_mut(id).unwrap();
        connection.send(now, 0, bytes::Bytes::from(vec![7; 100]), now, None).unwrap();
        pair.run_for(Duration::from_millis(2));
        let heard = core::iter::from_fn(|| pair.server.poll_event()).any(|(_, event)| matches!(event, ConnectionEvent::Readable(0)));
        assert!(heard, "the segment has come");
    }
    let looks = pair.looks() - before;
    assert!((20..1000).contains(&looks), "{looks} looks at connections for ten segments");
}

#[test]
fn every_connection_is_called_when_it_is_due_however_many_there_are() {
    let (mut pair, ids) = Pair::connected(300);
    let quiet = pair.client.config().limits.idle_timeout;
    let sent = |endpoint: &Endpoint| {
        endpoint.connections().filter_map(|id| endpoint.connection(id)).map(|c| c.counters.datagrams_sent).sum::<u64>()
    };
    let before = sent(&pair.client);
    pair.run_for(quiet * 3);
    assert_eq!(core::iter::from_fn(|| pair.client.poll_event()).count(), 0, "none has fallen silent");
    assert!(sent(&pair.client) >= before + 300 * 9, "a sign of life each quarter of the timeout");
    // The peer is gone: each ends after the same silence.
    let end = pair.now + quiet + quiet;
    while let Some(deadline) = pair.client.poll_deadline().filter(|deadline| deadline.at <= end) {
        pair.now = pair.now.max(deadline.at);
        pair.client.handle_timeout(pair.now);
        while pair.client.poll_transmit(pair.now, 16, &mut Vec::new()).is_some() {}
    }
    let closed = core::iter::from_fn(|| pair.client.poll_event()).filter(|(_, event)| matches!(event, ConnectionEvent::Closed(_)));
    assert_eq!(closed.map(|(id, _)| id).collect::<Vec<_>>(), ids, "in the order of their slots");
    assert!(pair.client.is_quiet());
    let gone: Vec<_> = core::iter::from_fn(|| pair.client.poll_forgotten()).collect();
    assert_eq!(gone, ids);
    gone.iter().for_each(|&id| pair.client.forget(id));
    assert_eq!((pair.client.connection_count(), pair.client.poll_deadline()), (0, None));
}

#[test]
fn an_identifier_of_the_past_finds_nothing() {
    let (mut pair, ids) = Pair::connected(3);
    let now = pair.now;
    pair.client.connection_mut(ids[1]).unwrap().abort(now, 0, "no more");
    pair.run_for(Duration::from_secs(5));
    pair.client.forget(ids[1]);
    let again = pair.client.connect(pair.now, server_address(), &Trust::Anyone, Vec::new()).unwrap();
    assert!(again > ids[2], "later ones are greater");
    assert_eq!(again.index(), ids[1].index(), "the slot is used again");
    assert!(pair.client.connection(ids[1]).is_none() && pair.client.connection_mut(ids[1]).is_none());
    pair.client.forget(ids[1]);
    assert!(pair.client.connection(again).is_some() && pair.client.connection_count() == 3);
}

#[test]
fn connections_that_have_something_to_send_take_turns() {
    let (mut pair, ids) = Pair::connected(4);
    let now = pair.now;
    for &id in &ids {
        let connection = pair.client.connection_mut(id).unwrap();
        connection.set_rate(now, Rate::Unpaced).unwrap();
        for _ in 0..20 {
            connection.send(now, 0, bytes::Bytes::from(vec![7; 1000]), now, None).unwrap();
        }
    }
    let sent = |pair: &Pair| -> Vec<u64> { ids.iter().map(|&id| pair.client.connection(id).unwrap().counters.datagrams_sent).collect() };
    let before = sent(&pair);
    for _ in 0..12 {
        assert!(pair.client.poll_transmit(now, 1, &mut Vec::new()).is_some());
    }
    let after = sent(&pair);
    assert!(before.iter().zip(&after).all(|(before, after)| after - before == 3), "{before:?} {after:?}");
}
