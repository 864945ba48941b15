//! The halves of XTP over a link.
//!
//! Called by the tests.

use crate::link::{self, PACKET_BYTES};
use crate::xtp::{Config, Feedback, Forward, Options, Question, Receiver, ReceiverStrategy, Sender, SenderStrategy};
use segstream_base::halves::Packet as _;
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_blocks::RateSpec;
use std::collections::BTreeMap;

/// The round trip of the link.
pub(super) const RTT: Duration = Duration::from_millis(4);
/// What WTIMER is set to.
pub(super) const WTIMER: Duration = Duration::from_millis(10);
/// The packets of a window.
pub(super) const WINDOW: u64 = 32;
/// The sequence numbers of a full packet of 1000 bytes.
pub(super) const FULL: u64 = 968;

/// A window of 32 packets of 1000 bytes, 100 us apart.
pub(super) fn config(sender: SenderStrategy, receiver: ReceiverStrategy) -> Config {
    Config {
        key: 7,
        packet_bytes: PACKET_BYTES,
        segment_packets: 1,
        window: WINDOW as u32,
        sender,
        receiver,
        asks: Question::Status,
        reads: Duration::ZERO,
        wtimer: WTIMER,
        control_rtt: RTT,
        asks_in_pauses: true,
        backlog_packets: Some(50),
        rate: Some(RateSpec::smooth(Bandwidth::from_megabits_per_second(80))),
    }
}

/// All twelve pairs of strategies.
pub(super) fn pairs() -> impl Iterator<Item = (SenderStrategy, ReceiverStrategy)> {
    SenderStrategy::ALL.into_iter().flat_map(|sender| ReceiverStrategy::ALL.into_iter().map(move |receiver| (sender, receiver)))
}

pub(super) fn sequence(packet: &Forward) -> u64 {
    match packet {
        Forward::Data { sequence, .. } | Forward::Control { sequence, .. } => *sequence,
    }
}

pub(super) fn asks(packet: &Forward) -> bool {
    match packet {
        Forward::Data { options, .. } | Forward::Control { options, .. } => options.has_any(Options::SREQ.and(Options::DREQ)),
    }
}

pub(super) type Link = link::Link<Sender, Receiver>;

/// A link for segments of these lengths. `lose` says what is lost forward: the packet, and how often data with its first byte
/// left before; `lose_back` what is lost back: the state, and how many were told before.
pub(super) fn link(
    config: &Config,
    segments: impl IntoIterator<Item = u64>,
    mut lose: impl FnMut(&Forward, usize) -> bool + 'static,
    mut lose_back: impl FnMut(&Feedback, usize) -> bool + 'static,
) -> Link {
    let halves = (Sender::new(config.clone(), Instant::ZERO).unwrap(), Receiver::new(config.clone(), Instant::ZERO).unwrap());
    // A repetition may ask where the first transmission did not, so that no two are alike.
    let mut left = BTreeMap::new();
    let forward = move |packet: &Forward, _: usize| {
        let times = if packet.is_data() { left.entry(sequence(packet)).or_default() } else { &mut 0 };
        *times += 1;
        lose(packet, *times - 1)
    };
    let mut told = 0;
    let back = move |state: &Feedback, _: usize| {
        assert!(state.is_consistent());
        told += 1;
        lose_back(state, told - 1)
    };
    Link::new(halves, RTT, segments, forward, back)
}

impl Link {
    /// When full packet `number` left for the `time`-th time, counted from 0.
    pub(super) fn left(&self, number: u64, time: usize) -> Instant {
        let times = self.times_of(|packet| packet.is_data() && sequence(packet) == number * FULL);
        *times.get(time).unwrap_or_else(|| panic!("{number} never left so often"))
    }

    /// The numbers of the full packets that left, in their order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.sent.iter().filter(|sent| sent.0.is_data()).map(|sent| sequence(&sent.0) / FULL)
    }

    /// The CNTL that left, and when.
    pub(super) fn controls(&self) -> impl Iterator<Item = &(Forward, Instant)> {
        self.sent.iter().filter(|sent| !sent.0.is_data())
    }
}
