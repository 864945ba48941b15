//! What must hold of an incoming stream in debug builds: its hand-kept counts and marks against its segments.
//!
//! Called by the half's own check.

use super::RecvStream;
use super::segment_queue::SPARE_SEGMENTS;
use crate::receiver::segment::RecvSegment;
use segstream_base::SegmentNumber;
use segstream_blocks::recount;

impl RecvStream {
    /// What is counted is what the segments say, and every mark is where it says it is.
    pub(in crate::receiver) fn debug_assert_counts(&self) {
        let Self { segments, room, progress, delivery, verdicts, .. } = self;
        debug_assert!(segments.spare.len() <= SPARE_SEGMENTS);
        progress.debug_assert_reached(segments.base);
        debug_assert!(segments.base <= delivery.lowest_unreleased.min(delivery.lowest_unjudged));
        debug_assert!(room.reserved <= room.window.size().1 * 2, "{} units are reserved", room.reserved);
        if !recount::is_due(segments.len()) {
            return;
        }
        let count = |of: fn(&RecvSegment) -> bool| segments.iter().filter(|segment| of(segment)).count() as u64;
        let reserved: u64 = segments.iter().map(|segment| u64::from(segment.room.reserved)).sum();
        debug_assert_eq!(room.reserved, reserved, "reserved units are miscounted");
        debug_assert_eq!(verdicts.unconfirmed, count(|segment| segment.judgement.is_unconfirmed()), "verdicts are miscounted");
        let in_repair = count(|segment| segment.violated_at.is_some() && !segment.judged());
        debug_assert_eq!(self.in_repair, in_repair, "segments in repair are miscounted");
        let kept = |segment: &RecvSegment| if segment.room.released { segment.judgement.unconfirmed_runs() } else { 0 };
        let kept_runs: u64 = segments.iter().map(kept).sum();
        debug_assert_eq!(verdicts.kept_runs, kept_runs, "runs of holes that are kept are miscounted");
        let before = |mark: SegmentNumber| segments.base.up_to(mark).filter_map(|number| segments.get(number));
        debug_assert!(before(delivery.lowest_unjudged).all(RecvSegment::judged), "a segment is passed over by the judge");
        debug_assert!(before(delivery.lowest_unreleased).all(|segment| segment.room.released), "a segment is taken for released");
    }
}
