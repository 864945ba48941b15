//! What can be wrong with a staged run.
//!
//! Called by [`super::run`] and whoever reads its answer.
//!
//! Invariant: one error a run: the first of the lowest thread.

use super::mapping::STAGES_MAX;
use std::io;

/// Why a staged run could not start, or ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StagedError {
    /// See the message.
    #[error("{0} stages cannot be run; give 1 to {STAGES_MAX}")]
    Stages(usize),
    /// See the message.
    #[error("the mapping places {mapped} stages, but there are {stages}; give a thread for each")]
    Mapped {
        /// Stages of the mapping.
        mapped: usize,
        /// Stages to run.
        stages: usize,
    },
    /// See the message.
    #[error("thread {0} of the mapping has no stage; number the threads from 0 without a gap")]
    EmptyThread(usize),
    /// See the message.
    #[error("the flow must name each of the {0} stages once")]
    Flow(usize),
    /// See the message.
    #[error("queues of no messages carry nothing; give at least 1")]
    NoQueue,
    /// See the message.
    #[error("stage {from} addressed stage {to}, which does not exist; give it a stage of the run")]
    NoSuchStage {
        /// Who.
        from: &'static str,
        /// Whom.
        to: usize,
    },
    /// See the message.
    #[error(
        "stage {from} has more than {held_back_max} messages waiting for stage {to}, which is up the flow; let it answer less, give longer \
         queues, or put it up the flow itself"
    )]
    HeldBack {
        /// Who has them.
        from: &'static str,
        /// Who does not take them.
        to: usize,
        /// The most that may wait.
        held_back_max: usize,
    },
    /// See the message.
    #[error("stage {stage} panicked: {said}")]
    Panicked {
        /// Which.
        stage: &'static str,
        /// What it said.
        said: String,
    },
    /// See the message.
    #[error("a thread cannot be started: {0}; take fewer")]
    Threads(#[source] io::Error),
}
