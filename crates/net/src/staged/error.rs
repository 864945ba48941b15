//! The errors of a staged run.
//!
//! Made by [`super::run`]; read by its caller.
//!
//! Invariant: a run returns one error: the first one of the thread with the lowest number.

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
    #[error("a queue must hold at least 1 message")]
    NoQueue,
    /// See the message.
    #[error("stage {from} addressed stage {to}, which does not exist; give it a stage of the run")]
    NoSuchStage {
        /// The sending stage.
        from: &'static str,
        /// The number of the stage that does not exist.
        to: usize,
    },
    /// See the message.
    #[error(
        "stage {from} has more than {backlog_max} messages waiting for stage {to}, which is upstream; let it answer less, make the \
         queues longer, or put it upstream itself"
    )]
    Backlog {
        /// The sending stage.
        from: &'static str,
        /// The receiving stage.
        to: usize,
        /// The limit of the backlog.
        backlog_max: usize,
    },
    /// See the message.
    #[error("stage {stage} panicked: {panic_message}")]
    Panicked {
        /// The stage.
        stage: &'static str,
        /// The message of the panic.
        panic_message: String,
    },
    /// See the message.
    #[error("a thread cannot be started: {0}; take fewer")]
    Threads(#[source] io::Error),
}
