//! What both halves of XTP must agree on, and what each of them does about loss.
//!
//! Called by the code that constructs the halves.
//!
//! Invariant: a configuration that passes [`Config::check`] makes halves that can transfer, whatever the two strategies.

use super::packet::{Feedback, Forward};
use core::fmt;
use core::str::FromStr;
use segstream_base::{Bytes, Duration};
use segstream_blocks::{RateSpec, RateSpecError};

/// What the sender retransmits (XT Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SenderStrategy {
    /// Everything from RSEQ on, upon any CNTL that tells of loss (case 2.2).
    GoBackN,
    /// Only what the CNTL says is missing (case 2.1).
    #[default]
    SelectiveRepeat,
    /// Only what is missing, and only upon the CNTL that ends a synchronising handshake (case 1.1).
    Handshake,
    /// Everything from RSEQ on, and only upon that CNTL (case 1.2).
    HandshakeGoBackN,
}

/// What a DATA packet that asks wants to hear (XT 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Question {
    /// SREQ: the state as it is, at once.
    #[default]
    Status,
    /// DREQ: the state when all that had come in sequence has been delivered to the user.
    Delivery,
}

/// What the receiver does with a packet out of sequence (XT Table 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReceiverStrategy {
    /// It is not kept, and a CNTL asks for everything from RSEQ on (case 3).
    Discard,
    /// It is kept and nothing is said (case 1).
    StoreConservative,
    /// It is kept, and a CNTL tells of the gap when it is the only one (case 2).
    #[default]
    StoreAggressive,
}

/// A text that names no strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// None of a sender.
    #[error("\"{0}\" is not what a sender can do; write gbn, sr, handshake or handshake-gbn")]
    Sender(String),
    /// None of a receiver.
    #[error("\"{0}\" is not what a receiver can do; write discard, store-conservative or store-aggressive")]
    Receiver(String),
}

impl SenderStrategy {
    /// Every strategy.
    pub const ALL: [Self; 4] = [Self::GoBackN, Self::SelectiveRepeat, Self::Handshake, Self::HandshakeGoBackN];

    /// Whether it sends everything from RSEQ on again.
    pub const fn goes_back(self) -> bool {
        matches!(self, Self::GoBackN | Self::HandshakeGoBackN)
    }

    /// Whether only the answer to a CNTL of its own makes it repeat anything.
    pub const fn waits_for_handshake(self) -> bool {
        matches!(self, Self::Handshake | Self::HandshakeGoBackN)
    }
}

impl ReceiverStrategy {
    /// Every strategy.
    pub const ALL: [Self; 3] = [Self::Discard, Self::StoreConservative, Self::StoreAggressive];
}

impl fmt::Display for SenderStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::GoBackN => "gbn",
            Self::SelectiveRepeat => "sr",
            Self::Handshake => "handshake",
            Self::HandshakeGoBackN => "handshake-gbn",
        })
    }
}

impl fmt::Display for ReceiverStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Discard => "discard",
            Self::StoreConservative => "store-conservative",
            Self::StoreAggressive => "store-aggressive",
        })
    }
}

impl FromStr for SenderStrategy {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        match text {
            "gbn" => Ok(Self::GoBackN),
            "sr" => Ok(Self::SelectiveRepeat),
            "handshake" => Ok(Self::Handshake),
            "handshake-gbn" => Ok(Self::HandshakeGoBackN),
            other => Err(StrategyError::Sender(other.to_owned())),
        }
    }
}

impl FromStr for ReceiverStrategy {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        match text {
            "discard" => Ok(Self::Discard),
            "store-conservative" => Ok(Self::StoreConservative),
            "store-aggressive" => Ok(Self::StoreAggressive),
            other => Err(StrategyError::Receiver(other.to_owned())),
        }
    }
}

