//! Several parties over one shared link, as values: what is run, what comes of it.
//!
//! Made by studies; run by [`crate::runner`] like any other experiment.
//!
//! - [`SharedScenario`], [`SharedParty`], [`Traffic`], [`Application`]: what is run; `record`: its canonical text;
//! - [`run`]: runs one with one seed; `segment_times` watches segments;
//! - [`SharedOutcome`]: what one run gave; [`SharedResult`]: the replications of one scenario, joined.
//!
//! Invariant: an outcome depends on scenario and seed alone, and parties are told apart by name, so their order does not
//! matter but for ties.

mod outcome;
mod point;
mod record;
mod run;
mod scenario;
mod segment_times;
mod traffic;

pub use outcome::{PartyOutcome, QueueOutcome, SAMPLE, SharedOutcome, Times};
pub use point::SharedResult;
pub use run::run;
pub use scenario::{Application, PARTIES_MAX, SharedParty, SharedScenario, SharedScenarioError};
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
