//! Every transport that is there does every workload over loopback, through the lines of JSON that its ends say.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_segstream-peers");

fn start(words: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(PROGRAM).args(words).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stdout.take().unwrap());
    (child, said)
}

fn line(said: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

fn list() -> Vec<Value> {
    let listed = Command::new(PROGRAM).args(["end", "--list", "--json"]).output().unwrap();
    serde_json::from_slice(&listed.stdout).unwrap()
}

/// What both ends say at last: who serves, then who runs.
fn measured(transport: &str, workload: &[&str]) -> [Value; 2] {
    let (mut server, mut served) = start(&[&["end", transport, "--side", "serve", "--bind", "127.0.0.1:0"], workload].concat());
    let listening = line(&mut served);
    let [address, trust] = ["listening", "trust"].map(|name| listening[name].as_str().unwrap());
    let trust = format!("--trust={trust}");
    let (mut client, mut ran) = start(&[&["end", transport, "--side", "run", "--connect", address, &trust], workload].concat());
    let outcomes = [line(&mut served), line(&mut ran)];
    for (end, mut said) in [(&mut server, served), (&mut client, ran)] {
        assert!(end.wait().unwrap().success(), "{transport}: {outcomes:?}");
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "{transport}");
    }
    outcomes
}

/// Does it with every transport that is there, and says which are not.
fn with_each(workload: &[&str], check: fn(&str, &[Value; 2])) {
    let mut measured_count = 0;
    for transport in list() {
        let name = transport["name"].as_str().unwrap();
        if transport["available"] == false {
            eprintln!("not measured: {name}: {}", transport["why"].as_str().unwrap());
            continue;
        }
        check(name, &measured(name, workload));
        measured_count += 1;
    }
    // Those that need nothing installed.
    assert!(measured_count >= 4);
}

#[test]
fn every_byte_of_a_throughput_arrives() {
    let workload = ["--workload", "throughput", "--bytes", "4194304", "--segment-bytes", "1000000", "--datagram-bytes", "1200"];
    with_each(&workload, |name, [served, ran]| {
        assert_eq!(served["bytes"], 4_194_304, "{name}: {served}");
        assert_eq!(ran["bytes"], 4_194_304, "{name}: {ran}");
        assert!(served["seconds"].as_f64().unwrap() > 0.0, "{name}");
    });
}

#[test]
fn round_trips_are_counted_without_those_that_warm_up() {
    with_each(&["--workload", "ping-pong", "--count", "20", "--warm-up", "5"], |name, [served, ran]| {
        assert_eq!(served["complete"], 20, "{name}: {served}");
        assert_eq!(ran["round_trips_us"].as_array().unwrap().len(), 15, "{name}: {ran}");
    });
}

#[test]
fn every_segment_of_a_schedule_is_complete_and_has_its_delay() {
    let workload = ["--workload", "schedule", "--count", "20", "--segment-bytes", "100000", "--interval-us", "5000", "--warm-up", "5"];
    with_each(&workload, |name, [served, _]| {
        assert_eq!((&served["complete"], &served["incomplete"]), (&Value::from(20), &Value::from(0)), "{name}: {served}");
        let delays: Vec<f64> = served["delays_ms"].as_array().unwrap().iter().map(|delay| delay.as_f64().unwrap()).collect();
        // The last segments wait for nothing, so a clock that both ends do not share would show.
        assert!(delays.len() == 15 && delays.iter().all(|delay| (0.0..60_000.0).contains(delay)), "{name}: {delays:?}");
    });
}

#[test]
fn a_transfer_by_time_ends() {
    with_each(&["--workload", "throughput", "--seconds", "0.3"], |name, [served, _]| {
        assert!(served["bytes"].as_u64().unwrap() > 0, "{name}: {served}");
    });
}

#[test]
fn live_srt_keeps_its_latency() {
    let srt = list().into_iter().find(|transport| transport["name"] == "srt").unwrap();
    if srt["available"] == false {
        return eprintln!("not measured: srt: {}", srt["why"].as_str().unwrap());
    }
    let workload = ["--workload", "schedule", "--count", "10", "--segment-bytes", "100000", "--interval-us", "5000", "--latency-ms", "150"];
    let [served, _] = measured("srt", &workload);
    let delays = served["delays_ms"].as_array().unwrap();
    // What comes in time is handed over when it was sent and 150 ms more, to its millisecond or so.
    assert!(!delays.is_empty() && delays.iter().all(|delay| delay.as_f64().unwrap() >= 145.0), "{served}");
}

#[test]
fn who_cannot_be_measured_says_why_in_json() {
    for (words, sentence) in [
        (vec!["end", "udp"], "choose one of tcp, quinn"),
        (vec!["end", "quinn", "--side", "run", "--connect", "127.0.0.1:9"], "--trust"),
        (vec!["end", "kcp", "--congestion", "bbr"], "no --congestion bbr"),
    ] {
        let said = Command::new(PROGRAM).args(&words).output().unwrap();
        assert_eq!(said.status.code(), Some(1), "{words:?}");
        let said: Value = serde_json::from_slice(&said.stdout).unwrap();
        assert!(said["error"].as_str().unwrap().contains(sentence), "{said}");
    }
}

#[test]
#[cfg(not(feature = "aeron"))]
fn a_program_without_aeron_says_how_to_get_it() {
    let said = Command::new(PROGRAM).args(["end", "aeron"]).output().unwrap();
    assert_eq!(said.status.code(), Some(1));
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert!(said["error"].as_str().unwrap().contains("--features aeron"), "{said}");
}

#[test]
#[cfg(feature = "aeron")]
fn aeron_leaves_nothing_in_shared_memory_even_if_it_fails() {
    let aeron = list().into_iter().find(|transport| transport["name"] == "aeron").unwrap();
    assert_eq!(aeron["available"], true, "{aeron}");
    // An address that no machine has cannot be listened on.
    let child = Command::new(PROGRAM).args(["end", "aeron", "--bind", "192.0.2.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let folder = format!("/dev/shm/segstream-peers-aeron-{}", child.id());
    let said = child.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(1));
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert!(said["error"].as_str().unwrap().contains("cannot be listened on"), "{said}");
    assert!(!std::path::Path::new(&folder).exists());
}

#[test]
fn a_server_whose_certificate_is_another_is_refused() {
    let (mut server, mut served) = start(&["end", "quinn", "--side", "serve"]);
    let (mut other, mut others) = start(&["end", "quinn", "--side", "serve"]);
    let [address, trust] =
        [(&mut served, "listening"), (&mut others, "trust")].map(|(said, name)| line(said)[name].as_str().unwrap().to_owned());
    let ran = Command::new(PROGRAM).args(["end", "quinn", "--side", "run", "--connect", &address, "--trust", &trust]).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    for child in [&mut server, &mut other] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
