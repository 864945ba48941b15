//! Several endpoints on one port.

use crate::loopback::{PATIENCE, any, ends, pattern};
use segstream::{Config, Contract, Error, Polling, StreamId, Trust, Verdict, blocking};
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU8;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const CONNECTIONS: usize = 12;
const SEGMENTS: u64 = 40;

/// Sends on every connection what comes from the other side, from one address for some time and then from another, as a
/// translator of addresses does that has been started anew.
fn moving_translator(to: SocketAddr, over: &Arc<AtomicBool>) -> (SocketAddr, thread::JoinHandle<usize>) {
    let inside = UdpSocket::bind(any()).unwrap();
    let outside: Vec<UdpSocket> = (0..29).map(|_| UdpSocket::bind(any()).unwrap()).collect();
    for socket in outside.iter().chain([&inside]) {
        socket.set_nonblocking(true).unwrap();
    }
    let (address, over) = (inside.local_addr().unwrap(), Arc::clone(over));
    let relaying = thread::spawn(move || {
        let (mut buffer, mut client, mut count) = ([0; 2000], None, 0);
        // Why: a peer is not followed before it is known, so nobody moves in the first forty datagrams.
        let (mut place, mut since) = (0, 0);
        while !over.load(Ordering::Relaxed) {
            let mut idle = true;
            while let Ok((length, from)) = inside.recv_from(&mut buffer) {
                idle = false;
                count += 1;
                since = if client.replace(from) == Some(from) { since + 1 } else { 0 };
                place += usize::from(since % 40 == 39 || since == 0);
                let _ = outside[place % outside.len()].send_to(&buffer[..length], to);
            }
            for socket in &outside {
                while let Ok(length) = socket.recv(&mut buffer) {
                    idle = false;
                    client.map(|client| inside.send_to(&buffer[..length], client));
                }
            }
            if idle {
                thread::sleep(Duration::from_micros(100));
            }
        }
        count
    });
    (address, relaying)
}

/// Receives connections until told; how many, and their complete segments.
fn serve(mut endpoint: blocking::Endpoint, over: &AtomicBool) -> (usize, u64) {
    let (mut connections, mut complete) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        let id = match endpoint.accept(Some(Duration::from_millis(20))) {
            Ok(id) => id,
            Err(Error::TimedOut) => continue,
            Err(error) => panic!("{error}"),
        };
        connections += 1;
        let mut connection = endpoint.connection(id);
        while let Some(received) = connection.recv(StreamId(0), PATIENCE).unwrap() {
            assert_eq!(received.bytes, pattern(received.segment.0, 3_000));
            complete += u64::from(received.verdict == Verdict::Complete);
        }
        connection.closed(PATIENCE).unwrap();
        endpoint.release(id);
    }
    (connections, complete)
}

#[test]
fn a_connection_stays_on_its_shard_when_its_address_changes() {
    ends(|| {
        let shards = blocking::Endpoint::builder().allow_anyone().listen_shards(any(), NonZeroU8::new(3).unwrap()).unwrap();
        let (to, key) = (shards[0].local_addr(), shards[0].fingerprint().unwrap());
        assert!(shards.iter().all(|shard| shard.local_addr() == to && shard.fingerprint() == Some(key)), "one port and one key");
        let over = Arc::new(AtomicBool::new(false));
        let serving: Vec<_> = shards
            .into_iter()
            .map(|shard| {
                let over = Arc::clone(&over);
                thread::spawn(move || serve(shard, &over))
            })
            .collect();
        let (address, relaying) = moving_translator(to, &over);
        let peer = segstream::Peer { address, trust: Trust::Key(key) };
        let mut moves = 0;
        for _ in 0..CONNECTIONS {
            let mut client =
                blocking::Endpoint::builder().config(Config { polling: Polling::Adaptive, ..Config::default() }).bind(any()).unwrap();
            let id = client.connect(peer.clone(), vec![Contract::default()]).unwrap();
            let mut connection = client.connection(id);
            for segment in 0..SEGMENTS {
                connection.send(StreamId(0), pattern(segment, 3_000)).unwrap();
                connection.serve(Duration::from_millis(2)).unwrap();
            }
            connection.close(0, "done").unwrap();
            moves += 1;
        }
        over.store(true, Ordering::Relaxed);
        let relayed = relaying.join().unwrap();
        let served: Vec<(usize, u64)> = serving.into_iter().map(|serving| serving.join().unwrap()).collect();
        assert!(relayed > 80 * CONNECTIONS, "only {relayed} datagrams went through the translator");
        assert_eq!(served.iter().map(|(connections, _)| connections).sum::<usize>(), moves);
        assert_eq!(served.iter().map(|(_, complete)| complete).sum::<u64>(), moves as u64 * SEGMENTS);
        assert!(served.iter().filter(|(connections, _)| *connections > 0).count() > 1, "all connections on one shard: {served:?}");
    });
}
