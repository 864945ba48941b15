//! The queue of an incoming stream's segments: from the oldest that is kept up to the newest that has been heard of.
//!
//! Owned by the stream. A segment has a place as soon as a later one has, and state once something of it is to be kept; segments that have
//! left are used again.
//!
//! Invariant: the place of segment n is `n - base`; no more than [`SPARE_SEGMENTS`] that have left are kept.

use crate::layout::Layout;
use crate::receiver::segment::RecvSegment;
use segstream_base::tolerance::Tolerance;
use segstream_base::{Position, SegmentNumber};
use segstream_blocks::work::{self, Loop};
use std::collections::VecDeque;

/// How many finished segments are kept for reuse while there are others. Why so many: where segments are small, one report confirms thousands,
/// and to free and allocate them all costs a tenth of everything. With those in use they are never more than the stream is charged with.
pub(super) const SPARE_SEGMENTS: usize = 4096;
/// And how many when there are none.
pub(super) const SPARE_SEGMENTS_IDLE: usize = 64;

/// The segments of a stream that are kept.
#[derive(Debug)]
pub(crate) struct SegmentQueue {
    // Why boxed and absent: a part far ahead must not make state for all segments before it, of which nothing has come.
    segments: VecDeque<Option<Box<RecvSegment>>>,
    #[expect(clippy::vec_box, reason = "a box goes back into the queue as it is")]
    pub(super) spare: Vec<Box<RecvSegment>>,
    /// The number of the segment at the front of the queue.
    pub(crate) base: SegmentNumber,
    /// How many segments may be in the queue: those of the window, and those that were taken and whose verdicts are not confirmed.
    pub(super) kept_max: u64,
}

impl SegmentQueue {
    /// An empty queue for `kept_max` segments.
    pub(super) fn new(kept_max: u64) -> Self {
        Self { segments: VecDeque::new(), spare: Vec::new(), base: SegmentNumber::FIRST, kept_max }
    }

    /// The number behind the newest segment that has a place.
    pub(crate) fn next_number(&self) -> SegmentNumber {
        self.base + self.segments.len() as u64
    }

    /// A segment that has begun.
    #[inline]
    pub(crate) fn get(&self, segment: SegmentNumber) -> Option<&RecvSegment> {
        self.segments.get(segment.place_from(self.base)?)?.as_deref()
    }

    /// A segment that has begun.
    #[inline]
    pub(crate) fn get_mut(&mut self, segment: SegmentNumber) -> Option<&mut RecvSegment> {
        self.segments.get_mut(segment.place_from(self.base)?)?.as_deref_mut()
    }

    /// The segments that have begun.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RecvSegment> {
        self.segments.iter().flatten().map(|segment| &**segment)
    }

    /// How many places there are.
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Makes sure that `segment` and all before it have a place in the queue.
    pub(super) fn reach(&mut self, segment: SegmentNumber) {
        if let Some(more) = segment.next().place_from(self.next_number()).filter(|more| *more > 0) {
            // As with words of a bitmap, a place is a word.
            work::note(Loop::Words, more);
            self.segments.resize_with(self.segments.len() + more, || None);
        }
    }

    /// The same, as far as `left` places go, which are taken from them. Whether they sufficed; if not, the next turn goes on there.
    pub(super) fn reach_within(&mut self, segment: SegmentNumber, left: &mut u64) -> bool {
        let places = (segment + 1).since(self.next_number());
        let more = places.min(*left);
        *left -= more;
        if let Some(last) = (self.next_number() + more).previous().filter(|_| more > 0) {
            self.reach(last);
        }
        more == places
    }

    /// A segment in the queue; if it has not begun it does, with this tolerance and layout, due up to `due`.
    pub(super) fn begin(
        &mut self,
        number: SegmentNumber,
        tolerance: Tolerance,
        layout: impl FnOnce() -> Layout,
        due: Position,
    ) -> Option<&mut RecvSegment> {
        let place = self.segments.get_mut(number.place_from(self.base)?)?;
        if place.is_none() {
            work::note(Loop::Segments, 1);
            let layout = layout();
            let mut fresh = match self.spare.pop() {
                Some(mut used) => {
                    used.renew(layout, tolerance);
                    used
                }
                None => Box::new(RecvSegment::new(layout, tolerance)),
            };
            fresh.presence.due = due;
            *place = Some(fresh);
        }
        place.as_deref_mut()
    }

    /// Whether the oldest segment can leave the queue.
    pub(in crate::receiver) fn is_retiring(&self) -> bool {
        let front = self.segments.front().and_then(Option::as_deref);
        front.is_some_and(|segment| segment.room.released && segment.judgement.confirmed)
    }

    /// Segments that can leave the queue do, `most` of them.
    pub(super) fn retire(&mut self, most: u64) {
        let end = self.base + most;
        while self.is_retiring() && self.base < end {
            work::note(Loop::Segments, 1);
            let mut used = self.segments.pop_front().flatten();
            self.base += 1;
            if self.spare.len() < SPARE_SEGMENTS {
                used.iter_mut().for_each(|used| used.shrink());
                self.spare.extend(used);
            }
        }
        if self.segments.is_empty() && self.spare.len() > SPARE_SEGMENTS_IDLE {
            self.spare.truncate(SPARE_SEGMENTS_IDLE);
            self.spare.shrink_to_fit();
        }
    }

    /// The stream is retired: the buffers of the queue are free.
    pub(super) fn free(&mut self) {
        debug_assert!(self.segments.is_empty());
        self.segments = VecDeque::new();
        self.spare = Vec::new();
    }

    /// The memory that places and segments take, in bytes, without payload. Looks at every segment.
    pub(super) fn kept_bytes(&self) -> u64 {
        let places = (self.segments.capacity() * size_of::<Option<Box<RecvSegment>>>()) as u64;
        let segments = self.segments.iter().flatten().chain(&self.spare);
        places + segments.map(|segment| size_of::<RecvSegment>() as u64 + segment.heap_bytes()).sum::<u64>()
    }
}
