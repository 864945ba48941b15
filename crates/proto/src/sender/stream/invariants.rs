//! What must hold of an outgoing stream in debug builds: its hand-kept counts and marks against its segments.
//!
//! Called by the half's own check.

use super::SendStream;
use super::segment_queue::{SPARE_SEGMENTS, SegmentQueue};
use crate::sender::segment::SendSegment;
use segstream_base::SegmentNumber;
use segstream_blocks::recount;

impl SendStream {
    /// What is counted is what the segments say, and every mark is where it says it is.
    pub(in crate::sender) fn debug_assert_counts(&self) {
        let SegmentQueue { queue, spare, base, expire_from, .. } = &self.segments;
        let end = self.segments.next_number();
        debug_assert!(*base <= self.current && self.current <= end, "the present segment is not in the queue");
        debug_assert!(spare.len() <= SPARE_SEGMENTS);
        debug_assert!(!queue.front().is_some_and(SendSegment::judged), "a judged segment stays at the front");
        if !recount::is_due(queue.len()) {
            return;
        }
        let unjudged = || queue.iter().filter(|segment| !segment.judged());
        debug_assert_eq!(self.buffer.unjudged, unjudged().count() as u64, "segments without a verdict are miscounted");
        debug_assert_eq!(self.buffer.units, unjudged().map(|segment| segment.buffered).sum(), "the send buffer is miscounted");
        debug_assert_eq!(
            self.retransmissions.total,
            queue.iter().map(|segment| segment.retransmissions.count).sum(),
            "requests are miscounted"
        );
        debug_assert_eq!(
            self.repairs.total,
            queue.iter().filter_map(|segment| segment.code.as_ref()).map(|code| code.pending).sum(),
            "repair units are miscounted"
        );
        let before = |mark: SegmentNumber| base.up_to(mark).filter_map(|number| self.segments.get(number));
        let is_requested = |number: &SegmentNumber| self.segments.get(*number).is_some_and(|of| of.retransmissions.count > 0);
        let requested = || base.up_to(end).filter(is_requested);
        debug_assert!(
            requested().all(|number| self.retransmissions.segments.contains(&number)),
            "a request is not found by the search for it"
        );
        debug_assert!(before(*expire_from).all(|segment| segment.judged() || segment.skipped), "a lifetime is not watched");
        let over = |segment: &SendSegment| segment.judged() || segment.skipped || segment.first_pass_over();
        debug_assert!(before(self.current).all(over), "a segment was left before its end");
        queue.iter().for_each(SendSegment::debug_assert_counts);
    }
}
