//! The effort for a point: run lengths, replications, and the stopping rule.
//!
//! Called by [`crate::runner`]; chosen by presets and by the command line.
//!
//! Invariant: maxima and percentiles use the first `replications_min` runs only, so that every scheme is
//! judged over the same number of segments, however many more runs its means have needed.

use crate::statistics::Estimate;
use crate::statistics::stopping::StoppingRule;

/// A preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Under a minute for all figures: short runs, the same number for every point.
    Quick,
    /// Some minutes: longer runs, and more of them where means are uncertain.
    Standard,
    /// The precision of the papers: one run a point with batch means, of ten million packets unless a tenth of them settles it.
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
            Self::Quick => {
                Plan { packets: 200_000, replications_min: 5, replications_max: 5, half_width: 0.05, losses_min: 0, trial: None }
            }
            Self::Standard => {
                Plan { packets: 400_000, replications_min: 5, replications_max: 15, half_width: 0.01, losses_min: 100, trial: None }
            }
            Self::Paper => Plan {
                packets: 10_000_000,
                replications_min: 1,
                replications_max: 1,
                half_width: 0.01,
                losses_min: 1000,
                trial: Some(1_000_000),
            },
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

    /// How long and how often a tandem is run. Why so: XT states no length; with the last of these a mean delay below saturation is
    /// known to a few per cent.
    pub const fn tandem(self) -> TandemPlan {
        match self {
            Self::Quick => TandemPlan { slots: 200_000, replications_min: 3, replications_max: 3, half_width: 0.02 },
            Self::Standard => TandemPlan { slots: 1_000_000, replications_min: 5, replications_max: 5, half_width: 0.02 },
            Self::Paper => TandemPlan { slots: 2_000_000, replications_min: 3, replications_max: 5, half_width: 0.02 },
        }
    }
}

/// How long and how often a scenario over a tandem is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TandemPlan {
    /// Slots of a run that are measured.
    pub slots: u64,
    /// Runs that are made in any case.
    pub replications_min: u32,
    /// Runs that are made at most.
    pub replications_max: u32,
    /// The relative half-width of the 95 % interval of the mean delay that is wanted; a point with a run that has no steady state has no
    /// mean, and needs no more.
    pub half_width: f64,
}

impl TandemPlan {
    /// How many more runs are wanted behind `made` of them, with this mean delay of theirs (`None` without a steady state).
    pub fn runs_wanted(&self, made: u32, delay: Option<Estimate>) -> u32 {
        let narrow = |delay: Estimate| delay.relative_half_width().is_some_and(|relative| relative <= self.half_width);
        if made < self.replications_min {
            self.replications_min - made
        } else {
            u32::from(made < self.replications_max && delay.is_some_and(|delay| !narrow(delay)))
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
    /// New packets of a run that is made first. When it reaches the precision, saw losses enough and has independent batches, the point is
    /// settled with it; else it is run at its whole length. `None` does so at once.
    pub trial: Option<u64>,
}

impl Plan {
    /// The same with runs of a part of the length, one in `times`.
    #[must_use]
    pub const fn shortened(self, times: u64) -> Self {
        let times = if times == 0 { 1 } else { times };
        let trial = match self.trial {
            Some(packets) => Some(packets / times),
            None => None,
        };
        Self { packets: self.packets / times, trial, ..self }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tandem_is_run_until_its_delay_is_known_or_has_no_mean() {
        let plan = TandemPlan { slots: 1, replications_min: 3, replications_max: 5, half_width: 0.02 };
        let delay = |half_width: f64| Some(Estimate { mean: 100.0, half_width: Some(half_width), samples: 3 });
        assert_eq!(plan.runs_wanted(0, None), 3);
        assert_eq!(plan.runs_wanted(2, delay(50.0)), 1);
        assert_eq!([plan.runs_wanted(3, delay(2.0)), plan.runs_wanted(3, delay(2.1)), plan.runs_wanted(3, None)], [0, 1, 0]);
        assert_eq!([plan.runs_wanted(4, delay(2.1)), plan.runs_wanted(5, delay(2.1))], [1, 0]);
    }

    #[test]
    fn a_shortened_plan_has_a_shorter_trial_too() {
        let plan = Preset::Paper.plan().shortened(10);
        assert_eq!((plan.packets, plan.trial), (1_000_000, Some(100_000)));
        assert_eq!(Preset::Quick.plan().shortened(5).trial, None);
    }
}
