//! From a pipe to a pipe.

use crate::process::{content, receiver, start_send};
use serde_json::json;

#[test]
fn standard_input_comes_out_of_standard_output() {
    let (receiver, address) = receiver(&["--out", "-", "--json"]);
    let mut sender = start_send([&address, "-", "--json"]);
    let bytes = content(1_000_000);
    sender.input(&bytes);
    let sent = sender.end().expect(0).json();
    let received = receiver.end().expect(0);
    assert_eq!(received.stdout, bytes);
    let received = received.last_line_json();
    for report in [sent, received] {
        assert_eq!(report["bytes"], 1_000_000);
        assert_eq!(report["hash_agrees"], true);
        assert_eq!(report["files"][0]["name"], "stdin");
    }
}

#[test]
fn a_part_of_a_segment_leaves_before_the_pipe_ends() {
    let directory = tempfile::tempdir().unwrap();
    let (lines, target) = (directory.path().join("segments.json"), directory.path().join("target"));
    let (receiver, address) = receiver(&["--out", target.to_str().unwrap(), "--segments-json", lines.to_str().unwrap()]);
    let mut sender = start_send([&address, "-", "--segment-wait", "10ms", "--json"]);
    sender.input(b"first ");
    // The part file holds what came while the pipe is still open.
    let part = directory.path().join("target.part");
    for _ in 0..2000 {
        if std::fs::read(&part).is_ok_and(|bytes| bytes == b"first ") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(std::fs::read(&part).unwrap(), b"first ");
    assert_eq!(std::fs::read_to_string(&lines).unwrap().lines().count(), 1, "a line waits for others");
    sender.input(b"second");
    sender.end().expect(0);
    receiver.end().expect(0);
    assert_eq!(std::fs::read(&target).unwrap(), b"first second");
    let text = std::fs::read_to_string(&lines).unwrap();
    let mut first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(text.lines().count(), 2);
    // What depends on the moment.
    for field in ["unix_ms", "source_ms", "assembly_ms"] {
        assert!(first.as_object_mut().unwrap().remove(field).unwrap().as_f64().unwrap() >= 0.0, "{field}");
    }
    let expected = json!({
        "stream": 0, "segment": 0, "tolerance": [1, 0, 0], "units": 1, "holes": [], "verdict": "complete", "delay_over_least_ms": 0.0,
    });
    assert_eq!(first, expected);
}

#[test]
fn a_live_source_does_not_wait_and_loses_the_oldest() {
    const SEGMENTS: usize = 64;
    const SEGMENT_BYTES: usize = 16 * 1024;
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("target");
    let (receiver, address) = receiver(&["--out", target.to_str().unwrap(), "--json"]);
    let live = ["--drop-oldest", "--window", "64KiB", "--segment-bytes", "16KiB", "--segment-wait", "10s", "--rate", "4mbit", "--json"];
    let mut sender = start_send([address.as_str(), "-"].iter().chain(&live));
    let bytes = content(SEGMENTS * SEGMENT_BYTES);
    sender.input(&bytes);
    let sent = sender.end().expect(1).json();
    let received = receiver.end().expect(1).json();
    for report in [&sent, &received] {
        assert_eq!(report["segments"], SEGMENTS);
        let expired = report["verdicts"]["expired"].as_u64().unwrap();
        assert!(expired > 0, "nothing was dropped");
        assert_eq!(report["verdicts"]["complete"], SEGMENTS as u64 - expired);
        assert_eq!(report["holes"], 48 * expired);
    }
    let kept = std::fs::read(target.with_file_name("target.part")).or_else(|_| std::fs::read(&target)).unwrap();
    // The newest are never dropped: two windows are kept.
    let newest = (SEGMENTS - 4) * SEGMENT_BYTES;
    assert_eq!(kept[newest..], bytes[newest..]);
}

#[test]
fn a_file_can_wait_so_nothing_of_it_may_be_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("source.bin");
    std::fs::write(&path, b"words").unwrap();
    let refused = start_send(["127.0.0.1:9", path.to_str().unwrap(), "--drop-oldest"]).end().expect(2);
    assert!(refused.stderr.contains("source.bin is a file, which can wait"), "{}", refused.stderr);
}
