//! The kernel's TCP gets what the link has, and no more.

use crate::testbed::testbed;
use segstream_testbed::kernel_tcp::is_available;
use std::time::Duration;

const LINK_BPS: f64 = 20e6;

/// TCP's payload in a full packet: 20 bytes of IPv4, 20 of TCP and 12 of its time stamps are not.
const PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;

#[test]
fn kernel_tcp_fills_the_link_and_never_exceeds_it() {
    for congestion_control in ["cubic", "bbr"] {
        if congestion_control == "bbr" && !is_available(congestion_control) {
            eprintln!("NOT TESTED: this kernel has no {congestion_control}");
            continue;
        }
        let Some(testbed) = testbed(&["--bandwidth", "20mbit", "--rtt", "20ms"]) else { return };
        let series = testbed.kernel_tcp(congestion_control, Duration::from_secs(5));
        let report = testbed.end().json();
        for (at, bytes) in &series.arrived {
            let most = LINK_BPS / 8.0 * PAYLOAD_SHARE * at.as_secs_f64();
            assert!(*bytes as f64 <= most, "{congestion_control}: {bytes} bytes after {at:?}, of which {most} could have come");
        }
        // What came before is the start.
        let filled = series.bps(Duration::from_secs(1), Duration::from_secs(5)) / (LINK_BPS * PAYLOAD_SHARE);
        let steps = series.steps_bps(Duration::from_millis(100));
        assert!(filled >= 0.85, "{congestion_control} filled {filled} of the link: {steps:?}; {report}");
        eprintln!("{congestion_control}: {filled:.4} of the link");
    }
}
