//! The traffic of a flow: a scheme, or cross traffic with a text form.
//!
//! Part of [`super::SharedFlow`].
//!
//! Invariant: the text of cross traffic reads back as the same traffic.

use super::scenario::SharedScenarioError;
use crate::scenario::Scenario;
use core::fmt;
use segstream_base::endpoint::Ecn;
use segstream_base::{Bandwidth, Duration};
use segstream_blocks::congestion::{ALGORITHMS, Algorithm, Clock, auto};

/// The traffic of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// A scheme of the registry. Of the scenario counts what a pair of halves is made of: scheme, sizes, window, buffer,
    /// acknowledgment, tolerance, accounting, re-sequencing. Bandwidth, round trip and losses are the flow's and the link's;
    /// what its source offers, the queue of its black box, costs of a processor and losses of control alone do not count.
    Scheme {
        /// The scheme and its settings.
        scenario: Box<Scenario>,
        /// How its rate is chosen.
        pace: Pace,
    },
    /// A TCP under a report-clocked controller, by the controller's name: `reno`, `linux_cubic` and `bbr1` are what kernels
    /// run. A controller that answers marks has ECN-capable forms too: `reno-ecn` and `linux_cubic-ecn` send ECT(0), `reno-ect1` and
    /// `prague-ect1` send ECT(1), which a queue of L4S serves apart (RFC 9331).
    Tcp {
        /// The controller.
        congestion: &'static Algorithm,
        /// The codepoint of its packets; `None` is Not-ECT.
        ecn: Option<Ecn>,
    },
    /// Packets of 1500 bytes at a rate that nothing changes: `constant:20000000`, in bit/s.
    Constant {
        /// The rate.
        rate: Bandwidth,
    },
    /// The same in bursts of exponentially distributed length: `onoff:rate=20000000,on=500000000,off=500000000`, in bit/s and
    /// nanoseconds.
    OnOff {
        /// The rate in a burst.
        rate: Bandwidth,
        /// The mean length of a burst.
        on: Duration,
        /// The mean time between two.
        off: Duration,
    },
}

/// How the rate of a scheme is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Fixed, whole packets counted.
    Fixed(Bandwidth),
    /// By a congestion controller, which the flagship alone has.
    Controlled(&'static Algorithm),
}

impl Pace {
    /// By the controller `auto`.
    pub const AUTO: Self = Self::Controlled(&auto::ALGORITHM);

    /// The fixed rate, if it is one.
    pub const fn fixed(self) -> Option<Bandwidth> {
        match self {
            Self::Fixed(rate) => Some(rate),
            Self::Controlled(_) => None,
        }
    }
}

impl Traffic {
    /// A TCP under `congestion` that is not ECN-capable.
    pub const fn tcp(congestion: &'static Algorithm) -> Self {
        Self::Tcp { congestion, ecn: None }
    }

    /// Whether it has a supply at a rate of its own, so that no application can have one.
    pub(super) const fn has_own_rate(&self) -> bool {
        matches!(self, Self::Constant { .. } | Self::OnOff { .. })
    }

    /// Reads the text of cross traffic.
    ///
    /// # Errors
    /// When it is none.
    pub fn cross(text: &str) -> Result<Self, SharedScenarioError> {
        let wrong = || SharedScenarioError::Traffic(text.to_owned());
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        if let Some((congestion, ecn)) = tcp(text) {
            return Ok(Self::Tcp { congestion, ecn });
        }
        Ok(match text.split_once(':').ok_or_else(wrong)? {
            ("constant", rate) => Self::Constant { rate: Bandwidth::from_bits_per_second(number(rate)?) },
            ("onoff", pieces) => {
                let mut pieces = pieces.split(',');
                let mut piece = |name: &str| {
                    let value = pieces.next().and_then(|piece| piece.strip_prefix(name)?.strip_prefix('='));
                    value.ok_or_else(wrong).and_then(number)
                };
                Self::OnOff {
                    rate: Bandwidth::from_bits_per_second(piece("rate")?),
                    on: Duration::from_nanos(piece("on")?),
                    off: Duration::from_nanos(piece("off")?),
                }
            }
            _ => return Err(wrong()),
        })
    }
}

/// How the name of an ECN-capable TCP ends.
const SUFFIXES: [(&str, Ecn); 2] = [("-ecn", Ecn::Ect0), ("-ect1", Ecn::Ect1)];

/// The controllers that a TCP can run.
fn controllers() -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS.iter().copied().filter(|algorithm| algorithm.clock == Clock::Reports)
}

/// The controller of a TCP with this name, and the codepoint of its packets.
fn tcp(name: &str) -> Option<(&'static Algorithm, Option<Ecn>)> {
    let capable = SUFFIXES.iter().find_map(|(suffix, ecn)| Some((name.strip_suffix(suffix)?, Some(*ecn))));
    let (name, ecn) = capable.unwrap_or((name, None));
    let congestion = controllers().find(|algorithm| algorithm.name == name)?;
    (ecn.is_none() || congestion.responds_to_ecn).then_some((congestion, ecn))
}

/// The names that [`Traffic::cross`] reads, as a list.
pub(super) fn cross_names() -> String {
    let mut names = String::new();
    for controller in controllers() {
        names += &format!("{}, ", controller.name);
        if controller.responds_to_ecn {
            names.extend(SUFFIXES.iter().map(|(suffix, _)| format!("{}{suffix}, ", controller.name)));
        }
    }
    names + "constant:BPS or onoff:rate=BPS,on=NS,off=NS"
}

/// Cross traffic in its text; a scheme by its key.
impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme { scenario, .. } => f.write_str(scenario.scheme.key()),
            Self::Tcp { congestion, ecn } => {
                let suffix = SUFFIXES.iter().find(|(_, codepoint)| Some(*codepoint) == *ecn).map_or("", |(suffix, _)| suffix);
                write!(f, "{}{suffix}", congestion.name)
            }
            Self::Constant { rate } => write!(f, "constant:{}", rate.bits_per_second()),
            Self::OnOff { rate, on, off } => {
                write!(f, "onoff:rate={},on={},off={}", rate.bits_per_second(), on.as_nanos(), off.as_nanos())
            }
        }
    }
}
