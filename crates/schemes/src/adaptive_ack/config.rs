//! What both halves of adaptive acknowledgment must agree on.
//!
//! Called by the code that constructs the halves.
//!
//! Invariant: a configuration that passes [`Config::check`] makes halves that can transfer.

use super::Rearming;
use super::packet::Forward;
use segstream_base::{Bytes, Duration};
use segstream_blocks::{RateSpec, RateSpecError};

/// What both halves must agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The connection identifier that every packet carries.
    pub connection: u32,
    /// A whole DATA packet, header included, in bytes; 1024 in AA Table 1.
    pub packet_bytes: u32,
    /// The packets of a full segment; a segment may be shorter.
    pub segment_packets: u32,
    /// How many packets the transmission buffer holds, from the first that is not acknowledged on.
    pub window: u32,
    /// The rate at which packets leave: that of the line. What limits AA's sender is its processor.
    pub rate: RateSpec,
    /// The round trip that is believed until there is a sample; may be zero, as in AA Table 1.
    pub rtt: Duration,
    /// T_normal: the period of the status while nothing is missing.
    pub t_normal: Duration,
    /// T_error: the period of the status while something is missing.
    pub t_error: Duration,
    /// When the timer of the status is set anew.
    pub rearming: Rearming,
    /// Whether a tail that was lost is found. The paper has no such rule: without it a transfer whose last packets are
    /// lost never ends.
    pub tail_rule: bool,
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
    /// A period of the status is zero.
    #[error("T_normal is {t_normal} and T_error is {t_error}, but a period of 0 would report without end; choose both above 0")]
    PeriodZero {
        /// T_normal, as given.
        t_normal: Duration,
        /// T_error, as given.
        t_error: Duration,
    },
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
        if self.t_normal.is_zero() || self.t_error.is_zero() {
            return Err(ConfigError::PeriodZero { t_normal: self.t_normal, t_error: self.t_error });
        }
        Ok(self.rate.check(Bytes::new(u64::from(self.packet_bytes)))?)
    }

    /// The payload of a full packet in bytes.
    pub fn payload_bytes(&self) -> u32 {
        self.packet_bytes.saturating_sub(Forward::OVERHEAD_BYTES)
    }
}
