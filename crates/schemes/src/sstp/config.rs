//! What the two halves agree on before the first packet, and the check of it.
//!
//! Called by [`super::Sender::new`] and [`super::Receiver::new`]; filled by the laboratory's scenarios.
//! Sources: EC 3.1, EC 4.2, FC 3.3, FC 3.4, FC 4.3.1. Connection setup, which both papers assume, would
//! carry these values.
//!
//! Invariant: a [`Config`] that [`Config::check`] passes makes no half panic or divide by zero.

use super::KeepAlive;
use super::packet::OVERHEAD_BYTES;
use core::fmt;
use core::str::FromStr;
use segstream_base::quantity::Remainder;
use segstream_base::{Bytes, Duration, Tolerance};
use segstream_blocks::user::Slowdown;
use segstream_blocks::{Accounting, RateSpec, RateSpecError};

/// The largest window in segments: it bounds what a half keeps.
const WINDOW_MAX: u32 = 1 << 16;
/// The largest re-sequencing distance the loss detector remembers.
const REORDER_MAX: u32 = 1023;

/// What a receiver with a buffer smaller than its window does with what does not fit (FC 4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Acknowledgment {
    /// Segments beyond the buffer are dropped; every acknowledgment is firm.
    #[default]
    Hard,
    /// Anything in the window is kept while there is room and may be discarded later; what was discarded
    /// is requested again when it has become the head of the line. The papers' figures.
    SoftLazy,
    /// As [`Acknowledgment::SoftLazy`], but what was discarded is requested again at once.
    SoftEager,
}

impl Acknowledgment {
    /// Every way, the default first.
    pub const ALL: [Self; 3] = [Self::Hard, Self::SoftLazy, Self::SoftEager];

    /// The name: `hard`, `soft-lazy` or `soft-eager`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::SoftLazy => "soft-lazy",
            Self::SoftEager => "soft-eager",
        }
    }
}

/// When a receiver with a small buffer decides whether it keeps what came (FC 4.3.1, which says "discards any segments").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Discard {
    /// At each packet: the first of a segment finds a place or is dropped, whatever becomes of the rest.
    #[default]
    Packet,
    /// At the end of each packet group: all of the group that came is kept, or none. Space is then allocated "on a segment basis"
    /// (FC 2.5), and a place that becomes free while a group arrives is of use to all of it. With ideal feedback alone, which marks
    /// where a group ends.
    Group,
}

impl Discard {
    /// Every way, the default first.
    pub const ALL: [Self; 2] = [Self::Packet, Self::Group];

    /// The name: `packet` or `group`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::Group => "group",
        }
    }
}

/// Whether requested packets of an older segment leave before the rest of a group that is being sent (EC 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Repeats {
    /// They do: XMTQ is ordered by segment and packet.
    #[default]
    Preempt,
    /// They wait until the group has left.
    Wait,
}

impl Repeats {
    /// Every way, the default first.
    pub const ALL: [Self; 2] = [Self::Preempt, Self::Wait];

    /// The name: `preempt` or `wait`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Preempt => "preempt",
            Self::Wait => "wait",
        }
    }
}

/// What a receiver does whose user is slow for a while (FC 3.4, window control strategy).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Throttle {
    /// It withholds the advancement of the window: R_l moves when the user has taken a segment.
    #[default]
    Withhold,
    /// It also makes the window W_1 = (F_1 / F) W_0 while the user is slow.
    Resize,
}

impl Throttle {
    /// Both ways, the default first.
    pub const ALL: [Self; 2] = [Self::Withhold, Self::Resize];

    /// The name: `withhold` or `resize`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Withhold => "withhold",
            Self::Resize => "resize",
        }
    }
}

/// Whether feedback is the papers' oracle or the protocol's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum FeedbackMode {
    /// The assumption of the papers' figures (EC 5.2): an acknowledgment always returns RTD + 3 t_p after
    /// the last packet of a group. Needs a simulator whose control travels out of band.
    Ideal,
    /// Gap detection, loss timer, keep-alive, periodic requests, control that can be lost.
    #[default]
    Full,
}

impl FeedbackMode {
    /// Both modes, the default first.
    pub const ALL: [Self; 2] = [Self::Full, Self::Ideal];

