//! The halves of adaptive acknowledgment over a link.
//!
//! Called by the tests.

use crate::adaptive_ack::{Config, Feedback, Rearming, Receiver, Sender};
use crate::link::{self, PACKET_BYTES};
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_blocks::RateSpec;

/// The round trip of the link, where a test has no other.
pub(super) const RTT: Duration = Duration::from_millis(2);
/// The periods of the paper's optimum (AA 3.2.2).
pub(super) const T_NORMAL: Duration = Duration::from_millis(40);
pub(super) const T_ERROR: Duration = Duration::from_millis(5);

/// A window of 32 packets of 1000 bytes, 100 us apart, with the paper's periods.
pub(super) fn config() -> Config {
    Config {
        connection: 7,
        packet_bytes: PACKET_BYTES,
        segment_packets: 1,
        window: 32,
        rate: RateSpec::smooth(Bandwidth::from_megabits_per_second(80)),
        rtt: RTT,
        t_normal: T_NORMAL,
        t_error: T_ERROR,
        rearming: Rearming::Phase,
        tail_rule: true,
    }
}

pub(super) type Link = link::Link<Sender, Receiver>;

/// A link for `segments` full ones. `lose` says what is lost forward: the number of the packet, and how often it left before.
pub(super) fn link(
    config: &Config,
    rtt: Duration,
    segments: u64,
    mut lose: impl FnMut(u32, usize) -> bool + 'static,
    mut lose_back: impl FnMut(&Feedback) -> bool + 'static,
) -> Link {
    let halves = (Sender::new(config.clone(), Instant::ZERO).unwrap(), Receiver::new(config.clone(), Instant::ZERO).unwrap());
    let bytes = u64::from(config.segment_packets) * u64::from(config.payload_bytes());
    let lengths = (0..segments).map(|_| bytes);
    Link::new(halves, rtt, lengths, move |packet, times| lose(packet.sequence(), times), move |answer, _| lose_back(answer))
}
