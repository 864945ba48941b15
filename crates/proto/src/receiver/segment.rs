//! One segment on its way in: which positions are present, how far they are due, and its verdict.
//!
//! Owned by the stream's window. *Due* are the positions below the frontier: those whose first shipment
//! has certainly passed. A missing position is *held lost* once it is due.
//!
//! Invariant: `lost` is the number of due positions that are not present; a verdict, once given, never
//! changes; a hole is only ever a unit that was held lost, or that its sender gave up.

use crate::layout::Layout;
use segstream_base::halves::Verdict;
use segstream_base::tolerance::Tolerance;
use segstream_base::{Instant, ReportNumber};
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::recount;

/// Everything is due, also what lies beyond a length not known yet.
pub(crate) const ALL_DUE: u32 = u32::MAX;

/// One incoming segment.
#[derive(Debug)]
pub(crate) struct RecvSegment {
    pub(crate) layout: Layout,
    pub(crate) tolerance: Tolerance,
    /// Whether any part or statement of it has arrived, so that layout and tolerance are right.
    pub(crate) known: bool,
    pub(crate) opened: bool,
    pub(crate) own: Option<Tolerance>,
    pub(crate) source_time: Instant,
    pub(crate) first_arrival: Option<Instant>,
    /// Positions present, in sending order.
    pub(crate) present: Bitmap,
    pub(crate) got: u32,
    /// Positions below this one are due.
    pub(crate) due: u32,
    /// Due positions that are not present.
    pub(crate) lost: u32,
    /// More is held lost than when it was last considered.
    pub(crate) changed: bool,
    /// The tolerance has been violated: everything missing is wanted.
    pub(crate) violated: bool,
    /// Its sender will send no more of it.
    pub(crate) skipped: bool,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) judged_at: Instant,
    /// Holes as half-open runs of units, once judged.
    pub(crate) holes: Vec<(u32, u32)>,
    /// The application has taken it; its room in the window is free.
    pub(crate) released: bool,
    /// Reports from this number on may carry the verdict.
    pub(crate) first_report: ReportNumber,
    /// Holes below this unit have been confirmed by the sender.
    pub(crate) holes_confirmed: u32,
    pub(crate) confirmed: bool,
    /// Units of the window's buffer reserved for it.
    pub(crate) reserved: u32,
}

impl RecvSegment {
    pub(crate) fn new(layout: Layout, tolerance: Tolerance) -> Self {
        Self {
            layout,
            tolerance,
            known: false,
            opened: false,
            own: None,
            source_time: Instant::ZERO,
            first_arrival: None,
            present: Bitmap::new(),
            got: 0,
            due: 0,
            lost: 0,
            changed: false,
            violated: false,
            skipped: false,
            verdict: None,
            judged_at: Instant::ZERO,
            holes: Vec::new(),
            released: false,
            first_report: ReportNumber::FIRST,
            holes_confirmed: 0,
            confirmed: false,
            reserved: 0,
        }
    }

    /// Makes a used segment new again, keeping its buffers.
    pub(crate) fn renew(&mut self, layout: Layout, tolerance: Tolerance) {
        let (mut present, mut holes) = (core::mem::take(&mut self.present), core::mem::take(&mut self.holes));
        present.reset(0);
        holes.clear();
        *self = Self { present, holes, ..Self::new(layout, tolerance) };
    }

    pub(crate) fn judged(&self) -> bool {
        self.verdict.is_some()
    }

    /// Positions that are known to exist.
    pub(crate) fn extent(&self) -> u32 {
        self.layout.units.unwrap_or_else(|| self.present.len())
    }

    /// Positions that are due and known to exist.
    pub(crate) fn due_extent(&self) -> u32 {
        self.due.min(self.extent())
    }

    /// Whether the present counts can lead to a verdict, or to a violation not noted yet.
    #[inline]
    pub(crate) fn needs_judging(&self) -> bool {
        if self.judged() {
            return false;
        }
        let unknown = self.layout.units.is_none() && self.due == ALL_DUE;
        self.changed || self.skipped || unknown || self.layout.units == Some(self.got) || self.lost > 0 && self.all_due()
    }

    /// Whether nothing more can come but by repair.
    pub(crate) fn all_due(&self) -> bool {
        self.layout.units.is_some_and(|units| self.due >= units)
    }

