//! The stage contract: a process of a protocol that others run beside, as HTPNET divides its work (HT 3.2).
//!
//! Implemented by protocols that are parallel by function. Driven by the staged runner of `net`, which spreads
//! stages over threads, by the simulator's model of processors, and by tests that run them in one place.
//!
//! A stage takes one message at a time and answers with messages to other stages, or to the outside. Messages
//! between two stages keep their order: a marker put behind packets arrives behind them.
//!
//! Invariant: a stage shares nothing with another but the messages, so any mapping of stages onto threads is right.

use crate::time::Instant;

/// Which stage of a pipeline: an index into the list the pipeline was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageId(pub usize);

/// A process of a protocol.
pub trait Stage {
    /// What stages of this protocol say to each other.
    type Message;

    /// Its name, as the paper has it.
    fn name(&self) -> &'static str;
    /// Takes a message, and appends what it has to say to whom.
    fn handle(&mut self, now: Instant, message: Self::Message, out: &mut Vec<(StageId, Self::Message)>);
    /// When [`Stage::handle_timeout`] is wanted; `None` when only a message can cause anything.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Tells that time has passed. Calling it early does nothing.
    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(StageId, Self::Message)>);
}
