//! One incoming segment: which positions are present, how far they are due, and its verdict.
//!
//! Owned by the stream's window. *Due* are the positions below the frontier: those whose first shipment
//! has certainly passed. A missing position is *declared lost* once it is due.
//!
//! Invariant: `lost` is the number of due positions that are not present; a verdict, once given, never
//! changes; a hole is only ever a unit that was declared lost, or that its sender gave up.

use super::hole_list::HoleList;
use super::repair::RecvCode;
use crate::layout::Layout;
use segstream_base::halves::Verdict;
use segstream_base::tolerance::Tolerance;
use segstream_base::{Instant, Position, ReportNumber, Run, UnitIndex};
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::lost_units::LostUnits;
use segstream_blocks::recount;

/// Everything is due, also what lies beyond a length not known yet.
pub(crate) const ALL_DUE: Position = Position(u32::MAX);

/// The bitmap of a judged segment is kept for reuse if it needs no memory beyond the segment's own.
const KEPT_UNITS: u32 = 256;
/// Room for so many runs of holes is kept for reuse.
const KEPT_HOLES: usize = 8;
/// Of a segment of at most so many units the holes are listed at once.
const LISTED_AT_ONCE: u32 = 8192;

/// What a partially tolerant segment has lost, by unit.
#[derive(Debug)]
struct Accounting {
    lost: LostUnits,
    /// Positions below this one are accounted for.
    until: Position,
}

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
    pub(crate) present: Bitmap<Position>,
    pub(crate) got: u32,
    /// Positions below this one are due.
    pub(crate) due: Position,
    /// Due positions that are not present.
    pub(crate) lost: u32,
    /// How many positions were ever declared lost.
    pub(crate) units_lost: u32,
    /// Those that are lost by unit, once the tolerance depends on where they lie.
    accounting: Option<Box<Accounting>>,
    /// Its verdict is certain, and its holes, of which there may be many, are being listed: it takes no more units.
    listing: Option<Box<HoleList>>,
    /// The repair units of it that are here.
    pub(super) code: Option<Box<RecvCode>>,
    /// More is declared lost than at the last evaluation.
    pub(crate) changed: bool,
    /// The tolerance is violated: everything missing is requested.
    pub(crate) violated: bool,
    /// Since when, if it is.
    pub(super) violated_at: Instant,
    /// Its sender will send no more of it.
    pub(crate) skipped: bool,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) judged_at: Instant,
    /// Holes in ascending order, once judged.
    pub(crate) holes: Vec<Run<UnitIndex>>,
    /// The application has taken it; its room in the window is free.
    pub(crate) released: bool,
    /// The application has taken it, but its room in the window stays taken until its verdict is confirmed.
    pub(crate) holds_window: bool,
    /// Reports from this number on may carry the verdict.
    pub(crate) first_report: ReportNumber,
    /// Holes below this unit have been confirmed by the sender.
    pub(crate) holes_confirmed: UnitIndex,
    pub(crate) confirmed: bool,
    /// How many units it has, once judged.
    judged_units: u32,
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
            due: Position::FIRST,
            lost: 0,
            units_lost: 0,
            accounting: None,
            listing: None,
            code: None,
            changed: false,
            violated: false,
            violated_at: Instant::ZERO,
            skipped: false,
            verdict: None,
            judged_at: Instant::ZERO,
            holes: Vec::new(),
            released: false,
            holds_window: false,
            first_report: ReportNumber::FIRST,
            holes_confirmed: UnitIndex::FIRST,
            confirmed: false,
            judged_units: 0,
            reserved: 0,
        }
    }

    /// It leaves the queue: it keeps no buffer that is large.
    pub(crate) fn shrink(&mut self) {
        if self.holes.capacity() > KEPT_HOLES {
            self.holes = Vec::new();
        }
    }

    /// Resets a finished segment for reuse, keeping its buffers.
    pub(crate) fn renew(&mut self, layout: Layout, tolerance: Tolerance) {
        let (mut present, mut holes) = (core::mem::take(&mut self.present), core::mem::take(&mut self.holes));
        present.reset(0);
        holes.clear();
        *self = Self { present, holes, ..Self::new(layout, tolerance) };
    }

    pub(crate) fn judged(&self) -> bool {
        self.verdict.is_some()
    }

    /// Whether its verdict is certain: it takes no more units.
    pub(crate) fn is_closed(&self) -> bool {
        self.judged() || self.listing.is_some()
    }

    /// Whether its holes are listed in turns: if they are many, and what is here does not tell them at once.
    pub(crate) fn list_in_turns(&mut self, now: Instant, verdict: Verdict) -> bool {
        let units = self.extent();
        if verdict == Verdict::Complete || self.got == 0 || units <= LISTED_AT_ONCE {
            return false;
        }
        self.present.grow(units);
        self.forget_accounting();
        self.listing = Some(Box::new(HoleList::new(verdict, now)));
        true
    }

    /// A turn of listing its holes, of at most `left` positions or units; the verdict once they are listed. `None` if they are not being listed.
    pub(crate) fn list_more(&mut self, left: &mut u32) -> Option<Option<Verdict>> {
        let units = self.extent();
        let listing = self.listing.as_mut()?;
        let is_done = listing.go_on(&self.layout, &self.present, units, left);
        Some(is_done.then_some(listing.verdict()))
    }

    /// How many positions are known to exist.
    pub(crate) fn extent(&self) -> u32 {
        self.layout.units.unwrap_or_else(|| self.present.len().max(self.judged_units))
    }

    /// How many units the positions that are known to exist may be: those of an open segment lie anywhere in their blocks.
    fn unit_extent(&self) -> u32 {
        let of_whole_blocks = || u32::try_from(self.layout.counted(Position(self.extent()))).unwrap_or(u32::MAX);
        self.layout.units.unwrap_or_else(of_whole_blocks)
    }

    /// Positions below this one are due and known to exist.
    pub(crate) fn due_extent(&self) -> Position {
        self.due.min(Position(self.extent()))
    }

    /// Whether the present counts can lead to a verdict, or to a violation not noted yet.
    #[inline]
    pub(crate) fn needs_judging(&self) -> bool {
        if self.is_closed() {
            return false;
        }
        let unknown = self.layout.units.is_none() && self.due == ALL_DUE;
        self.changed || self.skipped || unknown || self.layout.units == Some(self.got) || self.lost > 0 && self.all_due()
    }

    /// Whether only retransmissions can still arrive.
    pub(crate) fn all_due(&self) -> bool {
        self.layout.units.is_some_and(|units| self.due.0 >= units)
    }

    /// Marks positions present; returns how many are new.
    #[inline]
    pub(crate) fn mark(&mut self, first: Position, count: u32) -> u32 {
        let end = first.saturating_add(count);
        if end > self.present.end() {
            let length = self.layout.units.unwrap_or(end.0);
            self.grow(length);
        }
        self.account_arrivals(first, end);
        if let Some(code) = &mut self.code {
            let arrive = self.present.zero_runs(first, end).flat_map(|run| self.layout.units_at(run.start(), run.len()));
            code.missing -= arrive.filter(|unit| code.fence.protects(*unit)).count() as u32;
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
        let before = self.due_extent().min(self.present.end());
        self.present.grow(length);
        let after = self.due.min(Position(length));
        self.declare_lost(after.since(before));
    }

    #[inline]
    pub(crate) fn declare_lost(&mut self, count: u32) {
        self.lost += count;
        self.units_lost = self.units_lost.saturating_add(count);
        self.changed |= count > 0;
    }

    /// Moves the frontier to `due`; returns how many positions are newly declared lost.
    #[inline]
    pub(crate) fn advance_due(&mut self, due: Position) -> u32 {
        if due <= self.due {
            return 0;
        }
        let (from, to) = (self.due_extent().min(self.present.end()), due.min(self.present.end()));
        let fresh = if to > from { to - from - self.present.count_ones_in(from, to) } else { 0 };
        self.declare_lost(fresh);
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
        let due = self.due.min(self.present.end());
        debug_assert_eq!(self.lost, due.0 - self.present.count_ones_in(Position::FIRST, due), "units declared lost are miscounted");
    }

    /// Whether the tolerance allows what is declared lost; `None` when that takes another turn. `positions_left` is how many this one may
    /// still account for.
    pub(crate) fn allows_lost(&mut self, important: u32, positions_left: &mut u32) -> Option<bool> {
        if self.lost == 0 {
            return Some(true);
        }
        let tolerance = self.tolerance;
        if tolerance.is_reliable() || self.lost > tolerance.most_holes(self.extent()) {
            return Some(false);
        }
        // So many may be missing wherever they lie.
        if important == 0 && (tolerance.is_any() || self.lost <= tolerance.errors().min(tolerance.burst())) {
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
        for run in self.present.zero_runs(accounting.until, end) {
            self.layout.units_at(run.start(), run.len()).for_each(|unit| accounting.lost.insert(unit));
        }
        accounting.until = end;
        if !accounting.lost.is_allowed() {
            if recount::is_due(units as usize) {
                let allowed = self.allows_missing_below(due, self.lost, important, &mut Bitmap::new());
                debug_assert!(!allowed, "lost units are accounted for wrongly: what is missing is allowed");
            }
            return Some(false);
        }
        if end < due {
            return None;
        }
        if recount::is_due(units as usize) {
            debug_assert!(self.allows_missing_below(due, self.lost, important, &mut Bitmap::new()), "lost units are accounted for wrongly");
        }
        Some(true)
    }

    /// The positions `first..end` arrive: those that were lost and accounted for are not lost any more.
    #[inline]
    fn account_arrivals(&mut self, first: Position, end: Position) {
        if let Some(accounting) = &mut self.accounting {
            for run in self.present.zero_runs(first, end.min(accounting.until)) {
                self.layout.units_at(run.start(), run.len()).for_each(|unit| accounting.lost.remove(unit));
            }
        }
    }

    /// Whether the tolerance allows every missing unit, due or not.
    pub(crate) fn allows_missing(&self, important: u32, scratch: &mut Bitmap<UnitIndex>) -> bool {
        let units = self.extent();
        if self.got == 0 {
            // Its positions may never have been given room, and there may be any number of them: with everything
            // missing the bound on holes is exact.
            return units == 0 || important == 0 && units <= self.tolerance.most_holes(units);
        }
        self.allows_missing_below(Position(units), units - self.got, important, scratch)
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
            let missing = self.present.zero_runs(Position::FIRST, end).map(|run| self.layout.units_in_order(run));
            return self.tolerance.allows_runs(missing, important);
        }
        self.missing_units(end, self.unit_extent(), scratch);
        self.tolerance.allows_runs(scratch.one_runs(UnitIndex::FIRST, scratch.end()), important)
    }

    /// The units below `extent` that are missing at positions below `end`, as bits. Of a segment whose length is known that takes a step for
    /// each unit that is there or beyond `end`, not for each that is missing.
    fn missing_units(&self, end: Position, extent: u32, units: &mut Bitmap<UnitIndex>) {
        units.reset(extent);
        if self.layout.units.is_none() {
            for run in self.present.zero_runs(Position::FIRST, end) {
                self.layout.units_at(run.start(), run.len()).for_each(|unit| _ = units.set(unit));
            }
            return;
        }
        units.set_range(UnitIndex::FIRST, extent);
        let here = self.present.one_runs(Position::FIRST, end);
        let beyond = Run::new(end, Position(extent));
        for run in here.chain(beyond) {
            for unit in self.layout.units_at(run.start(), run.len()) {
                units.clear(unit);
            }
        }
    }

    /// Evicts what has arrived: its room is needed for newer segments.
    pub(crate) fn evict(&mut self) {
        self.present.reset(if self.layout.units.is_some() { 0 } else { self.extent() });
        self.got = 0;
        self.reserved = 0;
        self.listing = None;
        self.code = None;
        self.forget_accounting();
    }

    /// Gives the verdict and fixes the holes.
    pub(crate) fn judge(&mut self, now: Instant, verdict: Verdict, next_report: ReportNumber, scratch: &mut Bitmap<UnitIndex>) {
        let units = self.extent();
        self.holes.clear();
        self.judged_at = now;
        if let Some(listing) = self.listing.take() {
            (self.judged_at, self.holes) = listing.into_parts();
        } else if self.got == 0 {
            self.holes.extend(Run::new(UnitIndex::FIRST, UnitIndex(units)));
        } else if self.got < units {
            let end = Position(units);
            self.present.grow(units);
            if self.layout.order.is_in_order() {
                self.holes.extend(self.present.zero_runs(Position::FIRST, end).map(|run| self.layout.units_in_order(run)));
            } else {
                self.missing_units(end, units, scratch);
                self.holes.extend(scratch.one_runs(UnitIndex::FIRST, scratch.end()));
            }
        }
        debug_assert!(self.verdict.is_none(), "a segment is judged twice");
        debug_assert!(verdict != Verdict::Complete || self.holes.is_empty(), "a segment is complete with holes");
        if recount::is_due(units as usize) {
            let ascend = self.holes.windows(2).all(|pair| pair[0].end() < pair[1].start());
            let missing: u32 = self.holes.iter().map(|hole| hole.len()).sum();
            debug_assert!(ascend && missing == units - self.got, "{:?} of {units} units, of which {} are here", self.holes, self.got);
            let missing = || self.holes.iter().flatten();
            debug_assert!(verdict != Verdict::WithinTolerance || self.tolerance.allows(missing(), 0), "{:?} are not allowed", self.holes);
        }
        self.holes.shrink_to(KEPT_HOLES);
        self.judged_units = units;
        self.forget_presence();
        self.verdict = Some(verdict);
        self.first_report = next_report;
    }

    /// The memory that it takes beyond itself, in bytes.
    pub(crate) fn heap_bytes(&self) -> u64 {
        let accounting = self.accounting.as_ref().map_or(0, |accounting| accounting.lost.heap_bytes());
        let holes = (self.holes.capacity() * size_of::<Run<UnitIndex>>()) as u64;
        let listing = self.listing.as_ref().map_or(0, |listing| listing.heap_bytes());
        self.present.heap_bytes() + accounting + listing + holes
    }

    /// Gives up its room in the window: how many units it has there, and how many were reserved.
    pub(crate) fn free_room(&mut self) -> (u64, u64) {
        (u64::from(self.extent()), u64::from(core::mem::take(&mut self.reserved)))
    }

    /// Layout, tolerance or what is here are others: which units are lost is accounted for anew, if it still matters.
    pub(crate) fn forget_accounting(&mut self) {
        self.accounting = None;
    }

    /// It is judged: which units are here is told by the holes.
    fn forget_presence(&mut self) {
        self.code = None;
        self.forget_accounting();
        if self.present.len() > KEPT_UNITS {
            self.present = Bitmap::new();
        } else {
            self.present.reset(0);
        }
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
        assert_eq!(segment.mark(Position(0), 2), 2);
        assert_eq!(segment.mark(Position(4), 1), 1);
        assert_eq!(segment.lost, 0);
        assert_eq!(segment.advance_due(Position(4)), 2);
        assert_eq!(segment.lost, 2);
        assert_eq!(segment.mark(Position(2), 1), 1);
        assert_eq!(segment.lost, 1);
        assert_eq!(segment.mark(Position(3), 1), 1);
        assert_eq!((segment.lost, segment.got), (0, 5));
        assert_eq!(segment.mark(Position(0), 5), 0, "twice changes nothing");
    }

    #[test]
    fn a_unit_that_arrives_after_it_was_declared_lost_breaks_no_tolerance_any_more() {
        let mut segment = segment(16);
        segment.mark(Position(0), 3);
        segment.mark(Position(5), 1);
        segment.advance_due(Position(6));
        assert_eq!(segment.allows_lost(0, &mut 100), Some(false), "units 3 and 4 are neighbours");
        assert_eq!(segment.mark(Position(4), 1), 1);
        segment.mark(Position(6), 3);
        segment.advance_due(Position(11));
        assert_eq!(segment.lost, 3, "units 3, 9 and 10");
        assert_eq!(segment.allows_lost(0, &mut 100), Some(false), "units 9 and 10 are neighbours");
        assert_eq!(segment.mark(Position(9), 1), 1);
        assert_eq!(segment.allows_lost(0, &mut 100), Some(true), "units 3 and 10 lie in windows of their own");
    }

    /// Found by the swarm: a unit beyond the positions known so far was forgotten.
    #[test]
    fn units_of_an_open_segment_are_accounted_for_wherever_they_lie_in_their_block() {
        let promise = Tolerance::new(32, 12, 1).unwrap();
        let interleave = segstream_wire::contract::InterleaveChoice::Depth(34);
        let contract = Contract { unit_bytes: 10, tolerance: promise, interleave, ..Contract::default() };
        let layout = Layout::new(&contract, promise, true, None);
        let unit = |at: u32| layout.units_at(Position(at), 1).next().unwrap();
        // What is lost is known to be once a later position is here.
        for (one, other) in (0..31).flat_map(|one| (one + 2..33).map(move |other| (one, other))) {
            let mut segment = RecvSegment::new(layout, promise);
            // With an important unit each loss is accounted for.
            let judge = |segment: &mut RecvSegment| segment.allows_lost(1, &mut 100) == Some(true);
            segment.mark(Position(0), one);
            segment.mark(Position(one + 1), other - one - 1);
            segment.advance_due(Position(other));
            assert_eq!(judge(&mut segment), promise.allows([unit(one)].into_iter(), 1), "{one}");
            segment.mark(Position(other + 1), 33 - other);
            segment.advance_due(Position(34));
            let both = [unit(one).min(unit(other)), unit(one).max(unit(other))];
            assert_eq!(judge(&mut segment), promise.allows(both.into_iter(), 1), "{one} and {other}");
        }
    }

    #[test]
    fn the_tolerance_is_judged_on_units_declared_lost() {
        let mut segment = segment(8);
        segment.mark(Position(0), 1);
        segment.mark(Position(2), 1);
        segment.advance_due(Position(3));
        assert!(segment.allows_lost(0, &mut 100) == Some(true), "one hole");
        assert!(segment.allows_lost(2, &mut 100) == Some(false), "unit 1 is important");
        segment.advance_due(Position(5));
        assert!(segment.allows_lost(0, &mut 100) == Some(false), "units 3 and 4 are neighbours");
    }

    #[test]
    fn a_segment_of_which_nothing_came_is_judged_like_one_of_holes() {
        for (window, errors, burst) in (1..8).flat_map(|w| (0..=w).flat_map(move |e| (0..=w).map(move |b| (w, e, b)))) {
            for (units, important) in (1..20).flat_map(|units| [(units, 0), (units, 1)]) {
                let promise = Tolerance::new(window, errors, burst).unwrap().clipped_to(units);
                let layout = Layout::new(&Contract::default(), promise, false, Some(u64::from(units) * 1024));
                let segment = RecvSegment::new(layout, promise);
                let allowed = promise.allows(UnitIndex::FIRST.up_to(UnitIndex(units)), important);
                assert_eq!(segment.allows_missing(important, &mut Bitmap::new()), allowed, "{promise} of {units}, {important} important");
            }
        }
    }

    #[test]
    fn an_open_segment_counts_what_becomes_known_as_lost_when_everything_is_due() {
        let contract = Contract { unit_bytes: 10, ..Contract::default() };
        let promise = contract.tolerance;
        let mut segment = RecvSegment::new(Layout::new(&contract, promise, true, None), promise);
        segment.mark(Position(0), 1);
        assert_eq!(segment.advance_due(ALL_DUE), 0);
        segment.mark(Position(3), 1);
        assert_eq!(segment.lost, 2);
        segment.mark(Position(1), 2);
        assert_eq!(segment.lost, 0);
    }
}
