//! The options of a staged run, besides the mapping.
//!
//! Made by the caller of [`super::run`].
//!
//! Invariant: no option changes what a stage receives, only when, and on which thread.

use segstream_base::Duration;
use segstream_base::stage::StageId;

/// The options of a staged run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedOptions {
    /// The length of a queue in messages; there is one queue for each ordered pair of stages. Default 256, at least 1.
    pub queue_messages: usize,
    /// How many messages a stage handles, and how many calls of its timer, before the next stage of its thread runs. Default 32; 0
    /// counts as 1.
    pub turn_messages: usize,
    /// The stages in the order in which data flows through them; `None` is the order of the list. Default `None`.
    pub flow: Option<Vec<StageId>>,
    /// The maximum upstream backlog of one sender for one receiver, in messages. Default 65,536.
    pub backlog_max: usize,
    /// How often an idle thread polls its queues before it sleeps. Default 100.
    pub polls: u32,
    /// Whether each thread is pinned to a processor. Limit: Linux; elsewhere, and if the system refuses, threads are not pinned
    /// (see [`super::Finished::pinned`]). Default no.
    pub pin: bool,
    /// The maximum time of the run; `None` is unlimited. Default `None`.
    pub time_max: Option<Duration>,
}

impl Default for StagedOptions {
    fn default() -> Self {
        Self { queue_messages: 256, turn_messages: 32, flow: None, backlog_max: 65_536, polls: 100, pin: false, time_max: None }
    }
}
