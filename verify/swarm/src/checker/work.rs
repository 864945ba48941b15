//! What a peer sends costs work in proportion to its bytes, hostile datagrams included.
//!
//! One of the checkers. Source: spec 11.4. Work is counted in steps of loops whose length a peer decides, not in time; in release builds
//! nothing is counted. Invariant: the bounds are those of the specification, and a constant for each byte on the wire.

use super::Checker;
use crate::event::Event;
use segstream_base::Instant;
use segstream_blocks::work::Budget;

/// Compares the work of a run with its bytes.
#[derive(Debug, Default)]
pub(super) struct Work(Budget);

impl Checker for Work {
    fn name(&self) -> &'static str {
        "work"
    }

    fn observe(&mut self, _now: Instant, event: &Event) -> Result<(), String> {
        if let Event::Worked { steps, bytes, is_turn } = event {
            self.0.on_bytes(*bytes);
            if *is_turn { self.0.on_turn(*steps) } else { self.0.on_work(*steps) }?;
        }
        Ok(())
    }
}
