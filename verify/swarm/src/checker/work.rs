//! What a peer sends costs work in proportion to its bytes, hostile datagrams included.
//!
//! One of the checkers. Source: spec 11.4. Work is counted in steps of loops whose length a peer decides, not in time; in release builds
//! nothing is counted. Invariant: the bounds are those of the specification, and a constant for each byte on the wire.

use super::{Checker, must};
use crate::event::Event;
use segstream_base::Instant;
use segstream_blocks::work::TURN_STEPS;

/// Steps for each byte that has left or arrived.
const STEPS_PER_BYTE: u64 = 4;
/// Steps of a run before its first bytes.
const STEPS_AT_FIRST: u64 = 4 * TURN_STEPS;

/// Compares the work of a run with its bytes.
#[derive(Debug, Default)]
pub(super) struct Work {
    steps: u64,
    bytes: u64,
}

impl Checker for Work {
    fn name(&self) -> &'static str {
        "work"
    }

    fn observe(&mut self, _now: Instant, event: &Event) -> Result<(), String> {
        if let Event::Worked { steps, bytes, is_turn } = event {
            must!(!is_turn || *steps <= TURN_STEPS, "a turn takes {steps} steps of {TURN_STEPS} that it may");
            self.steps += steps;
            self.bytes += bytes;
            let most = STEPS_AT_FIRST + STEPS_PER_BYTE * self.bytes;
            must!(self.steps <= most, "{} bytes have caused {} steps of {most} that they may", self.bytes, self.steps);
        }
        Ok(())
    }
}
