//! Kernel TCP by iperf3: its two ends, and what its receiver read.
//!
//! Called by [`super::trial`]. Source: `iperf3 --json`, version 3.1 and later.
//!
//! Invariant: bytes are those that the receiver's application read, per flow and interval.

use anyhow::{Context as _, Result, ensure};
use segstream_testbed::process::Running;
use segstream_testbed::{Ends, Side};
use serde::Deserialize;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a receiver takes at most to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// The state of a socket that listens, as the kernel prints it.
const LISTENING: &str = "0A";

/// Whether it is installed.
pub(super) fn ensure_installed() -> Result<()> {
    let found = Command::new("iperf3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    ensure!(found.is_ok(), "there is no iperf3, which carries the kernel's TCP; install it (apt-get install iperf3)");
    Ok(())
}

/// Starts a receiver for one test and waits until it listens.
pub(super) fn receiver(ends: &Ends, port: u16) -> Result<Running> {
    let (port_text, address) = (port.to_string(), ends.address(Side::B).to_string());
    let flags = ["-s", "-1", "-J", "-i", "0.1", "-B", &address, "-p", &port_text];
    let running = ends.start(Side::B, Path::new("iperf3"), &flags, Stdio::null());
    let begun = Instant::now();
    while !is_listening(ends, port) {
        ensure!(begun.elapsed() < PATIENCE, "iperf3 does not listen on port {port}");
        thread::sleep(Duration::from_millis(10));
    }
    Ok(running)
}

/// Starts a sender of `count` flows.
pub(super) fn sender(ends: &Ends, port: u16, congestion_control: &str, count: usize, seconds: f64) -> Running {
    let (port, address) = (port.to_string(), ends.address(Side::B).to_string());
    let (count, seconds) = (count.to_string(), format!("{:.0}", seconds.ceil()));
    let flags = ["-c", &address, "-p", &port, "-C", congestion_control, "-P", &count, "-t", &seconds, "-J"];
    ends.start(Side::A, Path::new("iperf3"), &flags, Stdio::null())
}

fn is_listening(ends: &Ends, port: u16) -> bool {
    let table = ends.inside(Side::B, || fs::read_to_string("/proc/thread-self/net/tcp")).unwrap_or_default();
    let end = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut columns = line.split_whitespace().skip(1);
        columns.next().is_some_and(|local| local.ends_with(&end)) && columns.nth(1) == Some(LISTENING)
    })
}

/// What is needed of the receiver's output.
#[derive(Debug, Deserialize)]
struct Output {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    intervals: Vec<Interval>,
}

#[derive(Debug, Deserialize)]
struct Interval {
    streams: Vec<Stream>,
}

#[derive(Debug, Deserialize)]
struct Stream {
    socket: i64,
    end: f64,
    bytes: f64,
}

/// For each flow the end of each interval, in seconds since the test began, and the bytes that were read in it.
pub(super) fn parse(json: &[u8]) -> Result<Vec<Vec<(f64, f64)>>> {
    let output: Output = serde_json::from_slice(json).context("iperf3 says what cannot be understood; is it version 3.1 or later?")?;
    let mut flows: Vec<(i64, Vec<(f64, f64)>)> = Vec::new();
    for Stream { socket, end, bytes } in output.intervals.into_iter().flat_map(|interval| interval.streams) {
        match flows.iter_mut().find(|(known, _)| *known == socket) {
            Some((_, intervals)) => intervals.push((end, bytes)),
            None => flows.push((socket, vec![(end, bytes)])),
        }
    }
    // Why only then: a sender that was ended in time makes the receiver complain, and what it read still counts.
    ensure!(!flows.is_empty(), "iperf3 carried nothing: {}", output.error.as_deref().unwrap_or("it does not say why"));
    Ok(flows.into_iter().map(|(_, intervals)| intervals).collect())
}

/// What an end says went wrong.
pub(super) fn complaint(json: &[u8]) -> String {
    let told = serde_json::from_slice::<Output>(json).ok().and_then(|output| output.error);
    format!("iperf3 failed: {}", told.as_deref().unwrap_or("it does not say why"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_each_flow_are_told_apart() {
        let json = br#"{"start":{"version":"iperf 3.12"},"intervals":[
            {"streams":[{"socket":5,"start":0,"end":1.0,"seconds":1,"bytes":655360,"bits_per_second":5242880,"omitted":false,"sender":false},
                        {"socket":8,"start":0,"end":1.1,"seconds":1.1,"bytes":10,"bits_per_second":1,"omitted":false,"sender":false}],
             "sum":{"start":0,"end":1.0,"bytes":655370}},
            {"streams":[{"socket":5,"start":1.0,"end":2.0,"bytes":7},{"socket":8,"start":1.1,"end":2.1,"bytes":0}]}],
            "end":{"sum_received":{"bytes":655377,"bits_per_second":5.0}}}"#;
        assert_eq!(parse(json).unwrap(), [vec![(1.0, 655_360.0), (2.0, 7.0)], vec![(1.1, 10.0), (2.1, 0.0)]]);
    }

    #[test]
    fn a_test_that_failed_says_why_and_no_json_is_told() {
        let failed = parse(br#"{"start":{},"intervals":[],"end":{},"error":"the client has terminated"}"#).unwrap_err();
        assert!(failed.to_string().contains("the client has terminated"), "{failed}");
        assert!(parse(b"iperf3: error").is_err());
        assert_eq!(complaint(br#"{"error":"unable to connect"}"#), "iperf3 failed: unable to connect");
    }
}
