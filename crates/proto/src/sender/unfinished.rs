//! What one turn of the sending half has not finished: segments that a report has told to be complete, too many for a turn.
//!
//! Filled by the processing of reports; the half goes on at its next turn, between those of other connections.
//!
//! Invariant: what is told here is settled once, in order; each turn takes a bounded number of steps (spec 11.4).

use super::SendHalf;
use core::ops::Range;
use segstream_base::endpoint::Deadline;
use segstream_base::halves::Verdict;
use segstream_base::{Instant, SegmentNumber, StreamId};
use segstream_blocks::ranges::RangeSet;
use std::collections::BTreeMap;

/// Segments that one turn settles (spec 11.4).
const SETTLED_A_TURN: u64 = 1024;
/// Positions that the requests of one report have examined (spec 11.4).
pub(super) const EXAMINED_A_TURN: u32 = 16_384;

/// What is not finished.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    /// Segments that this turn may still settle.
    segments_left: u64,
    /// Positions that this turn may still examine.
    pub(super) positions_left: u32,
    /// Segments of each stream that are complete, of which some are not settled yet.
    complete: BTreeMap<StreamId, RangeSet>,
}

impl Unfinished {
    /// A turn begins.
    pub(super) const fn begin_turn(&mut self) {
        self.segments_left = SETTLED_A_TURN;
        self.positions_left = EXAMINED_A_TURN;
    }

    fn is_empty(&self) -> bool {
        self.complete.is_empty()
    }

    /// When the half wants its next turn: at once, if anything is unfinished.
    pub(super) fn due(&self) -> Option<Deadline> {
        (!self.is_empty()).then_some(Deadline { at: Instant::ZERO, timer: "verdicts" })
    }
}

impl SendHalf {
    /// `segments` of a stream, which exist, are complete: those without a verdict get it, in this turn or in further ones.
    pub(super) fn settle_complete(&mut self, now: Instant, id: StreamId, segments: Range<SegmentNumber>) {
        let Some(stream) = self.streams.get(id) else { return };
        if self.unfinished.is_empty() && stream.buffer.unjudged <= self.unfinished.segments_left {
            // Why only the gaps: a peer may say again what it has said of many, behind an older one that has no verdict.
            for gap in stream.segments.unsettled(segments) {
                self.unfinished.segments_left -= (gap.end - gap.start).min(self.unfinished.segments_left);
                self.settle_all(id, gap, Verdict::Complete, Some(now));
            }
            return;
        }
        self.unfinished.complete.entry(id).or_default().insert(segments.start.0..segments.end.0);
        self.go_on_settling(now);
    }

    /// Goes on with what is complete, as far as the turn goes.
    fn go_on_settling(&mut self, now: Instant) {
        while self.unfinished.segments_left > 0
            && let Some(mut entry) = self.unfinished.complete.first_entry()
        {
            let id = *entry.key();
            let told = entry.get().first().zip(self.streams.get(id));
            let Some(gap) = told.map(|(told, stream)| stream.segments.first_unsettled(told)) else {
                entry.remove();
                continue;
            };
            let end = gap.end.min(gap.start.saturating_add(self.unfinished.segments_left));
            // Progress: the gap ends behind where the first range begins, and all before its end is settled now.
            entry.get_mut().remove(0..end.0);
            if entry.get().is_empty() {
                entry.remove();
            }
            self.unfinished.segments_left -= end - gap.start;
            self.settle_all(id, gap.start..end, Verdict::Complete, Some(now));
            self.refresh(id);
        }
    }

    /// A turn: goes on with what is unfinished.
    #[inline]
    pub(super) fn take_turn(&mut self, now: Instant) {
        if self.unfinished.is_empty() {
            return;
        }
        self.invalidate_due();
        self.unfinished.begin_turn();
        self.go_on_settling(now);
    }
}
