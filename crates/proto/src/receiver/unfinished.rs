//! What one turn of the judge has not finished: frontiers that pass over many segments at once, segments of which so much was lost that
//! one turn does not account for it, and streams whose segments are evaluated again because the class has changed.
//!
//! Filled by the judge; the half goes on at its next turn, between those of other connections.
//!
//! Invariant: a segment or a stream is in here once. Each turn takes a bounded number of steps (spec 11.4).

use super::RecvHalf;
use segstream_base::endpoint::Deadline;
use segstream_base::{Instant, Position, SegmentNumber, StreamId};
use std::collections::{BTreeMap, BTreeSet};

/// Positions that one turn accounts for, or lists as holes (spec 11.4).
const ACCOUNTED_A_TURN: u32 = 2048;
/// Segments that one turn passes over with a frontier, or evaluates after a change of class (spec 11.4).
const SEGMENTS_A_TURN: u64 = 512;
/// Places in queues that one turn makes for segments that are far ahead (spec 11.4).
const PLACES_A_TURN: u64 = 16_384;
/// Segments of which one turn notes that their verdict is confirmed (spec 11.4).
const CONFIRMATIONS_A_TURN: u64 = 4096;

/// Segments that sweeps may look at before they have to be earned: a window of the most segments (spec 11.2).
const SWEPT_AT_FIRST: u64 = 65_536;
/// So many bytes that arrive earn one more. Why: a change of class is a few bytes, and each has all segments looked at.
const BYTES_A_SWEPT_SEGMENT: u64 = 4;

/// What is not finished.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    /// Positions that this turn may still account for.
    pub(super) positions_left: u32,
    /// Segments that this turn may still look at.
    pub(super) segments_left: u64,
    /// Places that this turn may still make.
    pub(super) places_left: u64,
    /// Segments whose confirmation this turn may still note.
    pub(super) confirmations_left: u64,
    /// Segments that sweeps have looked at, less those that were earned.
    swept: u64,
    /// Whether anything may be unfinished. Why: that is asked for with every datagram.
    pub(super) any: bool,
    /// Boxed: nearly every connection has none, and each would carry their size.
    lists: Option<Box<Lists>>,
}

/// What there is to go on with.
#[derive(Debug, Default)]
struct Lists {
    /// Streams with segments that can leave the queue.
    retiring: BTreeSet<StreamId>,
    /// Where the frontier of each stream is to come.
    frontiers: BTreeMap<StreamId, (SegmentNumber, Position)>,
    segments: BTreeSet<(StreamId, SegmentNumber)>,
    /// The next segment to evaluate of each stream.
    sweeps: BTreeMap<StreamId, SegmentNumber>,
}

impl Unfinished {
    /// A turn begins.
    pub(super) const fn begin_turn(&mut self) {
        self.positions_left = ACCOUNTED_A_TURN;
        self.segments_left = SEGMENTS_A_TURN;
        self.places_left = PLACES_A_TURN;
        self.confirmations_left = CONFIRMATIONS_A_TURN;
    }

    /// So many bytes have arrived: sweeps may go on.
    pub(super) fn earn(&mut self, bytes: u64) {
        if self.swept > 0 {
            self.swept = self.swept.saturating_sub(bytes / BYTES_A_SWEPT_SEGMENT);
            self.any |= self.is_due();
        }
    }

    /// A stream has segments that can leave its queue and have not, because there were too many for a turn.
    pub(super) fn retire(&mut self, stream: StreamId) {
        self.lists().retiring.insert(stream);
    }

    /// A segment takes another turn.
    pub(super) fn push(&mut self, stream: StreamId, segment: SegmentNumber) {
        self.lists().segments.insert((stream, segment));
    }

    /// The frontier of a stream is to come to `to`.
    pub(super) fn go_on_to(&mut self, stream: StreamId, to: (SegmentNumber, Position)) {
        let target = self.lists().frontiers.entry(stream).or_insert(to);
        *target = to.max(*target);
    }

    /// All segments of a stream are evaluated, from `base` on, as far as that is earned.
    pub(super) fn sweep(&mut self, stream: StreamId, base: SegmentNumber) {
        self.lists().sweeps.insert(stream, base);
    }

