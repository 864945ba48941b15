//! When one end dies, the other says so and keeps what it has.

use crate::process::{content, receiver, send, start_send};
use rustix::process::Signal;

#[test]
fn a_receiver_whose_sender_dies_fails_and_keeps_what_came() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("target");
    let (receiver, address) = receiver(&["--out", target.to_str().unwrap(), "--json"]);
    let mut sender = start_send([&address, "-", "--idle-timeout", "1s"]);
    sender.input(&content(300_000));
    let part = directory.path().join("target.part");
    for _ in 0..2000 {
        if std::fs::metadata(&part).is_ok_and(|metadata| metadata.len() >= 262_144) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    sender.signal(Signal::KILL);
    let ended = receiver.end().expect(1);
    assert!(ended.stderr.contains("nothing came from the peer for 1s"), "{ended:?}");
    assert!(ended.json()["error"].as_str().unwrap().contains("1s"));
    assert!(!target.exists());
    let kept = std::fs::read(&part).unwrap();
    assert!(kept.len() >= 262_144 && content(300_000).starts_with(&kept));
}

#[test]
fn a_sender_whose_receiver_dies_fails_with_unknown_verdicts() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    std::fs::write(&source, content(20_000_000)).unwrap();
    let (mut receiver, address) = receiver(&["--stats", "50ms"]);
    let mut sender = start_send([&address, source.to_str().unwrap(), "--rate", "20mbit", "--idle-timeout", "1s", "--json"]);
    receiver.wait_for("units_received");
    receiver.signal(Signal::KILL);
    sender.end_input();
    let ended = sender.end().expect(1);
    let report = ended.json();
    assert!(report["verdicts"]["unknown"].as_u64().unwrap() > 0, "{report}");
    assert!(report["error"].as_str().unwrap().contains("nothing came from the peer"), "{report}");
    // The wait for the receiver is no part of the transfer.
    let alive = report["seconds"].as_f64().unwrap();
    assert!(alive < ended.took.as_secs_f64() - 0.9, "{alive} of {:?}: {report}", ended.took);
}

#[test]
fn nobody_there_is_a_failure_with_a_hint() {
    // A socket that never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let ended = send([&address, file.path().to_str().unwrap(), "--idle-timeout", "1s", "--json"]).expect(1);
    let report = ended.json();
    assert!(report["error"].as_str().unwrap().contains("nobody answered within 1s"), "{report}");
    assert!(report["files"][0]["error"].as_str().unwrap().contains("was not sent"), "{report}");
}

#[test]
fn a_closed_port_is_named_as_the_network_says_and_nothing_is_said_to_have_been_sent() {
    // Why a port of a socket that is gone: nobody else is given it so soon.
    let address = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let ended = send([&address.to_string(), file.path().to_str().unwrap(), "--idle-timeout", "1s", "--json"]).expect(1);
    let error = ended.json()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("nobody answered") && error.contains(&format!("no program listens on UDP port {}", address.port())), "{error}");
    assert!(!ended.stderr.contains("sent 0 bytes"), "{ended:?}");
    // A message of the network can be forged, and a receiver may be about to start: it shortens nothing.
    assert!(ended.took.as_secs_f64() >= 1.0, "{ended:?}");
}

#[test]
fn an_interrupted_receiver_says_what_it_leaves_and_tells_the_sender() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("target");
    let (mut receiver, address) = receiver(&["--out", target.to_str().unwrap()]);
    let mut sender = start_send([&address, "-", "--json"]);
    receiver.wait_for("connected");
    // What it is to leave must be there first: the part file is made with the first byte.
    sender.input(b"first");
    let part = directory.path().join("target.part");
    (0..1000).take_while(|_| !part.exists()).for_each(|_| std::thread::sleep(std::time::Duration::from_millis(10)));
    let ended = receiver.interrupt_with_open_input().expect(1);
    assert!(ended.stderr.contains("interrupted"), "{ended:?}");
    assert!(ended.stderr.contains("target.part") && part.exists(), "{ended:?}");
    let ended = sender.end().expect(1);
    assert!(ended.json()["error"].as_str().unwrap().contains("interrupted by the receiver's user"), "{ended:?}");
}

#[test]
fn an_interrupted_sender_tells_the_receiver_at_once() {
    let (mut receiver, address) = receiver(&["--json"]);
    let sender = start_send([&address, "-"]);
    receiver.wait_for("connected");
    let sent = sender.interrupt_with_open_input();
    assert_eq!(sent.code, Some(1), "{sent:?}");
    let ended = receiver.end().expect(1);
    assert!(ended.json()["error"].as_str().unwrap().contains("interrupted by the sender's user"), "{ended:?}");
}
