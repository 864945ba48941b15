//! What must hold of an outgoing stream in debug builds: its hand-kept counts and marks against its segments.
//!
//! Called by the half's own check.

use super::{SPARE_SEGMENTS, SendStream};
use crate::sender::segment::SendSegment;
use segstream_base::SegmentNumber;
use segstream_blocks::recount;

impl SendStream {
    /// What is counted is what the segments say, and every mark is where it says it is.
    pub(in crate::sender) fn debug_assert_counts(&self) {
        debug_assert!(self.base <= self.current && self.current <= self.next_segment(), "the present segment is not in the queue");
        debug_assert!(self.spare.len() <= SPARE_SEGMENTS);
        debug_assert!(!self.segments.front().is_some_and(SendSegment::judged), "a judged segment stays at the front");
        if !recount::is_due(self.segments.len()) {
            return;
        }
        let unjudged = || self.segments.iter().filter(|segment| !segment.judged());
        debug_assert_eq!(self.unjudged, unjudged().count() as u64, "segments without a verdict are miscounted");
        debug_assert_eq!(self.buffered_units, unjudged().map(|segment| segment.buffered).sum(), "the send buffer is miscounted");
        debug_assert_eq!(
            self.retransmit_total,
            self.segments.iter().map(|segment| segment.retransmissions.count).sum(),
            "requests are miscounted"
        );
        debug_assert_eq!(
            self.repair_total,
            self.segments.iter().filter_map(|segment| segment.code.as_ref()).map(|code| code.pending).sum(),
            "repair units are miscounted"
        );
        let before = |mark: SegmentNumber| self.base.up_to(mark).filter_map(|number| self.get(number));
        let requested =
            || self.base.up_to(self.next_segment()).filter(|&number| self.get(number).is_some_and(|of| of.retransmissions.count > 0));
        debug_assert!(requested().all(|number| self.retransmit.contains(&number)), "a request is not found by the search for it");
        debug_assert!(before(self.expire_from).all(|segment| segment.judged() || segment.skipped), "a lifetime is not watched");
        let over = |segment: &SendSegment| segment.judged() || segment.skipped || segment.first_pass_over();
        debug_assert!(before(self.current).all(over), "a segment was left before its end");
        self.segments.iter().for_each(SendSegment::debug_assert_counts);
    }
}
