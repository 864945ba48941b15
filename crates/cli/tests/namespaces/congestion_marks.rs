//! What the kernel has said it understands is marked instead of dropped.

use crate::testbed::{Side, testbed};
use std::time::Duration;

/// Transfers over TCP with `tcp_ecn` set to `ecn`; the forward lane of the report, and how many marked packets arrived.
fn transfer(ecn: &str) -> Option<(serde_json::Value, u64)> {
    let flags = ["--bandwidth", "20mbit", "--rtt", "20ms", "--queue", "4MiB", "--mark-above", "5ms"];
    let testbed = testbed(&flags)?;
    for side in [Side::A, Side::B] {
        testbed.set(side, "ipv4/tcp_ecn", ecn);
    }
    testbed.kernel_tcp("cubic", Duration::from_secs(3));
    let marked = testbed.counter(Side::B, "IpExt", "InCEPkts");
    // A header with a wrong checksum would have been dropped, and counted here.
    assert_eq!(testbed.counter(Side::B, "Ip", "InHdrErrors"), 0);
    assert_eq!(testbed.counter(Side::B, "Tcp", "InCsumErrors"), 0);
    Some((testbed.end().json()["forward"].clone(), marked))
}

#[test]
fn tcp_that_negotiated_ecn_is_marked_and_heeds_it() {
    let Some((forward, marked)) = transfer("1") else { return };
    assert!(marked > 0, "{forward}");
    assert!(marked <= forward["packets_marked"].as_u64().unwrap(), "{forward}");
    assert_eq!(forward["packets_dropped_queue"], 0);
    // Without marks the sender would fill the queue of 4 MiB, 1.6 s of the link.
    assert!(forward["queueing_ms_p95"].as_f64().unwrap() < 100.0, "{forward}");
}

#[test]
fn tcp_that_did_not_negotiate_it_is_not_marked() {
    let Some((forward, marked)) = transfer("0") else { return };
    assert_eq!((forward["packets_marked"].as_u64(), marked), (Some(0), 0));
}
