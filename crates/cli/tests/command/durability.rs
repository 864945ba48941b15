//! When a received file is on disk, and what one receiver's troubles leave alone.

use crate::process::{binary, content, expecting, home, receiver, send, start_send};
use std::path::Path;
use std::process::{Command, Stdio};

fn source(directory: &Path, name: &str, length: usize) -> String {
    let path = directory.join(name);
    std::fs::write(&path, content(length)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A receiver that `words` start: `env` with the configuration of all tests, then a program that runs the receiver.
fn receiver_under(words: &[&str], arguments: &[&str]) -> (segstream_testbed::process::Running, String) {
    let mut all = vec![format!("XDG_CONFIG_HOME={}", home().display()).into()];
    all.extend(words.iter().map(std::ffi::OsString::from));
    all.push(binary().into());
    all.extend(expecting("recv", "--allow", ["--listen", "127.0.0.1:0"].iter().chain(arguments)));
    let mut running = segstream_testbed::process::start(Path::new("/usr/bin/env"), all);
    let address = running.listening().to_string();
    (running, address)
}

#[test]
fn a_file_is_told_to_be_durable_when_its_bytes_and_then_its_name_are_synced() {
    if !Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return eprintln!("SKIPPED: no strace is installed, so nobody looked at the system calls");
    }
    let directory = tempfile::tempdir().unwrap();
    let source = source(directory.path(), "source", 300_000);
    for (durability, synced, durable) in [("directory", 2, true), ("file", 1, false), ("none", 0, false)] {
        let (out, calls) = (directory.path().join(durability), directory.path().join(format!("{durability}.calls")));
        std::fs::create_dir(&out).unwrap();
        let strace = ["strace", "-f", "-o", calls.to_str().unwrap(), "-e", "trace=fsync,fdatasync,renameat2"];
        let (receiver, address) = receiver_under(&strace, &["--out", out.to_str().unwrap(), "--durability", durability]);
        let sent = send([&address, &source, "--json"]).expect(0);
        receiver.end().expect(0);
        assert_eq!(sent.json()["files"][0]["durable"], durable, "{durability}");
        assert_eq!(sent.stderr.contains("on disk at the receiver"), durable, "{durability}: {}", sent.stderr);
        let calls = std::fs::read_to_string(&calls).unwrap();
        let names: Vec<&str> = ["fsync(", "renameat2("]
            .into_iter()
            .flat_map(|call| calls.match_indices(call))
            .collect::<std::collections::BTreeMap<_, _>>()
            .into_keys()
            .map(|at| if calls[at..].starts_with("fsync") { "fsync" } else { "rename" })
            .collect();
        let expected = [&["fsync"][..usize::from(synced > 0)], &["rename"], &["fsync"][..usize::from(synced > 1)]].concat();
        assert_eq!(names, expected, "{durability}: {calls}");
    }
}

#[test]
fn a_part_that_was_left_behind_does_not_block_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("source.part"), b"of another transfer").unwrap();
    let source = source(directory.path(), "source", 300_000);
    let (receiver, address) = receiver(&["--out", out.to_str().unwrap()]);
    send([&address, &source]).expect(0);
    receiver.end().expect(0);
    assert_eq!(std::fs::read(out.join("source")).unwrap(), content(300_000));
    assert_eq!(std::fs::read(out.join("source.part")).unwrap(), b"of another transfer");
}

#[test]
fn a_file_size_limit_ends_one_file_and_not_the_receiver() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let (small, large) = (source(directory.path(), "small", 300_000), source(directory.path(), "large", 3_000_000));
    // A thousand blocks of 1024 bytes.
    let limited = ["bash", "-c", "ulimit -f 1000; exec \"$@\"", "bash"];
    let (receiver, address) = receiver_under(&limited, &["--out", out.to_str().unwrap(), "--keep"]);
    let sent = send([&address, &large]).expect(1);
    assert!(sent.stderr.contains("large.part cannot be written any further: File too large"), "{}", sent.stderr);
    assert!(!sent.stderr.contains(out.to_str().unwrap()), "the receiver's path is told: {}", sent.stderr);
    send([&address, &small]).expect(0);
    receiver.interrupt();
    assert_eq!(std::fs::read(out.join("small")).unwrap(), content(300_000));
}

#[test]
fn a_file_of_segments_that_cannot_be_written_ends_no_transfer() {
    let directory = tempfile::tempdir().unwrap();
    let source = source(directory.path(), "source", 3_000_000);
    let target = directory.path().join("target");
    let (receiver, address) = receiver(&["--out", target.to_str().unwrap(), "--segments-json", "/dev/full"]);
    send([&address, &source, "--segment-bytes", "1KiB"]).expect(0);
    let received = receiver.end().expect(1);
    assert_eq!(received.stderr.matches("the file of --segments-json cannot be written any further").count(), 1, "{received:?}");
    assert_eq!(std::fs::read(target).unwrap(), content(3_000_000));
}

#[test]
fn a_pipe_takes_one_sender_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let source = source(directory.path(), "source", 100_000);
    let (mut receiver, address) = receiver(&["--out", "-", "--keep"]);
    let mut first = start_send([&address, "-"]);
    receiver.wait_for("connected");
    let second = send([&address, &source]).expect(1);
    assert!(second.stderr.contains("another sender has it"), "{second:?}");
    first.input(b"of the first");
    first.end().expect(0);
    send([&address, &source]).expect(0);
    let ended = receiver.interrupt().expect(0);
    assert_eq!(ended.stdout, [b"of the first".as_slice(), &content(100_000)].concat());
}

#[test]
fn more_files_than_descriptors_are_received() {
    let directory = tempfile::tempdir().unwrap();
    let (sources, out) = (directory.path().join("sources"), directory.path().join("out"));
    std::fs::create_dir(&sources).unwrap();
    std::fs::create_dir(&out).unwrap();
    let paths: Vec<String> = (0..600).map(|index| source(&sources, &format!("file{index}"), index * 7)).collect();
    let limited = ["bash", "-c", "ulimit -n 200; exec \"$@\"", "bash"];
    let (receiver, address) = receiver_under(&limited, &["--out", out.to_str().unwrap()]);
    send(std::iter::once(&address).chain(&paths)).expect(0);
    receiver.end().expect(0);
    for index in 0..600 {
        assert_eq!(std::fs::read(out.join(format!("file{index}"))).unwrap(), content(index * 7), "{index}");
    }
}
