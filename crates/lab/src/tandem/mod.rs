//! Error control over a tandem of finite queues (XT Figure 2), as values: what is run, what comes of it.
//!
//! Made by studies and by the command line; run by [`crate::runner`] like any other experiment.
//!
//! - [`TandemScenario`], [`TandemScheme`]: what is run; `record`: its canonical text; [`value_names`]: its values as words;
//! - [`run`]: runs one with one seed;
//! - [`TandemOutcome`]: what one run gave; [`TandemResult`]: the replications of one scenario, joined.
//!
//! Invariant: an outcome depends on scenario and seed alone. Under one seed all schemes meet the same messages, the same external
//! packets and the same bad slots of the link.

mod outcome;
mod point;
mod record;
mod run;
mod scenario;
pub mod value_names;

pub use outcome::TandemOutcome;
pub use point::TandemResult;
pub use run::run;
pub use scenario::{GO_BACK_FILTER_SLOTS, TandemScenario, TandemScenarioError, TandemScheme, WTIMER_SLOTS};
pub use segstream_sim::tandem::{Arrivals, Order, TandemConfig, Tie};

use crate::experiment::Experiment;
use segstream_base::random::Seed;

/// The stations that serve a slot: XTP1, LINK1, the link, LINK2 and XTP2.
pub const NODES: u64 = 5;

impl Experiment for TandemScenario {
    type Outcome = TandemOutcome;
    type Error = TandemScenarioError;

    fn canonical(&self) -> String {
        Self::canonical(self)
    }

    fn check(&self) -> Result<(), TandemScenarioError> {
        Self::check(self)
    }

    fn run(&self, seed: Seed) -> Result<(TandemOutcome, f64), TandemScenarioError> {
        run(self, seed)
    }

    fn packets(&self, outcome: &TandemOutcome) -> u64 {
        outcome.packets_sent
    }
}
