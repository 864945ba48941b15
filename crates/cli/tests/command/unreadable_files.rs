//! A file that cannot be read harms no other.

use crate::process::{receiver, send, start_send};

#[test]
fn a_missing_file_is_named_and_the_others_arrive() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let (missing, absent, there) = (directory.path().join("missing"), directory.path().join("absent"), directory.path().join("there"));
    std::fs::write(&there, b"x").unwrap();
    let (receiver, address) = receiver(&["--out", out.to_str().unwrap()]);
    let ended = send([&address, missing.to_str().unwrap(), absent.to_str().unwrap(), there.to_str().unwrap()]).expect(1);
    assert!(ended.stderr.contains("missing cannot be read") && ended.stderr.contains("absent cannot be read"), "{ended:?}");
    receiver.end().expect(0);
    assert_eq!(std::fs::read(out.join("there")).unwrap(), b"x");
}

#[test]
fn a_file_that_shrinks_under_way_is_left_as_a_part() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let (shrinking, there) = (directory.path().join("shrinking"), directory.path().join("there"));
    std::fs::write(&shrinking, vec![7; 20_000_000]).unwrap();
    std::fs::write(&there, b"x").unwrap();
    let (receiver, address) = receiver(&["--out", out.to_str().unwrap(), "--json"]);
    // At 10 Mbit/s the file takes 16 s, so most of it is not read yet when it shrinks.
    let slow = ["--rate", "10mbit", "--at", "500ms:rate=500mbit", "--stats", "100ms"];
    let mut sender = start_send([&address, shrinking.to_str().unwrap(), there.to_str().unwrap()].iter().chain(&slow));
    sender.wait_for("units_sent");
    std::fs::File::options().write(true).open(&shrinking).unwrap().set_len(1000).unwrap();
    let sent = sender.end().expect(1);
    assert!(sent.stderr.contains("shrinking became shorter while it was read"), "{sent:?}");
    let received = receiver.end().expect(1);
    assert!(received.stderr.contains("shrinking.part"), "{received:?}");
    assert!(!out.join("shrinking").exists() && out.join("shrinking.part").exists());
    assert_eq!(std::fs::read(out.join("there")).unwrap(), b"x");
}