    /// Marks positions present; returns how many are new.
    #[inline]
    pub(crate) fn mark(&mut self, first: u32, count: u32) -> u32 {
        let end = first.saturating_add(count);
        if end > self.present.len() {
            let length = self.layout.units.unwrap_or(end);
            self.grow(length);
        }
        let fresh = if first >= self.due || self.lost == 0 && end <= self.due {
            self.present.set_range(first, count)
        } else {
            let late_end = end.min(self.due);
            let late = self.present.set_range(first, late_end - first);
            self.lost -= late;
            late + if end > late_end { self.present.set_range(late_end, end - late_end) } else { 0 }
        };
        self.got += fresh;
        self.debug_assert_counts();
        fresh
    }

    /// Makes room for positions up to `length`; those below the frontier count as lost at once.
    pub(crate) fn grow(&mut self, length: u32) {
        let before = self.due_extent().min(self.present.len());
        self.present.grow(length);
        let after = self.due.min(length);
        self.hold_lost(after.saturating_sub(before));
    }

    #[inline]
    pub(crate) fn hold_lost(&mut self, count: u32) {
        self.lost += count;
        self.changed |= count > 0;
    }

    /// Moves the frontier to `due`; returns how many positions are newly held lost.
    #[inline]
    pub(crate) fn advance_due(&mut self, due: u32) -> u32 {
        if due <= self.due {
            return 0;
        }
        let (from, to) = (self.due_extent().min(self.present.len()), due.min(self.present.len()));
        let fresh = if to > from { to - from - self.present.count_ones_in(from, to) } else { 0 };
        self.hold_lost(fresh);
        self.due = due;
        self.debug_assert_counts();
        fresh
    }

    /// The counts are those of the bitmap.
    pub(super) fn debug_assert_counts(&self) {
        let words = self.present.len() as usize / 64;
        if self.judged() || !recount::is_due(words) {
            return;
        }
        debug_assert_eq!(self.got, self.present.count_ones(), "present units are miscounted");
        let due = self.due.min(self.present.len());
        debug_assert_eq!(self.lost, due - self.present.count_ones_in(0, due), "units held lost are miscounted");
    }

    /// Whether the tolerance allows what is held lost.
    pub(crate) fn allows_lost(&self, important: u32, scratch: &mut Bitmap) -> bool {
        self.allows_missing_below(self.due_extent(), self.lost, important, scratch)
    }

    /// Whether the tolerance allows every missing unit, due or not.
    pub(crate) fn allows_missing(&self, important: u32, scratch: &mut Bitmap) -> bool {
        let units = self.extent();
        if self.got == 0 {
            // Its positions may never have been given room, and there may be any number of them: with everything
            // missing the bound on holes is exact.
            return units == 0 || important == 0 && units <= self.tolerance.most_holes(units);
        }
        self.allows_missing_below(units, units - self.got, important, scratch)
    }

