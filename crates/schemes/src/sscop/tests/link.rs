//! The halves of SSCOP over a link.
//!
//! Called by the tests.

use crate::link::{self, Fate, PACKET_BYTES};
use crate::sscop::{Config, Feedback, Forward, Receiver, Sender};
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_blocks::RateSpec;

/// The round trip of the link.
pub(super) const RTT: Duration = Duration::from_millis(4);
/// The payload of a full SD.
pub(super) const PAYLOAD: u64 = 996;

/// A window of 64 SDs of 1000 bytes, 100 us apart: it does not close within a round trip.
pub(super) fn config() -> Config {
    Config {
        packet_bytes: PACKET_BYTES,
        window: 64,
        rate: RateSpec::smooth(Bandwidth::from_megabits_per_second(80)),
        rtt: RTT,
        timer_poll: Duration::from_millis(2),
        ..Config::default()
    }
}

pub(super) type Link = link::Link<Sender, Receiver>;

/// A link for `segments` full ones.
pub(super) fn link<F: Into<Fate>, B: Into<Fate>>(
    config: &Config,
    segments: u64,
    forward: impl FnMut(&Forward, usize) -> F + 'static,
    back: impl FnMut(&Feedback, usize) -> B + 'static,
) -> Link {
    link_after(0, config, segments, forward, back)
}

/// The same for halves that have transferred `number` segments before.
pub(super) fn link_after<F: Into<Fate>, B: Into<Fate>>(
    number: u64,
    config: &Config,
    segments: u64,
    forward: impl FnMut(&Forward, usize) -> F + 'static,
    back: impl FnMut(&Feedback, usize) -> B + 'static,
) -> Link {
    let sender = Sender::new(config.clone(), Instant::ZERO).unwrap().numbered_from(number);
    let receiver = Receiver::new(config.clone(), Instant::ZERO).unwrap().numbered_from(number);
    Link::new((sender, receiver), RTT, (0..segments).map(|_| PAYLOAD), forward, back)
}

impl Link {
    /// When each transmission of an SD left.
    pub(super) fn sd(&self, number: u32) -> Vec<Instant> {
        self.times_of(|packet| matches!(packet, Forward::Sd { n_s, .. } if *n_s == number))
    }

    pub(super) fn polls(&self) -> Vec<Instant> {
        self.times_of(|packet| matches!(packet, Forward::Poll { .. }))
    }

    pub(super) fn sent(&self) -> impl Iterator<Item = &Forward> {
        self.sent.iter().map(|sent| &sent.0)
    }

    pub(super) fn answers(&self) -> impl Iterator<Item = &Feedback> {
        self.told.iter().map(|told| &told.0)
    }
}
