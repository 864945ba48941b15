//! The point of AA Table 1: both ends take 70 us for a packet and 0.05 us for each of its bytes; and who stands at it.
//!
//! Called by the studies of this folder and by `flagship/report_periods`.
//!
//! Invariant: what is not said here is as in [`Scenario::default`]; a segment is one packet, only data is lost.
//! Source: AA 3.2, AA Table 1.

use crate::curves::Look;
use segstream_base::Tolerance;
use segstream_base::{Bandwidth, Duration};
use segstream_lab::figure::Line;
use segstream_lab::flagship;
use segstream_lab::registry::SchemeConfig;
use segstream_lab::scenario::Scenario;
use segstream_path::LossSpec;
use segstream_schemes::{adaptive_ack, sscop};

/// What a packet costs either end, and each of its bytes (AA Table 1).
pub(crate) const WORK: (Duration, Duration) = (Duration::from_micros(70), Duration::from_nanos(50));
/// The DATA channel (AA Table 1).
pub(crate) const DATA_CHANNEL: Bandwidth = Bandwidth::from_megabits_per_second(100);
/// The ACK channel (AA Table 1).
pub(crate) const ACK_CHANNEL: Bandwidth = Bandwidth::from_megabits_per_second(10);
/// A DATA packet, and an ACK packet (AA Table 1).
pub(crate) const DATA_BYTES: u32 = 1024;
/// An ACK packet (AA Table 1).
pub(crate) const ACK_BYTES: u32 = 32;
/// The window of all figures but Fig. 8, in packets.
pub(crate) const WINDOW: u32 = 400;
/// T_normal and T_error that AA finds the best, in milliseconds (AA 3.2.2).
pub(crate) const BEST_PAIR: (u64, u64) = (40, 5);

/// The schemes of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Adaptive acknowledgment with this T_normal and T_error, in milliseconds.
    AdaptiveAck(u64, u64),
    /// SSCOP that polls so often, in milliseconds.
    Sscop(u64),
    /// The flagship, which has no period to choose.
    Segstream,
}

impl Who {
    /// Its name in a legend.
    pub(crate) fn label(self) -> String {
        match self {
            Self::AdaptiveAck(t_normal, t_error) => format!("Adaptive ack., {t_normal} and {t_error} ms"),
            Self::Sscop(poll) => format!("SSCOP, poll {poll} ms"),
            Self::Segstream => "Segstream".to_owned(),
        }
    }

    /// How its curve looks: the colour and sign of its scheme.
    pub(crate) fn look(self, line: Line) -> Look {
        let scheme = self.config().scheme();
        Look { colour: scheme.colour, marker: scheme.marker, line }
    }

    /// The scheme with its settings.
    fn config(self) -> SchemeConfig {
        let ms = Duration::from_millis;
        match self {
            Self::AdaptiveAck(t_normal, t_error) => {
                adaptive_ack::Settings { t_normal: ms(t_normal), t_error: ms(t_error), ..adaptive_ack::Settings::default() }.into()
            }
            Self::Sscop(poll) => sscop::Settings { timer_poll: ms(poll), ..sscop::Settings::default() }.into(),
            Self::Segstream => flagship::Settings::default().into(),
        }
    }

    /// The scenario with a window of this many packets, and such loss of data.
    pub(crate) fn over(self, window: u32, loss: &LossSpec) -> Scenario {
        Scenario::default().with(|it| {
            it.scheme = self.config();
            it.black_box.rtt = Duration::ZERO;
            it.black_box.bandwidth = DATA_CHANNEL;
            it.black_box.bandwidth_back = Some(ACK_CHANNEL);
            it.black_box.loss = loss.clone();
            it.black_box.control_loss = Some(LossSpec::None);
            it.black_box.work = WORK;
            it.workload.packet_bytes = DATA_BYTES;
            it.workload.segment_packets = 1;
            it.workload.tolerance = Tolerance::reliable(1);
            it.workload.window = window;
        })
    }
}

/// The same ends with a processor that waits until the channel has taken its packet: AA does not say which. The time of the DATA
/// channel is added to the work; an ACK's is then 4 us instead of 27.
pub(crate) fn one_after_the_other(scenario: Scenario) -> Scenario {
    const CHANNEL_NS_PER_BYTE: u64 = 80;
    scenario.with(|it| {
        it.black_box.work = (WORK.0, WORK.1 + Duration::from_nanos(CHANNEL_NS_PER_BYTE));
        it.black_box.bandwidth = Bandwidth::from_megabits_per_second(100_000);
        it.black_box.bandwidth_back = Some(Bandwidth::from_megabits_per_second(100_000));
    })
}

/// Lost packets in runs of geometric length with this mean, `p` of all: AA's bursty loss, of which it does not state the length.
///
/// # Panics
/// When the numbers make no loss process: a fault of a study.
pub(crate) fn bursty(p: f64, mean_burst: u32) -> LossSpec {
    format!("gilbert:rate={p},burst={mean_burst}").parse().expect("a study's loss is a process")
}
