//! Rate and class can change while data flows, and statistics show it.

use crate::process::{content, receiver, run};
use serde_json::Value;

#[test]
fn a_change_of_rate_is_seen_in_the_statistics() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    std::fs::write(&source, content(1_500_000)).unwrap();
    let (receiver, address) = receiver(&["--stats", "100ms", "--json"]);
    let how = ["--rate", "8mbit", "--at", "500ms:rate=80mbit", "--stats", "100ms", "--json"];
    let sent = run(["send", &address, source.to_str().unwrap()].iter().chain(&how)).expect(0);
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
