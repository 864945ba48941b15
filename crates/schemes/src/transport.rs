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
use segstream_blocks::user::Slowdown;

/// The connection that all studies have.
pub const CONNECTION: u32 = 1;

/// The lower level of FC 3.3 in packets: F bursts a second of L packets each, at the rate of the path within a burst (P).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// F.
    pub per_second: u32,
    /// L.
    pub packets: u32,
}

/// The settings common to all schemes: the workload and what is known of the path.
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
    /// In which bursts packets leave; `None` for one after the other without end.
    pub bursts: Option<Bursts>,
    /// When the receiver's user is slow; `None` takes every segment at once.
    pub slowdown: Option<Slowdown>,
    /// The round trip of the path.
    pub rtt: Duration,
    /// Whether the sender gets ideal feedback about each packet group, or detects loss itself.
    pub feedback: FeedbackMode,
    /// Whether the sender's processor takes time for each packet, so that it sets the pace (HT 6).
    pub processor_paces: bool,
}

impl Transfer {
    /// The window in packets.
    pub const fn window_packets(&self) -> u32 {
        self.window.saturating_mul(self.segment_packets)
    }

    /// Packets one by one at the bandwidth, in bursts if there are any: R = (P, F, L) with P the bandwidth (FC 3.3).
    pub fn rate(&self) -> RateSpec {
        let in_bursts = self.bursts.and_then(|bursts| RateSpec::new(self.bandwidth, bursts.per_second, bursts.packets).ok());
        in_bursts.unwrap_or(RateSpec::smooth(self.bandwidth))
    }
}

/// Settings of the transfer and the black box that not every scheme has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Ideal feedback: control that cannot be lost.
    IdealFeedback,
    /// A tolerance between none and any.
    PartialTolerance,
    /// A buffer smaller than the window.
    Buffer,
    /// Bursts, a rate with more than a peak (FC 3.3).
    Bursts,
    /// A user who is slow for a while (FC 3.4).
    Slowdown,
    /// What packets, searches and timers cost the sender's processor.
    SenderCosts,
    /// The round trip, over a network: schemes that do not measure it need it as a setting.
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

/// The rest of a [`Transport`] whose settings have a method `config(&self, &Transfer) -> Config`, from which the `Sender` and the
/// `Receiver` of its folder are made. Why a macro: the types are the folder's, and nothing else differs.
macro_rules! halves_from_config {
    () => {
        type Sender = Sender;
        type Receiver = Receiver;
        type Error = ConfigError;

        fn halves(&self, transfer: &Transfer, now: Instant) -> Result<(Sender, Receiver), ConfigError> {
            Ok((Sender::new(self.config(transfer), now)?, Receiver::new(self.config(transfer), now)?))
        }

        fn payload_bytes(&self, transfer: &Transfer) -> u32 {
            self.config(transfer).payload_bytes()
        }
    };
}
pub(crate) use halves_from_config;

/// A scheme: its description, and how its halves are made. The value is its own settings.
pub trait Transport: Clone + Debug + Default + PartialEq + Send + Sync + 'static {
    /// Its name on the command line and in files.
    const KEY: &'static str;
    /// Its name in pictures.
    const NAME: &'static str;
    /// Where it is from, in a line.
    const SOURCE: &'static str;
    /// The settings it has besides the common ones.
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
