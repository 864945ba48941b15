//! What a connection keeps that is set up and has nothing to do.

use segstream_base::endpoint::{Arrival, Endpoint as _, Local};
use segstream_base::{Duration, Instant};
use segstream_proto::config::Config;
use segstream_proto::connection::ConnectionEvent;
use segstream_proto::endpoint::Endpoint;
use segstream_secure::{Admission, Identity, Tls, Trust};
use segstream_wire::Contract;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::net::SocketAddr;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const COUNT: usize = 200;

/// Carries everything across at once, for `span`. How many connections have come into being at the two ends together.
fn run_for(client: &mut Endpoint, server: &mut Endpoint, now: &mut Instant, span: Duration) -> usize {
    let addresses: [SocketAddr; 2] = ["192.0.2.1:1".parse().unwrap(), "192.0.2.2:2".parse().unwrap()];
    let (end, mut connected) = (*now + span, 0);
    loop {
        let mut out = Vec::new();
        loop {
            out.clear();
            // Why the server first: it keeps few answers to strangers.
            let from_server = server.poll_transmit(*now, 16, &mut out);
            let Some(transmit) = from_server.or_else(|| client.poll_transmit(*now, 16, &mut out)) else { break };
            let from = addresses[usize::from(from_server.is_some())];
            let to = if from_server.is_some() { &mut *client } else { &mut *server };
            for datagram in out.chunks_mut(transmit.datagram_bytes) {
                to.handle_datagram(*now, Arrival { from, to: Local::ANY, ecn: None, received: *now }, datagram);
            }
            let events = core::iter::from_fn(|| to.poll_event());
            connected += events.filter(|(_, event)| *event == ConnectionEvent::Connected).count();
        }
        let due = [client.poll_deadline(), server.poll_deadline()].into_iter().flatten().map(|deadline| deadline.at).min();
        *now = due.filter(|due| *due <= end).unwrap_or(end).max(*now);
        if *now == end {
            return connected;
        }
        client.handle_timeout(*now);
        server.handle_timeout(*now);
    }
}

fn net(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated - change.bytes_deallocated
}

/// The bytes that a server keeps for each of many connections with one stream each, when they have long been idle.
fn kept_by_server() -> usize {
    let (at_server, at_client) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let trust = Trust::Key(at_server.fingerprint());
    let config = Config {
        connections: COUNT + 1,
        setups: COUNT,
        setups_per_host: COUNT,
        handshakes_per_second: 100 * COUNT as u32,
        accept: true,
        memory_bytes_per_peer: u64::MAX,
        ..Config::default()
    };
    let tls = |identity: Identity, admission| Box::new(Tls::new(identity, admission, None).unwrap());
    let admission = Admission::nobody();
    admission.allow(at_client.fingerprint());
    let mut server = Endpoint::with_protection(config.clone(), tls(at_server, admission)).unwrap();
    let mut client = Endpoint::with_protection(config, tls(at_client, Admission::nobody())).unwrap();
    let mut now = Instant::ZERO;
    let to: SocketAddr = "192.0.2.2:2".parse().unwrap();
    // What is made once: by the first connection.
    let mut connect = |client: &mut Endpoint, server: &mut Endpoint, count| {
        let connect = |_| client.connect(now, to, &trust, vec![Contract::default()]).unwrap();
        assert_eq!((0..count).map(connect).count(), count);
        assert_eq!(run_for(client, server, &mut now, Duration::from_secs(60)), 2 * count);
    };
    connect(&mut client, &mut server, 1);
    let region = Region::new(ALLOCATOR);
    connect(&mut client, &mut server, COUNT);
    let both = net(&region);
    let before_drop = region.change();
    drop(client);
    let dropped = region.change().bytes_deallocated - before_drop.bytes_deallocated;
    both.saturating_sub(dropped) / COUNT
}

#[test]
fn an_idle_connection_keeps_less_than_nine_kilobytes_at_a_server() {
    let kept = kept_by_server();
    assert!(kept < 9 * 1024, "{kept} bytes");
}
