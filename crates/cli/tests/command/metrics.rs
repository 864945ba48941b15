//! Metrics over HTTP: what a scrape says is what the result says.

use crate::process::{Running, content, link, receiver, send};
use rustix::process::{Resource, getrlimit, prlimit};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The address in the line that tells where the metrics are.
pub(crate) fn address(process: &mut Running) -> String {
    loop {
        if let Some(rest) = process.line().strip_prefix("metrics: http://") {
            return rest.strip_suffix("/metrics").unwrap().to_owned();
        }
    }
}

/// The status line and the body of an answer.
pub(crate) fn get(address: &str, method: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{method} {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

/// The samples without labels, by their names.
pub(crate) fn samples(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.contains('{'));
    lines.filter_map(|line| line.split_once(' ')).map(|(name, value)| (name, value.parse().unwrap())).collect()
}

#[test]
fn a_scrape_says_what_the_result_says() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret-name.bin");
    std::fs::write(&file, content(3_000_000)).unwrap();
    let (mut receiver, at) = receiver(&["--keep", "--json", "--metrics", "127.0.0.1:0"]);
    let metrics = address(&mut receiver);
    let (link, at_link) = link(&at, &["--bandwidth", "60mbit", "--loss", "2%", "--rtt", "10ms"]);
    let sent = send([&at_link, file.to_str().unwrap(), "--tolerance", "64,8,2", "--rate", "40mbit"]).expect(0);
    link.interrupt();
    // The totals of a connection are whole once it has ended and its closing period is over.
    let deadline = Instant::now() + Duration::from_secs(20);
    let text = loop {
        let (status, text) = get(&metrics, "GET", "/metrics");
        assert!(status.contains("200"), "{status}");
        if samples(&text).get("segstream_connections") == Some(&0.0) && text.contains("segstream_units_received_total") {
            // Why again: a scrape reads totals before present values, so this one may have totals from before the end.
            break get(&metrics, "GET", "/metrics").1;
        }
        assert!(Instant::now() < deadline, "the connection does not end: {text}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(!text.contains("secret-name"), "a file name is told");
    let ended = receiver.interrupt().expect(0);
    let report = ended.json();
    let samples = samples(&text);
    let sample = |name: &str| *samples.get(name).unwrap_or_else(|| panic!("{name} is not in {text}")) as u64;
    for (metric, field) in [("segstream_units_duplicate_total", "units_duplicate"), ("segstream_units_tolerated_total", "holes")] {
        assert_eq!(sample(metric), report[field].as_u64().unwrap(), "{metric}: {report}");
    }
    // Both count the records about files, of which each is a segment of its own.
    let verdicts = &report["verdicts"];
    assert_eq!(sample("segstream_segments_within_tolerance_total"), verdicts["within_tolerance"].as_u64().unwrap(), "{report}");
    assert!(sample("segstream_segments_complete_total") >= verdicts["complete"].as_u64().unwrap());
    assert!(verdicts["within_tolerance"].as_u64().unwrap() > 0, "nothing was tolerated: {sent:?}");
    assert_eq!(sample("segstream_connections_established_total"), 1);
    assert_eq!(sample("segstream_segment_assembly_seconds_count"), sample("segstream_segment_delay_over_least_seconds_count"));
    check_with_promtool(&text);
}

/// Prometheus's own check of names, types and units. Skipped, and said so, where it is not installed.
pub(crate) fn check_with_promtool(text: &str) {
    let spawned =
        Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return eprintln!("SKIPPED: no promtool is installed"),
        Err(error) => panic!("promtool does not run: {error}"),
    };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}\n{text}");
}

#[test]
fn health_is_told_and_other_requests_are_refused() {
    let (mut receiver, _) = receiver(&["--metrics", "127.0.0.1:0"]);
    let metrics = address(&mut receiver);
    assert_eq!(get(&metrics, "GET", "/healthz"), ("HTTP/1.0 200 OK".to_owned(), "ok\n".to_owned()));
    assert!(get(&metrics, "GET", "/other").0.contains("404"));
    assert!(get(&metrics, "POST", "/metrics").0.contains("405"));
    // A second server at the same address is refused with a sentence, before anything is received.
    let taken = crate::process::run(["recv", "--listen", "127.0.0.1:0", "--allow-anyone", "--metrics", &metrics]).expect(1);
    assert!(taken.stderr.contains("choose another --metrics"), "{}", taken.stderr);
    receiver.interrupt();
}

/// How many file descriptors a process has.
fn descriptors(process: &Running) -> u64 {
    std::fs::read_dir(format!("/proc/{}/fd", process.id().as_raw_nonzero())).unwrap().count() as u64
}

#[test]
fn metrics_are_served_again_when_the_process_has_file_descriptors_again() {
    let (mut receiver, _) = receiver(&["--metrics", "127.0.0.1:0"]);
    let metrics = address(&mut receiver);
    let ok = || ("HTTP/1.0 200 OK".to_owned(), "ok\n".to_owned());
    assert_eq!(get(&metrics, "GET", "/healthz"), ok());
    let limit = descriptors(&receiver) + 3;
    prlimit(Some(receiver.id()), Resource::Nofile, rustix::process::Rlimit { current: Some(limit), ..getrlimit(Resource::Nofile) })
        .unwrap();
    // Readers that say nothing, more of them than the process can accept.
    let silent: Vec<TcpStream> = (0..12).map(|_| TcpStream::connect(&metrics).unwrap()).collect();
    let deadline = Instant::now() + Duration::from_secs(20);
    while descriptors(&receiver) < limit {
        assert!(Instant::now() < deadline, "{} of {limit} descriptors are used", descriptors(&receiver));
        std::thread::sleep(Duration::from_millis(20));
    }
    // The system refuses the next one more than once, and nobody is answered.
    let mut refused = TcpStream::connect(&metrics).unwrap();
    refused.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
    refused.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").unwrap();
    assert!(refused.read(&mut [0; 64]).is_err(), "a reader is answered for whom there was no descriptor");
    drop(silent);
    refused.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut answer = String::new();
    refused.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 OK") && answer.ends_with("ok\n"), "{answer}");
    assert_eq!(get(&metrics, "GET", "/healthz"), ok());
    receiver.interrupt();
}
