//! What the work of both ends costs against the bytes that caused it, in every state of every instance (spec 11.4).
//!
//! Called by the world around each call of an endpoint. Work is counted in debug builds; in release builds nothing is.
//!
//! Invariant: the first fault stays.

use segstream_blocks::work::{self, Budget};

/// The work so far, and what was wrong with it.
#[derive(Debug, Default)]
pub struct Cost {
    budget: Budget,
    /// What was exceeded, if anything was.
    pub fault: Option<String>,
}

impl Cost {
    /// So many bytes leave or arrive.
    pub(crate) const fn on_bytes(&mut self, bytes: usize) {
        self.budget.on_bytes(bytes as u64);
    }

    /// What a turn of an endpoint returns.
    pub(crate) fn of_turn<T>(&mut self, turn: impl FnOnce() -> T) -> T {
        let (result, steps) = work::counted(turn);
        let outcome = self.budget.on_turn(steps);
        self.fault = self.fault.take().or_else(|| outcome.err());
        result
    }
}