/// What both halves must agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The key that every packet of the connection carries, below 2^63.
    pub key: u64,
    /// A whole DATA packet, header included, in bytes.
    pub packet_bytes: u32,
    /// The packets of the longest message; a segment may be shorter.
    pub segment_packets: u32,
    /// The window in full packets: ALLOC is so much above DSEQ.
    pub window: u32,
    /// What the sender retransmits.
    pub sender: SenderStrategy,
    /// What the receiver does with a packet out of sequence.
    pub receiver: ReceiverStrategy,
    /// What a DATA packet that asks wants to hear. A CNTL of the sender always wants the status (XT 2).
    pub asks: Question,
    /// How long the user of the receiving half takes for each packet that is in sequence. Zero: it takes all at once, as in the
    /// study, and then DSEQ is RSEQ.
    pub reads: Duration,
    /// How long the answer to a question is waited for before a synchronising handshake: above the round trip of
    /// control and what the queues on the path can hold.
    pub wtimer: Duration,
    /// Whether the sender asks, WTIMER after its last packet, also in a pause of its user, so that what was lost is found
    /// there. Without, as in the study, it asks when its window is closed or its stream has ended (XT 2).
    pub asks_in_pauses: bool,
    /// The round trip of control. Within it a selective sender repeats no packet that has just left, and a sender that
    /// goes back does so only once for the same RSEQ. May be zero: then nothing is filtered.
    pub control_rtt: Duration,
    /// How many packets may wait for their first transmission before a segment is refused; `None` is without limit, for
    /// a source that is never refused.
    pub backlog_packets: Option<u32>,
    /// The rate at which packets leave; `None` is as fast as the driver asks, as in the study, where the sender's
    /// server sets the pace.
    pub rate: Option<RateSpec>,
}

/// Why a configuration cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The key has the bit that marks the return path.
    #[error("the key {0:#x} has its highest bit set, which marks packets of the receiver; choose a key below 2^63")]
    Key(u64),
    /// The packet has no room for payload or does not fit a datagram.
    #[error("a packet of {0} bytes is not possible; choose {min} to {max} bytes", min = Forward::OVERHEAD_BYTES + 1, max = u16::MAX)]
    PacketBytes(u32),
    /// The message has no packets, or more bytes than an offset in it can name.
    #[error("a message of {packets} packets is not possible; choose 1 to {max} packets")]
    SegmentPackets {
        /// How many were requested.
        packets: u32,
        /// How many there may be of that size.
        max: u32,
    },
    /// The window has no packets, or more than are kept.
    #[error("a window of {0} packets is not possible; choose 1 to {max} packets", max = Config::WINDOW_MAX)]
    Window(u32),
    /// There is no time to wait for an answer.
    #[error("WTIMER is 0, so every question would be asked again at once; give more than the round trip of the path")]
    WtimerZero,
    /// Nothing could ever be submitted.
    #[error("a backlog of 0 packets takes no segment; allow at least one packet to wait")]
    BacklogZero,
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
        if self.key > Self::KEY_MAX {
            return Err(ConfigError::Key(self.key));
        }
        if self.packet_bytes <= Forward::OVERHEAD_BYTES || self.packet_bytes > u32::from(u16::MAX) {
            return Err(ConfigError::PacketBytes(self.packet_bytes));
        }
        let max = u32::MAX / self.payload_bytes();
        if self.segment_packets == 0 || self.segment_packets > max {
            return Err(ConfigError::SegmentPackets { packets: self.segment_packets, max });
        }
        if self.window == 0 || self.window > Self::WINDOW_MAX {
            return Err(ConfigError::Window(self.window));
        }
        if self.wtimer.is_zero() {
            return Err(ConfigError::WtimerZero);
        }
        if self.backlog_packets == Some(0) {
            return Err(ConfigError::BacklogZero);
        }
        let Some(rate) = self.rate else { return Ok(()) };
        Ok(rate.check(Bytes::new(u64::from(self.packet_bytes)))?)
    }

    /// The highest key: the bit above it marks packets of the receiver.
    pub const KEY_MAX: u64 = u64::MAX >> 1;

    /// The payload of a full packet in bytes.
    pub fn payload_bytes(&self) -> u32 {
        self.packet_bytes.saturating_sub(Forward::OVERHEAD_BYTES)
    }

    /// The window in sequence numbers.
    pub fn window_bytes(&self) -> u64 {
        u64::from(self.window) * u64::from(Forward::sequence_bytes(self.payload_bytes()))
    }

    /// How many spans a CNTL has at most: those that make it no longer than a full DATA packet, but always one.
    pub fn spans_max(&self) -> usize {
        let room = (self.packet_bytes as usize).saturating_sub(Feedback::EXTENDED_BYTES);
        (room / Feedback::SPAN_BYTES).max(1)
    }
}
