//! What a scheme says about itself, and how its halves are made: the contract between a scheme's folder and the laboratory.
//!
//! Implemented by the settings of each scheme; called by the laboratory's registry, which has one entry a scheme.
//!
//! Invariant: equal settings and transfers give equal halves.

use crate::setting::Setting;
use crate::sstp::FeedbackMode;
use core::fmt::Debug;
use segstream_base::{Bandwidth, Duration, Instant, Tolerance, halves};
use segstream_blocks::RateSpec;

/// The connection that all studies have.
pub const CONNECTION: u32 = 1;

/// What every scheme is told alike: what is transferred, and what is known of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// A whole data packet, its header included.
    pub packet_bytes: u32,
    /// Packets of a segment.
    pub segment_packets: u32,
    /// The window in segments.
    pub window: u32,
    /// The receiver's buffer in segments, at most the window.
    pub buffer: u32,
    /// (W, E, B) in packets.
    pub tolerance: Tolerance,
    /// The bandwidth of the path, at which packets are paced.
    pub bandwidth: Bandwidth,
    /// The round trip of the path.
    pub rtt: Duration,
    /// Whether the sender is told the fate of each packet group, or finds out.
    pub feedback: FeedbackMode,
    /// Whether the sender's processor takes time for each packet, so that it sets the pace (HT 6).
    pub processor_paces: bool,
}

impl Transfer {
    /// The window in packets.
    pub const fn window_packets(&self) -> u32 {
        self.window.saturating_mul(self.segment_packets)
    }

    /// Packets one by one at the bandwidth.
    pub const fn rate(&self) -> RateSpec {
        RateSpec::smooth(self.bandwidth)
    }
}

/// What not every scheme can be told of the transfer and the black box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Ideal feedback: control that cannot be lost.
    IdealFeedback,
    /// A tolerance between none and any.
    PartialTolerance,
    /// A buffer smaller than the window.
    Buffer,
    /// What packets, searches and timers cost the sender's processor.
    SenderCosts,
    /// The round trip, over a network: it counts in round trips. One that needs to be told has no other way to know.
    RoundTrip {
        /// Whether it cannot do without.
        needed: bool,
    },
}

/// The paper whose black box and workload are usual for a scheme where a flag is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsualPoint {
    /// EC 5: a long path, windows of long segments.
    LongPath,
    /// HT 6: the sender's processor is the limit.
    ProcessorBound,
    /// AA Table 1: both ends of an ATM cluster work.
    AtmCluster,
}

/// A scheme: what can be told about it, and how its halves are made. The value is its own settings.
pub trait Transport: Clone + Debug + Default + PartialEq + Send + Sync + 'static {
    /// Its name on the command line and in files.
    const KEY: &'static str;
    /// Its name in pictures.
    const NAME: &'static str;
    /// Where it is from, in a line.
    const SOURCE: &'static str;
    /// What it can be told besides what all can.
    const TAKES: &'static [Takes] = &[];
    /// Its settings, in the order in which they stand in the canonical text.
    const SETTINGS: &'static [Setting<Self>] = &[];
    /// The schemes whose flags it accepts without effect, because a paper compares them and one line serves both.
    const COMPARED_WITH: &'static [&'static str] = &[];
    /// Where it is studied.
    const USUAL_POINT: UsualPoint = UsualPoint::LongPath;
    /// The most packets of a segment.
    const SEGMENT_PACKETS_MAX: u32 = u32::MAX;
    /// Whether its halves can be run over sockets.
    const IS_LIVE: bool = true;
    /// Whether it has a congestion-controlled rate.
    const HAS_AUTOMATIC_RATE: bool = false;

    /// The sending half.
    type Sender: halves::Sender + 'static;
    /// The receiving half.
    type Receiver: halves::Receiver<Forward = <Self::Sender as halves::Sender>::Forward, Feedback = <Self::Sender as halves::Sender>::Feedback>
        + 'static;
    /// Why halves cannot be made.
    type Error: core::error::Error;

    /// A sender and a receiver at the instant `now`.
    ///
    /// # Errors
    /// Says what the scheme refuses.
    fn halves(&self, transfer: &Transfer, now: Instant) -> Result<(Self::Sender, Self::Receiver), Self::Error>;

    /// The payload of a full data packet in bytes.
    fn payload_bytes(&self, transfer: &Transfer) -> u32;

    /// The settings as sockets run them, where clocks have ticks.
    #[must_use]
    fn on_sockets(self) -> Self {
        self
    }
}
