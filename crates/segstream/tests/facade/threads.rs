//! Functions with threads of their own: what is promised does not depend on them.

use crate::loopback::{PATIENCE, any, ends, pattern};
use segstream::{Class, Config, Contract, Error, Peer, Rate, Security, Threads, Verdict, blocking};
use std::thread;

const SEGMENTS: u64 = 60;
const SEGMENT_BYTES: usize = 200_000;

fn config(threads: Threads, security: Security) -> Config {
    Config { threads, security, ..crate::loopback::config() }
}

/// Sends segments, waits for their verdicts, closes, and drops the endpoint at once.
fn send(to: Peer, config: Config) {
    let mut client = blocking::Endpoint::bind(any(), config).unwrap();
    let id = client.connect(to, vec![Contract::default()]).unwrap();
    let mut connection = client.connection(id);
    for segment in 0..SEGMENTS {
        connection.send(0, pattern(segment, SEGMENT_BYTES)).unwrap();
    }
    connection.close(7, "all sent").unwrap();
}

fn receive(server: &mut blocking::Endpoint) {
    let id = server.accept(PATIENCE).unwrap();
    let mut connection = server.connection(id);
    let mut next = 0;
    while let Some(received) = connection.recv(0, PATIENCE).unwrap() {
        assert_eq!((received.segment, received.verdict), (next, Verdict::Complete));
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
                let (serving, asking) = match encrypted {
                    true => (Security::serving_anyone(), Security::default()),
                    false => (Security::Insecure, Security::Insecure),
                };
                let mut server = blocking::Endpoint::listen(any(), config(threads, serving)).unwrap();
                let to = server.peer();
                let sending = thread::spawn(move || send(to, config(threads, asking)));
                receive(&mut server);
                sending.join().unwrap();
            }
        }
    });
}

#[test]
fn a_waker_ends_a_wait_and_threads_that_bring_something_are_no_wakers() {
    ends(|| {
        let mut server = blocking::Endpoint::listen(any(), config(Threads::Both, Security::Insecure)).unwrap();
        let (to, waker) = (server.peer(), server.waker());
        let waking = thread::spawn(move || {
            thread::sleep(std::time::Duration::from_millis(20));
            waker.wake();
        });
        assert!(matches!(server.accept(PATIENCE), Err(Error::Woken)));
        waking.join().unwrap();
        let sending = thread::spawn(move || send(to, config(Threads::Both, Security::Insecure)));
        // Were a thread's bell taken for a waker, one of these calls would end with an error.
        receive(&mut server);
        sending.join().unwrap();
    });
}

#[test]
fn an_endpoint_that_is_dropped_in_full_flight_still_says_goodbye() {
    ends(|| {
        for round in 0..20 {
            let unpaced = Config {
                class: Class::new(6).unwrap(),
                rate: Rate::Unpaced,
                unlimited: true,
                ..config(Threads::Sending, Security::Insecure)
            };
            let mut server = blocking::Endpoint::listen(any(), unpaced.clone()).unwrap();
            let to = server.peer();
            let sending = thread::spawn(move || {
                let mut client = blocking::Endpoint::bind(any(), unpaced).unwrap();
                let id = client.connect(to, vec![Contract::default()]).unwrap();
                let mut connection = client.connection(id);
                for segment in 0..40 {
                    connection.send(0, pattern(segment, SEGMENT_BYTES)).unwrap();
                }
            });
            let id = server.accept(PATIENCE).unwrap();
            let mut connection = server.connection(id);
            let told = loop {
                match connection.recv(0, PATIENCE) {
                    Ok(Some(_)) => {}
                    other => break format!("{other:?}"),
                }
            };
            assert!(told.contains("application is gone"), "round {round}: {told}");
            sending.join().unwrap();
        }
    });
}
