//! Segments in batches, with both interfaces: in order, nothing twice, nothing lost when a call waits, fails or is cancelled.

use crate::loopback::{PATIENCE, any, ends, ends_async, pattern};
use segstream::{
    Bytes, Connection, Contract, Endpoint, Error, Received, StreamId, StreamReceiver, StreamSender, SubmitError, Verdict, blocking,
};
use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

/// Both ends of a stream: the endpoints and connections must live as long as it.
struct Ends {
    sender: StreamSender,
    receiver: StreamReceiver,
    _held: (Endpoint, Endpoint, Connection, Connection),
}

async fn joined(contract: Contract) -> Ends {
    let server = Endpoint::builder().allow_anyone().listen(any()).unwrap();
    let client = Endpoint::builder().bind(any()).unwrap();
    let (connection, mut senders) = client.connect(segstream::Peer::anyone(server.local_addr()), vec![contract]).await.unwrap();
    let accepted = server.accept().await.unwrap().unwrap();
    let sender = senders.remove(0);
    // Why before the stream is accepted: the peer learns of it with its first segment.
    sender.send(pattern(0, 10)).await.unwrap();
    let receiver = accepted.accept_stream().await.unwrap().unwrap();
    Ends { sender, receiver, _held: (server, client, connection, accepted) }
}

fn batch(first: u64, count: u64) -> VecDeque<Bytes> {
    (first..first + count).map(|segment| pattern(segment, (segment % 200) as usize)).collect()
}

#[test]
fn batches_arrive_whole_and_in_order_whatever_the_window() {
    ends_async(async {
        for window_units in [16, 4096] {
            let Ends { sender, mut receiver, _held } = joined(Contract { window_units, ..Contract::default() }).await;
            let sending = tokio::spawn(async move {
                let mut waiting = batch(1, 5000);
                let mut next = 1;
                while !waiting.is_empty() {
                    let before = waiting.len();
                    let sent = sender.send_many(&mut waiting).await.unwrap();
                    assert_eq!(sent.start.0, next, "the numbers follow each other");
                    assert_eq!((sent.end.0 - next) as usize, before - waiting.len(), "what was sent has left the queue");
                    assert!((1..=1024).contains(&(sent.end.0 - next)));
                    next = sent.end.0;
                }
                sender.finish();
                let mut complete = 0;
                while let Some(judged) = sender.next_verdict().await {
                    complete += u64::from(judged.verdict == Verdict::Complete);
                }
                complete
            });
            let mut segments: Vec<Received> = Vec::new();
            loop {
                let before = segments.len();
                let count = receiver.recv_many(&mut segments, 300).await.unwrap();
                assert!(count <= 300 && segments.len() == before + count, "they are appended");
                if count == 0 {
                    break;
                }
            }
            assert_eq!(segments.len(), 5001);
            for (number, received) in segments.iter().enumerate().skip(1) {
                assert_eq!((received.segment.0, received.verdict), (number as u64, Verdict::Complete));
                assert_eq!(received.bytes, pattern(number as u64, number % 200));
            }
            assert_eq!(sending.await.unwrap(), 5001);
        }
    });
}

