//! When the receiver's timer is set anew, which AA leaves open: the page of its text that would say so is lost.
//!
//! Called by the receiving half through `status`. Source: AA 2 ("T_error is for the error phase in which there are lost packets")
//! and the words on AA Figure 2 ("changed to T_error after the first error occurred", and not back before all is recovered).
//!
//! Invariant: every name reads back as its value.

use core::fmt;
use core::str::FromStr;

/// When the receiver's timer is set anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Rearming {
    /// A gap while nothing else is missing sets it to T_error, also when the timer of the phase before still runs; when it runs
    /// out with nothing missing, the next period is T_normal.
    #[default]
    Phase,
    /// Only a gap while the period is T_normal does.
    First,
    /// Every gap does.
    Gap,
    /// No gap does: what runs, runs out, and the period that follows is T_error while something is missing.
    Expiry,
    /// As `Phase`, and the packet that fills the last gap sets it to T_normal.
    Recovery,
}

impl Rearming {
    /// Every reading, the default first.
    pub const ALL: [Self; 5] = [Self::Phase, Self::First, Self::Gap, Self::Expiry, Self::Recovery];

    /// The name: `phase`, `first`, `gap`, `expiry` or `recovery`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Phase => "phase",
            Self::First => "first",
            Self::Gap => "gap",
            Self::Expiry => "expiry",
            Self::Recovery => "recovery",
        }
    }
}

impl fmt::Display for Rearming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no reading.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not when a timer can be set anew; write phase, first, gap, expiry or recovery")]
pub struct UnknownRearming(String);

impl FromStr for Rearming {
    type Err = UnknownRearming;

    fn from_str(text: &str) -> Result<Self, UnknownRearming> {
        Self::ALL.into_iter().find(|reading| reading.name() == text).ok_or_else(|| UnknownRearming(text.to_owned()))
    }
}
