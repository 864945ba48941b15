//! The workload of a scenario: what is transferred, in which packets, segments and windows.
//!
//! Part of a [`super::Scenario`].
//!
//! Invariant: a workload that passes [`Workload::check`] has at least one segment.

use super::ScenarioError;
use segstream_base::Tolerance;
use segstream_blocks::user::Slowdown;
use segstream_schemes::transport::Bursts;

/// The longest window, in segments.
pub const WINDOW_MAX: u32 = 65_536;
/// The smallest packet: a header and a little payload of every scheme.
pub const PACKET_BYTES_MIN: u32 = 64;
/// The largest packet, which a UDP datagram still takes.
pub const PACKET_BYTES_MAX: u32 = 65_000;
/// The longest segment, in packets.
pub const SEGMENT_PACKETS_MAX: u32 = 32_768;

/// What is transferred, in which packets, segments and windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// A whole data packet, its header included. Default 1024 bytes.
    pub packet_bytes: u32,
    /// Packets of a segment. Default 256.
    pub segment_packets: u32,
    /// The window in segments. Default 36, which is 2.5 w_a at the default point.
    pub window: u32,
    /// The receiver's buffer in segments, at most the window; `None` is the window. Default `None`.
    pub buffer: Option<u32>,
    /// (W, E, B) in packets. Default (256, 0, 0).
    pub tolerance: Tolerance,
    /// New packets a second that the source has, in segments at even intervals; `None` always has one. Default `None`.
    pub offered: Option<u32>,
    /// In which bursts packets leave, at the bandwidth within a burst (FC 3.3); `None` for evenly. Default `None`.
    pub bursts: Option<Bursts>,
    /// When the receiver's user is slow, and how slow (FC 3.4); `None` takes every segment at once. Default `None`.
    pub slowdown: Option<Slowdown>,
    /// New data packets, rounded down to whole segments. Default 1,000,000.
    pub packets: u64,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            packet_bytes: 1024,
            segment_packets: 256,
            window: 36,
            buffer: None,
            tolerance: Tolerance::reliable(256),
            offered: None,
            bursts: None,
            slowdown: None,
            packets: 1_000_000,
        }
    }
}

impl Workload {
    /// Whether its numbers can be.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        if self.window == 0 || self.window > WINDOW_MAX {
            return Err(ScenarioError::Window(self.window));
        }
        if let Some(buffer) = self.buffer.filter(|buffer| *buffer == 0 || *buffer > self.window) {
            return Err(ScenarioError::Buffer { buffer, window: self.window });
        }
        if self.segment_packets == 0 || self.segment_packets > SEGMENT_PACKETS_MAX {
            return Err(ScenarioError::SegmentPackets(self.segment_packets));
        }
        if self.tolerance.window() != self.segment_packets {
            return Err(ScenarioError::ToleranceWindow { window: self.tolerance.window(), segment_packets: self.segment_packets });
        }
        if self.segments() == 0 {
            return Err(ScenarioError::TooFewPackets { packets: self.packets, segment_packets: self.segment_packets });
        }
        if self.offered == Some(0) { Err(ScenarioError::Nothing) } else { Ok(()) }
    }

    /// Whether packets can be as long as this.
    pub(super) fn check_packet(&self) -> Result<(), ScenarioError> {
        let possible = (PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&self.packet_bytes);
        if possible { Ok(()) } else { Err(ScenarioError::PacketBytes(self.packet_bytes)) }
    }

    /// Segments that are sent: the packets rounded down.
    pub fn segments(&self) -> u64 {
        self.packets / u64::from(self.segment_packets.max(1))
    }

    /// The receiver's buffer in segments.
    pub fn buffer_segments(&self) -> u32 {
        self.buffer.unwrap_or(self.window)
    }

    /// The window in packets.
    pub fn window_packets(&self) -> u32 {
        self.window.saturating_mul(self.segment_packets)
    }

    /// The same with segments of this many packets, all of which must arrive; the window stays as long in packets.
    #[must_use]
    pub fn with_segments(self, segment_packets: u32) -> Self {
        let window = self.window_packets().checked_div(segment_packets).unwrap_or(self.window);
        Self { segment_packets, window, tolerance: Tolerance::reliable(segment_packets), ..self }
    }
}
