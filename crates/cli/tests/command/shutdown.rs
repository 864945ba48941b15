//! SIGTERM shuts down gracefully: transfers end, new ones are refused, within a bound.

use crate::metrics::{address, get};
use crate::process::{content, receiver, send, start_send};
use rustix::process::Signal;
use std::path::Path;
use std::time::Duration;

/// A file of so many bytes in `directory`.
fn file(directory: &Path, bytes: usize) -> String {
    let path = directory.join("data.bin");
    std::fs::write(&path, content(bytes)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_receiver_that_shuts_down_lets_its_transfer_end_refuses_the_next_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let (file, out) = (file(directory.path(), 2_000_000), directory.path().join("out"));
    std::fs::create_dir(&out).unwrap();
    let (mut receiver, at) = receiver(&["--keep", "--json", "--out", out.to_str().unwrap(), "--metrics", "127.0.0.1:0"]);
    let metrics = address(&mut receiver);
    assert!(get(&metrics, "GET", "/healthz").0.contains("200"));
    let sender = start_send([&at, &file, "--rate", "8mbit"]);
    receiver.wait_for("connected");
    receiver.signal(Signal::TERM);
    receiver.wait_for("nothing new is accepted");
    let (status, text) = get(&metrics, "GET", "/healthz");
    assert!(status.contains("503") && text == "shutting down\n", "{status} {text}");
    let refused = send([&at, &file]).expect(1);
    assert!(refused.stderr.contains("accept"), "{}", refused.stderr);
    sender.end().expect(0);
    let ended = receiver.end().expect(0);
    assert_eq!(ended.json()["bytes"], 2_000_000, "{ended:?}");
    assert_eq!(std::fs::read(out.join("data.bin")).unwrap(), content(2_000_000));
}

#[test]
fn what_has_not_ended_in_time_is_aborted_and_without_a_transfer_it_ends_at_once() {
    let (receiver_of_nobody, _) = receiver(&["--keep"]);
    receiver_of_nobody.signal(Signal::TERM);
    receiver_of_nobody.end().expect(0);

    let (mut receiver, at) = receiver(&["--keep", "--json", "--shutdown-timeout", "300ms"]);
    let sender = start_send([&at, "-"]);
    receiver.wait_for("connected");
    receiver.signal(Signal::TERM);
    let ended = receiver.end().expect(1);
    assert_eq!(ended.json()["error"], "interrupted", "{ended:?}");
    let sent = sender.interrupt_with_open_input().expect(1);
    assert!(sent.stderr.contains("interrupted"), "{}", sent.stderr);
}

#[test]
fn a_sender_from_a_pipe_sends_what_it_has_read_and_a_second_signal_ends_it_at_once() {
    let (mut receiver, at) = receiver(&["--json"]);
    let mut sender = start_send([&at, "-", "--json", "--segment-wait", "1ms"]);
    sender.input(&content(50_000));
    receiver.wait_for("connected");
    // What was written is read when the first segment has left.
    std::thread::sleep(Duration::from_millis(500));
    sender.signal(Signal::TERM);
    let ended = sender.end_with_open_input();
    assert_eq!(ended.expect(0).json()["bytes"], 50_000);
    assert_eq!(receiver.end().expect(0).json()["bytes"], 50_000);

    let (second, at) = crate::process::receiver(&["--keep"]);
    let mut sender = start_send([&at, "-"]);
    sender.wait_for("connected");
    second.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(300));
    second.signal(Signal::TERM);
    second.end().expect(1);
    drop(sender);
}
