//! The blocking interface's timeouts and wakes: nothing is lost by them.

use crate::loopback::{PATIENCE, any, ends};
use segstream::{ConnectionEvent, Contract, Error, SegmentNumber, StreamId, SubmitError, Verdict, blocking};
use std::thread;
use std::time::Duration;

const NOW: Option<Duration> = Some(Duration::ZERO);

/// Both endpoints on one thread, connected.
fn pair(contract: Contract) -> (blocking::Endpoint, blocking::Endpoint, segstream::ConnectionId, segstream::ConnectionId) {
    let mut server = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
    let mut client = blocking::Endpoint::builder().bind(any()).unwrap();
    let to = server.local_addr();
    let accepting = thread::spawn(move || {
        let id = server.accept(PATIENCE).unwrap();
        (server, id)
    });
    let ours = client.connect(segstream::Peer::anyone(to), vec![contract]).unwrap();
    let (server, theirs) = accepting.join().unwrap();
    (client, server, ours, theirs)
}

#[test]
fn a_timeout_is_not_an_end() {
    ends(|| {
        let (mut client, mut server, ours, theirs) = pair(Contract::default());
        for timeout in [NOW, Some(Duration::from_millis(20))] {
            let mut connection = server.connection(theirs);
            assert!(matches!(connection.recv(StreamId(0), timeout), Err(Error::TimedOut)));
            assert!(matches!(connection.next_units(StreamId(0), timeout), Err(Error::TimedOut)));
            assert!(matches!(connection.closed(timeout), Err(Error::TimedOut)));
            assert!(matches!(server.accept(timeout), Err(Error::TimedOut)));
        }
        let mut connection = client.connection(ours);
        let segment = connection.send(StreamId(0), "one".into()).unwrap();
        connection.finish_stream(StreamId(0)).unwrap();
        // Neither side sleeps: both are served in turns.
        let received = loop {
            match server.connection(theirs).recv(StreamId(0), NOW) {
                Err(Error::TimedOut) => client.wait(NOW).map(|_| ()).unwrap(),
                received => break received.unwrap(),
            }
        };
        assert_eq!(received.unwrap().bytes, b"one"[..]);
        let judged = loop {
            match client.connection(ours).verdict(StreamId(0), segment, NOW) {
                Err(Error::TimedOut) => server.wait(NOW).map(|_| ()).unwrap(),
                judged => break judged.unwrap(),
            }
        };
        assert_eq!(judged.verdict, Verdict::Complete);
        let end = loop {
            match server.connection(theirs).recv(StreamId(0), NOW) {
                Err(Error::TimedOut) => client.wait(NOW).map(|_| ()).unwrap(),
                end => break end.unwrap(),
            }
        };
        assert!(end.is_none());
        assert!(client.connection(ours).next_verdict(StreamId(0), NOW).unwrap().is_none());
    });
}

#[test]
fn what_happens_while_one_thing_is_waited_for_is_heard_later() {
    ends(|| {
        let (mut client, mut server, ours, theirs) = pair(Contract::default());
        let serving = thread::spawn(move || {
            let mut connection = server.connection(theirs);
            let back = connection.open_stream(Contract::default()).unwrap();
            connection.send(back, "back".into()).unwrap();
            for _ in 0..3 {
                connection.recv(StreamId(0), PATIENCE).unwrap().unwrap();
            }
            connection.closed(PATIENCE).unwrap();
            server.close().unwrap();
        });
        for _ in 0..3 {
            client.connection(ours).send(StreamId(0), "there".into()).unwrap();
        }
        // Waits for the last verdict; the others, the stream and its segment come before it.
        client.connection(ours).verdict(StreamId(0), SegmentNumber(2), PATIENCE).unwrap();
        let (mut verdicts, mut opened, mut readable) = (0, 0, 0);
        while verdicts < 2 || opened == 0 || readable == 0 {
            match client.wait(PATIENCE).unwrap().expect("it was kept or will come").1 {
                ConnectionEvent::Judged { segments, .. } => {
                    assert_eq!(segments.start, SegmentNumber(verdicts));
                    verdicts = segments.end.0;
                }
                ConnectionEvent::StreamOpened(stream) => opened += stream.0 + 1,
                ConnectionEvent::Readable(StreamId(0)) => readable += 1,
                ConnectionEvent::Connected | ConnectionEvent::Closed(_) => panic!("connect has heard of it, and nobody closes"),
                _ => {}
            }
        }
        assert_eq!((verdicts, opened), (2, 1));
        assert_eq!(client.connection(ours).try_recv(StreamId(0)).unwrap().bytes, b"back"[..]);
        client.connection(ours).close(0, "").unwrap();
        serving.join().unwrap();
    });
}

#[test]
fn a_wake_ends_any_call_once_and_is_not_swallowed_by_a_send() {
    ends(|| {
        let (mut client, _server, ours, _) = pair(Contract::default());
        let waker = client.waker();
        waker.wake();
        assert!(matches!(client.connection(ours).recv(StreamId(0), None), Err(Error::Woken)));
        waker.wake();
        // What has happened before is told first: the rate was found.
        while client.wait(None).unwrap().is_some() {}
        waker.wake();
        client.connection(ours).send(StreamId(0), "sent".into()).unwrap();
        assert!(matches!(client.connection(ours).recv(StreamId(0), None), Err(Error::Woken)));
        let waking = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            waker.wake();
        });
        assert!(matches!(client.connection(ours).closed(None), Err(Error::Woken)));
        waking.join().unwrap();
    });
}

#[test]
fn a_full_send_buffer_is_told_and_opens_again() {
    ends(|| {
        let (mut client, mut server, ours, theirs) = pair(Contract { window_units: 2, ..Contract::default() });
        let now = client.clock().now();
        let mut taken = 0;
        let error = loop {
            match client.connection(ours).try_send(StreamId(0), vec![7; 1024].into(), now, None) {
                Ok(_) => taken += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Submit(SubmitError::Blocked)), "{error}");
        assert_eq!(taken, 4, "two windows are kept: one on its way, one waiting");
        let serving = thread::spawn(move || {
            let mut count = 0;
            while server.connection(theirs).recv(StreamId(0), PATIENCE).unwrap().is_some() {
                count += 1;
            }
            server.close().unwrap();
            count
        });
        loop {
            match client.wait(PATIENCE).unwrap().expect("there is room soon").1 {
                ConnectionEvent::Writable(stream) => break assert_eq!(stream, StreamId(0)),
                ConnectionEvent::Closed(reason) => panic!("{reason}"),
                _ => {}
            }
        }
        let mut connection = client.connection(ours);
        connection.send(StreamId(0), "fits".into()).unwrap();
        connection.close(0, "").unwrap();
        assert_eq!(serving.join().unwrap(), 5);
    });
}
