//! The configuration of the two halves, and its check.
//!
//! Called by [`super::Sender::new`], [`super::Receiver::new`] and [`super::pipeline`]; filled by the laboratory's scenarios.
//! Sources: HT 3.2 to HT 5.
//!
//! Invariant: a [`Config`] that [`Config::check`] passes makes no process panic, divide by zero or send without end.

use super::packet::{DATA_OVERHEAD_BYTES, Pairs};
use super::ticks::gap_field;
use super::{Class, Ptif};
use core::fmt;
use core::str::FromStr;
use segstream_base::{Bandwidth, Bytes, Duration, quantity::Remainder};
use segstream_blocks::Search;

/// Packets that may lie between the first unacknowledged and the next new one: less than half of the sequence space.
pub(super) const SPAN_MAX: u64 = 32_767;
/// How far misordering may be waited for, in exchanges.
const OFFSET_MAX: u16 = 1024;

/// How often the transmitter starts a state exchange (HT 3.3). Not stated in HT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPeriod {
    /// Always this.
    Fixed(Duration),
    /// An eighth of the smoothed round trip that TIME and ETIME measure, 1 to 10 ms.
    Adaptive,
}

impl SyncPeriod {
    /// The period at a round trip of `rtt`.
    pub fn at(self, rtt: Duration) -> Duration {
        match self {
            Self::Fixed(period) => period,
            Self::Adaptive => (rtt / 8).clamp(Duration::from_millis(1), Duration::from_millis(10)),
        }
    }
}

/// How much of what it holds beyond CAACK a receiver reports in an exchange (HT 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ranges {
    /// The first eight runs, as the text of HT 3.4 says that HTPNET is able to convey, 32 bytes.
    #[default]
    Eight,
    /// The first four runs: RANGE as HT Table 2 draws it, 16 bytes.
    Four,
    /// Four pairs; each report continues where the one before was cut, with its last run repeated as its first.
    Rotating,
    /// Four pairs a packet, and as many packets with one ESYNC as it takes.
    All,
}

impl Ranges {
    /// Every way, the default first.
    pub const ALL: [Self; 4] = [Self::Eight, Self::Four, Self::Rotating, Self::All];

    /// The name: `8`, `4`, `rotate` or `all`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Four => "4",
            Self::Eight => "8",
            Self::Rotating => "rotate",
            Self::All => "all",
        }
    }

    /// The pairs a packet has room for.
    pub const fn pairs(self) -> Pairs {
        match self {
            Self::Eight => Pairs::Eight,
            _ => Pairs::Four,
        }
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no number of runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no number of runs to report; write 4, 8, rotate or all")]
pub struct UnknownRanges(String);

impl FromStr for Ranges {
    type Err = UnknownRanges;

    fn from_str(text: &str) -> Result<Self, UnknownRanges> {
        Self::ALL.into_iter().find(|ranges| ranges.name() == text).ok_or_else(|| UnknownRanges(text.to_owned()))
    }
}

/// What both halves are made with.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// CI: packets of another connection are ignored.
    pub connection: u8,
    /// Whether the connection is set up by a handshake first; without, both halves are made connected, as in HT's
    /// experiments. It is released by a handshake in any case.
    pub connect: bool,
    /// A whole data packet in bytes, the 14 bytes around its payload included.
    pub packet_bytes: u32,
    /// Packets of a segment, 1 to 32767; a segment may be shorter.
    pub segment_packets: u32,
    /// Packets that may be unacknowledged with error control, 1 to 32767. Packets acknowledged out of order do not count.
    pub window: u32,
    /// How often states are exchanged.
    pub sync_period: SyncPeriod,
    /// Exchanges by which the judgement of a packet is put off; 0 in a network that keeps the order, 1 or more over UDP.
    pub offset: u16,
    /// How much a receiver reports.
    pub ranges: Ranges,
    /// How the transmitter searches its table of sent packets.
    pub search: Search,
    /// The class offered by a sender, and the most a receiver grants.
    pub class: Class,
    /// What a receiver insists on: a class without it is rejected.
    pub class_required: Class,
    /// Packets beyond CAACK that the receiver has buffers for, and the most a sender makes use of.
    pub credit: u16,
    /// The smallest gap between two data packets, `None` for none, on either side; at most 65.535 ms.
    pub gap: Option<Duration>,
    /// Congestion avoidance.
    pub ptif: Ptif,
    /// A coarse estimate of the round trip: for the repetition of connection packets, and the start of
    /// [`SyncPeriod::Adaptive`]. Loss of data is found without it.
    pub rtt: Duration,
}

