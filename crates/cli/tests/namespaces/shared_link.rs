//! The flagship at automatic rate and the kernel's TCP on one link.

use crate::process::{Ended, binary, content};
use crate::testbed::{Side, testbed};
use serde_json::Value;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

const LINK_BPS: f64 = 20e6;
const TCP_PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;
const FILE_BYTES: u64 = 10 << 20;

#[test]
fn the_flagship_beside_tcp_keeps_its_promise_and_both_make_progress_on_a_link_that_carries_no_more_than_it_has() {
    let Some(testbed) = testbed(&["--bandwidth", "20mbit", "--rtt", "40ms"]) else { return };
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content(FILE_BYTES as usize)).unwrap();
    let listen = format!("{}:0", testbed.address(Side::B));
    let flags = ["recv", "--listen", &listen, "--insecure", "--json", "--stats", "50ms"];
    let mut receiver = testbed.start(Side::B, binary(), &flags, Stdio::null());
    let to = receiver.listening().to_string();
    let flags = ["send", &to, &file.path().to_string_lossy(), "--rate", "auto", "--insecure", "--json"];
    let sender = testbed.start(Side::A, binary(), &flags, Stdio::null());
    // Why: who begins in the same moment as the other may be long without a share; that is for the studies to judge.
    thread::sleep(Duration::from_millis(1500));
    let joined = Instant::now();
    let series = testbed.kernel_tcp("cubic", Duration::from_secs(4));
    let left = Instant::now();
    let (sender, receiver) = (sender.end().expect(0), receiver.end().expect(0));
    let report = testbed.end().json();

    // Without tolerated losses everything was promised.
    let (sent, received) = (sender.json(), receiver.json());
    assert_eq!((sent["bytes"].as_u64(), sent["hash_agrees"].as_bool()), (Some(FILE_BYTES), Some(true)), "{sent}");
    assert_eq!((received["bytes"].as_u64(), received["holes"].as_u64()), (Some(FILE_BYTES), Some(0)), "{received}");
    let of_link = |bytes: u64, time: Duration| bytes as f64 * 8.0 / time.as_secs_f64() / LINK_BPS;
    let together = left - joined;
    let ours = of_link(received_at(&receiver, left) - received_at(&receiver, joined), together);
    let tcp_bytes = series.arrived.last().unwrap().1;
    let tcp = of_link(tcp_bytes, together) / TCP_PAYLOAD_SHARE;
    assert!(ours > 0.05 && tcp > 0.05, "{ours} and {tcp} of the link; {sent}; {report}");
    for (at, bytes) in &series.arrived {
        let most = LINK_BPS / 8.0 * TCP_PAYLOAD_SHARE * at.as_secs_f64();
        assert!(*bytes as f64 <= most, "{bytes} bytes of TCP after {at:?}, of which {most} could have come");
    }
    // All that was carried in all of the time: when a line was read proves nothing about when its bytes came.
    let all = of_link(FILE_BYTES + tcp_bytes, Duration::from_secs_f64(report["seconds"].as_f64().unwrap()));
    assert!(all <= 1.0, "{all} of the link; {report}");
    eprintln!("{ours:.3} and {tcp:.3} of the link");
}

/// The bytes of datagrams that a receiver had counted at a moment.
fn received_at(receiver: &Ended, at: Instant) -> u64 {
    let lines = receiver.said.iter().take_while(|said| said.at <= at);
    let bytes = |line: &str| serde_json::from_str::<Value>(line).ok()?["bytes_received"].as_u64();
    lines.filter_map(|said| bytes(&said.line)).last().unwrap_or(0)
}
