//! Functions with threads of their own: what is promised does not depend on them.

use crate::loopback::{PATIENCE, any, ends, pattern};
use segstream::{Builder, Class, Config, Contract, Error, Peer, Rate, SegmentNumber, StreamId, Threads, Verdict, blocking};
use std::thread;

const SEGMENTS: u64 = 60;
const SEGMENT_BYTES: usize = 200_000;

fn config(threads: Threads) -> Config {
    Config { threads, ..Config::default() }
}

/// Encrypted or not; serves whoever comes.
fn builder(config: Config, encrypted: bool) -> Builder<blocking::Endpoint> {
    let builder = blocking::Endpoint::builder().config(config).allow_anyone();
    if encrypted { builder } else { builder.insecure() }
}

/// Sends segments, waits for their verdicts, closes, and drops the endpoint at once.
fn send(to: Peer, builder: Builder<blocking::Endpoint>) {
    let mut client = builder.bind(any()).unwrap();
    let id = client.connect(to, vec![Contract::default()]).unwrap();
    let mut connection = client.connection(id);
    for segment in 0..SEGMENTS {
        connection.send(StreamId(0), pattern(segment, SEGMENT_BYTES)).unwrap();
    }
    connection.close(7, "all sent").unwrap();
}

fn receive(server: &mut blocking::Endpoint) {
    let id = server.accept(PATIENCE).unwrap();
    let mut connection = server.connection(id);
    let mut next = 0;
    while let Some(received) = connection.recv(StreamId(0), PATIENCE).unwrap() {
        assert_eq!((received.segment, received.verdict), (SegmentNumber(next), Verdict::Complete));
        assert_eq!(received.bytes, pattern(next, SEGMENT_BYTES));
        next += 1;
    }
    assert_eq!(next, SEGMENTS);
    connection.closed(PATIENCE).unwrap();
}

#[test]
fn every_segment_arrives_in_order_whatever_has_a_thread_of_its_own() {
    ends(|| {
        for threads in [Threads::Sending, Threads::Receiving, Threads::Both] {
            for encrypted in [false, true] {
                let mut server = builder(config(threads), encrypted).listen(any()).unwrap();
                let to = server.peer();
                let sending = thread::spawn(move || send(to, builder(config(threads), encrypted)));
                receive(&mut server);
                sending.join().unwrap();
            }
        }
    });
}

#[test]
fn a_waker_ends_a_wait_and_threads_that_bring_something_are_no_wakers() {
    ends(|| {
        let mut server = builder(config(Threads::Both), false).listen(any()).unwrap();
        let (to, waker) = (server.peer(), server.waker());
        let waking = thread::spawn(move || {
            thread::sleep(std::time::Duration::from_millis(20));
            waker.wake();
        });
        assert!(matches!(server.accept(PATIENCE), Err(Error::Woken)));
        waking.join().unwrap();
        let sending = thread::spawn(move || send(to, builder(config(Threads::Both), false)));
        // If a notification of an I/O thread were taken for a wake-up by the application, one of these calls would end with an error.
        receive(&mut server);
        sending.join().unwrap();
    });
}

#[test]
fn an_endpoint_that_is_dropped_in_full_flight_still_tells_its_peer() {
    ends(|| {
        for round in 0..20 {
            let unpaced = Config { class: Class::new(6).unwrap(), rate: Rate::Unpaced, unlimited: true, ..config(Threads::Sending) };
            let mut server = builder(unpaced.clone(), false).listen(any()).unwrap();
            let to = server.peer();
            let sending = thread::spawn(move || {
                let mut client = builder(unpaced, false).bind(any()).unwrap();
                let id = client.connect(to, vec![Contract::default()]).unwrap();
                let mut connection = client.connection(id);
                for segment in 0..40 {
                    connection.send(StreamId(0), pattern(segment, SEGMENT_BYTES)).unwrap();
                }
            });
            let id = server.accept(PATIENCE).unwrap();
            let mut connection = server.connection(id);
            let told = loop {
                match connection.recv(StreamId(0), PATIENCE) {
                    Ok(Some(_)) => {}
                    other => break format!("{other:?}"),
                }
            };
            assert!(told.contains("application is gone"), "round {round}: {told}");
            sending.join().unwrap();
        }
    });
}
