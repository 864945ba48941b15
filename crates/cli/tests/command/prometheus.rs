//! Prometheus itself: it scrapes a receiver, a sender and a link for a minute, finds nothing wrong with what they serve, and its counters
//! are those of the results.
//!
//! Skipped, and said so, where no Prometheus is installed, unless `SEGSTREAM_REQUIRE_PROMETHEUS=1`. `SEGSTREAM_PROMETHEUS_SECONDS` is how
//! long it scrapes, 60 unless it is set. `cargo xtask prometheus` runs it with both tools required.

use crate::metrics::{address, check_with_promtool, get};
use crate::process::{content, link, receiver, start_send};
use segstream_testbed::process::{Running, start};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Set to 1, this variable makes a missing Prometheus a failure.
const REQUIRE: &str = "SEGSTREAM_REQUIRE_PROMETHEUS";

/// Whether Prometheus and promtool are there.
fn is_installed() -> bool {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    let installed = runs("prometheus") && runs("promtool");
    assert!(
        installed || std::env::var_os(REQUIRE).is_none_or(|set| set != "1"),
        "no Prometheus is installed; install it or unset {REQUIRE}"
    );
    installed
}

fn seconds() -> u64 {
    std::env::var("SEGSTREAM_PROMETHEUS_SECONDS").ok().map_or(60, |seconds| seconds.parse().unwrap())
}

/// A port of TCP that nobody uses now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A Prometheus that scrapes `targets` each second.
struct Prometheus {
    port: u16,
    _running: Running,
}

impl Prometheus {
    fn start(folder: &Path, targets: &[(&str, &str)]) -> Self {
        let jobs = targets.iter().map(|(job, at)| format!("  - job_name: {job}\n    static_configs:\n      - targets: [\"{at}\"]\n"));
        let config = format!("global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\nscrape_configs:\n{}", jobs.collect::<String>());
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let port = free_port();
        let flags = [
            format!("--config.file={}", file.display()),
            format!("--storage.tsdb.path={}", folder.join("data").display()),
            format!("--web.listen-address=127.0.0.1:{port}"),
        ];
        Self { port, _running: start(Path::new("prometheus"), flags) }
    }

    /// The values of a query, by the label `job`, or by nothing.
    fn query(&self, query: &str) -> BTreeMap<String, f64> {
        let answer = self.ask(query);
        let found: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
        assert_eq!(found["status"], "success", "{query}: {answer}");
        let results = found["data"]["result"].as_array().unwrap();
        let job = |result: &Value| result["metric"]["job"].as_str().unwrap_or_default().to_owned();
        results.iter().map(|result| (job(result), result["value"][1].as_str().unwrap().parse().unwrap())).collect()
    }

    fn ask(&self, query: &str) -> String {
        let body: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let body = format!("query={body}");
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST /api/v1/query HTTP/1.0\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// Waits until it answers.
    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < deadline, "Prometheus does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The queries of the dashboard, with its variables filled in.
fn queries_of_the_dashboard() -> Vec<String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../observing/grafana-dashboard.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let targets = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap().clone());
    targets.map(|target| target["expr"].as_str().unwrap().replace("$__rate_interval", "30s").replace("$job", ".*")).collect()
}

