//! The link of these studies, and the flows over it.
//!
//! Called by the studies of this folder.
//!
//! Invariant: the point is 100 Mbit/s, a round trip of 60 ms and a queue of one bandwidth-delay product; the flagship's
//! window is never its limit.

use crate::curves::{Look, SHADES};
use segstream_base::Tolerance;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_blocks::congestion::{bbr1, cubic, reno};
use segstream_lab::figure::{Line, Marker};
use segstream_lab::flagship;
use segstream_lab::scenario::Scenario;
use segstream_lab::shared::{Pace, SharedFlow, SharedScenario, Traffic};

/// The flagship's name where it is alone.
pub(super) const OURS: &str = "ours";
/// The common bandwidth.
pub(super) const BANDWIDTH: Bandwidth = mbit(100);
/// The common round trip.
pub(super) const RTT: Duration = Duration::from_millis(60);
/// The size of the flagship's packets: its units are at most 1120 bytes long. TCP's have 1500.
const PACKET_BYTES: u32 = 1144;
const SEGMENT_PACKETS: u32 = 32;

/// A bandwidth in Mbit/s.
pub(super) const fn mbit(rate: u64) -> Bandwidth {
    Bandwidth::from_megabits_per_second(rate)
}

/// An instant by the clock of the run.
pub(super) fn second(count: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(count)
}

/// A link whose queue holds this many bandwidth-delay products of `rtt`.
pub(super) fn link(bandwidth: Bandwidth, rtt: Duration, products: f64) -> SharedScenario {
    let queue = Bytes::new((bandwidth.bytes_in(rtt).get() as f64 * products) as u64);
    SharedScenario { bandwidth, queue, duration: Duration::from_secs(20), ..SharedScenario::default() }
}

/// The link at the common point.
pub(super) fn common() -> SharedScenario {
    link(BANDWIDTH, RTT, 1.0)
}

/// The flagship at a congestion-controlled rate, without tolerated losses.
pub(super) fn stream(name: &str, bandwidth: Bandwidth, rtt: Duration) -> SharedFlow {
    let segment = u64::from(SEGMENT_PACKETS * PACKET_BYTES);
    // Why twelve products: what waits in the longest queue here, four of them, and two rounds of repair beside it.
    let window = 12 * bandwidth.bytes_in(rtt).get() / segment + 64;
    let scenario = Scenario::default().with(|it| {
        it.scheme = flagship::Settings::default().into();
        it.workload.packet_bytes = PACKET_BYTES;
        it.workload.segment_packets = SEGMENT_PACKETS;
        it.workload.tolerance = Tolerance::reliable(SEGMENT_PACKETS);
        it.workload.window = u32::try_from(window).unwrap_or(u32::MAX);
    });
    SharedFlow { rtt, ..SharedFlow::new(name, Traffic::Scheme { scenario: Box::new(scenario), pace: Pace::AUTO }) }
}

/// The flagship at the common point.
pub(super) fn ours() -> SharedFlow {
    stream(OURS, BANDWIDTH, RTT)
}

/// A TCP at the common round trip.
pub(super) fn tcp(name: &str, traffic: Traffic) -> SharedFlow {
    SharedFlow { rtt: RTT, ..SharedFlow::new(name, traffic) }
}

/// How [`TCPS`] are drawn, in their order.
pub(super) const TCP_LOOKS: [Look; 3] = [
    Look { colour: SHADES[2], marker: Marker::Square, line: Line::Solid },
    Look { colour: SHADES[3], marker: Marker::Triangle, line: Line::Solid },
    Look { colour: SHADES[4], marker: Marker::Diamond, line: Line::Solid },
];
/// The TCPs that it is compared with, by name.
pub(super) const TCPS: [(&str, Traffic); 3] = [
    ("CUBIC", Traffic::Tcp { congestion: &cubic::LINUX, ecn: None }),
    ("Reno", Traffic::Tcp { congestion: &reno::ALGORITHM, ecn: None }),
    ("BBR", Traffic::Tcp { congestion: &bbr1::ALGORITHM, ecn: None }),
];

/// Of these CUBIC and BBR, as they are drawn.
pub(super) const fn cubic_and_bbr() -> [(&'static str, Traffic, Look); 2] {
    let [(cubic, of_cubic), _, (bbr, of_bbr)] = TCPS;
    [(cubic, of_cubic, TCP_LOOKS[0]), (bbr, of_bbr, TCP_LOOKS[2])]
}
