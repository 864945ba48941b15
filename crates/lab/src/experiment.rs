//! Experiments: what can be run, stored and looked up.
//!
//! Implemented by each kind of experiment beside its own code ([`crate::run`], [`crate::shared`], [`crate::tandem`],
//! [`crate::stages`]); called by [`crate::runner`] and [`crate::store`], which know no kind.
//!
//! Invariant: equal canonical texts and seeds give equal outcomes.

use segstream_base::random::Seed;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An experiment as a value.
pub trait Experiment: Clone + Send + Sync {
    /// The outcome of a run.
    type Outcome: Clone + Send + Sync + Serialize + DeserializeOwned;
    /// Why it cannot be run.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The experiment as one line of JSON, the same for equal ones.
    fn canonical(&self) -> String;
    /// Whether it can be run.
    ///
    /// # Errors
    /// Says what is invalid.
    fn check(&self) -> Result<(), Self::Error>;
    /// Runs it with the random streams of `seed`. Returns what it gave, and the seconds of wall time it took.
    ///
    /// # Errors
    /// Says what is invalid.
    fn run(&self, seed: Seed) -> Result<(Self::Outcome, f64), Self::Error>;
    /// The packets that a run has simulated, for the progress display.
    fn packets(&self, outcome: &Self::Outcome) -> u64;
}

/// The replications of an experiment.
#[derive(Clone, Debug)]
pub struct Repeated<E: Experiment> {
    /// What was run.
    pub scenario: E,
    /// The outcome of each run, in the order of replications.
    pub outcomes: Vec<E::Outcome>,
    /// Seconds of wall time that the runs made here took, each on one core; stored runs take none.
    pub wall_s: f64,
}
