//! What must hold of an incoming stream in debug builds: its hand-kept counts and marks against its segments.
//!
//! Called by the half's own check.

use super::RecvStream;
use super::release::SPARE_SEGMENTS;
use crate::receiver::segment::RecvSegment;
use segstream_base::SegmentNumber;
use segstream_blocks::recount;

impl RecvStream {
    /// What is counted is what the segments say, and every mark is where it says it is.
    pub(in crate::receiver) fn debug_assert_counts(&self) {
        debug_assert!(self.spare.len() <= SPARE_SEGMENTS);
        debug_assert!(self.base <= self.high.0.min(self.frontier.0), "a segment has left that is not due");
        debug_assert!(self.base <= self.lowest_unreleased.min(self.lowest_unjudged));
        debug_assert!(self.reserved <= self.window.size().1 * 2, "{} units are reserved", self.reserved);
        if !recount::is_due(self.segments.len()) {
            return;
        }
        let count = |of: fn(&RecvSegment) -> bool| self.segments.iter().flatten().filter(|segment| of(segment)).count() as u64;
        let reserved: u64 = self.segments.iter().flatten().map(|segment| u64::from(segment.room.reserved)).sum();
        debug_assert_eq!(self.reserved, reserved, "reserved units are miscounted");
        debug_assert_eq!(self.unconfirmed, count(|segment| segment.judgement.is_unconfirmed()), "verdicts are miscounted");
        debug_assert_eq!(
            self.in_repair,
            count(|segment| segment.violated_at.is_some() && !segment.judged()),
            "segments in repair are miscounted"
        );
        let kept = |segment: &RecvSegment| if segment.room.released { segment.judgement.unconfirmed_runs() } else { 0 };
        let kept_runs: u64 = self.segments.iter().flatten().map(|segment| kept(segment)).sum();
        debug_assert_eq!(self.kept_runs, kept_runs, "runs of holes that are kept are miscounted");
        let before = |mark: SegmentNumber| self.base.up_to(mark).filter_map(|number| self.get(number));
        debug_assert!(before(self.lowest_unjudged).all(RecvSegment::judged), "a segment is passed over by the judge");
        debug_assert!(before(self.lowest_unreleased).all(|segment| segment.room.released), "a segment is taken for released");
    }
}
