//! The queue of one stream's segments, from the oldest without a verdict on, found by number.
//!
//! Owned by the stream.
//!
//! Invariant: numbers ascend by one from `base` on; the segment at the front has no verdict, and whatever leaves the queue has one.

use crate::layout::Layout;
use crate::sender::segment::{SegmentTolerance, SendSegment};
use core::ops::Range;
use segstream_base::SegmentNumber;
use segstream_blocks::ranges::RangeSet;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// How many finished segments keep their buffers for reuse.
pub(super) const SPARE_SEGMENTS: usize = 64;

/// The segments of one stream that are not over.
#[derive(Debug, Default)]
pub(crate) struct SegmentQueue {
    pub(super) queue: VecDeque<SendSegment>,
    pub(super) spare: Vec<SendSegment>,
    /// The number of the segment at the front of the queue.
    pub(crate) base: SegmentNumber,
    /// Segments from `base` on that have a verdict.
    settled: RangeSet,
    /// The next segment whose lifetime can expire.
    pub(super) expire_from: SegmentNumber,
}

impl SegmentQueue {
    /// The number the next submitted segment will have.
    #[inline]
    pub(crate) fn next_number(&self) -> SegmentNumber {
        self.base + self.queue.len() as u64
    }

    #[inline]
    pub(crate) fn get(&self, segment: SegmentNumber) -> Option<&SendSegment> {
        self.queue.get(segment.place_from(self.base)?)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, segment: SegmentNumber) -> Option<&mut SendSegment> {
        self.queue.get_mut(segment.place_from(self.base)?)
    }

    /// Appends a segment of which nothing has left, in the buffers of a finished one if there is any.
    #[inline]
    pub(super) fn push(&mut self, layout: Layout, tolerance: SegmentTolerance) -> &mut SendSegment {
        let place = self.queue.len();
        if let Some(used) = self.spare.pop() {
            self.queue.push_back(used);
            self.queue[place].renew(layout, tolerance);
        } else {
            self.queue.push_back(SendSegment::new(layout, tolerance));
        }
        &mut self.queue[place]
    }

    /// Takes a verdict on segment `number`, which had none.
    pub(super) fn on_settled(&mut self, number: SegmentNumber) {
        // Why not the oldest: it leaves at once, and mostly there is no other.
        if number > self.base {
            self.settled.insert(number.0..number.0 + 1);
        }
    }

    /// Segments with a verdict leave the front of the queue.
    #[inline]
    pub(super) fn release_judged(&mut self) {
        while self.queue.front().is_some_and(SendSegment::judged) {
            // Why in two arms: so a segment is copied once, from one queue to the other.
            if self.spare.len() < SPARE_SEGMENTS {
                self.spare.extend(self.queue.pop_front());
            } else {
                self.queue.pop_front();
            }
            self.base += 1;
        }
        if !self.settled.is_empty() {
            self.settled.remove(0..self.base.0);
        }
    }

    /// Advances to the next segment whose lifetime can still expire.
    pub(super) fn advance_expiry(&mut self) {
        self.expire_from = self.next_expiring();
        while self.get(self.expire_from).is_some_and(|segment| segment.judged() || segment.skipped) {
            self.expire_from += 1;
        }
    }

    /// The segment whose lifetime expires first.
    pub(super) fn next_expiring(&self) -> SegmentNumber {
        self.expire_from.max(self.base)
    }

    /// The segments of `range` without a verdict, as runs.
    pub(crate) fn unsettled(&self, range: Range<SegmentNumber>) -> SmallVec<[Range<SegmentNumber>; 2]> {
        if self.settled.is_empty() {
            return core::iter::once(range).filter(|range| !range.is_empty()).collect();
        }
        let gaps = self.settled.gaps(range.start.0..range.end.0);
        gaps.map(|gap| SegmentNumber(gap.start)..SegmentNumber(gap.end)).collect()
    }

    /// The first run of `told` without a verdict; an empty one at its end if there is none.
    pub(crate) fn first_unsettled(&self, told: Range<u64>) -> Range<SegmentNumber> {
        let start = told.start.max(self.base.0);
        let gap = self.settled.first_gap(start..told.end).unwrap_or(told.end..told.end);
        SegmentNumber(gap.start)..SegmentNumber(gap.end)
    }
}
