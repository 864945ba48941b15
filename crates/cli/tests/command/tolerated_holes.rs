//! Tolerated holes: where they are, how they are written, and what the hash says then.

use crate::process::{Ended, content, link, receiver, send};
use serde_json::{Value, json};
use std::path::Path;

const LENGTH: usize = 1_000_000;
const SEGMENT: usize = 65_536;

/// Sends without repair over a path that loses a tenth; both ends and the lines of the segments.
fn transfer(directory: &Path, target: &Path, holes: &str, tolerance: &str) -> (Ended, Ended, Vec<Value>) {
    let (source, lines, told) = (directory.join("source"), directory.join("segments.json"), directory.join("told.json"));
    std::fs::write(&source, content(LENGTH)).unwrap();
    let out = ["--out", target.to_str().unwrap(), "--holes", holes, "--segments-json", lines.to_str().unwrap(), "--json"];
    let (receiver, address) = receiver(&out);
    let (_link, through) = link(&address, &["--bandwidth", "200mbit", "--rtt", "10ms", "--loss", "10%"]);
    let how = ["--tolerance", tolerance, "--segment-bytes", "64KiB", "--segments-json", told.to_str().unwrap(), "--json"];
    let sent = send([&through, source.to_str().unwrap()].iter().chain(&how)).expect(0);
    let received = receiver.end().expect(0);
    let read = |path: &Path| -> Vec<Value> {
        std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (lines, told) = (read(&lines), read(&told));
    assert_same_segments(&lines, &told);
    (sent, received, lines)
}

/// The lines of both ends say the same of each segment.
fn assert_same_segments(received: &[Value], sent: &[Value]) {
    let same = |lines: &[Value]| {
        let fields = ["stream", "segment", "units", "holes", "verdict"];
        let mut lines: Vec<String> = lines.iter().map(|line| fields.map(|field| line[field].to_string()).join(" ")).collect();
        lines.sort();
        lines
    };
    assert_eq!(same(received), same(sent));
    for line in sent {
        assert!(line["verdict_ms"].as_f64().unwrap() >= 10.0, "the round trip is 10 ms: {line}");
    }
}

/// The place of every missing byte.
fn holes(lines: &[Value]) -> Vec<std::ops::Range<usize>> {
    let of_segment = |line: &Value| {
        let start = line["segment"].as_u64().unwrap() as usize * SEGMENT;
        let units = line["holes"].as_array().unwrap().iter().map(move |unit| start + unit.as_u64().unwrap() as usize * 1024);
        units.map(|at| at..(at + 1024).min(LENGTH)).collect::<Vec<_>>()
    };
    lines.iter().flat_map(of_segment).collect()
}

#[test]
fn holes_are_zero_at_their_place_and_both_ends_agree_where() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("target");
    let (sent, received, lines) = transfer(directory.path(), &target, "zero", "any");
    let mut expected = content(LENGTH);
    let missing = holes(&lines);
    assert!(!missing.is_empty());
    for hole in &missing {
        expected[hole.clone()].fill(0);
    }
    assert_eq!(std::fs::read(&target).unwrap(), expected);
    let arrived = LENGTH - missing.iter().map(ExactSizeIterator::len).sum::<usize>();
    for report in [sent.json(), received.json()] {
        assert_eq!(report["bytes"], arrived);
        assert_eq!(report["hash_agrees"], json!(null));
        assert_eq!(report["units_retransmitted"], 0);
        assert_eq!(report["verdicts"]["complete"].as_u64().unwrap() + report["verdicts"]["within_tolerance"].as_u64().unwrap(), 16);
    }
}

#[test]
fn holes_can_be_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("target");
    let (_, _, lines) = transfer(directory.path(), &target, "drop", "any");
    let (whole, missing) = (content(LENGTH), holes(&lines));
    let is_missing = |at: usize| missing.iter().any(|hole| hole.contains(&at));
    let expected: Vec<u8> = whole.iter().enumerate().filter(|(at, _)| !is_missing(*at)).map(|(_, byte)| *byte).collect();
    assert_eq!(std::fs::read(&target).unwrap(), expected);
}

#[test]
fn every_window_of_every_segment_keeps_its_tolerance() {
    let directory = tempfile::tempdir().unwrap();
    let (_, received, lines) = transfer(directory.path(), &directory.path().join("target"), "zero", "16,2,1");
    assert!(received.json()["holes"].as_u64().unwrap() > 0);
    for line in &lines {
        assert_eq!(line["tolerance"], json!([16, 2, 1]));
        let holes: Vec<u64> = line["holes"].as_array().unwrap().iter().map(|unit| unit.as_u64().unwrap()).collect();
        assert!(holes.windows(2).all(|pair| pair[1] > pair[0] + 1), "a run longer than 1: {line}");
        for window in 0..4 {
            assert!(holes.iter().filter(|&&unit| unit / 16 == window).count() <= 2, "{line}");
        }
        assert!(line["delay_over_least_ms"].as_f64().unwrap() >= 0.0);
    }
}
