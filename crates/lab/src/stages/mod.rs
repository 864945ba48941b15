//! HTPNET's processes on threads and on modelled processors (HT 5, HT 6, HT Fig 8).
//!
//! The same processes, hosts and network nodes run in two places: on real threads, where [`measure`] tells what
//! this machine does, and on the simulator's processors, where [`run`] tells what this many processors of given costs
//! would do. Called by the study of HT Fig 8 and by the benchmarks.
//!
//! - `process`: the ten stages of an experiment, of which five are the protocol's; `host`, `network`: the other five.
//! - [`costs`]: [`StageCosts`], what each stage costs a packet, on the paper's computers or measured here.
//! - [`spread`]: which processor or thread has which stage, chosen to balance.
//! - [`scenario`]: [`StageScenario`] and [`StageOutcome`], the model's experiment as a value; `model` runs it.
//! - [`measured`]: [`Measurement`] and [`measure`], the same on threads.
//!
//! Invariant: an outcome of the model depends on its scenario alone; what is measured is never an outcome.

pub mod costs;
mod host;
pub mod measured;
mod model;
mod network;
mod process;
pub mod scenario;
pub mod spread;
#[cfg(test)]
mod tests;

pub use costs::StageCosts;
pub use measured::{MeasuredStage, Measurement, Measuring, measure};
pub use model::run;
pub use process::{STAGE_NAMES, STAGES};
pub use scenario::{StageOutcome, StageScenario};

use segstream_net::staged::StagedError;
use segstream_path::SpecError;
use segstream_schemes::htpnet::ConfigError;
use segstream_sim::stages::StageModelError;

/// Why stages cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StagesError {
    /// See the message.
    #[error("{0} processors are not possible for {STAGES} stages; give 1 to {max}", max = spread::PROCESSORS_MAX)]
    Processors(usize),
    /// See the message.
    #[error("{0} packets are too few to measure by; give at least {min}", min = scenario::PACKETS_MIN)]
    Packets(u32),
    /// See the message.
    #[error("no runs measure nothing; give at least 1")]
    NoRuns,
    /// See the message.
    #[error(
        "the run ended after {seconds:.0} s with {delivered} of {packets} packets delivered in order and unchanged, {wrong} otherwise; make it \
         smaller, or the time longer"
    )]
    Unfinished {
        /// Packets delivered.
        delivered: u32,
        /// Packets to deliver.
        packets: u32,
        /// Packets delivered out of their place or changed.
        wrong: u32,
        /// After how long.
        seconds: f64,
    },
    /// See the message.
    #[error("the parameters cannot be read: {0}")]
    Unreadable(String),
    /// The protocol refuses its configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The network is invalid.
    #[error("the network: {0}")]
    Path(#[from] SpecError),
    /// The threads failed.
    #[error(transparent)]
    Staged(#[from] StagedError),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] StageModelError),
}