#[test]
fn what_has_no_room_stays_in_the_queue_and_a_cancelled_call_has_sent_nothing() {
    ends_async(async {
        let Ends { sender, mut receiver, _held } = joined(Contract { window_units: 32, ..Contract::default() }).await;
        let mut waiting = batch(1, 1000);
        let mut sent = 0;
        // Nobody takes: sooner or later the send buffer is full.
        let refused = loop {
            match sender.try_send_many(&mut waiting) {
                Ok(numbers) => sent += numbers.end.0 - numbers.start.0,
                Err(error) => break error,
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert!(matches!(refused, Error::Submit(SubmitError::Blocked)), "{refused}");
        assert_eq!((sent as usize + waiting.len(), waiting.front()), (1000, Some(&pattern(sent + 1, ((sent + 1) % 200) as usize))));
        // What was under way when the buffer was full still makes room; then the window stays closed while nobody takes.
        loop {
            let before = waiting.len();
            let call = tokio::time::timeout(Duration::from_millis(50), sender.send_many(&mut waiting)).await;
            if call.is_err() {
                assert_eq!(waiting.len(), before, "a cancelled call has sent something");
                break;
            }
        }
        let sending = tokio::spawn(async move {
            while !waiting.is_empty() {
                sender.send_many(&mut waiting).await.unwrap();
            }
        });
        let mut segments = Vec::new();
        while receiver.recv_many(&mut segments, usize::MAX).await.unwrap() > 0 {}
        sending.await.unwrap();
        let numbers: Vec<u64> = segments.iter().map(|received| received.segment.0).collect();
        assert_eq!(numbers, (0..=1000).collect::<Vec<u64>>());
    });
}

#[test]
fn a_segment_that_is_refused_does_not_take_those_before_it_along() {
    ends_async(async {
        let contract = Contract { window_units: 64, ..Contract::default() };
        let unit_bytes = contract.unit_bytes as usize;
        let Ends { sender, mut receiver, _held } = joined(contract).await;
        let mut waiting = VecDeque::from([pattern(1, 10), pattern(2, 20), pattern(3, 65 * unit_bytes), pattern(4, 40)]);
        let sent = sender.send_many(&mut waiting).await.unwrap();
        assert_eq!((sent.start.0, sent.end.0, waiting.len()), (1, 3, 2));
        for _ in 0..2 {
            let refused = sender.send_many(&mut waiting).await.unwrap_err();
            assert!(matches!(refused, Error::Submit(_)) && waiting.len() == 2, "{refused}");
        }
        waiting.pop_front();
        assert_eq!(sender.send_many(&mut waiting).await.unwrap().start.0, 3, "the refused one has no number");
        assert!(sender.send_many(&mut waiting).await.unwrap().is_empty(), "an empty queue sends nothing");
        sender.finish();
        let mut segments = Vec::new();
        assert_eq!(receiver.recv_many(&mut segments, 0).await.unwrap(), 0);
        while receiver.recv_many(&mut segments, 100).await.unwrap() > 0 {}
        assert_eq!(segments.iter().map(|received| received.bytes.len()).collect::<Vec<usize>>(), [10, 10, 20, 40]);
        assert!(matches!(sender.try_send_many(&mut batch(0, 3)), Err(Error::Submit(SubmitError::Finished))));
    });
}

/// Sends batches while there is room, and serves the network otherwise.
fn send_all(connection: &mut blocking::Connection<'_>, stream: StreamId, mut waiting: VecDeque<Bytes>) {
    let mut next = 0;
    while !waiting.is_empty() {
        match connection.try_send_many(stream, &mut waiting) {
            Ok(sent) => {
                assert_eq!(sent.start.0, next, "the numbers follow each other");
                next = sent.end.0;
            }
            Err(Error::Submit(SubmitError::Blocked)) => connection.serve(Duration::from_millis(1)).unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
    connection.finish_stream(stream).unwrap();
}

/// A builder of an endpoint that calls drive, or a thread.
fn driven(in_background: bool) -> segstream::Builder<blocking::Endpoint> {
    let builder = blocking::Endpoint::builder();
    if in_background { builder.driven_in_background() } else { builder }
}

#[test]
fn batches_pass_between_blocking_endpoints_driven_by_calls_or_in_the_background() {
    ends(|| {
        for in_background in [false, true] {
            let mut server = driven(in_background).allow_anyone().listen(any()).unwrap();
            let to = server.local_addr();
            let sending = thread::spawn(move || {
                let mut client = driven(in_background).bind(any()).unwrap();
                let id = client.connect(segstream::Peer::anyone(to), vec![Contract { window_units: 64, ..Contract::default() }]).unwrap();
                let mut connection = client.connection(id);
                send_all(&mut connection, StreamId::FIRST, batch(0, 3000));
                let mut complete = 0;
                while let Some(judged) = connection.next_verdict(StreamId::FIRST, PATIENCE).unwrap() {
                    complete += u32::from(judged.verdict == Verdict::Complete);
                }
                connection.close(0, "done").unwrap();
                complete
            });
            let id = server.accept(PATIENCE).unwrap();
            let mut connection = server.connection(id);
            let mut segments = Vec::new();
            while connection.recv_many(StreamId::FIRST, &mut segments, 100, PATIENCE).unwrap() > 0 {}
            let right = segments.iter().enumerate().filter(|(number, received)| received.bytes == pattern(*number as u64, number % 200));
            assert_eq!((segments.len(), right.count()), (3000, 3000));
            connection.closed(PATIENCE).unwrap();
            assert_eq!(sending.join().unwrap(), 3000);
        }
    });
}
