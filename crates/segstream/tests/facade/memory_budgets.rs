//! The memory that the connections of one key are granted together, whatever they ask for.

use crate::loopback::{PATIENCE, any, ends, seconds};
use segstream::{CloseReason, Config, ConnectionEvent, Contract, Peer, StreamId, blocking};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Asks for all there is.
fn greedy() -> Contract {
    Contract { window_units: 1 << 28, window_segments: 1 << 28, ..Contract::default() }
}

#[test]
fn a_key_that_asks_for_more_than_it_may_have_is_refused_and_another_is_served() {
    ends(|| {
        // A first stream gets a quarter of what its key has left, so the fifth connection is one too many.
        let config = Config { memory_bytes_per_peer: 40 << 20, ..Config::default() };
        let mut server = blocking::Endpoint::builder().config(config).allow_anyone().listen(any()).unwrap();
        let (to, done) = (server.local_addr(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // Connections are served, not read.
                    if let Ok(Some((id, ConnectionEvent::Closed(_)))) = server.wait(Some(Duration::from_millis(10))) {
                        server.release(id);
                    }
                }
            });
            let mut client = blocking::Endpoint::builder().bind(any()).unwrap();
            let mut other = blocking::Endpoint::builder().bind(any()).unwrap();
            let mut connections = Vec::new();
            let refused = loop {
                let id = client.connect(Peer::anyone(to), vec![greedy()]).unwrap();
                connections.push(id);
                match client.connection(id).closed(Some(Duration::from_millis(300))) {
                    Ok(reason) => break reason,
                    Err(_) => assert!(connections.len() < 6, "{} connections", connections.len()),
                }
            };
            assert_eq!(connections.len(), 5);
            assert!(
                matches!(&refused, CloseReason::AbortedByPeer { code: 0x5347_0003, detail } if detail.contains("memory")),
                "{refused:?}"
            );
            let id = other.connect(Peer::anyone(to), vec![greedy()]).unwrap();
            let mut connection = other.connection(id);
            let segment = connection.send(StreamId(0), vec![7; 1000].into()).unwrap();
            assert_eq!(connection.verdict(StreamId(0), segment, PATIENCE).unwrap().verdict, segstream::Verdict::Complete);
            // What goes makes room.
            client.connection(connections[0]).abort(0, "").unwrap();
            client.connection(connections[1]).serve(seconds(1)).unwrap();
            let id = client
                .connect(Peer::anyone(to), vec![Contract { window_units: 1000, window_segments: 100, ..Contract::default() }])
                .unwrap();
            assert!(client.connection(id).closed(Some(Duration::from_millis(500))).is_err(), "it stays");
            done.store(true, Ordering::Relaxed);
        });
    });
}
