//! What a sender is told to be durable is what the receiving application has confirmed: no more, and never less than before.
//!
//! One of the checkers. Source: spec 5.13. Invariant: a stream may be received twice, by a connection made of a replayed request; the sender
//! hears of one of them.

use super::{Checker, must};
use crate::event::{Event, StreamName};
use segstream_base::{Instant, SegmentNumber};
use std::collections::BTreeMap;

/// The most that was confirmed of each stream, and the most that its sender was told.
#[derive(Debug, Default)]
pub(super) struct Durability {
    confirmed: BTreeMap<StreamName, SegmentNumber>,
    told: BTreeMap<StreamName, SegmentNumber>,
}

impl Checker for Durability {
    fn name(&self) -> &'static str {
        "durability"
    }

    fn observe(&mut self, _now: Instant, event: &Event) -> Result<(), String> {
        match event {
            Event::Confirmed { name, segments, .. } => {
                let confirmed = self.confirmed.entry(*name).or_default();
                *confirmed = (*confirmed).max(*segments);
            }
            Event::Durable { name, segments } => {
                let confirmed = self.confirmed.get(name).copied().unwrap_or_default();
                must!(*segments <= confirmed, "stream {name} was told durable below {segments}, but confirmed below {confirmed}");
                let told = self.told.entry(*name).or_default();
                must!(*told <= *segments, "stream {name} was told durable below {segments} after {told}");
                *told = *segments;
            }
            _ => {}
        }
        Ok(())
    }
}
