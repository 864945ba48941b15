//! One incoming segment: which positions are present, how far they are due, and its verdict.
//!
//! - `about`: what its sender says of it as a whole;
//! - `presence`: which positions are here, which are due, and how many are declared lost;
//! - `accounting`: whether its tolerance allows what is missing;
//! - `judgement`: its verdict, its holes, and what of both the sender has confirmed.
//!
//! Owned by the stream's window. *Due* are the positions below the frontier: those whose first shipment
//! has certainly passed. A missing position is *declared lost* once it is due.
//!
//! Invariant: a verdict, once given, never changes; a hole is only ever a unit that was declared lost, or that its sender gave up.

mod about;
mod accounting;
mod judgement;
mod presence;

use super::repair::RecvCode;
use crate::layout::Layout;
pub(crate) use about::About;
use accounting::Accounting;
use judgement::Judgement;
pub(crate) use presence::ALL_DUE;
use presence::Presence;
use segstream_base::tolerance::Tolerance;
use segstream_base::{Instant, Position};

/// One incoming segment.
#[derive(Debug)]
pub(crate) struct RecvSegment {
    pub(crate) layout: Layout,
    pub(crate) tolerance: Tolerance,
    /// Whether any part or statement of it has arrived, so that layout and tolerance are right.
    pub(crate) known: bool,
    pub(crate) source_time: Instant,
    /// When the first unit or repair unit of it arrived.
    pub(crate) first_arrival: Option<Instant>,
    pub(crate) presence: Presence,
    /// Those that are lost by unit, once the tolerance depends on where they lie.
    accounting: Option<Box<Accounting>>,
    /// The repair units of it that are here.
    pub(super) code: Option<Box<RecvCode>>,
    /// When the tolerance was violated, if it is: everything missing is requested.
    pub(crate) violated_at: Option<Instant>,
    /// Its sender will send no more of it.
    pub(crate) skipped: bool,
    pub(crate) judgement: Judgement,
    pub(crate) room: SegmentRoom,
}

/// The room that a segment has in its stream's window.
///
/// Invariant: only a segment that was taken holds the window, and what was taken and does not hold it has nothing reserved.
#[derive(Debug, Default)]
pub(crate) struct SegmentRoom {
    /// Units of the window's buffer reserved for it.
    pub(crate) reserved: u32,
    /// The application has taken it; its room in the window is free.
    pub(crate) released: bool,
    /// The application has taken it, but its room in the window stays taken until its verdict is confirmed.
    pub(crate) holds_window: bool,
}

impl RecvSegment {
    pub(crate) fn new(layout: Layout, tolerance: Tolerance) -> Self {
        Self {
            layout,
            tolerance,
            known: false,
            source_time: Instant::ZERO,
            first_arrival: None,
            presence: Presence::default(),
            accounting: None,
            code: None,
            violated_at: None,
            skipped: false,
            judgement: Judgement::default(),
            room: SegmentRoom::default(),
        }
    }

    /// It leaves the queue: it keeps no buffer that is large.
    pub(crate) fn shrink(&mut self) {
        self.judgement.shrink();
    }

    /// Resets a finished segment for reuse, keeping its buffers.
    pub(crate) fn renew(&mut self, layout: Layout, tolerance: Tolerance) {
        let (mut positions, mut holes) = (core::mem::take(&mut self.presence.positions), core::mem::take(&mut self.judgement.holes));
        positions.reset(0);
        holes.clear();
        let (presence, judgement) = (Presence { positions, ..Presence::default() }, Judgement { holes, ..Judgement::default() });
        *self = Self { presence, judgement, ..Self::new(layout, tolerance) };
    }

    pub(crate) fn judged(&self) -> bool {
        self.judgement.verdict.is_some()
    }

    /// Whether its verdict is certain: it takes no more units.
    pub(crate) fn is_closed(&self) -> bool {
        self.judgement.is_certain()
    }

    /// How many positions are known to exist.
    pub(crate) fn extent(&self) -> u32 {
        self.layout.units.unwrap_or_else(|| self.presence.positions.len().max(self.judgement.units))
    }

    /// Positions below this one are due and known to exist.
    pub(crate) fn due_extent(&self) -> Position {
        self.presence.due.min(Position(self.extent()))
    }

    /// Whether the present counts can lead to a verdict, or to a violation not noted yet.
    #[inline]
    pub(crate) fn needs_judging(&self) -> bool {
        if self.is_closed() {
            return false;
        }
        let Presence { got, due, lost, more_is_lost, .. } = self.presence;
        let unknown = self.layout.units.is_none() && due == ALL_DUE;
        more_is_lost || self.skipped || unknown || self.layout.units == Some(got) || lost > 0 && self.all_due()
    }

    /// Whether only retransmissions can still arrive.
    pub(crate) fn all_due(&self) -> bool {
        self.layout.units.is_some_and(|units| self.presence.due.0 >= units)
    }

    /// Marks positions present; returns how many are new.
    #[inline]
    pub(crate) fn mark(&mut self, first: Position, count: u32) -> u32 {
        let end = first.saturating_add(count);
        if end > self.presence.positions.end() {
            let length = self.layout.units.unwrap_or(end.0);
            self.presence.grow(length);
        }
        self.account_arrivals(first, end);
        if let Some(code) = &mut self.code {
            let arrive = self.presence.positions.zero_runs(first, end).flat_map(|run| self.layout.units_at(run.start(), run.len()));
            code.missing -= arrive.filter(|unit| code.fence.protects(*unit)).count() as u32;
        }
        let fresh = self.presence.mark(first, count);
        self.debug_assert_counts();
        fresh
    }

    /// Moves the frontier to `due`; returns how many positions are newly declared lost.
    #[inline]
    pub(crate) fn advance_due(&mut self, due: Position) -> u32 {
        if due <= self.presence.due {
            return 0;
        }
        let fresh = self.presence.advance_due(due);
        self.debug_assert_counts();
        fresh
    }

    /// The counts are those of the bitmap, until it is judged.
    pub(super) fn debug_assert_counts(&self) {
        if !self.judged() {
            self.presence.debug_assert_counts();
        }
    }

    /// Evicts what has arrived: its room is needed for newer segments.
    pub(crate) fn evict(&mut self) {
        let kept = if self.layout.units.is_some() { 0 } else { self.extent() };
        self.presence.evict(kept);
        self.room.reserved = 0;
        self.judgement.listing = None;
        self.code = None;
        self.forget_accounting();
    }

    /// The memory that it takes beyond itself, in bytes.
    pub(crate) fn heap_bytes(&self) -> u64 {
        let accounting = self.accounting.as_ref().map_or(0, |accounting| accounting.heap_bytes());
        self.presence.positions.heap_bytes() + accounting + self.judgement.heap_bytes()
    }

    /// Gives up its room in the window: how many units it has there, and how many were reserved.
    pub(crate) fn free_room(&mut self) -> (u64, u64) {
        (u64::from(self.extent()), u64::from(core::mem::take(&mut self.room.reserved)))
    }

    /// Layout, tolerance or what is here are others: which units are lost is accounted for anew, if it still matters.
    pub(crate) fn forget_accounting(&mut self) {
        self.accounting = None;
    }
}

#[cfg(test)]
mod tests;
