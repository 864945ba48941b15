//! Rate and class can change while data flows, and statistics show it.

use crate::process::{content, link, receiver, send};
use serde_json::Value;

#[test]
fn a_change_of_rate_is_seen_in_the_statistics() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    std::fs::write(&source, content(1_500_000)).unwrap();
    let (receiver, address) = receiver(&["--stats", "100ms", "--json"]);
    let how = ["--rate", "8mbit", "--at", "500ms:rate=80mbit", "--stats", "100ms", "--json"];
    let sent = send([&address, source.to_str().unwrap()].iter().chain(&how)).expect(0);
    let received = receiver.end().expect(0);
    assert_eq!(sent.json()["bytes"], 1_500_000);
    let statistics = |ended: &crate::process::Ended| -> Vec<Value> {
        ended.stderr.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let rates: Vec<u64> = statistics(&sent).iter().map(|line| line["rate_bps"].as_u64().unwrap()).collect();
    assert!(rates.contains(&8_000_000), "{rates:?}");
    assert_eq!(rates.last(), Some(&80_000_000), "{rates:?}");
    assert!(statistics(&received).iter().any(|line| line["units_received"].as_u64() > Some(0)));
}

#[test]
fn class_and_rate_are_renegotiated_between_two_processes_and_no_promise_is_broken() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    std::fs::write(&source, content(6_000_000)).unwrap();
    let (receiver, address) = receiver(&["--json"]);
    let mut how = vec!["--rate", "8mbit", "--stats", "50ms", "--json"];
    let changes = [
        "300ms:rate=40mbit,class=5",
        "600ms:rate=auto:floor=1mbit,peak=60mbit,class=7",
        "900ms:rate=12mbit,class=6",
        "1200ms:rate=auto,class=7",
    ];
    for change in changes {
        how.extend(["--at", change]);
    }
    let sent = send([&address, source.to_str().unwrap()].iter().chain(&how)).expect(0);
    receiver.end().expect(0);
    let report = sent.json();
    assert_eq!((&report["bytes"], &report["hash_agrees"]), (&Value::from(6_000_000), &Value::from(true)));
    assert_eq!(report["verdicts"]["complete"], report["segments"], "{}", report["verdicts"]);
    let lines: Vec<Value> =
        sent.stderr.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen = |class: u64, rate: Option<u64>, found: bool| {
        lines.iter().any(|line| line["class"] == class && line["rate_bps"].as_u64() == rate && line["phase"].is_null() != found)
    };
    assert!(seen(7, Some(8_000_000), false) && seen(5, Some(40_000_000), false), "{lines:?}");
    let bounded = lines.iter().any(|line| line["phase"].is_string() && line["rate_bps"].as_u64() <= Some(60_000_000) && line["class"] == 7);
    assert!(bounded, "{lines:?}");
}

#[test]
fn the_rate_is_found_unless_one_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    std::fs::write(&source, content(2_000_000)).unwrap();
    let (receiver, address) = receiver(&["--json"]);
    let (link, through) = link(&address, &["--bandwidth", "20mbit", "--rtt", "20ms"]);
    let sent = send([&through, source.to_str().unwrap(), "--stats", "50ms", "--json"]).expect(0);
    receiver.end().expect(0);
    link.interrupt();
    let lines: Vec<Value> =
        sent.stderr.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["phase"].is_string()), "{lines:?}");
    let known = |key: &str| lines.iter().any(|line| line[key].as_f64().is_some());
    assert!(known("queue_ms") && known("rho") && known("delivery_bps"), "{lines:?}");
    assert_eq!(sent.json()["verdicts"]["complete"], sent.json()["segments"]);
}
