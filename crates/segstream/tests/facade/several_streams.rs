//! Several streams of one connection, and what a peer does not take.

use crate::loopback::{PATIENCE, any, ends, ends_async, pattern};
use segstream::{Config, ConnectionEvent, Contract, Error, Order, RefuseReason, SegmentNumber, StreamId, Verdict, blocking};
use std::thread;

const SEGMENTS: u64 = 40;

fn contracts() -> Vec<Contract> {
    vec![
        Contract { label: "first".into(), ..Contract::default() },
        Contract { label: "second".into(), unit_bytes: 100, weight: 4, ..Contract::default() },
        Contract { label: "third".into(), order: Order::AsAccepted, ..Contract::default() },
    ]
}

#[test]
fn streams_opened_with_the_request_and_later_all_keep_their_own_segments() {
    ends_async(async {
        let server = segstream::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let client = segstream::Endpoint::builder().bind(any()).unwrap();
        let to = server.local_addr();
        let serving = tokio::spawn(async move {
            let connection = server.accept().await.unwrap().unwrap();
            let mut reading = Vec::new();
            for _ in 0..4 {
                let mut receiver = connection.accept_stream().await.unwrap().unwrap();
                reading.push(tokio::spawn(async move {
                    let (label, mut count) = (receiver.contract().label, 0);
                    while let Some(received) = receiver.recv().await.unwrap() {
                        let seed = u64::from(receiver.stream()) * 1000 + received.segment.0;
                        assert_eq!(received.bytes, pattern(seed, 5_000));
                        count += 1;
                    }
                    (label, count)
                }));
            }
            let mut read = Vec::new();
            for task in reading {
                read.push(task.await.unwrap());
            }
            read.sort();
            server.close().await.unwrap();
            read
        });
        let (connection, mut senders) = client.connect(segstream::Peer::anyone(to), contracts()).await.unwrap();
        senders.push(connection.open_stream(Contract { label: "later".into(), ..Contract::default() }).unwrap());
        for segment in 0..SEGMENTS {
            for sender in &senders {
                sender.send(pattern(u64::from(sender.stream()) * 1000 + segment, 5_000)).await.unwrap();
            }
        }
        connection.close(0, "").await.unwrap();
        for sender in &senders {
            for _ in 0..SEGMENTS {
                assert_eq!(sender.next_verdict().await.unwrap().verdict, Verdict::Complete);
            }
            assert_eq!(sender.next_verdict().await, None);
        }
        let expected = ["first", "later", "second", "third"].map(|label| (label.to_owned(), SEGMENTS));
        assert_eq!(serving.await.unwrap(), expected);
    });
}

#[test]
fn a_stream_the_peer_has_no_room_for_is_refused_and_the_others_go_on() {
    ends(|| {
        let mut server =
            blocking::Endpoint::builder().config(Config { streams: 1, ..Config::default() }).allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let serving = thread::spawn(move || {
            let id = server.accept(PATIENCE).unwrap();
            let mut connection = server.connection(id);
            assert_eq!(connection.recv(StreamId(0), PATIENCE).unwrap().unwrap().bytes, b"taken"[..]);
            connection.closed(PATIENCE).unwrap();
            server.close().unwrap();
        });
        let mut client = blocking::Endpoint::builder().bind(any()).unwrap();
        let id = client.connect(segstream::Peer::anyone(to), vec![Contract::default(), Contract::default()]).unwrap();
        let refused = 1;
        loop {
            match client.wait(PATIENCE).unwrap().expect("the refusal comes").1 {
                ConnectionEvent::Refused(stream, reason) => {
                    break assert_eq!((stream, reason), (StreamId(refused), RefuseReason::TooManyStreams));
                }
                ConnectionEvent::Closed(reason) => panic!("{reason}"),
                _ => {}
            }
        }
        let mut connection = client.connection(id);
        let error = connection.send(StreamId(refused), "no".into()).unwrap_err();
        assert_eq!(error.to_string(), "the peer refuses stream 1 (TooManyStreams); segments sent on it get no verdict");
        assert!(matches!(connection.send(StreamId(7), "no".into()), Err(Error::Unknown("stream"))));
        let error = connection.open_stream(Contract::default()).unwrap_err();
        assert!(matches!(error, Error::OpenStream(segstream::OpenStreamError::TooManyStreams { live_max: 1 })), "{error}");
        let segment = connection.send(StreamId(0), "taken".into()).unwrap();
        assert_eq!(connection.verdict(StreamId(0), segment, PATIENCE).unwrap().verdict, Verdict::Complete);
        connection.close(0, "").unwrap();
        serving.join().unwrap();
    });
}

#[test]
fn a_thousand_streams_go_one_after_another_where_eight_may_be_live() {
    ends(|| {
        const STREAMS: u32 = 1000;
        let mut server =
            blocking::Endpoint::builder().config(Config { streams: 8, ..Config::default() }).allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let serving = thread::spawn(move || {
            let id = server.accept(PATIENCE).unwrap();
            let mut connection = server.connection(id);
            for expected in 0..STREAMS {
                let stream = connection.accept_stream(PATIENCE).unwrap().unwrap();
                assert_eq!(stream, StreamId(expected));
                assert_eq!(connection.recv(stream, PATIENCE).unwrap().unwrap().bytes, pattern(u64::from(stream), 500));
                assert_eq!(connection.recv(stream, PATIENCE).unwrap(), None);
            }
            assert_eq!(connection.recv(StreamId(0), PATIENCE).unwrap(), None, "a stream that has ended stays so");
            connection.closed(PATIENCE).unwrap();
            server.close().unwrap();
        });
        let mut client = blocking::Endpoint::builder().bind(any()).unwrap();
        let id = client.connect(segstream::Peer::anyone(to), vec![]).unwrap();
        let mut connection = client.connection(id);
        for expected in 0..STREAMS {
            let stream = connection.open_stream_when_allowed(&Contract::default(), PATIENCE).unwrap();
            assert_eq!(stream, StreamId(expected));
            let segment = connection.send(stream, pattern(u64::from(stream), 500)).unwrap();
            connection.finish_stream(stream).unwrap();
            assert_eq!(connection.verdict(stream, segment, PATIENCE).unwrap().verdict, Verdict::Complete);
        }
        assert_eq!(connection.next_verdict(StreamId(0), PATIENCE).unwrap(), None);
        assert!(matches!(connection.verdict(StreamId(0), SegmentNumber(0), PATIENCE), Err(Error::Unknown("segment"))));
        assert_eq!(
            connection.send(StreamId(0), "no".into()).unwrap_err().to_string(),
            Error::from(segstream::SubmitError::Finished).to_string()
        );
        for _ in 0..8 {
            let opened = connection.open_stream_when_allowed(&Contract::default(), PATIENCE);
            assert!(opened.is_ok());
        }
        let error = connection.open_stream(Contract::default()).unwrap_err();
        assert!(matches!(error, Error::OpenStream(segstream::OpenStreamError::TooManyStreams { live_max: 8 })), "{error}");
        connection.close(0, "").unwrap();
        serving.join().unwrap();
    });
}