    /// The name: `ideal` or `full`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ideal => "ideal",
            Self::Full => "full",
        }
    }
}

/// The text is not one of the names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownName {
    /// The text, as given.
    pub text: String,
    /// The names, with commas between them.
    pub names: &'static str,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not one of the names; write {}", self.text, self.names)
    }
}

impl core::error::Error for UnknownName {}

impl fmt::Display for Acknowledgment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for FeedbackMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Acknowledgment {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownName { text: text.to_owned(), names: "hard, soft-lazy or soft-eager" };
        Self::ALL.into_iter().find(|way| way.name() == text).ok_or_else(unknown)
    }
}

impl fmt::Display for Discard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Discard {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownName { text: text.to_owned(), names: "packet or group" };
        Self::ALL.into_iter().find(|way| way.name() == text).ok_or_else(unknown)
    }
}

impl FromStr for Repeats {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownName { text: text.to_owned(), names: "preempt or wait" };
        Self::ALL.into_iter().find(|way| way.name() == text).ok_or_else(unknown)
    }
}

impl fmt::Display for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Throttle {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownName { text: text.to_owned(), names: "withhold or resize" };
        Self::ALL.into_iter().find(|way| way.name() == text).ok_or_else(unknown)
    }
}

impl FromStr for FeedbackMode {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownName { text: text.to_owned(), names: "ideal or full" };
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(unknown)
    }
}

/// What both halves of a connection agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// CID: packets of another connection are ignored.
    pub connection: u32,
    /// l: a whole data packet in bytes, its 18 bytes of header and checksum included.
    pub packet_bytes: u32,
    /// s: packets of a segment; a segment may be shorter.
    pub segment_packets: u32,
    /// W: segments the receiver lets the sender have outstanding, counted from the lowest not accepted.
    pub window: u32,
    /// B: segments the receiver can buffer, 1 to `window`.
    pub buffer: u32,
    /// What happens to segments that the buffer does not hold.
    pub acknowledgment: Acknowledgment,
    /// When it is decided what the buffer holds.
    pub discard: Discard,
    /// Whether repeats interrupt a group.
    pub repeats: Repeats,
    /// (W, E, B) in packets; its window must be `segment_packets` (EC 3.1).
    pub tolerance: Tolerance,
    /// How tolerated losses are counted.
    pub accounting: Accounting,
    /// (P, F, L), or a smooth rate as in the papers' figures.
    pub rate: RateSpec,
    /// R: how many positions late a packet may come without being declared lost; 0 in an ordered network.
    pub reorder: u32,
    /// Oracle or protocol.
    pub feedback: FeedbackMode,
    /// When the receiver's user is slow; `None` takes every segment at once, as in the figures.
    pub slowdown: Option<Slowdown>,
    /// What the receiver does about it.
    pub throttle: Throttle,
    /// When a sender with nothing to send says so.
    pub keep_alive: KeepAlive,
    /// After how long without a packet of the other an end closes (EC 4.1); `None` never, as in the figures.
    pub close_after: Option<Duration>,
}

