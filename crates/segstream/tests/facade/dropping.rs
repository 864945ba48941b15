//! An endpoint that is dropped when everything is settled closes gracefully: the other end's own close succeeds.

use crate::loopback::{PATIENCE, any, ends, pattern};
use segstream::{CloseReason, Contract, Error, Peer, StreamId, Verdict, blocking};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::thread;

const SEGMENTS: u64 = 3;

/// Receives until the stream has ended, and drops the endpoint without a word.
fn receive_and_drop(mut endpoint: blocking::Endpoint) {
    let id = endpoint.accept(PATIENCE).unwrap();
    let mut count = 0;
    while endpoint.connection(id).recv(StreamId(0), PATIENCE).unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, SEGMENTS);
}

/// The same with tokio, whose runtime ends with it.
fn receive_and_drop_the_runtime(address: std::sync::mpsc::Sender<SocketAddr>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async move {
        let endpoint = segstream::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        address.send(endpoint.local_addr()).unwrap();
        let connection = endpoint.accept().await.unwrap().unwrap();
        let mut stream = connection.accept_stream().await.unwrap().unwrap();
        let mut count = 0;
        while stream.recv().await.unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, SEGMENTS);
    });
}

/// Sends, closes, and says how that went.
fn send_and_close(to: SocketAddr) -> Result<(), Error> {
    let mut endpoint = blocking::Endpoint::builder().bind(any())?;
    let id = endpoint.connect(Peer::anyone(to), vec![Contract::default()])?;
    let mut connection = endpoint.connection(id);
    for segment in 0..SEGMENTS {
        connection.send(StreamId(0), pattern(segment, 10_000))?;
    }
    connection.close(0, "done")
}

#[test]
fn a_receiver_that_is_dropped_at_the_end_of_the_stream_does_not_spoil_the_close_between_threads() {
    ends(|| {
        for round in 0..30 {
            let receiver = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
            let to = receiver.local_addr();
            let receiving = thread::spawn(move || receive_and_drop(receiver));
            send_and_close(to).unwrap_or_else(|error| panic!("round {round}: {error}"));
            receiving.join().unwrap();
        }
    });
}

#[test]
fn nor_does_one_that_a_thread_drives() {
    ends(|| {
        for round in 0..10 {
            let receiver = blocking::Endpoint::builder().allow_anyone().driven_in_background().listen(any()).unwrap();
            let to = receiver.local_addr();
            let receiving = thread::spawn(move || receive_and_drop(receiver));
            send_and_close(to).unwrap_or_else(|error| panic!("round {round}: {error}"));
            receiving.join().unwrap();
        }
    });
}

#[test]
fn nor_does_an_asynchronous_one_whose_runtime_ends() {
    ends(|| {
        for round in 0..10 {
            let (address, told) = std::sync::mpsc::channel();
            let receiving = thread::spawn(move || receive_and_drop_the_runtime(address));
            send_and_close(told.recv().unwrap()).unwrap_or_else(|error| panic!("round {round}: {error}"));
            receiving.join().unwrap();
        }
    });
}

#[test]
fn a_sender_whose_segments_are_judged_may_be_dropped_too() {
    ends(|| {
        let mut receiver = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let to = receiver.local_addr();
        let sending = thread::spawn(move || {
            let mut endpoint = blocking::Endpoint::builder().bind(any()).unwrap();
            let id = endpoint.connect(Peer::anyone(to), vec![Contract::default()]).unwrap();
            let segment = endpoint.connection(id).send(StreamId(0), pattern(0, 10_000)).unwrap();
            assert_eq!(endpoint.connection(id).verdict(StreamId(0), segment, PATIENCE).unwrap().verdict, Verdict::Complete);
        });
        let id = receiver.accept(PATIENCE).unwrap();
        assert!(receiver.connection(id).recv(StreamId(0), PATIENCE).unwrap().is_some());
        assert!(receiver.connection(id).recv(StreamId(0), PATIENCE).unwrap().is_none(), "the stream ends as it should");
        let end = receiver.connection(id).closed(PATIENCE).unwrap();
        assert!(matches!(end, CloseReason::ClosedByPeer { .. }), "{end}");
        sending.join().unwrap();
    });
}

/// Where the process below finds its peer.
const ADDRESS: &str = "SEGSTREAM_TEST_RECEIVER";

/// Not a test: the sender of the next test, in a process of its own.
#[test]
#[ignore = "it is started by the test below"]
fn sending_process() {
    let to = std::env::var(ADDRESS).unwrap().parse().unwrap();
    send_and_close(to).unwrap();
}

#[test]
fn a_receiver_that_is_dropped_at_the_end_of_the_stream_does_not_spoil_the_close_between_processes() {
    ends(|| {
        for round in 0..16 {
            let receiver = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
            let sender = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "dropping::sending_process", "--ignored"])
                .env(ADDRESS, receiver.local_addr().to_string())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            receive_and_drop(receiver);
            let ended = sender.wait_with_output().unwrap();
            assert!(ended.status.success(), "round {round}: {}", String::from_utf8_lossy(&ended.stdout));
        }
    });
}
