//! Exact repair: which positions of a segment are to be sent again.
//!
//! Owned by the segment. The receiver requests positions; of those the ones are queued whose last shipment is lost by its echo and reordering
//! threshold.
//!
//! Invariant: only positions that were sent are queued, each once.

use super::sent_positions::{SentPositions, is_lost};
use core::ops::Range;
use segstream_base::{Position, Run, ShipmentNumber};
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::ranges::RangeSet;
use segstream_blocks::work::{self, Loop};

/// The pending retransmissions of a segment.
#[derive(Debug, Default)]
pub(crate) struct Retransmissions {
    pub(super) positions: Bitmap<Position>,
    /// How many positions are pending.
    pub(crate) count: u32,
    /// Whether any unit has been retransmitted, or a repair unit has left that was asked for.
    pub(crate) repaired: bool,
    // Why boxed: few segments are requested.
    examined: Option<Box<Examined>>,
}

/// The positions that requests with one echo and reordering threshold have named. Why: which of them are lost follows from the two and
/// from what has left, so a position is examined once for each echo, however often a report names it.
#[derive(Debug)]
struct Examined {
    echo: ShipmentNumber,
    reorder: u32,
    /// Of these positions one run, since mostly there is one only, and the others.
    run: Range<u64>,
    more: RangeSet,
    /// Behind all of these positions.
    end: u64,
    /// Where the next request goes on, if it was too long for its turn.
    next: Position,
}

impl Examined {
    /// The first run of `range` that is not among the positions.
    fn first_gap(&self, range: Range<u64>) -> Option<Range<u64>> {
        if range.is_empty() {
            return None;
        }
        let start = if self.run.contains(&range.start) { self.run.end } else { range.start };
        let gap = self.more.first_gap(start..range.end)?;
        if gap.start >= self.run.end || gap.end <= self.run.start {
            return Some(gap);
        }
        if gap.start < self.run.start { Some(gap.start..self.run.start) } else { self.more.first_gap(self.run.end..range.end) }
    }

    /// Adds positions that are not among them.
    fn insert(&mut self, gap: Range<u64>) {
        self.end = self.end.max(gap.end);
        if self.run.is_empty() {
            self.run = gap;
        } else if gap.start == self.run.end {
            self.run.end = gap.end;
        } else if gap.end == self.run.start {
            self.run.start = gap.start;
        } else {
            self.more.insert(gap);
        }
    }

    /// Another echo or reordering threshold: nothing is examined by it.
    fn restart(&mut self, echo: ShipmentNumber, reorder: u32) {
        (self.echo, self.reorder) = (echo, reorder);
        (self.run, self.end) = (0..0, 0);
        self.more.clear();
    }
}

impl Retransmissions {
    /// Those of a new segment, of which none are pending, in the buffer of this one.
    pub(super) fn renewed(&mut self) -> Self {
        let mut positions = core::mem::take(&mut self.positions);
        positions.reset(0);
        Self { positions, ..Self::default() }
    }

    /// Of `requested`, which are among the positions `sent`, those are queued whose last shipment is lost, judged with the echo and reordering
    /// threshold of the request; says how many. At most `left` are examined in this turn; the receiver repeats what it misses, and the next
    /// request goes on there.
    pub(super) fn request(
        &mut self,
        sent: &SentPositions,
        requested: Run<Position>,
        (echo, reorder): (ShipmentNumber, u32),
        left: &mut u32,
    ) -> u32 {
        self.positions.grow(sent.next.0);
        let fresh = || Box::new(Examined { echo, reorder, run: 0..0, more: RangeSet::new(), end: 0, next: Position::FIRST });
        let mut examined = self.examined.take().unwrap_or_else(fresh);
        if (examined.echo, examined.reorder) != (echo, reorder) {
            examined.restart(echo, reorder);
        }
        let (start, end) = (u64::from(requested.start()), u64::from(requested.end()));
        let next = u64::from(examined.next);
        let mut queued = 0;
        // A report names what is missing in ascending order, so mostly all of it lies behind what was named before.
        if start >= examined.end.max(next) {
            queued = self.examine(sent, &mut examined, start..end, left);
        } else {
            let middle = next.clamp(start, end);
            for mut named in [middle..end, start..middle] {
                while *left > 0
                    && let Some(gap) = examined.first_gap(named.clone())
                {
                    named.start = gap.end;
                    queued += self.examine(sent, &mut examined, gap, left);
                }
            }
        }
        self.examined = Some(examined);
        self.count += queued;
        queued
    }

    /// Queues those of `gap`, which has left and was not examined yet, that are lost; says how many. At most `left` are examined.
    #[inline]
    fn examine(&mut self, sent: &SentPositions, examined: &mut Examined, gap: Range<u64>, left: &mut u32) -> u32 {
        let until = gap.end.min(gap.start + u64::from(*left));
        if until == gap.start {
            return 0;
        }
        *left -= (until - gap.start) as u32;
        work::note(Loop::Requested, (until - gap.start) as usize);
        let mut queued = 0;
        for position in (gap.start as u32..until as u32).map(Position) {
            queued += u32::from(is_lost(sent.ships[position.0 as usize], examined.echo, examined.reorder) && self.positions.set(position));
        }
        examined.insert(gap.start..until);
        examined.next = if *left == 0 { Position(until as u32) } else { Position::FIRST };
        queued
    }

    /// Positions `first..first + count` leave again.
    pub(super) fn on_sent(&mut self, first: Position, count: u32) {
        self.count -= self.positions.clear_range(first, count);
        self.repaired = true;
    }

    /// Cancels what is pending; returns how many positions that were.
    pub(crate) fn cancel(&mut self) -> u32 {
        self.examined = None;
        let count = core::mem::take(&mut self.count);
        if count > 0 {
            self.positions.reset(0);
        }
        count
    }
}
