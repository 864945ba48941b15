//! The frontier: up to where in the sending order units are due (EC 4.2 made exact).
//!
//! A gap in shipment numbers does not say what the lost shipments contained. The receiver infers that from the sending order: a unit that is
//! still missing when a later first-time unit arrives in shipment s was in a shipment below s. It is declared lost once a number of at
//! least s + R has arrived. The end of a first pass (FINISHED) and of an abandoned segment (SKIP) work the same way with the last
//! shipment that the sender names.
//!
//! Called by the receiving half. Invariant: entries are kept in the order of their shipment numbers; the
//! list is bounded by the reordering threshold and the statements of the states within it.

use segstream_base::{Position, SegmentNumber, ShipmentNumber, StreamId};
use segstream_blocks::loss_detector::LossDetector;
use std::collections::BTreeMap;

/// What becomes true when the number has been passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Passed {
    /// Everything before this position of this segment is due.
    Frontier { segment: SegmentNumber, position: Position },
    /// Nothing more of this segment will come.
    Skip { segment: SegmentNumber },
}

/// What waits for a shipment number to be passed.
#[derive(Debug, Default)]
pub(crate) struct Frontier {
    /// By shipment, then in the order in which they came. Why a tree: a peer may name thousands for one shipment, in any order.
    entries: BTreeMap<(ShipmentNumber, u64), (StreamId, Passed)>,
    /// The highest shipment that each waits for.
    highest: BTreeMap<(StreamId, Passed), ShipmentNumber>,
}

/// States repeat their statements; more entries than this are not kept.
const ENTRIES_MAX: usize = 2048;

impl Frontier {
    /// `passed` becomes true once a number of at least `shipment` + R has arrived.
    pub(crate) fn push(&mut self, shipment: ShipmentNumber, stream: StreamId, passed: Passed) {
        let known = self.highest.get(&(stream, passed)).is_some_and(|&highest| highest >= shipment);
        if known || self.entries.len() >= ENTRIES_MAX {
            return;
        }
        self.highest.insert((stream, passed), shipment);
        let last = self.entries.range((shipment, 0)..=(shipment, u64::MAX)).next_back();
        let place = last.map_or(0, |((_, place), _)| place + 1);
        self.entries.insert((shipment, place), (stream, passed));
    }

    /// The memory that it takes, in bytes: nodes of trees are at least half full.
    pub(super) fn kept_bytes(&self) -> u64 {
        let (entry, highest) =
            (size_of::<((ShipmentNumber, u64), (StreamId, Passed))>(), size_of::<((StreamId, Passed), ShipmentNumber)>());
        (2 * (self.entries.len() * entry + self.highest.len() * highest)) as u64
    }

    /// Whether there is an entry whose number has been passed.
    #[inline]
    pub(crate) fn has_passed(&self, detector: &LossDetector) -> bool {
        self.entries.first_key_value().is_some_and(|((shipment, _), _)| detector.passed(shipment.0))
    }

    /// The next entry whose number has been passed.
    #[inline]
    pub(crate) fn pop_passed(&mut self, detector: &LossDetector) -> Option<(StreamId, Passed)> {
        if !self.has_passed(detector) {
            return None;
        }
        let ((shipment, _), entry) = self.entries.pop_first()?;
        if self.highest.get(&entry) == Some(&shipment) {
            self.highest.remove(&entry);
        }
        Some(entry)
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
        frontier.push(ShipmentNumber(10), StreamId(0), Passed::Frontier { segment: SegmentNumber(0), position: Position(5) });
        frontier.push(ShipmentNumber(9), StreamId(0), Passed::Skip { segment: SegmentNumber(7) });
        frontier.push(ShipmentNumber(10), StreamId(0), Passed::Frontier { segment: SegmentNumber(0), position: Position(5) });
        assert_eq!(frontier.pop_passed(&detector), None);
        detector.on_arrival(12);
        assert_eq!(frontier.pop_passed(&detector), Some((StreamId(0), Passed::Skip { segment: SegmentNumber(7) })));
        assert_eq!(frontier.pop_passed(&detector), None);
        detector.on_arrival(13);
        assert_eq!(
            frontier.pop_passed(&detector),
            Some((StreamId(0), Passed::Frontier { segment: SegmentNumber(0), position: Position(5) }))
        );
        assert_eq!(frontier.pop_passed(&detector), None, "a repeated statement is kept once");
    }
}
