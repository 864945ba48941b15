//! Judgement: the verdict of an incoming segment, the holes that it fixes, and how far the sender has confirmed both.
//!
//! Given by the judge. The many holes of a large segment are listed in turns before that; reports repeat verdict and holes until they are
//! confirmed.
//!
//! Invariant: a verdict, once given, never changes, nor do its holes; what is confirmed was given.

use super::RecvSegment;
use crate::receiver::hole_list::HoleList;
use segstream_base::halves::Verdict;
use segstream_base::{Instant, Position, ReportNumber, Run, UnitIndex};
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::recount;

/// Room for so many runs of holes is kept for reuse.
const KEPT_HOLES: usize = 8;
/// Of a segment of at most so many units the holes are listed at once.
const LISTED_AT_ONCE: u32 = 8192;

/// The verdict of a segment, and what of it is confirmed.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// Its verdict is certain, and its holes, of which there may be many, are being listed: it takes no more units.
    pub(super) listing: Option<Box<HoleList>>,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) judged_at: Instant,
    /// Holes in ascending order, once judged.
    pub(crate) holes: Vec<Run<UnitIndex>>,
    /// How many units it has, once judged.
    pub(super) units: u32,
    /// Reports from this number on may carry the verdict.
    pub(super) first_report: ReportNumber,
    /// Holes below this unit have been confirmed by the sender.
    pub(crate) holes_confirmed: UnitIndex,
    pub(crate) confirmed: bool,
}

impl Judgement {
    /// Whether the verdict is given, or certain and its holes are being listed.
    pub(super) fn is_certain(&self) -> bool {
        self.verdict.is_some() || self.listing.is_some()
    }

    /// Whether the verdict is given and the sender has not confirmed it.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.verdict.is_some() && !self.confirmed
    }

    /// How many runs of holes must be kept because they are not confirmed.
    pub(crate) fn unconfirmed_runs(&self) -> u64 {
        if self.confirmed { 0 } else { self.holes.len() as u64 }
    }

    /// The sender has confirmed `report`, which carried the verdict. Whether all of it is confirmed by that, and was not before.
    pub(crate) fn confirm(&mut self, report: ReportNumber) -> bool {
        let whole = self.holes_confirmed.0 >= self.units || self.holes.is_empty();
        let is_news = self.is_unconfirmed() && whole && self.first_report <= report;
        self.confirmed |= is_news;
        is_news
    }

    /// Its segment leaves the queue: no large buffer is kept.
    pub(super) fn shrink(&mut self) {
        if self.holes.capacity() > KEPT_HOLES {
            self.holes = Vec::new();
        }
    }

    /// The memory that it takes beyond itself, in bytes.
    pub(super) fn heap_bytes(&self) -> u64 {
        let holes = (self.holes.capacity() * size_of::<Run<UnitIndex>>()) as u64;
        self.listing.as_ref().map_or(0, |listing| listing.heap_bytes()) + holes
    }
}

impl RecvSegment {
    /// Whether its holes are listed in turns: if they are many, and what is here does not tell them at once.
    pub(crate) fn list_in_turns(&mut self, now: Instant, verdict: Verdict) -> bool {
        let units = self.extent();
        if verdict == Verdict::Complete || self.presence.got == 0 || units <= LISTED_AT_ONCE {
            return false;
        }
        self.presence.positions.grow(units);
        self.forget_accounting();
        self.judgement.listing = Some(Box::new(HoleList::new(verdict, now)));
        true
    }

    /// A turn of listing its holes, of at most `left` positions or units; the verdict once they are listed. `None` if they are not being listed.
    pub(crate) fn list_more(&mut self, left: &mut u32) -> Option<Option<Verdict>> {
        let units = self.extent();
        let listing = self.judgement.listing.as_mut()?;
        let is_done = listing.go_on(&self.layout, &self.presence.positions, units, left);
        Some(is_done.then_some(listing.verdict()))
    }

    /// Gives the verdict and fixes the holes.
    pub(crate) fn judge(&mut self, now: Instant, verdict: Verdict, next_report: ReportNumber, scratch: &mut Bitmap<UnitIndex>) {
        let units = self.extent();
        self.judgement.holes.clear();
        self.judgement.judged_at = now;
        if let Some(listing) = self.judgement.listing.take() {
            (self.judgement.judged_at, self.judgement.holes) = listing.into_parts();
        } else {
            self.list_at_once(units, scratch);
        }
        self.debug_assert_verdict(verdict, units);
        self.judgement.holes.shrink_to(KEPT_HOLES);
        self.judgement.units = units;
        self.forget_presence();
        self.judgement.verdict = Some(verdict);
        self.judgement.first_report = next_report;
    }

    /// Lists its holes.
    fn list_at_once(&mut self, units: u32, scratch: &mut Bitmap<UnitIndex>) {
        let holes = &mut self.judgement.holes;
        if self.presence.got == 0 {
            holes.extend(Run::new(UnitIndex::FIRST, UnitIndex(units)));
        } else if self.presence.got < units {
            let end = Position(units);
            self.presence.positions.grow(units);
            if self.layout.order.is_in_order() {
                let missing = self.presence.positions.zero_runs(Position::FIRST, end);
                holes.extend(missing.map(|run| self.layout.units_in_order(run)));
            } else {
                self.missing_units(end, units, scratch);
                self.judgement.holes.extend(scratch.one_runs(UnitIndex::FIRST, scratch.end()));
            }
        }
    }

    /// The holes are what is missing, and the verdict is theirs.
    fn debug_assert_verdict(&self, verdict: Verdict, units: u32) {
        let (holes, got) = (&self.judgement.holes, self.presence.got);
        debug_assert!(self.judgement.verdict.is_none(), "a segment is judged twice");
        debug_assert!(verdict != Verdict::Complete || holes.is_empty(), "a segment is complete with holes");
        if recount::is_due(units as usize) {
            let ascend = holes.windows(2).all(|pair| pair[0].end() < pair[1].start());
            let missing: u32 = holes.iter().map(|hole| hole.len()).sum();
            debug_assert!(ascend && missing == units - got, "{holes:?} of {units} units, of which {got} are here");
            let missing = || holes.iter().flatten();
            debug_assert!(verdict != Verdict::WithinTolerance || self.tolerance.allows(missing(), 0), "{holes:?} are not allowed");
        }
    }

    /// It is judged: which units are here is told by the holes.
    fn forget_presence(&mut self) {
        self.code = None;
        self.forget_accounting();
        self.presence.forget_positions();
    }
}
