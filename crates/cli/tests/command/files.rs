//! Files arrive as they were, and both ends know it.

use crate::process::{content, link, receiver, send};
use serde_json::json;
use std::path::Path;

#[test]
fn a_file_arrives_whole_over_a_long_lossy_path() {
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("source.bin"), directory.path().join("target.bin"));
    std::fs::write(&source, content(3_000_001)).unwrap();
    let (receiver, address) = receiver(&["--out", target.to_str().unwrap(), "--json"]);
    let (link, through) = link(&address, &["--bandwidth", "100mbit", "--rtt", "60ms", "--loss", "1%", "--json"]);
    let sent = send([&through, source.to_str().unwrap(), "--rate", "90mbit", "--datagram-bytes", "1200", "--json"]).expect(0).json();
    let received = receiver.end().expect(0).json();
    let link = link.interrupt().json();

    assert_eq!(std::fs::read(&target).unwrap(), content(3_000_001));
    assert!(link["forward"]["packets_lost"].as_u64().unwrap() > 0);
    for report in [&sent, &received] {
        assert_eq!(report["bytes"], 3_000_001);
        assert_eq!(report["segments"], 12);
        assert_eq!(report["verdicts"], json!({"complete": 12, "within_tolerance": 0, "expired": 0, "unknown": 0}));
        assert_eq!(report["hash_agrees"], true);
        assert_eq!(report["error"], json!(null));
        assert!(report["goodput_bps"].as_f64().unwrap() > 0.0 && report["seconds"].as_f64().unwrap() > 0.0);
    }
    assert!(sent["rtt_ms_min"].as_f64().unwrap() >= 60.0);
    assert!(sent["units_retransmitted"].as_u64().unwrap() > 0);
    assert_eq!(sent["units_sent"].as_u64().unwrap() - sent["units_retransmitted"].as_u64().unwrap(), 8732);
    assert_eq!(sent["datagram_bytes"], 1200);
    // A datagram of 1200 bytes holds three units.
    assert!(3 * sent["shipments_sent"].as_u64().unwrap() >= sent["units_sent"].as_u64().unwrap());
}

#[test]
fn several_files_arrive_under_their_own_names() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let files = [("a.bin", content(700_000)), ("empty", Vec::new()), ("größe.txt", b"words".to_vec())];
    let mut arguments = Vec::new();
    let (receiver, address) = receiver(&["--out", out.to_str().unwrap(), "--json"]);
    arguments.push(address);
    for (name, content) in &files {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        arguments.push(path.to_str().unwrap().to_owned());
    }
    arguments.push("--json".to_owned());
    let sent = send(&arguments).expect(0);
    let received = receiver.end().expect(0);
    for (index, (name, content)) in files.iter().enumerate() {
        assert_eq!(&std::fs::read(out.join(name)).unwrap(), content, "{name}");
        for report in [sent.json(), received.json()] {
            assert_eq!(report["files"][index]["name"], *name);
            assert_eq!(report["files"][index]["bytes"], content.len());
            assert_eq!(report["files"][index]["hash_agrees"], true);
        }
    }
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), files.len(), "parts are left");
}

#[test]
fn segments_in_any_order_make_the_same_file() {
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("source.bin"), directory.path().join("target.bin"));
    std::fs::write(&source, content(2_000_000)).unwrap();
    let (receiver, address) = receiver(&["--out", target.to_str().unwrap(), "--json"]);
    let (_link, through) = link(&address, &["--bandwidth", "200mbit", "--rtt", "20ms", "--loss", "5%"]);
    let order = ["--order", "as-accepted", "--segment-bytes", "16KiB", "--json"];
    let sent = send([&through, source.to_str().unwrap()].iter().chain(&order)).expect(0).json();
    let received = receiver.end().expect(0).json();
    assert_eq!(std::fs::read(&target).unwrap(), content(2_000_000));
    assert_eq!((&sent["hash_agrees"], &received["hash_agrees"]), (&json!(true), &json!(true)));
}

/// Writes so many small files; their paths.
fn small_files(directory: &Path, count: usize) -> Vec<String> {
    let path = |index| directory.join(format!("file{index}")).to_str().unwrap().to_owned();
    let paths: Vec<String> = (0..count).map(path).collect();
    for (index, path) in paths.iter().enumerate() {
        // Every seventh is empty: a stream without a segment.
        let content = if index % 7 == 0 { String::new() } else { format!("content {index}") };
        std::fs::write(path, content).unwrap();
    }
    paths
}

#[test]
fn more_files_than_may_be_live_at_once_arrive_whatever_overtakes_what() {
    const FILES: usize = 600;
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let paths = small_files(directory.path(), FILES);
    for order in ["in-order", "as-accepted"] {
        let (receiver, address) = receiver(&["--out", out.to_str().unwrap(), "--json"]);
        let (_link, through) = link(&address, &["--bandwidth", "100mbit", "--rtt", "5ms", "--loss", "5%", "--loss-back", "5%"]);
        let arguments = [through.as_str(), "--order", order, "--json"];
        let sent = send(arguments.into_iter().chain(paths.iter().map(String::as_str))).expect(0).json();
        let received = receiver.end().expect(0).json();
        for report in [&sent, &received] {
            assert_eq!(report["hash_agrees"], true, "{order}");
            assert_eq!(report["files"].as_array().unwrap().len(), FILES, "{order}");
        }
        for path in &paths {
            let target = out.join(Path::new(path).file_name().unwrap());
            assert_eq!(std::fs::read(&target).unwrap(), std::fs::read(path).unwrap(), "{path}");
            std::fs::remove_file(target).unwrap();
        }
    }
}
