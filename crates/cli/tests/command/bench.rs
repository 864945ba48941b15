//! `segstream bench`: everything that is sent is counted, others take turns, and two hosts measure together.

use crate::process::{home, run, start, start_with_variables};
use serde_json::Value;
use std::fs;

/// 8 MiB.
const BYTES: u64 = 8 << 20;

fn run_named<'a>(report: &'a Value, name: &str) -> &'a Value {
    let runs = report["runs"].as_array().unwrap();
    runs.iter().find(|run| run["name"] == name).unwrap_or_else(|| panic!("{name} in {report}"))
}

#[test]
fn throughput_counts_every_byte_and_compares_with_bare_udp() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.md");
    let ended =
        run(["bench", "--mebibytes", "8", "--repetitions", "2", "--against", "raw", "--json", "--markdown", file.to_str().unwrap()]);
    let report = ended.expect(0).json();
    for name in ["plain", "encrypted"] {
        let run = run_named(&report, name);
        assert_eq!((run["bytes"].as_u64(), run["incomplete"].as_u64()), (Some(2 * BYTES), Some(0)), "{run}");
        for key in ["goodput_bps_median", "goodput_bps_min", "goodput_bps_max", "cpu_seconds_per_gb"] {
            assert!(run[key].as_f64().unwrap() > 0.0, "{key} in {run}");
        }
        assert_eq!((&run["workload"], &run["encrypts"]), (&"throughput".into(), &(name == "encrypted").into()));
    }
    let raw = run_named(&report, "raw");
    let datagrams = 2 * BYTES.div_ceil(1200);
    // Bare UDP may lose, and says how much.
    assert_eq!(raw["bytes"].as_u64().unwrap() / 1200 + raw["incomplete"].as_u64().unwrap(), datagrams, "{raw}");
    let ratio = run_named(&report, "plain")["goodput_bps_median"].as_f64().unwrap() / raw["goodput_bps_median"].as_f64().unwrap();
    assert!((report["ratio_to_raw"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-9, "{report}");
    assert!(report["machine"]["cores"].as_u64().unwrap() > 0, "{report}");
    let markdown = fs::read_to_string(&file).unwrap();
    assert!(markdown.starts_with("<!-- bench:throughput -->\n") && markdown.contains("| encrypted | 0.1.0 | yes |"), "{markdown}");
}

#[test]
fn several_workloads_have_their_own_figures_and_ratios() {
    let words = "bench ping-pong records at-rate connections --protection plain --against raw --repetitions 1 --connections 20 \
                 --seconds 0.5 --segment-bytes 100 --json";
    let report = run(words.split_whitespace()).expect(0).json();
    let run_of = |workload: &str, name: &str| {
        let runs = report["runs"].as_array().unwrap();
        runs.iter().find(|run| run["workload"] == workload && run["name"] == name).unwrap_or_else(|| panic!("{workload} in {report}"))
    };
    for name in ["plain", "raw"] {
        assert!(run_of("ping-pong", name)["round_trips"].as_u64().unwrap() > 0, "{report}");
    }
    assert!(run_of("records", "plain")["segments_per_second_median"].as_f64().unwrap() > 0.0);
    let at_rate = run_of("at-rate", "plain");
    // 100 bytes at 10 Mbit/s are one every 80 us; the first tenth of half a second warms up.
    assert_eq!((at_rate["segments"].as_u64(), at_rate["incomplete"].as_u64()), (Some(5625), Some(0)), "{at_rate}");
    assert_eq!(run_of("connections", "plain")["idle_connections"], 20);
    assert!(report["ratios"]["ping-pong"]["ratio_to_raw"].as_f64().unwrap() > 0.0, "{report}");
    assert!(report["ratios"]["records"].get("ratio_to_raw").is_none() && report.get("ratio_to_raw").is_none(), "{report}");
}

#[test]
fn active_connections_lose_nothing_on_more_threads_than_one_and_refuse_segments_that_are_mostly_header() {
    let words = "bench active --protection plain --repetitions 1 --connections 20 --seconds 0.5 --threads both --json";
    let report = run(words.split_whitespace()).expect(0).json();
    let active = &report["runs"][0];
    assert_eq!((active["connections"].as_u64(), active["incomplete"].as_u64()), (Some(20), Some(0)), "{active}");
    assert!(active["goodput_bps_median"].as_f64().unwrap() > 0.0, "{active}");
    let refused = run("bench active --segment-bytes 100".split_whitespace()).expect(2);
    assert!(refused.stderr.contains("at least 512"), "{refused:?}");
}

#[test]
fn two_hosts_measure_together_and_a_code_serves_once() {
    let mut server = start(["bench", "serve", "--listen", "127.0.0.1:0"]);
    let address = server.listening().to_string();
    let line = server.line();
    assert!(line.contains(&address), "{line}");
    let (before, command) = line.split_once(" segstream ").unwrap();
    let code = before.strip_prefix("to measure: ").unwrap();
    let words = command.split(' ').chain("throughput --mebibytes 8 --repetitions 1 --against raw --json".split(' '));
    let measure = || start_with_variables(home(), &[code], words.clone()).end();
    let report = measure().expect(0).json();
    assert_eq!(run_named(&report, "encrypted")["bytes"].as_u64(), Some(BYTES), "{report}");
    assert!(report["ratio_to_raw"].as_f64().unwrap() > 0.0 && report["server_machine"]["cores"].as_u64().unwrap() > 0, "{report}");
    server.wait_for("3 measurements served");
    let again = measure().expect(1);
    assert!(again.stderr.contains("as `segstream bench serve` prints them now"), "{}", again.stderr);
    server.interrupt().expect(0);
}

#[test]
fn a_transport_without_its_program_is_refused_with_how_to_build_it() {
    let ended = run(["bench", "--against", "quinn", "--peers", "/nowhere/segstream-peers"]).expect(1);
    assert!(ended.stderr.contains("cargo build --release --manifest-path bench/peers/Cargo.toml"), "{}", ended.stderr);
}

#[test]
fn an_end_without_the_other_one_says_so_in_json_and_fails() {
    let ended = run("bench end raw --side run --connect 127.0.0.1:9 --bytes 1200".split(' ')).expect(1);
    assert!(ended.json()["error"].as_str().unwrap().contains("has not answered"), "{ended:?}");
    let list = run(["bench", "end", "--list", "--json"]).expect(0).json();
    let names: Vec<&Value> = list.as_array().unwrap().iter().map(|known| &known["name"]).collect();
    assert_eq!(names, ["plain", "encrypted", "raw"]);
}

#[test]
fn markdown_is_not_written_into_a_file_without_its_marks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.md");
    fs::write(&file, "mine\n").unwrap();
    let ended = run(["bench", "--markdown", file.to_str().unwrap()]).expect(2);
    assert!(ended.stderr.contains("<!-- bench:throughput -->"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n");
}
