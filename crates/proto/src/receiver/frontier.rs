//! The frontier: up to where in the sending order units are due (EC 4.2 made exact).
//!
//! A gap in shipment numbers names a number, not its content. What names the content is the sending
//! order: a unit that is still missing when a first-time unit behind it in that order arrives in shipment
//! s was in a shipment below s. It is held lost once a number of at least s + R has arrived. The end of
//! a first pass (a FINISHED statement) and of a segment given up (a SKIP) work the same way with the last
//! shipment the sender names.
//!
//! Called by the receiving half. Invariant: entries are kept in the order of their shipment numbers; the
//! list is bounded by the re-sequencing distance and the statements of the states within it.

use segstream_base::{SegmentNumber, ShipmentNumber, StreamId};
use segstream_blocks::loss_detector::LossDetector;
use std::collections::VecDeque;

/// What becomes true when the number has been passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// Everything before this position of this segment is due.
    Frontier { segment: SegmentNumber, position: u32 },
    /// Nothing more of this segment will come.
    Skip { segment: SegmentNumber },
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    shipment: ShipmentNumber,
    stream: StreamId,
    passed: Passed,
}

/// What waits for a shipment number to be passed.
#[derive(Debug, Default)]
pub(crate) struct Frontier {
    entries: VecDeque<Entry>,
}

/// States repeat their statements; more entries than this are not kept.
const ENTRIES_MAX: usize = 4096;

impl Frontier {
    /// `passed` becomes true once a number of at least `shipment` + R has arrived.
    pub(crate) fn push(&mut self, shipment: ShipmentNumber, stream: StreamId, passed: Passed) {
        if self
            .entries
            .iter()
            .rev()
            .take_while(|entry| entry.shipment >= shipment)
            .any(|entry| entry.stream == stream && entry.passed == passed)
        {
            return;
        }
        if self.entries.len() >= ENTRIES_MAX {
            return;
        }
        let behind = self.entries.iter().rev().take_while(|entry| entry.shipment > shipment).count();
        let place = self.entries.len() - behind;
        self.entries.insert(place, Entry { shipment, stream, passed });
        let before = place.checked_sub(1).and_then(|before| self.entries.get(before));
        let after = self.entries.get(place + 1);
        debug_assert!(before.is_none_or(|entry| entry.shipment <= shipment) && after.is_none_or(|entry| entry.shipment > shipment));
    }

    /// Whether there is an entry whose number has been passed.
    #[inline]
    pub(crate) fn has_passed(&self, detector: &LossDetector) -> bool {
        self.entries.front().is_some_and(|entry| detector.passed(entry.shipment.0))
    }

    /// The next entry whose number has been passed.
    #[inline]
    pub(crate) fn pop_passed(&mut self, detector: &LossDetector) -> Option<(StreamId, Passed)> {
        if !self.has_passed(detector) {
            return None;
        }
        let entry = self.entries.pop_front()?;
        Some((entry.stream, entry.passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_when_r_more_numbers_have_passed() {
        let mut detector = LossDetector::new(3, false);
        let mut frontier = Frontier::default();
        detector.on_arrival(10);
        frontier.push(ShipmentNumber(10), StreamId(0), Passed::Frontier { segment: SegmentNumber(0), position: 5 });
        frontier.push(ShipmentNumber(9), StreamId(0), Passed::Skip { segment: SegmentNumber(7) });
        frontier.push(ShipmentNumber(10), StreamId(0), Passed::Frontier { segment: SegmentNumber(0), position: 5 });
        assert_eq!(frontier.pop_passed(&detector), None);
        detector.on_arrival(12);
        assert_eq!(frontier.pop_passed(&detector), Some((StreamId(0), Passed::Skip { segment: SegmentNumber(7) })));
        assert_eq!(frontier.pop_passed(&detector), None);
        detector.on_arrival(13);
        assert_eq!(frontier.pop_passed(&detector), Some((StreamId(0), Passed::Frontier { segment: SegmentNumber(0), position: 5 })));
        assert_eq!(frontier.pop_passed(&detector), None, "a repeated statement is kept once");
    }
}
