//! The replications of one scenario over a tandem, joined.
//!
//! Made by [`crate::runner`]; read by studies and by the command line.
//!
//! Invariant: a point of which one run has no steady state has no mean delay: it is marked, not averaged.

use super::outcome::TandemOutcome;
use super::scenario::TandemScenario;
use crate::experiment::Repeated;
use crate::statistics::{Estimate, over_replications};

/// The replications of one scenario over a tandem.
pub type TandemResult = Repeated<TandemScenario>;

impl TandemResult {
    /// What went wrong in the first run in which something did. That a run has no steady state is a result, not trouble.
    pub fn trouble(&self) -> Option<&str> {
        self.outcomes.iter().find_map(|outcome| outcome.trouble.as_deref())
    }

    /// A value of each run as mean and interval over replications.
    pub fn over_replications(&self, value: impl Fn(&TandemOutcome) -> f64) -> Estimate {
        over_replications(&self.outcomes.iter().map(value).collect::<Vec<_>>())
    }

    /// The mean delay of a message in slots; not a number when the point is unstable.
    pub fn delay_slots_mean(&self) -> Estimate {
        if self.is_unstable() { Estimate::single(f64::NAN) } else { self.over_replications(TandemOutcome::delay_slots_mean) }
    }

    /// Messages delivered in a slot.
    pub fn throughput_messages_per_slot(&self) -> Estimate {
        self.over_replications(TandemOutcome::throughput_messages_per_slot)
    }

    /// Whether any run never reached a steady state.
    pub fn is_unstable(&self) -> bool {
        self.unstable_runs() > 0
    }

    /// How many runs never did.
    pub fn unstable_runs(&self) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.unstable).count()
    }

    /// A count summed over all runs.
    pub fn total(&self, count: impl Fn(&TandemOutcome) -> u64) -> u64 {
        self.outcomes.iter().map(count).sum()
    }
}
