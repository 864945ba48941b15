//! What both halves of TCP must agree on.
//!
//! Called by the code that constructs the halves.
//!
//! Invariant: a configuration that passes [`Config::check`] makes halves that can transfer.

use super::packet::Forward;
use core::fmt;
use core::str::FromStr;
use segstream_base::{Bytes, Duration};
use segstream_blocks::{RateSpec, RateSpecError};

/// What happens to a timeout that was backed off. HT 7 says "Karn's algorithm and timer backoff" with a factor of 2;
/// with a timer for every packet that leaves three readings, which differ from a loss of 1e-2 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Backoff {
    /// It is kept (Karn and Partridge 1987, section 4): a packet whose timer has run out waits twice as long as it did,
    /// and no packet sent from then on, new or again, waits less, until an acknowledgment gives a fresh sample.
    /// A window whose timers were set to one timeout and run out one after the other so doubles it once.
    #[default]
    Retain,
    /// Each packet backs off alone: twice its own last wait each time it is retransmitted. New packets always wait what
    /// the last sample says.
    Own,
    /// One timer runs, for the oldest packet, as in RFC 6298 5.1 to 5.6: it is started anew when an acknowledgment
    /// moves on; when it runs out that packet alone is retransmitted and the timeout, kept as by [`Backoff::Retain`],
    /// doubles.
    Oldest,
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Retain => "retain",
            Self::Own => "own",
            Self::Oldest => "oldest",
        })
    }
}

/// A text that names no backoff.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a backoff; write retain, own or oldest")]
pub struct BackoffError(String);

impl FromStr for Backoff {
    type Err = BackoffError;

    fn from_str(text: &str) -> Result<Self, BackoffError> {
        match text {
            "retain" => Ok(Self::Retain),
            "own" => Ok(Self::Own),
            "oldest" => Ok(Self::Oldest),
            other => Err(BackoffError(other.to_owned())),
        }
    }
}

/// What both halves must agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The connection identifier that every packet carries.
    pub connection: u32,
    /// A whole data packet, header included, in bytes.
    pub packet_bytes: u32,
    /// The packets of a full segment; a segment may be shorter.
    pub segment_packets: u32,
    /// How many packets from the first unacknowledged one on may be in flight. It never changes.
    pub window: u32,
    /// The rate at which packets leave: that of the line. What limits HT's sender is its processor.
    pub rate: RateSpec,
    /// The round trip that the first timeout is set from, before there is a sample: three times this.
    pub rtt: Duration,
    /// What happens to a timeout that was backed off.
    pub backoff: Backoff,
    /// The tick of the timers: each runs out at the next whole multiple. Zero, as in simulation, has none.
    pub granularity: Duration,
}

/// Why a configuration cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The packet has no room for payload or does not fit a datagram.
    #[error("a packet of {0} bytes is not possible; choose {min} to {max} bytes", min = Forward::OVERHEAD_BYTES + 1, max = u16::MAX)]
    PacketBytes(u32),
    /// The segment has no packets, or more than its header can number.
    #[error("a segment of {0} packets is not possible; choose 1 to {max} packets", max = u16::MAX)]
    SegmentPackets(u32),
    /// The window has no packets, or more than are kept.
    #[error("a window of {0} packets is not possible; choose 1 to {max} packets", max = Config::WINDOW_MAX)]
    Window(u32),
    /// There is no round trip.
    #[error("the round trip is 0, so every packet would be sent again at once; give the round trip of the path")]
    RttZero,
    /// The rate cannot carry packets.
    #[error(transparent)]
    Rate(#[from] RateSpecError),
}

impl Config {
    /// The longest window in packets.
    pub const WINDOW_MAX: u32 = 1 << 24;

    /// Whether halves can be made of it.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.packet_bytes <= Forward::OVERHEAD_BYTES || self.packet_bytes > u32::from(u16::MAX) {
            return Err(ConfigError::PacketBytes(self.packet_bytes));
        }
        if self.segment_packets == 0 || self.segment_packets > u32::from(u16::MAX) {
            return Err(ConfigError::SegmentPackets(self.segment_packets));
        }
        if self.window == 0 || self.window > Self::WINDOW_MAX {
            return Err(ConfigError::Window(self.window));
        }
        if self.rtt.is_zero() {
            return Err(ConfigError::RttZero);
        }
        Ok(self.rate.check(Bytes::new(u64::from(self.packet_bytes)))?)
    }

    /// The payload of a full packet in bytes.
    pub fn payload_bytes(&self) -> u32 {
        self.packet_bytes.saturating_sub(Forward::OVERHEAD_BYTES)
    }
}
