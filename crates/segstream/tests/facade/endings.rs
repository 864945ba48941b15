//! How connections end: by closing, by dropping handles, while the other side is still sending.

use crate::loopback::{PATIENCE, any, ends, ends_async, impatient, pattern};
use segstream::{CloseReason, Config, ConnectError, Contract, Error, SegmentNumber, StreamId, Verdict, blocking};
use std::thread;

#[test]
fn dropping_every_handle_still_delivers_what_was_sent() {
    ends_async(async {
        let server = segstream::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let client = segstream::Endpoint::builder().bind(any()).unwrap();
        let (connection, senders) = client.connect(segstream::Peer::anyone(server.local_addr()), vec![Contract::default()]).await.unwrap();
        for segment in 0..20 {
            senders[0].send(pattern(segment, 100_000)).await.unwrap();
        }
        drop((connection, senders, client));
        let accepted = server.accept().await.unwrap().unwrap();
        let mut receiver = accepted.accept_stream().await.unwrap().unwrap();
        for segment in 0..20 {
            assert_eq!(receiver.recv().await.unwrap().unwrap().bytes, pattern(segment, 100_000));
        }
        assert!(receiver.recv().await.unwrap().is_none());
        assert_eq!(accepted.closed().await, CloseReason::ClosedByPeer { code: 0, detail: "no longer needed".into() });
        server.close().await.unwrap();
    });
}

#[test]
fn a_receiver_that_closes_early_lets_the_sender_finish() {
    // The sender goes on until it is told, however quick it is; the window holds 16 MiB.
    ends(|| {
        let mut server = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let serving = thread::spawn(move || {
            let id = server.accept(PATIENCE).unwrap();
            assert!(server.connection(id).recv(StreamId(0), PATIENCE).unwrap().is_some());
            server.connection(id).close(3, "seen enough").unwrap();
            server.close().unwrap();
        });
        let mut client = blocking::Endpoint::builder().bind(any()).unwrap();
        let id = client.connect(segstream::Peer::anyone(to), vec![Contract::default()]).unwrap();
        let mut connection = client.connection(id);
        let mut sent = 0;
        let error = loop {
            match connection.send(StreamId(0), pattern(sent, 1_000_000)) {
                Ok(_) => sent += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Closing { .. } | Error::Closed { .. }), "{error}");
        let reason = connection.closed(PATIENCE).unwrap();
        assert_eq!(reason, CloseReason::ClosedByPeer { code: 3, detail: "seen enough".into() });
        for _ in 0..sent {
            assert_eq!(connection.next_verdict(StreamId(0), PATIENCE).unwrap().unwrap().verdict, Verdict::Complete);
        }
        assert!(connection.next_verdict(StreamId(0), PATIENCE).unwrap().is_none());
        serving.join().unwrap();
    });
}

#[test]
fn a_dropped_receiver_does_not_hold_its_sender_up() {
    ends_async(async {
        let server = segstream::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let client = segstream::Endpoint::builder().bind(any()).unwrap();
        let contract = Contract { window_units: 16, ..Contract::default() };
        let (connection, senders) = client.connect(segstream::Peer::anyone(server.local_addr()), vec![contract]).await.unwrap();
        let accepted = server.accept().await.unwrap().unwrap();
        drop(accepted.accept_stream().await.unwrap().unwrap());
        for segment in 0..50 {
            senders[0].send(pattern(segment, 10_000)).await.unwrap();
        }
        for segment in 0..50 {
            assert_eq!(senders[0].verdict(SegmentNumber(segment)).await.unwrap().verdict, Verdict::Complete);
        }
        connection.close(0, "").await.unwrap();
    });
}

#[test]
fn a_finished_stream_ends_while_the_connection_goes_on() {
    ends_async(async {
        let server = segstream::Endpoint::builder().config(impatient()).allow_anyone().listen(any()).unwrap();
        let client = segstream::Endpoint::builder().config(impatient()).bind(any()).unwrap();
        let contracts = vec![Contract::default(), Contract::default()];
        let (connection, mut senders) = client.connect(segstream::Peer::anyone(server.local_addr()), contracts).await.unwrap();
        let accepted = server.accept().await.unwrap().unwrap();
        let mut first = accepted.accept_stream().await.unwrap().unwrap();
        let mut second = accepted.accept_stream().await.unwrap().unwrap();
        senders[0].send("last".into()).await.unwrap();
        // Dropping the last sender of a stream finishes it.
        drop(senders.remove(0));
        assert_eq!(first.recv().await.unwrap().unwrap().bytes, b"last"[..]);
        assert!(first.recv().await.unwrap().is_none());
        // Longer than the idle timeout: an idle connection lives.
        tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
        senders[0].send("still here".into()).await.unwrap();
        assert_eq!(second.recv().await.unwrap().unwrap().bytes, b"still here"[..]);
        drop(client);
        connection.close(0, "").await.unwrap();
        assert!(second.recv().await.unwrap().is_none());
    });
}

#[test]
fn both_sides_may_close_at_once() {
    ends_async(async {
        for _ in 0..20 {
            let server = segstream::Endpoint::builder().allow_anyone().listen(any()).unwrap();
            let client = segstream::Endpoint::builder().bind(any()).unwrap();
            let (connection, senders) =
                client.connect(segstream::Peer::anyone(server.local_addr()), vec![Contract::default()]).await.unwrap();
            let accepted = server.accept().await.unwrap().unwrap();
            let segment = senders[0].send(pattern(0, 10_000)).await.unwrap();
            let (here, there) = tokio::join!(connection.close(1, "here"), accepted.close(2, "there"));
            here.unwrap();
            there.unwrap();
            assert_eq!(senders[0].verdict(segment).await.unwrap().verdict, Verdict::Complete);
        }
    });
}

#[test]
fn ended_connections_make_room_for_new_ones() {
    ends_async(async {
        let server =
            segstream::Endpoint::builder().config(Config { connections: 2, ..Config::default() }).allow_anyone().listen(any()).unwrap();
        let client = segstream::Endpoint::builder().config(Config { connections: 2, ..Config::default() }).bind(any()).unwrap();
        for _ in 0..6 {
            // The ones before drain for a while.
            let (connection, _) = loop {
                match client.connect(segstream::Peer::anyone(server.local_addr()), vec![]).await {
                    Err(Error::Connect(ConnectError::TooMany(2))) => {}
                    Err(Error::Closed { reason: CloseReason::Rejected { .. }, .. }) => {}
                    connected => break connected.unwrap(),
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            };
            let accepted = server.accept().await.unwrap().unwrap();
            connection.close(0, "").await.unwrap();
            accepted.closed().await;
        }
    });
}
