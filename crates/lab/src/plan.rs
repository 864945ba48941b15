//! The effort for a point: run lengths, replications, and the stopping rule.
//!
//! Called by [`crate::runner`]; chosen by presets and by the command line.
//!
//! Invariant: maxima and percentiles use the first `replications_min` runs only, so that every scheme is
//! judged over the same number of segments, however many more runs its means have needed.

use crate::statistics::stopping::StoppingRule;

/// A preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Under a minute for all figures: short runs, the same number for every point.
    Quick,
    /// Some minutes: longer runs, and more of them where means are uncertain.
    Standard,
    /// The run length of the papers: ten million packets in one run a point, with batch means.
    Paper,
}

impl Preset {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Paper => "paper",
        }
    }

    /// The plan of a point.
    pub const fn plan(self) -> Plan {
        match self {
            Self::Quick => Plan { packets: 200_000, replications_min: 5, replications_max: 5, half_width: 0.05, losses_min: 0 },
            Self::Standard => Plan { packets: 400_000, replications_min: 5, replications_max: 15, half_width: 0.01, losses_min: 100 },
            Self::Paper => Plan { packets: 10_000_000, replications_min: 1, replications_max: 1, half_width: 0.02, losses_min: 0 },
        }
    }

    /// How often a shared scenario is run, which says itself for how long.
    pub const fn shared_replications(self) -> u32 {
        match self {
            Self::Quick => 3,
            Self::Standard => 5,
            Self::Paper => 10,
        }
    }

    /// How many slots of a tandem are measured in a run, and how often it is run. Why so: XT states no length; with the last
    /// of these a mean delay below saturation is known to a few per cent.
    pub const fn tandem(self) -> (u64, u32) {
        match self {
            Self::Quick => (200_000, 3),
            Self::Standard => (1_000_000, 5),
            Self::Paper => (2_000_000, 5),
        }
    }
}

/// How long and how often a point is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// New packets of one run.
    pub packets: u64,
    /// Runs that are made in any case.
    pub replications_min: u32,
    /// Runs that are made at most.
    pub replications_max: u32,
    /// The relative half-width of the 95 % interval of throughput efficiency and mean delay that is wanted.
    pub half_width: f64,
    /// Losses that must have been seen.
    pub losses_min: u64,
}

impl Plan {
    /// When a point is settled.
    pub fn rule(&self) -> StoppingRule {
        StoppingRule {
            relative_half_width: self.half_width,
            replications_min: u64::from(self.replications_min),
            rare_events_min: self.losses_min,
            budget: Some(u64::from(self.replications_max)),
        }
    }
}