    fn allows_missing_below(&self, end: u32, missing: u32, important: u32, scratch: &mut Bitmap) -> bool {
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
            let runs = self.present.zero_runs(0, end).flat_map(|(start, count)| start..start + count);
            return self.tolerance.allows(runs, important);
        }
        self.missing_units(end, scratch);
        let runs = scratch.one_runs(0, units).flat_map(|(start, count)| start..start + count);
        self.tolerance.allows(runs, important)
    }

    /// The units missing at positions below `end`, as bits.
    fn missing_units(&self, end: u32, units: &mut Bitmap) {
        units.reset(self.extent());
        for (start, count) in self.present.zero_runs(0, end) {
            for unit in self.layout.units_at(start, count) {
                units.set(unit);
            }
        }
    }

    /// Forgets what has arrived: its room is needed for newer segments.
    pub(crate) fn forget(&mut self) {
        self.present.reset(if self.layout.units.is_some() { 0 } else { self.extent() });
        self.got = 0;
        self.reserved = 0;
    }

    /// Gives the verdict and fixes the holes.
    pub(crate) fn judge(&mut self, now: Instant, verdict: Verdict, next_report: ReportNumber, scratch: &mut Bitmap) {
        let units = self.extent();
        self.holes.clear();
        if self.got == 0 && units > 0 {
            self.holes.push((0, units));
        } else if self.got < units {
            self.present.grow(units);
            if self.layout.order.is_in_order() {
                self.holes.extend(self.present.zero_runs(0, units).map(|(start, count)| (start, start + count)));
            } else {
                self.missing_units(units, scratch);
                self.holes.extend(scratch.one_runs(0, units).map(|(start, count)| (start, start + count)));
            }
        }
        debug_assert!(self.verdict.is_none(), "a segment is judged twice");
        debug_assert!(verdict != Verdict::Complete || self.holes.is_empty(), "a segment is complete with holes");
        if recount::is_due(units as usize) {
            let ascend = self.holes.windows(2).all(|pair| pair[0].1 < pair[1].0) && self.holes.iter().all(|hole| hole.0 < hole.1);
            let missing: u32 = self.holes.iter().map(|hole| hole.1 - hole.0).sum();
            debug_assert!(ascend && missing == units - self.got, "{:?} of {units} units, of which {} are here", self.holes, self.got);
            let missing = || self.holes.iter().flat_map(|hole| hole.0..hole.1);
            debug_assert!(verdict != Verdict::WithinTolerance || self.tolerance.allows(missing(), 0), "{:?} are not allowed", self.holes);
        }
        self.verdict = Some(verdict);
        self.judged_at = now;
        self.first_report = next_report;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_wire::Contract;

    fn segment(units: u32) -> RecvSegment {
        let contract = Contract {
            unit_bytes: 10,
            tolerance: Tolerance::new(8, 2, 1).unwrap(),
            interleave: segstream_wire::contract::InterleaveChoice::Off,
            ..Contract::default()
        };
        let promise = contract.tolerance;
        RecvSegment::new(Layout::new(&contract, promise, false, Some(u64::from(units) * 10)), promise)
    }

    #[test]
    fn only_what_is_due_counts_as_lost() {
        let mut segment = segment(8);
        assert_eq!(segment.mark(0, 2), 2);
        assert_eq!(segment.mark(4, 1), 1);
        assert_eq!(segment.lost, 0);
        assert_eq!(segment.advance_due(4), 2);
        assert_eq!(segment.lost, 2);
        assert_eq!(segment.mark(2, 1), 1);
        assert_eq!(segment.lost, 1);
        assert_eq!(segment.mark(3, 1), 1);
        assert_eq!((segment.lost, segment.got), (0, 5));
        assert_eq!(segment.mark(0, 5), 0, "twice changes nothing");
    }

    #[test]
    fn the_tolerance_is_judged_on_units_held_lost() {
        let mut scratch = Bitmap::new();
        let mut segment = segment(8);
        segment.mark(0, 1);
        segment.mark(2, 1);
        segment.advance_due(3);
        assert!(segment.allows_lost(0, &mut scratch), "one hole");
        assert!(!segment.allows_lost(2, &mut scratch), "unit 1 is important");
        segment.advance_due(5);
        assert!(!segment.allows_lost(0, &mut scratch), "units 3 and 4 are neighbours");
    }

    #[test]
    fn a_segment_of_which_nothing_came_is_judged_like_one_of_holes() {
        for (window, errors, burst) in (1..8).flat_map(|w| (0..=w).flat_map(move |e| (0..=w).map(move |b| (w, e, b)))) {
            for (units, important) in (1..20).flat_map(|units| [(units, 0), (units, 1)]) {
                let promise = Tolerance::new(window, errors, burst).unwrap().clipped_to(units);
                let layout = Layout::new(&Contract::default(), promise, false, Some(u64::from(units) * 1024));
                let segment = RecvSegment::new(layout, promise);
                let allowed = promise.allows(0..units, important);
                assert_eq!(segment.allows_missing(important, &mut Bitmap::new()), allowed, "{promise} of {units}, {important} important");
            }
        }
    }

    #[test]
    fn an_open_segment_counts_what_becomes_known_as_lost_when_everything_is_due() {
        let contract = Contract { unit_bytes: 10, ..Contract::default() };
        let promise = contract.tolerance;
        let mut segment = RecvSegment::new(Layout::new(&contract, promise, true, None), promise);
        segment.mark(0, 1);
        assert_eq!(segment.advance_due(ALL_DUE), 0);
        segment.mark(3, 1);
        assert_eq!(segment.lost, 2);
        segment.mark(1, 2);
        assert_eq!(segment.lost, 0);
    }
}
