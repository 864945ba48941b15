//! Whole segments in both directions, on both address families, with both interfaces and across them.

use crate::loopback::{FAMILIES, PATIENCE, at, ends, ends_async, pattern};
use segstream::{Contract, Error, SegmentNumber, StreamId, Verdict, blocking};
use std::net::SocketAddr;
use std::thread;

const LENGTHS: [usize; 6] = [0, 1, 1023, 1024, 100_000, 1_000_000];

/// Asks for a connection, sends every length, takes the same back, and closes.
fn blocking_client(to: SocketAddr, family: &str) {
    let mut endpoint = blocking::Endpoint::builder().bind(at(family)).unwrap();
    let id = endpoint.connect(segstream::Peer::anyone(to), vec![Contract::default()]).unwrap();
    let mut connection = endpoint.connection(id);
    for (number, length) in LENGTHS.into_iter().enumerate() {
        assert_eq!(connection.send(StreamId(0), pattern(number as u64, length)).unwrap(), SegmentNumber(number as u64));
    }
    let stream = connection.accept_stream(PATIENCE).unwrap().unwrap();
    for (number, length) in LENGTHS.into_iter().enumerate() {
        let received = connection.recv(stream, PATIENCE).unwrap().unwrap();
        assert_eq!((received.segment, received.verdict), (SegmentNumber(number as u64), Verdict::Complete));
        assert_eq!(received.bytes, pattern(100 + number as u64, length), "{length} bytes");
    }
    assert!(connection.recv(stream, PATIENCE).unwrap().is_none());
    for number in 0..LENGTHS.len() as u64 {
        let judged = connection.verdict(StreamId(0), SegmentNumber(number), PATIENCE).unwrap();
        assert_eq!((judged.verdict, judged.missing()), (Verdict::Complete, 0));
    }
    assert!(matches!(connection.verdict(StreamId(0), SegmentNumber(0), PATIENCE), Err(Error::Unknown("segment"))));
    connection.close(0, "done").unwrap();
}

/// Takes every length and sends the same back.
fn blocking_server(mut endpoint: blocking::Endpoint) {
    let id = endpoint.accept(PATIENCE).unwrap();
    let mut connection = endpoint.connection(id);
    let back = connection.open_stream(Contract::default()).unwrap();
    for (number, length) in LENGTHS.into_iter().enumerate() {
        let mut buffer = vec![0; 1_000];
        let (whole, received) = connection.recv_into(StreamId(0), &mut buffer, PATIENCE).unwrap().unwrap();
        assert_eq!((whole, received.segment.0, received.bytes.len()), (length, number as u64, 0));
        let fits = length.min(1_000);
        assert_eq!(buffer[..fits], pattern(number as u64, length)[..fits]);
        connection.send(back, pattern(100 + number as u64, length)).unwrap();
    }
    connection.finish_stream(back).unwrap();
    let mut verdicts = 0;
    while let Some(judged) = connection.next_verdict(back, PATIENCE).unwrap() {
        assert_eq!(judged.verdict, Verdict::Complete);
        verdicts += 1;
    }
    assert_eq!(verdicts, LENGTHS.len());
    let reason = connection.closed(PATIENCE).unwrap();
    assert_eq!(reason.to_string(), "closed by the peer: done (code 0)");
    assert!(connection.recv(StreamId(0), PATIENCE).unwrap().is_none(), "a graceful end is the end of every stream");
    endpoint.close().unwrap();
}

async fn async_client(to: SocketAddr, family: &str) {
    let endpoint = segstream::Endpoint::builder().bind(at(family)).unwrap();
    let (connection, senders) = endpoint.connect(segstream::Peer::anyone(to), vec![Contract::default()]).await.unwrap();
    for (number, length) in LENGTHS.into_iter().enumerate() {
        assert_eq!(senders[0].send(pattern(number as u64, length)).await.unwrap(), SegmentNumber(number as u64));
    }
    let mut receiver = connection.accept_stream().await.unwrap().unwrap();
    for (number, length) in LENGTHS.into_iter().enumerate() {
        let received = receiver.recv().await.unwrap().unwrap();
        assert_eq!((received.segment, received.verdict), (SegmentNumber(number as u64), Verdict::Complete));
        assert_eq!(received.bytes, pattern(100 + number as u64, length), "{length} bytes");
    }
    assert!(receiver.recv().await.unwrap().is_none());
    for number in 0..LENGTHS.len() as u64 {
        assert_eq!(senders[0].verdict(SegmentNumber(number)).await.unwrap().verdict, Verdict::Complete);
    }
    assert!(matches!(senders[0].verdict(SegmentNumber(0)).await, Err(Error::Unknown("segment"))));
    connection.close(0, "done").await.unwrap();
    endpoint.close().await.unwrap();
}

async fn async_server(endpoint: segstream::Endpoint) {
    let connection = endpoint.accept().await.unwrap().unwrap();
    let mut receiver = connection.accept_stream().await.unwrap().unwrap();
    let back = connection.open_stream(Contract::default()).unwrap();
    for (number, length) in LENGTHS.into_iter().enumerate() {
        let mut buffer = vec![0; 1_000];
        let (whole, received) = receiver.recv_into(&mut buffer).await.unwrap().unwrap();
        assert_eq!((whole, received.segment.0, received.bytes.len()), (length, number as u64, 0));
        back.send(pattern(100 + number as u64, length)).await.unwrap();
    }
    back.finish();
    let mut verdicts = 0;
    while let Some(judged) = back.next_verdict().await {
        assert_eq!(judged.verdict, Verdict::Complete);
        verdicts += 1;
    }
    assert_eq!(verdicts, LENGTHS.len());
    assert_eq!(connection.closed().await.to_string(), "closed by the peer: done (code 0)");
    assert!(receiver.recv().await.unwrap().is_none());
    assert!(connection.accept_stream().await.unwrap().is_none());
    endpoint.close().await.unwrap();
    assert!(endpoint.accept().await.unwrap().is_none());
}

#[test]
fn blocking_to_blocking() {
    ends(|| {
        for family in FAMILIES {
            let server = blocking::Endpoint::builder().allow_anyone().listen(at(family)).unwrap();
            let to = server.local_addr();
            let serving = thread::spawn(move || blocking_server(server));
            blocking_client(to, family);
            serving.join().unwrap();
        }
    });
}

#[test]
fn asynchronous_to_asynchronous() {
    ends_async(async {
        for family in FAMILIES {
            let server = segstream::Endpoint::builder().allow_anyone().listen(at(family)).unwrap();
            let to = server.local_addr();
            let serving = tokio::spawn(async_server(server));
            async_client(to, family).await;
            serving.await.unwrap();
        }
    });
}

#[test]
fn blocking_to_asynchronous_and_back() {
    ends_async(async {
        for family in FAMILIES {
            let server = segstream::Endpoint::builder().allow_anyone().listen(at(family)).unwrap();
            let to = server.local_addr();
            let serving = tokio::spawn(async_server(server));
            tokio::task::spawn_blocking(move || blocking_client(to, family)).await.unwrap();
            serving.await.unwrap();

            let server = blocking::Endpoint::builder().allow_anyone().listen(at(family)).unwrap();
            let to = server.local_addr();
            let serving = thread::spawn(move || blocking_server(server));
            async_client(to, family).await;
            tokio::task::spawn_blocking(move || serving.join().unwrap()).await.unwrap();
        }
    });
}
