//! Accounting: whether the tolerance of an incoming segment allows what is missing.
//!
//! Counts tell that mostly. Where it depends on where the lost units lie, they are kept by unit, and what becomes lost is added in turns, of
//! a bounded number of positions each (spec 11.4).
//!
//! Called by the judge through the segment, and by it for what arrives.
//!
//! Invariant: what is accounted for are the lost units at the positions below `until`.

use super::RecvSegment;
use segstream_base::{Position, Run, UnitIndex};
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::lost_units::LostUnits;
use segstream_blocks::recount;

/// What a partially tolerant segment has lost, by unit.
#[derive(Debug)]
pub(super) struct Accounting {
    lost: LostUnits,
    /// Positions below this one are accounted for.
    until: Position,
}

impl Accounting {
    /// The memory that it takes, in bytes.
    pub(super) fn heap_bytes(&self) -> u64 {
        self.lost.heap_bytes()
    }
}

impl RecvSegment {
    /// Whether the tolerance allows what is declared lost; `None` when that takes another turn. `positions_left` is how many this one may
    /// still account for.
    pub(crate) fn allows_lost(&mut self, important: u32, positions_left: &mut u32) -> Option<bool> {
        if self.presence.lost == 0 {
            return Some(true);
        }
        let tolerance = self.tolerance;
        if tolerance.is_reliable() || self.presence.lost > tolerance.most_holes(self.extent()) {
            return Some(false);
        }
        // So many may be missing wherever they lie.
        if important == 0 && (tolerance.is_any() || self.presence.lost <= tolerance.errors().min(tolerance.burst())) {
            return Some(true);
        }
        self.account_losses(important, positions_left)
    }

    /// Accounts for positions that are due, as far as the turn goes. Whether what is lost is allowed, once that is known: what is accounted for
    /// is a part of it, and no tolerance allows more than it allows a part of.
    fn account_losses(&mut self, important: u32, positions_left: &mut u32) -> Option<bool> {
        let (units, due, tolerance) = (self.unit_extent(), self.due_extent(), self.tolerance);
        let accounting = self
            .accounting
            .get_or_insert_with(|| Box::new(Accounting { lost: LostUnits::new(tolerance, important, units), until: Position::FIRST }));
        accounting.lost.grow(units);
        let end = due.min(accounting.until.saturating_add(*positions_left)).max(accounting.until);
        *positions_left -= end - accounting.until;
        for run in self.presence.positions.zero_runs(accounting.until, end) {
            self.layout.units_at(run.start(), run.len()).for_each(|unit| accounting.lost.insert(unit));
        }
        accounting.until = end;
        if !accounting.lost.is_allowed() {
            if recount::is_due(units as usize) {
                let allowed = self.allows_missing_below(due, self.presence.lost, important, &mut Bitmap::new());
                debug_assert!(!allowed, "lost units are accounted for wrongly: what is missing is allowed");
            }
            return Some(false);
        }
        if end < due {
            return None;
        }
        if recount::is_due(units as usize) {
            debug_assert!(
                self.allows_missing_below(due, self.presence.lost, important, &mut Bitmap::new()),
                "lost units are accounted for wrongly"
            );
        }
        Some(true)
    }

    /// The positions `first..end` arrive: those that were lost and accounted for are not lost any more.
    #[inline]
    pub(super) fn account_arrivals(&mut self, first: Position, end: Position) {
        if let Some(accounting) = &mut self.accounting {
            for run in self.presence.positions.zero_runs(first, end.min(accounting.until)) {
                self.layout.units_at(run.start(), run.len()).for_each(|unit| accounting.lost.remove(unit));
            }
        }
    }

    /// Whether the tolerance allows every missing unit, due or not.
    pub(crate) fn allows_missing(&self, important: u32, scratch: &mut Bitmap<UnitIndex>) -> bool {
        let units = self.extent();
        if self.presence.got == 0 {
            // Its positions may never have been given room, and there may be any number of them: with everything
            // missing the bound on holes is exact.
            return units == 0 || important == 0 && units <= self.tolerance.most_holes(units);
        }
        self.allows_missing_below(Position(units), units - self.presence.got, important, scratch)
    }

    fn allows_missing_below(&self, end: Position, missing: u32, important: u32, scratch: &mut Bitmap<UnitIndex>) -> bool {
        if missing == 0 {
            return true;
        }
        let units = self.extent();
        if self.tolerance.is_reliable() || missing > self.tolerance.most_holes(units) {
            return false;
        }
        if self.tolerance.is_any() && important == 0 {
            return true;
        }
        if self.layout.order.is_in_order() {
            let missing = self.presence.positions.zero_runs(Position::FIRST, end).map(|run| self.layout.units_in_order(run));
            return self.tolerance.allows_runs(missing, important);
        }
        self.missing_units(end, self.unit_extent(), scratch);
        self.tolerance.allows_runs(scratch.one_runs(UnitIndex::FIRST, scratch.end()), important)
    }

    /// The units below `extent` that are missing at positions below `end`, as bits. Of a segment whose length is known that takes a step for
    /// each unit that is there or beyond `end`, not for each that is missing.
    pub(super) fn missing_units(&self, end: Position, extent: u32, units: &mut Bitmap<UnitIndex>) {
        units.reset(extent);
        if self.layout.units.is_none() {
            for run in self.presence.positions.zero_runs(Position::FIRST, end) {
                self.layout.units_at(run.start(), run.len()).for_each(|unit| _ = units.set(unit));
            }
            return;
        }
        units.set_range(UnitIndex::FIRST, extent);
        let here = self.presence.positions.one_runs(Position::FIRST, end);
        let beyond = Run::new(end, Position(extent));
        for run in here.chain(beyond) {
            for unit in self.layout.units_at(run.start(), run.len()) {
                units.clear(unit);
            }
        }
    }

    /// How many units the positions that are known to exist may be: those of an open segment lie anywhere in their blocks.
    fn unit_extent(&self) -> u32 {
        let of_whole_blocks = || u32::try_from(self.layout.counted(Position(self.extent()))).unwrap_or(u32::MAX);
        self.layout.units.unwrap_or_else(of_whole_blocks)
    }
}
