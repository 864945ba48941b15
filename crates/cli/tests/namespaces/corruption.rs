//! A flipped bit is noticed by whoever checks.

use crate::testbed::{Side, testbed};
use std::time::Duration;

#[test]
fn a_flipped_bit_fails_a_checksum_wherever_it_falls() {
    let Some(testbed) = testbed(&["--bandwidth", "100mbit", "--rtt", "2ms", "--corrupt", "1"]) else { return };
    let [client, server] = [Side::A, Side::B].map(|side| testbed.udp(side));
    server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    for _ in 0..200 {
        client.send_to(&[5; 100], server.local_addr().unwrap()).unwrap();
    }
    assert!(server.recv_from(&mut [0; 200]).is_err());
    let (of_header, of_payload) = (testbed.counter(Side::B, "Ip", "InHdrErrors"), testbed.counter(Side::B, "Udp", "InCsumErrors"));
    let forward = testbed.end().json()["forward"].clone();
    assert_eq!(forward["packets_corrupted"], 200);
    // 28 of 128 bytes are headers.
    assert!(of_header > 10 && of_payload > 100, "{of_header} {of_payload}");
}
