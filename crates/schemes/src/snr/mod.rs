//! SNR: block-wise selective repeat driven by a periodic exchange of complete state (Netravali, Roome, Sabnani 1990).
//!
//! What is built is SNR as EC 5 and HT 4 describe it, the scheme they compare with: segments are blocks,
//! both ends state what they know every `T_in` whether data flows or not, the sender detects loss by
//! counting the receiver's states, and a block that is still missing then is retransmitted as a whole.
//!
//! Called by the laboratory, which drives [`Sender`] and [`Receiver`] under the contract of the halves.
//!
//! - `packet`: the three packets and their bytes.
//! - `sender`: window in blocks, repetition before new data, paced.
//! - `counter`: the repetition counters of all blocks at once: the distributed clock of SNR.
//! - `receiver`: presence of the packets of each block in the window, cumulative and selective state.
//! - `period`: when an end states what it knows.
//!
//! Invariant: a block is accepted once, and only when every packet of it has arrived (with
//! [`Config::reliable`]); what either half keeps is bounded by the window.

mod counter;
mod packet;
mod period;
mod receiver;
mod sender;
mod settings;
#[cfg(test)]
mod tests;

pub use packet::{Feedback, Forward, Received, SenderState};
pub use receiver::Receiver;
pub use sender::Sender;
pub use settings::Settings;

use segstream_base::quantity::Remainder;
use segstream_base::{Bytes, Duration};
use segstream_blocks::{RateSpec, RateSpecError};

/// What both halves must agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The connection identifier that every packet carries.
    pub connection: u32,
    /// l: a whole data packet, header included, in bytes.
    pub packet_bytes: u32,
    /// s: the packets of a full block; a block is a segment, and a segment may be shorter.
    pub segment_packets: u32,
    /// How many blocks from the first unaccepted one on may be in flight.
    pub window: u32,
    /// The rate at which packets leave, control included.
    pub rate: RateSpec,
    /// RTD: the round trip the repetition counters are set from.
    pub rtt: Duration,
    /// T_in: how often each end states what it knows. [`Config::status_period_of`] gives EC's fraction of the round trip.
    pub status_period: Duration,
    /// Whether blocks are repeated. Without, blocks are passed up as they are once later ones have come.
    pub reliable: bool,
    /// Whether a state that was lost is counted when the next one arrives; without, every arriving state counts as one interval.
    pub count_intervals: bool,
}

/// Why a configuration cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The packet has no room for payload or does not fit a datagram.
    #[error("a packet of {0} bytes is not possible; choose {min} to {max} bytes", min = Forward::OVERHEAD_BYTES + 1, max = u16::MAX)]
    PacketBytes(u32),
    /// The block has no packets, or more than its header can number.
    #[error("a block of {0} packets is not possible; choose 1 to {max} packets", max = u16::MAX)]
    SegmentPackets(u32),
    /// The window has no blocks, or more than a state can name.
    #[error("a window of {0} blocks is not possible; choose 1 to {max} blocks", max = Received::MAX_BLOCKS)]
    Window(u32),
    /// The state period is zero.
    #[error("the state period is 0, so nothing but states would leave; choose a period above 0, such as a twelfth of the round trip")]
    StatusPeriodZero,
    /// The rate cannot carry packets.
    #[error(transparent)]
    Rate(#[from] RateSpecError),
}

impl Config {
    /// How many state periods EC 5 puts into a round trip: 5 ms at 60 ms.
    pub const STATUS_PERIODS_PER_ROUND_TRIP: u64 = 12;

    /// T_in for a round trip: a twelfth of it, at least one nanosecond.
    pub fn status_period_of(rtt: Duration) -> Duration {
        (rtt / Self::STATUS_PERIODS_PER_ROUND_TRIP).max(Duration::from_nanos(1))
    }

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
        if self.window == 0 || self.window > u32::from(Received::MAX_BLOCKS) {
            return Err(ConfigError::Window(self.window));
        }
        if self.status_period.is_zero() {
            return Err(ConfigError::StatusPeriodZero);
        }
        Ok(self.rate.check(Bytes::new(u64::from(self.packet_bytes)))?)
    }

    /// t_p: the time a full packet takes at the peak rate, rounded down to the nanosecond.
    pub fn packet_time(&self) -> Duration {
        self.rate.peak().transmit_time(Bytes::new(u64::from(self.packet_bytes)), &mut Remainder::default())
    }

    /// The payload of a full packet in bytes.
    pub fn payload_bytes(&self) -> u32 {
        self.packet_bytes.saturating_sub(Forward::OVERHEAD_BYTES)
    }
}
