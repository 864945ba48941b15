//! An endpoint that a thread drives: work between two calls does not end a connection.

use crate::loopback::{PATIENCE, any, ends, impatient, pattern, seconds};
use segstream::{Contract, Error, Peer, Progress, SegmentNumber, StreamId, Verdict, blocking};
use std::thread;
use std::time::Duration;

/// Longer than the idle timeout of [`impatient`].
const WORK: Duration = Duration::from_millis(2_500);

#[test]
fn work_longer_than_the_idle_timeout_between_two_calls_ends_no_connection() {
    ends(|| {
        let builder = || blocking::Endpoint::builder().config(impatient()).allow_anyone().driven_in_background();
        let mut receiver = builder().listen(any()).unwrap();
        let to = receiver.local_addr();
        let sending = thread::spawn(move || {
            let mut sender = builder().bind(any()).unwrap();
            let id = sender.connect(Peer::anyone(to), vec![Contract::default()]).unwrap();
            let mut connection = sender.connection(id);
            for segment in 0..2 {
                assert_eq!(connection.send(StreamId(0), pattern(segment, 50_000)).unwrap(), SegmentNumber(segment));
                thread::sleep(WORK);
                assert_eq!(connection.verdict(StreamId(0), SegmentNumber(segment), PATIENCE).unwrap().verdict, Verdict::Complete);
            }
            connection.close(0, "done").unwrap();
        });
        let id = receiver.accept(PATIENCE).unwrap();
        let mut connection = receiver.connection(id);
        for segment in 0..2 {
            let received = connection.recv(StreamId(0), PATIENCE).unwrap().unwrap();
            assert_eq!(received.bytes, pattern(segment, 50_000));
            thread::sleep(WORK);
        }
        assert!(connection.recv(StreamId(0), PATIENCE).unwrap().is_none());
        sending.join().unwrap();
        receiver.close().unwrap();
    });
}

#[test]
fn every_call_works_as_it_does_without_the_thread() {
    ends(|| {
        let builder = || blocking::Endpoint::builder().allow_anyone().driven_in_background();
        let mut receiver = builder().listen(any()).unwrap();
        let to = receiver.peer();
        assert!(matches!(receiver.accept(Some(Duration::from_millis(5))), Err(Error::TimedOut)));
        let waker = receiver.waker();
        let waking = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            waker.wake();
        });
        assert!(matches!(receiver.accept(PATIENCE), Err(Error::Woken)));
        waking.join().unwrap();
        let sending = thread::spawn(move || {
            let mut sender = builder().bind(any()).unwrap();
            let id = sender.connect(to, vec![Contract::default()]).unwrap();
            let mut connection = sender.connection(id);
            // More than two windows, so that sending waits for room.
            for segment in 0..50 {
                connection.send(StreamId(0), pattern(segment, 1_000_000)).unwrap();
            }
            let mut open = connection.open_segment(StreamId(0)).unwrap();
            open.append(&[1; 5_000]).unwrap();
            open.finish().unwrap();
            for _ in 0..51 {
                assert_eq!(connection.next_verdict(StreamId(0), PATIENCE).unwrap().unwrap().verdict, Verdict::Complete);
            }
            connection.close(0, "done").unwrap();
            assert!(!connection_has_unjudged(&mut sender, id));
        });
        let id = receiver.accept(PATIENCE).unwrap();
        let mut connection = receiver.connection(id);
        for segment in 0..50 {
            assert_eq!(connection.recv(StreamId(0), PATIENCE).unwrap().unwrap().bytes, pattern(segment, 1_000_000));
        }
        let mut units = 0;
        while let Some(progress) = connection.next_units(StreamId(0), Some(seconds(20))).unwrap() {
            match progress {
                Progress::Units(told) => units += told.bytes.len(),
                Progress::Judged(received) => assert_eq!(received.bytes, vec![1; 5_000]),
                _ => {}
            }
        }
        assert_eq!(units, 5_000);
        assert!(connection.peer_fingerprint().is_some());
        sending.join().unwrap();
        receiver.close().unwrap();
    });
}

fn connection_has_unjudged(endpoint: &mut blocking::Endpoint, id: segstream::ConnectionId) -> bool {
    endpoint.connection(id).has_unjudged().unwrap()
}