impl Default for Config {
    /// Class 5 as in HT's experiments with errors, 2048 bytes of packet, a window of 256, an exchange each 5 ms.
    fn default() -> Self {
        Self {
            connection: 1,
            connect: false,
            packet_bytes: 2048,
            segment_packets: 1,
            window: 256,
            sync_period: SyncPeriod::Fixed(Duration::from_millis(5)),
            offset: 0,
            ranges: Ranges::Eight,
            search: Search::Fifo,
            class: Class::of_field(5),
            class_required: Class::NONE,
            credit: SPAN_MAX as u16,
            gap: None,
            ptif: Ptif::Off,
            rtt: Duration::from_millis(40),
        }
    }
}

/// Why halves cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A packet has no room for data, or is longer than any datagram.
    #[error("a packet of {0} bytes cannot be sent; choose {min} to 65507 bytes", min = DATA_OVERHEAD_BYTES + 1)]
    PacketBytes(u32),
    /// A segment has no packets, or more than can be in flight.
    #[error("a segment of {0} packets cannot be numbered; choose 1 to {SPAN_MAX} packets")]
    SegmentPackets(u32),
    /// The window is empty, or half of the sequence numbers or more.
    #[error(
        "a window of {0} packets cannot work with sequence numbers of 16 bits, which would be taken for one another; choose 1 to {SPAN_MAX} packets"
    )]
    Window(u32),
    /// The exchange is not periodic.
    #[error("a synchronisation period of {0} is not possible; choose one of 100us to 1s")]
    SyncPeriod(Duration),
    /// The offset is beyond what is remembered.
    #[error("an offset of {0} exchanges puts every repetition off for too long; choose 0 to {OFFSET_MAX} exchanges")]
    Offset(u16),
    /// No buffer, or more than half of the sequence numbers.
    #[error("a credit of {0} packets is not possible; choose 1 to {SPAN_MAX} packets")]
    Credit(u16),
    /// RATE cannot say it.
    #[error("a gap of {0} between packets does not fit the RATE field; choose one of 1us to 65535us, or none")]
    Gap(Duration),
    /// A receiver insists on what it does not have.
    #[error("class {required} is required of the peer but only class {class} is offered; require what is offered, or less")]
    Required {
        /// As given.
        required: Class,
        /// As given.
        class: Class,
    },
    /// The law needs to space packets.
    #[error("congestion avoidance spaces packets, which class {0} does not; choose an odd class, or switch it off")]
    PtifWithoutRate(Class),
}

impl Config {
    /// Whether halves can be made of it.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.packet_bytes <= DATA_OVERHEAD_BYTES || self.packet_bytes > 65_507 {
            return Err(ConfigError::PacketBytes(self.packet_bytes));
        }
        if self.segment_packets == 0 || u64::from(self.segment_packets) > SPAN_MAX {
            return Err(ConfigError::SegmentPackets(self.segment_packets));
        }
        if self.window == 0 || u64::from(self.window) > SPAN_MAX {
            return Err(ConfigError::Window(self.window));
        }
        if let SyncPeriod::Fixed(period) = self.sync_period
            && !(Duration::from_micros(100)..=Duration::from_secs(1)).contains(&period)
        {
            return Err(ConfigError::SyncPeriod(period));
        }
        if self.offset > OFFSET_MAX {
            return Err(ConfigError::Offset(self.offset));
        }
        if self.credit == 0 || u64::from(self.credit) > SPAN_MAX {
            return Err(ConfigError::Credit(self.credit));
        }
        if let Some(gap) = self.gap.filter(|gap| gap.is_zero() || *gap > Duration::from_micros(u64::from(u16::MAX))) {
            return Err(ConfigError::Gap(gap));
        }
        if !self.class.includes(self.class_required) {
            return Err(ConfigError::Required { required: self.class_required, class: self.class });
        }
        if self.ptif != Ptif::Off && !self.class.has_rate_control() {
            return Err(ConfigError::PtifWithoutRate(self.class));
        }
        Ok(())
    }

    /// The payload of a full packet in bytes.
    pub const fn payload_bytes(&self) -> u32 {
        self.packet_bytes.saturating_sub(DATA_OVERHEAD_BYTES)
    }

    /// The gap that spaces full packets at `rate`, at most what RATE can say.
    pub fn gap_of(&self, rate: Bandwidth) -> Duration {
        let gap = rate.transmit_time(Bytes::new(u64::from(self.packet_bytes)), &mut Remainder::default());
        gap.min(Duration::from_micros(u64::from(u16::MAX)))
    }

    /// RATE as this side wants it.
    pub(super) fn rate_field(&self) -> u16 {
        gap_field(self.gap)
    }
}
