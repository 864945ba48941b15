//! Presence: which positions of an incoming segment are here, up to where they are due, and how many are declared lost.
//!
//! Owned by the segment, which knows how many positions there are and makes room for them.
//!
//! Invariant: until the segment is judged, `got` is the number of positions that are here, and `lost` the number of due positions that
//! have room and are not.

use segstream_base::Position;
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::recount;

/// Everything is due, also what lies beyond a length not known yet.
pub(crate) const ALL_DUE: Position = Position(u32::MAX);

/// The bitmap of a judged segment is kept for reuse if it needs no memory beyond the segment's own.
const KEPT_UNITS: u32 = 256;

/// Which positions of a segment are here, due, and lost.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    /// Positions present, in sending order.
    pub(crate) positions: Bitmap<Position>,
    pub(crate) got: u32,
    /// Positions below this one are due.
    pub(crate) due: Position,
    /// Due positions that are not present.
    pub(crate) lost: u32,
    /// How many positions were ever declared lost.
    pub(crate) units_lost: u32,
    /// More is declared lost than at the last evaluation.
    pub(crate) more_is_lost: bool,
}

impl Presence {
    /// Marks positions present, for which there is room; returns how many are new.
    #[inline]
    pub(super) fn mark(&mut self, first: Position, count: u32) -> u32 {
        let end = first.saturating_add(count);
        let fresh = if first >= self.due || self.lost == 0 && end <= self.due {
            self.positions.set_range(first, count)
        } else {
            let late_end = end.min(self.due);
            let late = self.positions.set_range(first, late_end - first);
            self.lost -= late;
            late + if end > late_end { self.positions.set_range(late_end, end - late_end) } else { 0 }
        };
        self.got += fresh;
        fresh
    }

    /// Makes room for positions up to `length`; those below the frontier count as lost at once.
    pub(crate) fn grow(&mut self, length: u32) {
        let before = self.due.min(self.positions.end());
        self.positions.grow(length);
        let after = self.due.min(Position(length));
        self.declare_lost(after.since(before));
    }

    #[inline]
    fn declare_lost(&mut self, count: u32) {
        self.lost += count;
        self.units_lost = self.units_lost.saturating_add(count);
        self.more_is_lost |= count > 0;
    }

    /// Moves the frontier on to `due`; returns how many positions are newly declared lost.
    #[inline]
    pub(super) fn advance_due(&mut self, due: Position) -> u32 {
        debug_assert!(due > self.due);
        let (from, to) = (self.due.min(self.positions.end()), due.min(self.positions.end()));
        let fresh = if to > from { to - from - self.positions.count_ones_in(from, to) } else { 0 };
        self.declare_lost(fresh);
        self.due = due;
        fresh
    }

    /// What is here is evicted; there is room for `kept` positions.
    pub(super) fn evict(&mut self, kept: u32) {
        self.positions.reset(kept);
        self.got = 0;
    }

    /// The segment is judged: which units are here is told by the holes.
    pub(super) fn forget_positions(&mut self) {
        if self.positions.len() > KEPT_UNITS {
            self.positions = Bitmap::new();
        } else {
            self.positions.reset(0);
        }
    }

    /// The counts are those of the bitmap.
    pub(super) fn debug_assert_counts(&self) {
        if !recount::is_due(self.positions.len() as usize / 64) {
            return;
        }
        debug_assert_eq!(self.got, self.positions.count_ones(), "present units are miscounted");
        let due = self.due.min(self.positions.end());
        debug_assert_eq!(self.lost, due.0 - self.positions.count_ones_in(Position::FIRST, due), "units declared lost are miscounted");
    }
}
