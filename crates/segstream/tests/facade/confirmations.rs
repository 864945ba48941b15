//! What the receiving application confirms, and the sending one waits for or reads, over a path that loses.

use crate::loopback::{PATIENCE, any, ends, ends_async, pattern, seconds, through_link};
use segstream::{Config, ConfirmError, Contract, Durable, Error, Peer, SegmentNumber, StreamId, blocking};
use std::thread;
use std::time::Duration;

const SEGMENTS: u64 = 20;

fn confirming() -> Config {
    Config { confirms: true, ..Config::default() }
}

#[test]
fn a_sender_waits_for_what_the_receiver_confirms_after_the_end_of_the_stream() {
    ends(|| {
        let mut server = blocking::Endpoint::builder().config(confirming()).allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let serving = thread::spawn(move || {
            let id = server.accept(PATIENCE).unwrap();
            let mut connection = server.connection(id);
            let stream = connection.accept_stream(PATIENCE).unwrap().unwrap();
            assert!(matches!(connection.confirm(stream, SegmentNumber(SEGMENTS + 1)), Err(Error::Confirm(ConfirmError::NotTaken { .. }))));
            while connection.recv(stream, PATIENCE).unwrap().is_some() {}
            // Long after the last verdict, and in two steps: as a disk would have it.
            for segments in [SEGMENTS / 2, SEGMENTS] {
                connection.serve(Duration::from_millis(200)).unwrap();
                connection.confirm(stream, SegmentNumber(segments)).unwrap();
            }
            connection.closed(PATIENCE).unwrap();
            let confirmed = connection.statistics().unwrap().segments_confirmed;
            server.close().unwrap();
            confirmed
        });
        let durable = through_link(to, "random:0.2", |address| {
            let mut client = blocking::Endpoint::builder().bind(any()).unwrap();
            let id = client.connect(Peer::anyone(address), vec![Contract::default()]).unwrap();
            let (mut connection, stream) = (client.connection(id), StreamId(0));
            for segment in 0..SEGMENTS {
                connection.send(stream, pattern(segment, 3_000)).unwrap();
            }
            connection.finish_stream(stream).unwrap();
            while connection.next_verdict(stream, PATIENCE).unwrap().is_some() {}
            let too_soon = connection.confirmed(stream, SegmentNumber(SEGMENTS), Some(Duration::ZERO));
            assert!(matches!(too_soon, Err(Error::TimedOut)), "{too_soon:?}");
            let half = connection.confirmed(stream, SegmentNumber(1), PATIENCE).unwrap();
            assert!(half.segments >= SegmentNumber(SEGMENTS / 2));
            let durable = connection.confirmed(stream, SegmentNumber(SEGMENTS), PATIENCE).unwrap();
            assert_eq!(connection.durable(stream).unwrap(), durable);
            assert_eq!(connection.statistics().unwrap().segments_durable, SEGMENTS);
            connection.close(0, "").unwrap();
            client.close().unwrap();
            durable
        });
        assert_eq!(durable, Durable { segments: SegmentNumber(SEGMENTS), last: false });
        assert_eq!(serving.join().unwrap(), SEGMENTS);
    });
}

#[test]
fn a_receiver_that_is_dropped_confirms_no_more_and_the_sender_hears_it() {
    ends_async(async {
        let server = segstream::Endpoint::builder().config(confirming()).allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let serving = tokio::spawn(async move {
            let connection = server.accept().await.unwrap().unwrap();
            let mut receiver = connection.accept_stream().await.unwrap().unwrap();
            for _ in 0..3 {
                receiver.recv().await.unwrap().unwrap();
            }
            receiver.confirm(SegmentNumber(1)).unwrap();
            connection.confirm(receiver.stream(), SegmentNumber(2)).unwrap();
            drop(receiver);
            connection.closed().await;
            server.close().await.unwrap();
        });
        let client = segstream::Endpoint::builder().bind(any()).unwrap();
        let (connection, senders) = client.connect(Peer::anyone(to), vec![Contract::default()]).await.unwrap();
        for segment in 0..4 {
            senders[0].send(pattern(segment, 1_000)).await.unwrap();
        }
        let durable = tokio::time::timeout(seconds(20), senders[0].confirmed(SegmentNumber(4))).await.unwrap().unwrap();
        assert_eq!(durable, Durable { segments: SegmentNumber(2), last: true });
        assert_eq!(senders[0].durable().unwrap(), durable);
        connection.close(0, "").await.unwrap();
        serving.await.unwrap();
    });
}

#[test]
fn a_sender_is_told_when_its_peer_confirms_nothing() {
    ends_async(async {
        let server = segstream::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let client = segstream::Endpoint::builder().bind(any()).unwrap();
        let (_connection, senders) = client.connect(Peer::anyone(server.local_addr()), vec![Contract::default()]).await.unwrap();
        assert!(matches!(senders[0].confirmed(SegmentNumber(1)).await, Err(Error::NotConfirming)));
    });
}
