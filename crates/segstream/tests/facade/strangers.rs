//! Datagrams that are none of ours at a listening port: counted, and harmless.

use crate::loopback::{PATIENCE, any, ends, ends_async, pattern};
use segstream::{Contract, StreamId, UnmatchedCounters, Verdict, blocking};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

/// Sends noise of every length, and shipments of no connection.
fn make_noise(to: SocketAddr) {
    let stranger = UdpSocket::bind(any()).unwrap();
    for length in 0..1_400 {
        stranger.send_to(&pattern(length, length as usize), to).unwrap();
        if length % 50 == 0 {
            // Why: the receive buffer of a machine that grants little would drop what comes at once.
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn total(unmatched: UnmatchedCounters) -> u64 {
    unmatched.not_ours + unmatched.unknown_connection + unmatched.bad_requests + unmatched.rejected
}

#[test]
fn noise_at_a_blocking_endpoint() {
    ends(|| {
        let mut server = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let noise = thread::spawn(move || make_noise(to));
        while !noise.is_finished() || server.wait(Some(Duration::from_millis(50))).unwrap().is_some() {
            assert!(server.wait(Some(Duration::from_millis(10))).unwrap().is_none(), "noise became an event");
        }
        let unmatched = server.unmatched();
        assert!(total(unmatched) > 1_000 && unmatched.not_ours > 0, "{unmatched:?}");

        let sending = thread::spawn(move || {
            let mut client = blocking::Endpoint::builder().bind(any()).unwrap();
            let id = client.connect(segstream::Peer::anyone(to), vec![Contract::default()]).unwrap();
            let mut connection = client.connection(id);
            let segment = connection.send(StreamId(0), pattern(0, 100_000)).unwrap();
            let judged = connection.verdict(StreamId(0), segment, PATIENCE).unwrap();
            connection.close(0, "").unwrap();
            judged.verdict
        });
        let id = server.accept(PATIENCE).unwrap();
        assert_eq!(server.connection(id).recv(StreamId(0), PATIENCE).unwrap().unwrap().bytes, pattern(0, 100_000));
        server.connection(id).closed(PATIENCE).unwrap();
        server.close().unwrap();
        assert_eq!(sending.join().unwrap(), Verdict::Complete);
    });
}

#[test]
fn noise_at_an_asynchronous_endpoint_while_it_works() {
    ends_async(async {
        let server = segstream::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let noise = tokio::task::spawn_blocking(move || make_noise(to));
        let client = segstream::Endpoint::builder().bind(any()).unwrap();
        let (connection, senders) = client.connect(segstream::Peer::anyone(to), vec![Contract::default()]).await.unwrap();
        let accepted = server.accept().await.unwrap().unwrap();
        let mut receiver = accepted.accept_stream().await.unwrap().unwrap();
        for segment in 0..20 {
            senders[0].send(pattern(segment, 10_000)).await.unwrap();
            assert_eq!(receiver.recv().await.unwrap().unwrap().bytes, pattern(segment, 10_000));
        }
        noise.await.unwrap();
        connection.close(0, "").await.unwrap();
        client.close().await.unwrap();
        server.close().await.unwrap();
        let unmatched = server.unmatched();
        assert!(total(unmatched) > 1_000, "{unmatched:?}");
    });
}
