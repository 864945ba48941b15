//! When a sender that has nothing to send says so.
//!
//! Chosen in [`super::Config`]; followed by the sending half. Sources: EC 4.1 (keep-alive), FC 3.3 step 3.
//!
//! Invariant: both ways tell the receiver the last shipment number, so that a gap behind the last data is seen.

use super::UnknownName;
use core::fmt;
use core::str::FromStr;

/// When keep-alive and end-of-stream packets leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum KeepAlive {
    /// R + 1 at once when the queue has become empty, and one every quarter of a round trip from then on. A burst goes on to its
    /// end, so that what is queued meanwhile may use the rest of it.
    #[default]
    Spaced,
    /// FC 3.3, step 3, to the letter: one whenever the queue is empty within a burst, which ends the burst. So one on every tick of
    /// the burst timer BT, 1 / F apart, while nothing is queued. For bursts alone: a smooth rate has no ticks.
    Tick,
}

impl KeepAlive {
    /// Both ways, the default first.
    pub const ALL: [Self; 2] = [Self::Spaced, Self::Tick];

    /// The name: `spaced` or `tick`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spaced => "spaced",
            Self::Tick => "tick",
        }
    }
}

impl fmt::Display for KeepAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for KeepAlive {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownName { text: text.to_owned(), names: "spaced or tick" };
        Self::ALL.into_iter().find(|way| way.name() == text).ok_or_else(unknown)
    }
}
