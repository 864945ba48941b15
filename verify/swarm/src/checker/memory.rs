//! Memory stays within what was granted, and is freed in the end.
//!
//! One of the checkers. Source: spec 9.1 and 11.4: a receiver keeps at most what it has granted, payload and state, and 1 MiB; a sender two
//! windows of each stream; an endpoint as many connections as it may have. Invariant: the bounds are those of the
//! contracts, with a repair unit for each unit, computed where the side is looked at.

use super::{Checker, must};
use crate::event::Event;
use segstream_base::Instant;

/// Compares what is kept with what may be.
#[derive(Debug, Default)]
pub(super) struct Memory;

impl Checker for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn observe(&mut self, _now: Instant, event: &Event) -> Result<(), String> {
        match event {
            Event::Kept(kept) => {
                let (side, (sending, sending_most)) = (kept.side, kept.sending);
                must!(sending <= sending_most, "side {side} keeps {sending} bytes to send, of {sending_most} that it may");
                let (receiving, receiving_most) = kept.receiving;
                must!(receiving <= receiving_most, "side {side} keeps {receiving} received bytes, of {receiving_most} granted");
            }
            Event::Connections { host, count, most } => {
                must!(count <= most, "h{host} has {count} connections of {most} that it may have");
            }
            Event::Over(left) => {
                for (host, connections, deadline) in left {
                    must!(*connections == 0, "everything is over, but h{host} still has {connections} connections");
                    must!(!deadline, "everything is over, but h{host} still waits for something");
                }
            }
            _ => {}
        }
        Ok(())
    }
}
