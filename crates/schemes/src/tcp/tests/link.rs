//! The halves of TCP over a link.
//!
//! Called by the tests.

use crate::link::{self, PACKET_BYTES};
use crate::tcp::{Backoff, Config, Feedback, Receiver, Sender};
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_blocks::RateSpec;

/// The round trip of the link.
pub(super) const RTT: Duration = Duration::from_millis(40);

/// A window of 32 packets of 1000 bytes, 100 us apart: a window leaves in less than a tenth of the round trip.
pub(super) fn config(backoff: Backoff) -> Config {
    Config {
        connection: 7,
        packet_bytes: PACKET_BYTES,
        segment_packets: 1,
        window: 32,
        rate: RateSpec::smooth(Bandwidth::from_megabits_per_second(80)),
        rtt: RTT,
        backoff,
        granularity: Duration::ZERO,
    }
}

pub(super) type Link = link::Link<Sender, Receiver>;

/// A link that has transferred `segments` full ones. `lose` says what is lost forward: the number of the packet, and how
/// often it left before.
pub(super) fn settled(
    config: &Config,
    segments: u64,
    mut lose: impl FnMut(u32, usize) -> bool + 'static,
    mut lose_back: impl FnMut(&Feedback) -> bool + 'static,
) -> Link {
    let halves = (Sender::new(config.clone(), Instant::ZERO).unwrap(), Receiver::new(config.clone(), Instant::ZERO).unwrap());
    let bytes = u64::from(config.segment_packets) * u64::from(config.payload_bytes());
    let lengths = (0..segments).map(|_| bytes);
    let mut link = Link::new(halves, RTT, lengths, move |packet, times| lose(packet.sequence(), times), move |answer, _| lose_back(answer));
    link.settle();
    link
}