    /// The next segment of a sweep, if one is earned; `bounds` are the first segment of a stream and the one behind its last.
    pub(super) fn next_swept(
        &mut self,
        bounds: impl Fn(StreamId) -> Option<(SegmentNumber, SegmentNumber)>,
    ) -> Option<(StreamId, SegmentNumber)> {
        if !self.may_sweep() {
            return None;
        }
        let sweeps = &mut self.lists.as_mut()?.sweeps;
        while let Some(mut entry) = sweeps.first_entry() {
            let (stream, next) = (*entry.key(), *entry.get());
            match bounds(stream) {
                Some((base, end)) if next.max(base) < end => {
                    *entry.get_mut() = next.max(base).next();
                    self.swept += 1;
                    return Some((stream, next.max(base)));
                }
                _ => _ = entry.remove(),
            }
        }
        None
    }

    /// The memory that it takes, in bytes: nodes of trees are at least half full.
    pub(super) fn kept_bytes(&self) -> u64 {
        (2 * self.lists.as_ref().map_or(0, |lists| lists.segments.len()) * size_of::<(StreamId, SegmentNumber)>()) as u64
    }

    /// The lists, to be added to.
    fn lists(&mut self) -> &mut Lists {
        self.any = true;
        self.lists.get_or_insert_default()
    }

    /// Whether a sweep may look at one more segment.
    const fn may_sweep(&self) -> bool {
        self.swept < SWEPT_AT_FIRST
    }

    fn is_due(&self) -> bool {
        self.lists.as_ref().is_some_and(|lists| lists.has_more_than_sweeps() || self.may_sweep() && !lists.sweeps.is_empty())
    }

    /// Lists that are empty need no memory.
    fn free_if_empty(&mut self) {
        self.lists.take_if(|lists| lists.is_empty());
    }
}

impl Lists {
    fn is_empty(&self) -> bool {
        !self.has_more_than_sweeps() && self.sweeps.is_empty()
    }

    fn has_more_than_sweeps(&self) -> bool {
        !(self.retiring.is_empty() && self.frontiers.is_empty() && self.segments.is_empty())
    }
}

impl RecvHalf {
    /// When the half wants its next turn: at once, if anything is unfinished.
    pub(super) fn turn_due(&self) -> Option<Deadline> {
        debug_assert!(self.unfinished.any || !self.unfinished.is_due() && !self.reports.verdicts.is_behind(), "a turn is forgotten");
        self.unfinished.any.then_some(Deadline { at: Instant::ZERO, timer: "judge" })
    }

    /// Notes streams with segments that can leave their queue and have not, because there were too many for a turn.
    pub(super) fn note_all_retiring(&mut self) {
        for place in 0..self.streams.len() {
            if self.streams[place].segments.is_retiring() {
                self.unfinished.retire(self.streams.number(place));
            }
        }
    }

    /// A turn: goes on with confirmations, one stream, one frontier, one segment, or with a sweep. Whether there was anything.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if !self.unfinished.any {
            return false;
        }
        self.unfinished.begin_turn();
        if self.reports.verdicts.is_behind() {
            self.reports.verdicts.go_on(&mut self.streams, &mut self.unfinished.confirmations_left);
            self.note_all_retiring();
            self.retire_ended(now);
        } else if let Some(id) = self.unfinished.lists.as_mut().and_then(|lists| lists.retiring.pop_first()) {
            self.retire_segments(now, id);
        } else if let Some((stream, to)) = self.unfinished.lists.as_mut().and_then(|lists| lists.frontiers.pop_first()) {
            self.advance_frontier(now, stream, to);
        } else if let Some((stream, segment)) = self.unfinished.lists.as_mut().and_then(|lists| lists.segments.pop_first()) {
            self.reevaluate(now, stream, segment);
        } else {
            self.sweep(now);
        }
        self.unfinished.free_if_empty();
        self.unfinished.any = self.unfinished.is_due() || self.reports.verdicts.is_behind();
        true
    }

    fn retire_segments(&mut self, now: Instant, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.retire();
            if stream.segments.is_retiring() {
                self.unfinished.retire(id);
            }
        }
        self.retire_ended(now);
    }
}