#[test]
fn prometheus_scrapes_for_a_minute_and_its_counters_are_those_of_the_results() {
    if !is_installed() {
        return eprintln!("SKIPPED: no Prometheus is installed");
    }
    let (directory, span) = (tempfile::tempdir().unwrap(), Duration::from_secs(seconds()));
    let file = directory.path().join("data.bin");
    // So much that a sender at 2 Mbit/s is at it for the whole time.
    std::fs::write(&file, content(span.as_secs() as usize * 220_000)).unwrap();
    let lines = directory.path().join("receiver.jsonl");
    let (mut receiver, at) = receiver(&["--keep", "--metrics", "127.0.0.1:0", "--stats-json", lines.to_str().unwrap()]);
    let metrics = address(&mut receiver);
    let path = ["--bandwidth", "20mbit", "--rtt", "20ms", "--loss", "gilbert:rate=2%,burst=3", "--metrics", "127.0.0.1:0", "--json"];
    let (mut link, at_link) = link(&at, &path);
    let metrics_of_link = address(&mut link);
    let flags = ["--rate", "2mbit", "--tolerance", "64,4,2", "--metrics", "127.0.0.1:0"];
    let mut sender = start_send([&[at_link.as_str(), file.to_str().unwrap()][..], &flags[..]].concat());
    let metrics_of_sender = address(&mut sender);
    let targets = [("receiver", metrics.as_str()), ("sender", &metrics_of_sender), ("link", &metrics_of_link)];
    let prometheus = Prometheus::start(directory.path(), &targets);
    prometheus.wait();

    std::thread::sleep(span.saturating_sub(Duration::from_secs(3)));
    // While all of them run: what they serve is well formed, was always there, and every query of the dashboard has an answer.
    for (_, target) in targets {
        check_with_promtool(&get(target, "GET", "/metrics").1);
    }
    for job in ["receiver", "sender", "link"] {
        let (least, times) = (
            prometheus.query(&format!("min_over_time(up{{job=\"{job}\"}}[{}s])", span.as_secs())),
            prometheus.query(&format!("count_over_time(up{{job=\"{job}\"}}[{}s])", span.as_secs())),
        );
        assert_eq!(least[job], 1.0, "{job} was not scraped once: {least:?}");
        assert!(times[job] * 1.2 + 5.0 >= span.as_secs_f64(), "{job}: {times:?}");
    }
    let empty: Vec<String> = queries_of_the_dashboard().into_iter().filter(|query| prometheus.query(query).is_empty()).collect();
    assert!(empty.is_empty(), "queries without an answer: {empty:#?}");

    sender.end().expect(0);
    let ended = Instant::now();
    while prometheus.query("segstream_connections").get("receiver") != Some(&0.0) {
        assert!(ended.elapsed() < Duration::from_secs(30), "the connection does not end");
        std::thread::sleep(Duration::from_millis(200));
    }
    // One scrape after the last datagram.
    std::thread::sleep(Duration::from_secs(3));
    let of_link = |query: &str, direction: &str| prometheus.query(&format!("{query}{{direction=\"{direction}\"}}"))["link"];
    let through = ["forward", "back"]
        .map(|direction| ["entered", "lost"].map(|what| of_link(&format!("segstream_link_packets_{what}_total"), direction)));
    let found: BTreeMap<&str, f64> = [
        "units_received",
        "units_detected_lost",
        "units_tolerated",
        "segments_complete",
        "segments_within_tolerance",
        "shipments_detected_lost",
        "shipment_runs_lost",
        "units_duplicate",
    ]
    .into_iter()
    .map(|name| (name, prometheus.query(&format!("segstream_{name}_total"))["receiver"]))
    .collect();
    // A histogram has as many values as there were segments, and runs.
    let of_receiver = |query: &str| prometheus.query(query)["receiver"];
    assert_eq!(
        of_receiver("segstream_segment_assembly_seconds_count"),
        found["segments_complete"] + found["segments_within_tolerance"],
        "{found:?}"
    );
    assert_eq!(of_receiver("segstream_loss_run_shipments_count"), found["shipment_runs_lost"], "{found:?}");
    assert!((of_receiver("segstream_loss_run_shipments_sum") - found["shipments_detected_lost"]).abs() < 1e-6, "{found:?}");
    receiver.interrupt().expect(0);
    let report = link.interrupt().json();
    for (direction, [entered, lost]) in ["forward", "back"].into_iter().zip(through) {
        assert_eq!(
            (Some(entered), Some(lost)),
            (report[direction]["packets_entered"].as_f64(), report[direction]["packets_lost"].as_f64()),
            "{direction}: {report}"
        );
    }
    let text = std::fs::read_to_string(&lines).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    for (name, value) in found {
        assert_eq!(Some(value), last[name].as_f64(), "{name}: in Prometheus, and in {last}");
    }
    assert!(last["units_tolerated"].as_u64().unwrap() > 0, "{last}");
}
