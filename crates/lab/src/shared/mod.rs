//! Experiments with several flows over one shared link.
//!
//! Made by studies; run by [`crate::runner`] like any other experiment.
//!
//! - [`SharedScenario`], [`SharedFlow`], [`Traffic`], [`Application`]: the scenario; `record`: its canonical text;
//! - [`run`]: runs a scenario with one seed; `segment_times` measures segments;
//! - [`SharedOutcome`]: the outcome of one run; [`SharedResult`]: the joined replications of a scenario.
//!
//! Invariant: an outcome depends on scenario and seed alone. Flows are identified by name, so their order matters only for ties.

mod outcome;
mod point;
mod record;
mod run;
mod scenario;
mod segment_times;
mod traffic;

pub use outcome::{FlowOutcome, QueueOutcome, SAMPLE, SharedOutcome, Times};
pub use point::SharedResult;
pub use run::run;
pub use scenario::{Application, FLOWS_MAX, SharedFlow, SharedScenario, SharedScenarioError};
pub use traffic::{Pace, Traffic};

use crate::experiment::Experiment;
use segstream_base::random::Seed;

impl Experiment for SharedScenario {
    type Outcome = SharedOutcome;
    type Error = SharedScenarioError;

    fn canonical(&self) -> String {
        Self::canonical(self)
    }

    fn check(&self) -> Result<(), SharedScenarioError> {
        Self::check(self)
    }

    fn run(&self, seed: Seed) -> Result<(SharedOutcome, f64), SharedScenarioError> {
        run(self, seed)
    }

    fn packets(&self, outcome: &SharedOutcome) -> u64 {
        outcome.link_packets_sent
    }
}
