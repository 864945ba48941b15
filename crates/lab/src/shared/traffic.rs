//! What a party sends: a scheme, or cross traffic by a short text.
//!
//! Part of [`super::SharedParty`].
//!
//! Invariant: the text of cross traffic reads back as the same traffic.

use super::scenario::SharedScenarioError;
use crate::scenario::Scenario;
use core::fmt;
use segstream_base::{Bandwidth, Duration};

/// What a party sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// A scheme of the registry. Of the scenario counts what a pair of halves is made of: scheme, sizes, window, buffer,
    /// acknowledgment, tolerance, accounting, re-sequencing. Bandwidth, round trip and losses are the party's and the link's;
    /// what its source offers, the queue of its black box, costs of a processor and losses of control alone do not count.
    Scheme {
        /// The scheme and its settings.
        scenario: Box<Scenario>,
        /// Its fixed rate, whole packets counted; `None` for a rate found as it goes, which the flagship alone has.
        rate: Option<Bandwidth>,
    },
    /// A TCP with Reno: `reno`, with marks instead of drops where the link marks: `reno-ecn`.
    Reno {
        /// Whether its packets can be marked.
        ecn: bool,
    },
    /// A TCP with CUBIC: `cubic`, `cubic-ecn`.
    Cubic {
        /// Whether its packets can be marked.
        ecn: bool,
    },
    /// A TCP with BBR, version 1: `bbr`.
    Bbr,
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

impl Traffic {
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
        Ok(match text {
            "reno" => Self::Reno { ecn: false },
            "reno-ecn" => Self::Reno { ecn: true },
            "cubic" => Self::Cubic { ecn: false },
            "cubic-ecn" => Self::Cubic { ecn: true },
            "bbr" => Self::Bbr,
            _ => match text.split_once(':').ok_or_else(wrong)? {
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
            },
        })
    }
}

/// Cross traffic in its text; a scheme by its key.
impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme { scenario, .. } => f.write_str(&scenario.scheme),
            Self::Reno { ecn: false } => f.write_str("reno"),
            Self::Reno { ecn: true } => f.write_str("reno-ecn"),
            Self::Cubic { ecn: false } => f.write_str("cubic"),
            Self::Cubic { ecn: true } => f.write_str("cubic-ecn"),
            Self::Bbr => f.write_str("bbr"),
            Self::Constant { rate } => write!(f, "constant:{}", rate.bits_per_second()),
            Self::OnOff { rate, on, off } => {
                write!(f, "onoff:rate={},on={},off={}", rate.bits_per_second(), on.as_nanos(), off.as_nanos())
            }
        }
    }
}
