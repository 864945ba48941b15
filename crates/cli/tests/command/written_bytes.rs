//! What a connection can make a receiver write, and a place that is full.

use crate::process::{binary, content, expecting, receiver, send, start_send};
use std::fs::File;
use std::process::Command;

#[test]
fn files_that_are_too_much_are_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("source"), directory.path().join("target"));
    std::fs::write(&source, content(300_000)).unwrap();
    let (receiver, address) = receiver(&["--out", target.to_str().unwrap(), "--max-bytes", "299999", "--json"]);
    let sent = send([&address, source.to_str().unwrap(), "--rate", "2mbit"]).expect(1);
    assert!(sent.stderr.contains("source has 300000 bytes, and this receiver takes at most"), "{sent:?}");
    let received = receiver.end().expect(1);
    assert!(received.json()["error"].as_str().unwrap().contains("raise --max-bytes"), "{received:?}");
    assert!(!target.exists());
}

#[test]
fn a_pipe_that_becomes_too_much_is_broken_off_and_what_came_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("target");
    let (receiver, address) = receiver(&["--out", target.to_str().unwrap(), "--max-bytes", "100kB", "--json"]);
    let mut sender = start_send([&address, "-", "--segment-bytes", "32KiB"]);
    sender.input(&content(300_000));
    let sent = sender.end().expect(1);
    assert!(sent.stderr.contains("the sender has more bytes, and this receiver takes at most"), "{sent:?}");
    let received = receiver.end().expect(1);
    assert!(received.stderr.contains("what came is left in") && received.stderr.contains("raise --max-bytes"), "{received:?}");
    let left = std::fs::read(directory.path().join("target.part")).unwrap();
    assert!(left.len() <= 100_000 && content(300_000).starts_with(&left), "{}", left.len());
    assert!(!target.exists());
}

#[test]
fn what_may_be_written_is_limited_where_anyone_may_come() {
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("source"), directory.path().join("target"));
    File::create(&source).unwrap().set_len((1 << 30) + 1).unwrap();
    let (receiver, address) = receiver(&["--out", target.to_str().unwrap(), "--allow-anyone"]);
    let sent = send([&address, source.to_str().unwrap(), "--rate", "2mbit"]).expect(1);
    assert!(sent.stderr.contains("1073741825 bytes") && sent.stderr.contains("--max-bytes"), "{sent:?}");
    receiver.end().expect(1);
}

#[test]
fn a_full_disk_is_said_and_costs_no_other_file() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    if !Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).status().is_ok_and(|status| status.success()) {
        eprintln!("NOT TESTED: no file system of a given size can be mounted here");
        return;
    }
    let paths = [("first", 300_000), ("large", 2_000_000)].map(|(name, length)| {
        let path = directory.path().join(name);
        std::fs::write(&path, content(length)).unwrap();
        path.to_str().unwrap().to_owned()
    });
    // Behind the receiver's end the shell looks at what only it can see.
    let script = "mount -t tmpfs -o size=1m none \"$1\" && shift && \"$@\"; status=$?; \
                  cmp \"$OUT/first\" \"$FIRST\" && ls \"$OUT\" && exit $status";
    let mut words = vec!["-rm".into(), "env".into()];
    words.extend([format!("OUT={}", out.display()), format!("FIRST={}", paths[0])].map(Into::into));
    words.extend([format!("XDG_CONFIG_HOME={}", crate::process::home().display()).into()]);
    words.extend(["sh", "-c", script, "sh", out.to_str().unwrap()].map(Into::into));
    words.push(binary().into());
    words.extend(expecting("recv", "--allow", ["--listen", "127.0.0.1:0", "--out", out.to_str().unwrap()]));
    let mut receiver = segstream_testbed::process::start("unshare".as_ref(), words);
    let address = receiver.listening().to_string();
    let sent = send([&address, &paths[0], &paths[1], "--json"]).expect(1);
    let received = receiver.end().expect(1);
    for told in [&sent.stderr, &received.stderr] {
        assert!(told.contains("large.part cannot be written any further: No space left on device"), "{told}");
    }
    assert_eq!(sent.json()["files"][0]["error"], serde_json::Value::Null);
    assert_eq!(String::from_utf8(received.stdout).unwrap(), "first\nlarge.part\nlarge.part.journal\n");
}
