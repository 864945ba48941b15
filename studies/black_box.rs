//! The black box of EC and FC, and the scenarios that every figure of the two papers starts from.
//!
//! Called by the studies of both papers.
//!
//! Invariant: the point is RTD 60 ms, packets of 1024 bytes, segments of 256; the bandwidth is 500 Mbit/s
//! where nothing else is said. The papers state neither; EC's 154 and 94 ms fit every rate from 481 to 608 Mbit/s.

use segstream_base::Bandwidth;
use segstream_base::Tolerance;
use segstream_lab::figure::Marker;
use segstream_lab::registry::{self, Scheme};
use segstream_lab::scenario::Scenario;
use segstream_path::LossSpec;
use segstream_schemes::sstp::FeedbackMode;

/// The schemes of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// SSTP as the papers simulate it: the sender is told, after t_a, the fate of each packet group.
    SstpIdeal,
    /// SSTP with everything on: gaps, timers, control that shares the path and is lost on it.
    SstpFull,
    /// SNR, its control out of band as the papers assume.
    Snr,
    /// The flagship, control on the path and lost on it.
    Segstream,
}

impl Who {
    /// The key of the scheme in the registry.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::SstpIdeal | Self::SstpFull => "sstp",
            Self::Snr => "snr",
            Self::Segstream => "segstream",
        }
    }

    /// The beginning of a curve's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SstpIdeal => "sstp-ideal",
            Self::SstpFull => "sstp-full",
            Self::Snr => "snr",
            Self::Segstream => "segstream",
        }
    }

    /// The beginning of a curve's name in a legend.
    pub fn label(self) -> String {
        let name = self.registered().name;
        match self {
            Self::SstpIdeal => format!("{name}, ideal feedback"),
            Self::SstpFull => format!("{name}, full"),
            Self::Snr | Self::Segstream => name.to_owned(),
        }
    }

    /// The sign at its points: the scheme's, except for SSTP in full mode, which stands beside itself.
    pub fn marker(self) -> Marker {
        if self == Self::SstpFull { Marker::Diamond } else { self.registered().marker }
    }

    fn registered(self) -> &'static Scheme {
        registry::find(self.scheme()).expect("a study's scheme is in the registry")
    }

    /// The scenario at the common point, with this loss. In full mode the return path loses as the forward path
    /// does, by a process of its own.
    pub fn over(self, loss: &LossSpec) -> Scenario {
        let ideal = matches!(self, Self::SstpIdeal | Self::Snr);
        Scenario::default().with(|it| {
            it.scheme = self.registered().config();
            it.black_box.loss = loss.clone();
            it.black_box.loss_back = if ideal { LossSpec::None } else { loss.clone() };
            it.black_box.feedback = if ideal { FeedbackMode::Ideal } else { FeedbackMode::Full };
        })
    }
}

/// Those on every figure: SSTP in both modes, and the flagship.
pub const EVERYWHERE: [Who; 3] = [Who::SstpIdeal, Who::SstpFull, Who::Segstream];

/// Random loss of probability `p`.
///
/// # Panics
/// When `p` is no probability below 1: a fault of a study.
pub fn random(p: f64) -> LossSpec {
    format!("random:{p}").parse().expect("a study's loss is a probability")
}

/// Loss with probability `p` in runs of `burst` packets in the mean.
///
/// # Panics
/// When the numbers make no loss process: a fault of a study.
pub fn gilbert(p: f64, burst: f64) -> LossSpec {
    format!("gilbert:rate={p},burst={burst}").parse().expect("a study's loss is a process")
}

/// EC 5: loss with probability `p` in bad states of mean length `bad_ms`, none in good ones of 1620 ms.
///
/// # Panics
/// When the numbers make no loss process: a fault of a study.
pub fn bursty(bad_ms: u32, p: f64) -> LossSpec {
    format!("bursty:good=1620ms,bad={bad_ms}ms,loss={p}").parse().expect("a study's loss is a process")
}

/// The same with every state exactly as long as its mean.
///
/// # Panics
/// When the numbers make no loss process: a fault of a study.
pub fn bursty_regular(bad_ms: u32, p: f64) -> LossSpec {
    format!("bursty:good=1620ms,bad={bad_ms}ms,loss={p},dwell=deterministic").parse().expect("a study's loss is a process")
}

/// (256, E, B).
///
/// # Panics
/// When E or B exceeds 256: a fault of a study.
pub fn tolerance(errors: u32, burst: u32) -> Tolerance {
    Tolerance::new(256, errors, burst).expect("a study's tolerance is one")
}

/// A bandwidth in Mbit/s.
pub const fn mbit(rate: u64) -> Bandwidth {
    Bandwidth::from_megabits_per_second(rate)
}
