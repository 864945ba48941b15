//! The map of holes of a segment, as the receiver tells it: in parts, in any order, each perhaps several times.
//!
//! Owned by the segment until all of it has come.
//!
//! Invariant: a part says something of the units that it names, and nothing of others.

use core::ops::Range;
use segstream_base::{Run, UnitIndex};
use segstream_blocks::ranges::RangeSet;
use std::collections::BTreeMap;

/// The parts of the map of holes that have come.
#[derive(Debug, Default)]
pub(super) struct HoleMap {
    /// The units that they cover.
    units: RangeSet,
    /// The holes of each part by its first hole. Why not one list: parts may come in any order, and sorting them all at the end takes long.
    holes: BTreeMap<UnitIndex, Vec<Run<UnitIndex>>>,
}

impl HoleMap {
    /// Takes a part of the map: the holes among the units `told`.
    pub(super) fn insert(&mut self, told: &Range<UnitIndex>, holes: &[Run<UnitIndex>]) {
        // A hole is never cut: it lies in one part of the map, and parts may overlap.
        let mut fresh = holes.iter().copied().filter(|hole| !self.units.contains(hole.start().into())).peekable();
        while let Some(first) = fresh.peek().map(|hole| hole.start()) {
            // Why parts of their own: other parts may lie between.
            let behind = self.holes.range(first..).next().map_or(UnitIndex(u32::MAX), |(&next, _)| next);
            self.holes.insert(first, core::iter::from_fn(|| fresh.next_if(|hole| hole.start() < behind)).collect());
        }
        self.units.insert(told.start.into()..told.end.into());
    }

    /// Whether the whole map of a segment of `units` has come.
    pub(super) fn is_whole(&self, units: u32) -> bool {
        units == 0 || self.units.first().is_some_and(|told| told == (0..u64::from(units)))
    }

    /// All holes, in ascending order.
    pub(super) fn into_holes(self) -> Vec<Run<UnitIndex>> {
        let mut holes: Vec<_> = self.holes.into_values().flatten().collect();
        debug_assert!(holes.is_sorted(), "parts of a map of holes overlap");
        // Parts of the map that contradict each other may contain holes that overlap.
        holes.dedup_by(|hole, before| {
            let overlap = hole.start() < before.end();
            if overlap {
                *before = before.span(*hole);
            }
            overlap
        });
        holes
    }
}
