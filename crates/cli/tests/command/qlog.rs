//! The qlogs of both ends and the log of losses: every text keeps to the schema, and their sums are those of the results.

use crate::process::{Ended, content, link, receiver, run, send};
use jsonschema::Validator;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The schema of `docs/qlog.schema.json`.
fn schema() -> Validator {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/qlog.schema.json")).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// The texts of a JSON text sequence (RFC 7464).
pub(crate) fn texts(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap();
    let (first, rest) = bytes.split_first().unwrap();
    assert_eq!(*first, 0x1e, "a sequence begins with the separator");
    rest.split(|byte| *byte == 0x1e).map(|text| serde_json::from_slice(text).unwrap()).collect()
}

fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The one file of a folder whose name ends with this.
pub(crate) fn only(folder: &Path, end: &str) -> PathBuf {
    let files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let of: Vec<&PathBuf> = files.iter().filter(|path| path.to_str().unwrap().ends_with(end)).collect();
    assert_eq!(of.len(), 1, "{files:?}");
    of[0].clone()
}

/// The events with this name.
fn named<'a>(texts: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    let name = format!("segstream:{name}");
    texts.iter().filter(move |text| text["name"] == name.as_str()).map(|text| &text["data"])
}

fn sum<'a>(events: impl Iterator<Item = &'a Value>, field: &str) -> u64 {
    events.map(|event| event[field].as_u64().unwrap()).sum()
}

fn check(schema: &Validator, texts: &[Value]) {
    for text in texts {
        let errors: Vec<String> = schema.iter_errors(text).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{text} is not in the schema: {errors:?}");
    }
    let times: Vec<f64> = texts.iter().filter_map(|text| text["time"].as_f64()).collect();
    assert!(times.len() + 1 == texts.len() && times.is_sorted(), "only the head has no time, and time does not go back");
}

#[test]
fn what_the_qlogs_and_the_log_of_losses_tell_is_what_the_results_tell() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    let (file, qlogs, losses) = (folder.join("secret-name.bin"), folder.join("logs"), folder.join("losses.jsonl"));
    std::fs::write(&file, content(3_000_000)).unwrap();
    let flags = ["--json", "--qlog", qlogs.to_str().unwrap(), "--loss-log", losses.to_str().unwrap()];
    let (receiver, at) = receiver(&flags);
    let (link, at_link) = link(&at, &["--bandwidth", "60mbit", "--loss", "gilbert:rate=2%,burst=3", "--loss-back", "1%", "--rtt", "10ms"]);
    let flags = ["--tolerance", "64,2,1", "--rate", "auto", "--json", "--qlog", qlogs.to_str().unwrap()];
    let sent = send([&[at_link.as_str(), file.to_str().unwrap()][..], &flags[..]].concat()).expect(0);
    link.interrupt();
    let (sent, received) = (sent.json(), receiver.end().expect(0).json());

    let schema = schema();
    let (client, server) = (texts(&only(&qlogs, "client.sqlog")), texts(&only(&qlogs, "server.sqlog")));
    check(&schema, &client);
    check(&schema, &server);
    for end in [&client, &server] {
        assert_eq!((named(end, "connection_established").count(), named(end, "connection_closed").count()), (1, 1));
        assert_eq!(named(end, "events_omitted").count(), 0);
        assert!(!serde_json::to_string(end).unwrap().contains("secret-name"), "a file name is told");
    }
    let retransmitted = named(&client, "shipments_sent")
        .filter_map(|event| event["parts"].as_array())
        .flatten()
        .filter(|part| part["retransmission"] == true)
        .map(|part| part["count"].as_u64().unwrap())
        .sum::<u64>();
    assert_eq!(retransmitted, sent["units_retransmitted"].as_u64().unwrap(), "{sent}");
    // Verdicts of both ends agree, segment by segment.
    let judged = |verdict: &str| named(&server, "segment_judged").filter(|event| event["verdict"] == verdict).count() as u64;
    let told = |verdict: &str| sum(named(&client, "verdict_received").filter(|event| event["verdict"] == verdict), "count");
    let within = received["verdicts"]["within_tolerance"].as_u64().unwrap();
    assert!(within > 0, "nothing was tolerated: {received}");
    assert_eq!((judged("within_tolerance"), told("within_tolerance")), (within, within));
    assert!(named(&client, "path_updated").any(|event| event["phase"] == "delay" || event["phase"] == "start_up"));

    let lines = lines(&losses);
    let of = |kind: &'static str| lines.iter().filter(move |line| line["type"] == kind);
    let lost = sum(named(&server, "shipments_lost"), "count");
    let summary = of("connection").next().unwrap();
    assert!(lost > 0 && lost == sum(of("shipments"), "count") && lost == summary["shipments_lost"].as_u64().unwrap(), "{summary}");
    let runs: u64 = summary["runs"].as_array().unwrap().iter().map(|run| run[0].as_u64().unwrap() * run[1].as_u64().unwrap()).sum();
    assert_eq!(runs, lost);
    for field in ["units_lost", "units_repaired"] {
        assert_eq!(sum(of("segment"), field), sum(of("stream"), field), "{field}");
    }
    assert_eq!(sum(of("stream"), "units_tolerated"), received["holes"].as_u64().unwrap(), "{received}");
    assert!(sum(of("stream"), "units_repaired") > 0, "nothing was repaired: {summary}");
    assert_eq!(sum(of("stream"), "units_missing"), 0, "units are missing in segments that did not expire");
}

#[test]
fn a_folder_or_file_that_cannot_be_made_is_refused_before_anything_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("there");
    std::fs::write(&file, "x").unwrap();
    let taken = file.to_str().unwrap();
    let refused =
        |flags: [&str; 2]| -> Ended { run([&["recv", "--listen", "127.0.0.1:0", "--allow-anyone"][..], &flags[..]].concat()).expect(1) };
    assert!(refused(["--loss-log", taken]).stderr.contains("choose a new file with --loss-log"));
    assert!(refused(["--qlog", taken]).stderr.contains("choose another directory with --qlog"));
}