/// Why two halves cannot agree on a [`Config`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A packet has no room for data, or is longer than any datagram.
    PacketBytes {
        /// As given.
        packet_bytes: u32,
    },
    /// A segment has no packets, or more than packet numbers.
    SegmentPackets {
        /// As given.
        segment_packets: u32,
    },
    /// The window is empty, or larger than a half will keep.
    Window {
        /// As given.
        window: u32,
    },
    /// The buffer holds nothing, or more than the window.
    Buffer {
        /// B, as given.
        buffer: u32,
        /// W, as given.
        window: u32,
    },
    /// Without ideal feedback nothing tells where a packet group ends.
    DiscardByGroup,
    /// Only bursts have ticks.
    TicksOfSmoothRate,
    /// With ideal feedback there are no keep-alive packets, so that every pause would close the connection.
    CloseWithoutKeepAlive,
    /// The tolerance does not speak of a segment.
    ToleranceWindow {
        /// W of the tolerance.
        window: u32,
        /// s, as given.
        segment_packets: u32,
    },
    /// The rate carries nothing or contradicts itself.
    Rate(RateSpecError),
    /// The re-sequencing distance is beyond what is remembered.
    Reorder {
        /// As given.
        reorder: u32,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PacketBytes { packet_bytes } => {
                write!(f, "a packet of {packet_bytes} bytes cannot be sent; choose {} to 65507 bytes", OVERHEAD_BYTES + 1)
            }
            Self::SegmentPackets { segment_packets } => {
                write!(f, "a segment of {segment_packets} packets cannot be numbered; choose 1 to 65535 packets")
            }
            Self::Window { window } => write!(f, "a window of {window} segments is not possible; choose 1 to {WINDOW_MAX} segments"),
            Self::Buffer { buffer, window } => {
                write!(f, "a buffer of {buffer} segments does not suit a window of {window}; choose 1 to {window} segments")
            }
            Self::DiscardByGroup => {
                f.write_str("only ideal feedback marks the ends of packet groups; discard by packet, or choose ideal feedback")
            }
            Self::TicksOfSmoothRate => {
                f.write_str("a smooth rate has no ticks on which keep-alive packets could leave; give bursts, or space them")
            }
            Self::CloseWithoutKeepAlive => f.write_str(
                "with ideal feedback no keep-alive packets leave, and every pause would close the connection; choose full feedback",
            ),
            Self::ToleranceWindow { window, segment_packets } => {
                write!(f, "the tolerance window of {window} packets must be the segment of {segment_packets}; make them equal")
            }
            Self::Rate(error) => error.fmt(f),
            Self::Reorder { reorder } => write!(f, "a re-sequencing distance of {reorder} is too far; choose 0 to {REORDER_MAX}"),
        }
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// Whether two halves can run with this.
    ///
    /// # Errors
    /// When a value is outside its range or two values contradict each other.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.packet_bytes <= OVERHEAD_BYTES || self.packet_bytes > 65_507 {
            return Err(ConfigError::PacketBytes { packet_bytes: self.packet_bytes });
        }
        if self.segment_packets == 0 || self.segment_packets > u32::from(u16::MAX) {
            return Err(ConfigError::SegmentPackets { segment_packets: self.segment_packets });
        }
        if self.window == 0 || self.window > WINDOW_MAX {
            return Err(ConfigError::Window { window: self.window });
        }
        if self.buffer == 0 || self.buffer > self.window {
            return Err(ConfigError::Buffer { buffer: self.buffer, window: self.window });
        }
        if self.discard == Discard::Group && self.feedback != FeedbackMode::Ideal {
            return Err(ConfigError::DiscardByGroup);
        }
        if self.keep_alive == KeepAlive::Tick && self.rate.is_smooth() {
            return Err(ConfigError::TicksOfSmoothRate);
        }
        if self.close_after.is_some() && self.feedback == FeedbackMode::Ideal {
            return Err(ConfigError::CloseWithoutKeepAlive);
        }
        // EC 3.1: W should be chosen equal to the segment size. Another W would need more than one
        // window, or a part of one, in each segment, which EC 4.2 does not describe.
        if self.tolerance.window() != self.segment_packets {
            return Err(ConfigError::ToleranceWindow { window: self.tolerance.window(), segment_packets: self.segment_packets });
        }
        self.rate.check(self.packet_size()).map_err(ConfigError::Rate)?;
        if self.reorder > REORDER_MAX {
            return Err(ConfigError::Reorder { reorder: self.reorder });
        }
        Ok(())
    }

    /// t_p = 8 l / A: the time of a packet at the average rate (EC 5.2).
    pub fn packet_time(&self) -> Duration {
        self.rate.average_of(self.packet_size()).transmit_time(self.packet_size(), &mut Remainder::default())
    }

    /// t_s = s t_p: the time of a whole segment (EC 5.2).
    pub fn segment_time(&self) -> Duration {
        self.packet_time() * u64::from(self.segment_packets)
    }

    /// The data a packet carries when it is full, in bytes.
    pub const fn payload_bytes(&self) -> u32 {
        self.packet_bytes.saturating_sub(OVERHEAD_BYTES)
    }

    /// l.
    pub(super) fn packet_size(&self) -> Bytes {
        Bytes::new(u64::from(self.packet_bytes))
    }
}
