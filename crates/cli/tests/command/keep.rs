//! A receiver that goes on.

use crate::process::{content, receiver, send, start_send};

#[test]
fn several_senders_are_served_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let (receiver, address) = receiver(&["--out", out.to_str().unwrap(), "--keep", "--json"]);
    let paths = [1, 2, 3].map(|index| {
        let path = directory.path().join(format!("file{index}"));
        std::fs::write(&path, content(400_000 * index)).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let senders: Vec<_> = paths.iter().map(|path| start_send([&address, path, "--rate", "50mbit"])).collect();
    for sender in senders {
        sender.end().expect(0);
    }
    let ended = receiver.interrupt().expect(0);
    assert_eq!(String::from_utf8(ended.stdout).unwrap().lines().count(), 3);
    for index in [1, 2, 3] {
        assert_eq!(std::fs::read(out.join(format!("file{index}"))).unwrap(), content(400_000 * index));
    }
}

#[test]
fn every_connection_has_lines_of_statistics_of_its_own() {
    let (mut receiver, address) = receiver(&["--keep", "--stats", "50ms"]);
    let senders = [(); 2].map(|()| start_send([&address, "-"]));
    let mut peers = std::collections::BTreeSet::new();
    while peers.len() < 2 {
        if let Ok(line) = serde_json::from_str::<serde_json::Value>(&receiver.line()) {
            peers.insert(line["address"].as_str().unwrap().to_owned());
        }
    }
    for sender in senders {
        sender.end().expect(0);
    }
    receiver.interrupt().expect(0);
}

#[test]
fn a_receiver_of_one_connection_refuses_the_second() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"x").unwrap();
    let (mut receiver, address) = receiver(&[]);
    let first = start_send([&address, "-"]);
    receiver.wait_for("connected");
    let second = send([&address, file.path().to_str().unwrap()]).expect(1);
    assert!(second.stderr.contains("takes one connection"), "{second:?}");
    first.end().expect(0);
    receiver.end().expect(0);
}
