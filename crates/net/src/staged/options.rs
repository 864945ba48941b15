//! How a staged run is done, apart from which thread has which stage.
//!
//! Made by whoever starts a run; read by [`super::run`].
//!
//! Invariant: no option changes what a stage is told, only when, and on which thread.

use segstream_base::Duration;
use segstream_base::stage::StageId;

/// How a staged run is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedOptions {
    /// Messages that a queue holds; there is one for each ordered pair of stages. Default 256, at least 1.
    pub queue_messages: usize,
    /// Messages a stage takes, and calls of its timer, before the next stage of its thread has its turn. Default 32; 0
    /// counts as 1.
    pub turn_messages: usize,
    /// The stages in the order in which the data goes through them; `None` is the order of the list. Default `None`.
    pub flow: Option<Vec<StageId>>,
    /// Messages up the flow that may wait for room at one sender, for one receiver. Default 65,536.
    pub held_back_max: usize,
    /// How often an idle thread looks again before it sleeps. Default 100.
    pub looks: u32,
    /// Whether each thread is bound to a processor of its own. Limit: Linux; elsewhere, and where the system
    /// refuses, threads stay free, which [`super::Finished::pinned`] tells. Default no.
    pub pin: bool,
    /// When the run ends by itself; `None` is never. Default `None`.
    pub time_max: Option<Duration>,
}

impl Default for StagedOptions {
    fn default() -> Self {
        Self { queue_messages: 256, turn_messages: 32, flow: None, held_back_max: 65_536, looks: 100, pin: false, time_max: None }
    }
}
