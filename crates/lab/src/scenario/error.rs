//! Why a scenario cannot be run.
//!
//! Called by the scenario, by the registry and by whatever runs one.
//!
//! Invariant: each says what is wrong and what to give instead.

use super::{PACKET_BYTES_MAX, PACKET_BYTES_MIN, RTT_MAX, SEGMENT_PACKETS_MAX, SERVICE_MAX, WINDOW_MAX};
use crate::registry;
use segstream_base::{Bandwidth, Duration};
use segstream_blocks::RateSpecError;
use segstream_path::{Aqm, SpecError};
use segstream_schemes::setting::SettingError;

/// Why a scenario cannot be run: an error in its definition.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// See the message.
    #[error("there is no scheme \"{0}\"; known are {known}", known = registry::keys())]
    UnknownScheme(String),
    /// See the message.
    #[error("scheme \"{asked}\" is asked for, but it is {here} here; give both ends the same --scheme")]
    OtherScheme {
        /// The key that is requested.
        asked: &'static str,
        /// The key of the scheme that is run.
        here: &'static str,
    },
    /// See the message.
    #[error("{scheme} does not use --{setting}; leave it out")]
    NotApplicable {
        /// The setting's name on the command line.
        setting: &'static str,
        /// The scheme.
        scheme: &'static str,
    },
    /// See the message.
    #[error("a window of {0} segments is not possible; give 1 to {WINDOW_MAX}")]
    Window(u32),
    /// See the message.
    #[error("a buffer of {buffer} segments does not fit a window of {window}; give 1 to {window}")]
    Buffer {
        /// The buffer asked for.
        buffer: u32,
        /// The window.
        window: u32,
    },
    /// See the message.
    #[error("packets of {0} bytes are not possible; give {PACKET_BYTES_MIN} to {PACKET_BYTES_MAX}")]
    PacketBytes(u32),
    /// See the message.
    #[error("segments of {0} packets are not possible; give 1 to {SEGMENT_PACKETS_MAX}")]
    SegmentPackets(u32),
    /// See the message.
    #[error(
        "at {bandwidth} a packet of {packet_bytes} bytes takes less than a nanosecond, which the clock cannot tell; give a lower bandwidth"
    )]
    NoPacketTime {
        /// The bandwidth.
        bandwidth: Bandwidth,
        /// The packet.
        packet_bytes: u32,
    },
    /// See the message.
    #[error("a bandwidth of zero lets nothing pass; give one above it")]
    NoBandwidth,
    /// See the message.
    #[error(
        "ideal feedback comes right behind the data in front of it, but the queue \"{0}\" has no such order; use full feedback, or \
         droptail, codel or pie"
    )]
    IdealBehindSchedule(Aqm),
    /// See the message.
    #[error("the round trip of {0} is too long; give at most {RTT_MAX}")]
    Rtt(Duration),
    /// See the message.
    #[error("the tolerance counts over W = {window} packets, but a segment has {segment_packets}; W must be the segment")]
    ToleranceWindow {
        /// W.
        window: u32,
        /// Packets of a segment.
        segment_packets: u32,
    },
    /// See the message.
    #[error("{packets} packets are less than one segment of {segment_packets}; give more")]
    TooFewPackets {
        /// New packets asked for.
        packets: u64,
        /// Packets of a segment.
        segment_packets: u32,
    },
    /// See the message.
    #[error("segments of {found} packets are not possible with {scheme}, which has at most {max}; give --segment-packets {max}")]
    LongSegments {
        /// As given.
        found: u32,
        /// The most packets.
        max: u32,
        /// The scheme.
        scheme: &'static str,
    },
    /// See the message.
    #[error(
        "give either what both ends work for a packet (--work-us), or what the sender's processor alone does (--service-us, --search-us, \
         --timer-us)"
    )]
    TwoCosts,
    /// See the message.
    #[error("a cost of {0} for one packet, byte, slot or timer is too much; give at most {SERVICE_MAX}")]
    Service(Duration),
    /// See the message.
    #[error("a source that offers nothing, or a queue that holds nothing, lets nothing pass; give at least 1 packet")]
    Nothing,
    /// Bursts that cannot be, or do not fit the bandwidth. See the message.
    #[error(transparent)]
    Bursts(RateSpecError),
    /// A setting of the scheme cannot be so. See the message.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// See the message.
    #[error("the loss: {0}")]
    Loss(#[from] SpecError),
    /// See the message.
    #[error("the scheme refuses: {0}")]
    Scheme(String),
    /// See the message.
    #[error("the parameters cannot be read: {0}")]
    Unreadable(String),
}
