//! HT's point: the sender's processor takes 83 us for a packet and the line next to nothing; and who stands at it.
//!
//! Called by the studies of this folder.
//!
//! Invariant: what is not said here is as in [`Scenario::default`]; windows are in packets, and a segment is one packet.
//! Source: HT 6, HT 7.

use segstream_base::Tolerance;
use segstream_base::{Bandwidth, Duration};
use segstream_lab::figure::{Line, Marker};
use segstream_lab::flagship;
use segstream_lab::registry::SchemeConfig;
use segstream_lab::scenario::Scenario;
use segstream_path::LossSpec;
use segstream_schemes::htpnet::{self, Ranges};
use segstream_schemes::tcp::{self, Backoff};

use crate::curves::Look;

/// What a packet takes of the sender's processor: the slowest of HT's processes at its 12,000 packets a second.
pub(super) const SERVICE: Duration = Duration::from_micros(83);
/// HT's data are 2 kbytes.
pub(super) const PACKET_BYTES: u32 = 2048;
/// Segstream's: its packets fit a path of 1280 bytes.
pub(super) const SEGSTREAM_PACKET_BYTES: u32 = 1024;
/// A line that plays no part.
const LINE: Bandwidth = Bandwidth::from_megabits_per_second(100_000);
/// What an operation on TCP's list of timers takes, and each timer that it passes. Chosen: HT names the list alone.
pub(super) const TIMER_COST: (Duration, Duration) = (Duration::from_micros(5), Duration::from_micros(1));

/// Who stands in a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// HTPNET whose receiver reports so much of what it has.
    Htpnet(Ranges),
    /// TCP that so treats a timeout that was backed off.
    Tcp(Backoff),
    /// The flagship, which knows no processor: its rate is fixed at one packet in [`SERVICE`].
    Segstream,
}

/// HTPNET in its four ways, TCP in its three, and the flagship.
pub(super) const EVERYONE: [Who; 8] = [
    Who::Htpnet(Ranges::Eight),
    Who::Htpnet(Ranges::Four),
    Who::Htpnet(Ranges::Rotating),
    Who::Htpnet(Ranges::All),
    Who::Tcp(Backoff::Retain),
    Who::Tcp(Backoff::Own),
    Who::Tcp(Backoff::Oldest),
    Who::Segstream,
];

impl Who {
    /// The beginning of a curve's name.
    pub(super) fn name(self) -> String {
        match self {
            Self::Htpnet(ranges) => format!("htpnet {ranges}"),
            Self::Tcp(backoff) => format!("tcp {backoff}"),
            Self::Segstream => "segstream".to_owned(),
        }
    }

    /// Its name in a legend.
    pub(super) fn label(self) -> String {
        match self {
            Self::Htpnet(Ranges::Four) => "HTPNET, four pairs".to_owned(),
            Self::Htpnet(Ranges::Eight) => "HTPNET, eight pairs".to_owned(),
            Self::Htpnet(Ranges::Rotating) => "HTPNET, rotating pairs".to_owned(),
            Self::Htpnet(Ranges::All) => "HTPNET, all runs".to_owned(),
            Self::Tcp(Backoff::Retain) => "TCP, timeout retained".to_owned(),
            Self::Tcp(Backoff::Own) => "TCP, each packet backs off".to_owned(),
            Self::Tcp(Backoff::Oldest) => "TCP, one timer".to_owned(),
            Self::Segstream => "Segstream".to_owned(),
        }
    }

    /// How its curve looks: the colour and sign of its scheme, the line of its way.
    pub(super) fn look(self) -> Look {
        let scheme = self.config().scheme();
        let line = match self {
            Self::Htpnet(Ranges::Eight) | Self::Tcp(Backoff::Retain) | Self::Segstream => Line::Solid,
            Self::Htpnet(Ranges::Four | Ranges::Rotating) | Self::Tcp(Backoff::Own) => Line::Dashed,
            Self::Htpnet(Ranges::All) | Self::Tcp(Backoff::Oldest) => Line::Dotted,
        };
        Look { colour: scheme.colour, marker: scheme.marker, line }
    }

    /// The scheme with its settings.
    fn config(self) -> SchemeConfig {
        match self {
            Self::Htpnet(ranges) => htpnet::Settings { ranges, ..htpnet::Settings::default() }.into(),
            Self::Tcp(backoff) => tcp::Settings { backoff, ..tcp::Settings::default() }.into(),
            Self::Segstream => flagship::Settings::default().into(),
        }
    }

    /// The scenario at a round trip, with a window of this many packets and a loss that takes data and control alike, on the
    /// way there; the return path loses the same share by a process of its own.
    pub(super) fn over(self, rtt: Duration, window: u32, loss: &LossSpec) -> Scenario {
        let scenario = Scenario::default().with(|it| {
            it.scheme = self.config();
            it.black_box.rtt = rtt;
            it.black_box.loss = loss.clone();
            it.black_box.loss_back = loss.clone();
            it.black_box.bandwidth = LINE;
            it.workload.packet_bytes = PACKET_BYTES;
            it.workload.segment_packets = 1;
            it.workload.tolerance = Tolerance::reliable(1);
            it.workload.window = window;
        });
        match self {
            Self::Htpnet(_) => scenario.with(|it| it.black_box.service = SERVICE),
            Self::Tcp(_) => scenario.with(|it| {
                it.black_box.service = SERVICE;
                it.black_box.timer_cost = TIMER_COST;
            }),
            Self::Segstream => scenario.with(|it| {
                it.workload.packet_bytes = SEGSTREAM_PACKET_BYTES;
                it.black_box.bandwidth = one_packet_in(SERVICE, SEGSTREAM_PACKET_BYTES);
            }),
        }
    }
}

/// The bandwidth that takes so long for a packet of this many bytes.
pub(super) fn one_packet_in(time: Duration, bytes: u32) -> Bandwidth {
    Bandwidth::from_bits_per_second(u64::from(bytes) * 8 * 1_000_000_000 / time.as_nanos().max(1))
}

/// Marks for values of a parameter, beside the colours of [`crate::curves::SHADES`].
pub(super) const MARKERS: [Marker; 4] = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond];
