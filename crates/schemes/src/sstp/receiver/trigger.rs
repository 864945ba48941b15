//! When the tolerance checker is called for which segments.
//!
//! Called by the receiving half. Sources: EC 3.2 and the list under "Packet Reception and Gap Detection"
//! of EC 4.2. A trigger names a shipment number: what was sent before it is decided once a number R beyond
//! has arrived, at once in an ordered network.
//!
//! Invariant: at most two triggers a shipment number wait, all within R of the highest number.

use segstream_blocks::LossDetector;
use std::collections::VecDeque;

/// Why the checker is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A gap in the shipment numbers, when this many numbers had been declared lost.
    Gap {
        /// [`LossDetector::newly_lost`] before the gap was judged.
        lost_before: u64,
    },
    /// The last expected packet of a segment arrived.
    LastExpected,
    /// A packet of a newer segment, or a mark, tells that these segments were sent to their ends.
    Passed,
}

/// A call of the checker for segments `from..to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trigger {
    /// What was sent before this number must be decided first.
    pub shipment: u64,
    /// The first segment.
    pub from: u64,
    /// The segment after the last.
    pub to: u64,
    /// Why.
    pub cause: Cause,
}

/// Triggers that wait for late packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Triggers(VecDeque<Trigger>);

impl Triggers {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a trigger; one without segments is none.
    pub(super) fn push(&mut self, trigger: Trigger) {
        if trigger.from < trigger.to {
            self.0.push_back(trigger);
        }
    }

    /// The next trigger that is decided. A gap that was filled by late packets is no trigger.
    pub(super) fn pop(&mut self, detector: &LossDetector) -> Option<Trigger> {
        while self.0.front().is_some_and(|trigger| detector.passed(trigger.shipment)) {
            let trigger = self.0.pop_front()?;
            let filled = matches!(trigger.cause, Cause::Gap { lost_before } if detector.newly_lost() == lost_before);
            if !filled {
                return Some(trigger);
            }
        }
        None
    }
}
