//! What can be run again and again, stored and never run twice.
//!
//! Implemented by [`Scenario`], one scheme over one black box, by [`crate::shared::SharedScenario`], several parties over one
//! link, and by [`crate::tandem::TandemScenario`], error control over finite queues; called by [`crate::runner`] and [`crate::store`].
//!
//! Invariant: equal canonical texts and seeds give equal outcomes.

use crate::outcome::Outcome;
use crate::run;
use crate::runner::RunnerError;
use crate::scenario::{Scenario, ScenarioError};
use segstream_base::random::Seed;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An experiment as a value.
pub trait Experiment: Clone + Send + Sync {
    /// What a run gives.
    type Outcome: Clone + Send + Serialize + DeserializeOwned;
    /// Why it cannot be run.
    type Error: Into<RunnerError>;

    /// The experiment as one line of JSON, the same for equal ones.
    fn canonical(&self) -> String;
    /// Whether it can be run.
    ///
    /// # Errors
    /// Says what cannot be.
    fn check(&self) -> Result<(), Self::Error>;
    /// Runs it with the random streams of `seed`. Returns what it gave, and the seconds of wall time it took.
    ///
    /// # Errors
    /// Says what cannot be.
    fn run(&self, seed: Seed) -> Result<(Self::Outcome, f64), Self::Error>;
    /// The packets that a run has simulated, for whoever watches progress.
    fn packets(&self, outcome: &Self::Outcome) -> u64;
}

impl Experiment for Scenario {
    type Outcome = Outcome;
    type Error = ScenarioError;

    fn canonical(&self) -> String {
        Self::canonical(self)
    }

    fn check(&self) -> Result<(), ScenarioError> {
        Self::check(self)
    }

    fn run(&self, seed: Seed) -> Result<(Outcome, f64), ScenarioError> {
        run::run(self, seed).map(|run| (run.outcome, run.wall_s))
    }

    fn packets(&self, _outcome: &Outcome) -> u64 {
        self.packets
    }
}
