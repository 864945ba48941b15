//! What is kept of segments that have left an incoming stream.

use super::*;
use crate::receiver::stream::judged_segment::judge;
use crate::receiver::stream::segment_queue::{SPARE_SEGMENTS, SPARE_SEGMENTS_IDLE};
use segstream_base::halves::Verdict;
use segstream_wire::Contract;

/// A stream of which the application has taken segments `0..count` of one unit, all complete and none confirmed.
fn taken(count: u64) -> RecvStream {
    let contract = Contract { window_units: 1 << 16, window_segments: 1 << 14, ..Contract::default() };
    let mut stream = RecvStream::new(contract, 1 << 15, None);
    for number in SegmentNumber(0).up_to(SegmentNumber(count)) {
        judge(&mut stream, number, 1, Verdict::Complete);
        stream.release(number);
    }
    stream
}

/// The sender confirms segments up to `to`; those before it leave.
fn confirm(stream: &mut RecvStream, to: u64) {
    stream.confirm(SegmentNumber(0), SegmentNumber(to), ReportNumber(1), &mut (1 << 20));
    while stream.segments.is_retiring() {
        stream.retire();
    }
    assert_eq!(stream.segments.base, SegmentNumber(to));
    stream.debug_assert_counts();
}

#[test]
fn segments_that_left_are_used_again_and_few_are_kept_when_none_is_there() {
    let mut stream = taken(3 * SPARE_SEGMENTS as u64);
    let most = stream.kept_bytes();
    confirm(&mut stream, 1000);
    assert_eq!(stream.segments.spare.len(), 1000);
    confirm(&mut stream, 3 * SPARE_SEGMENTS as u64 - 1);
    assert_eq!(stream.segments.spare.len(), SPARE_SEGMENTS);
    assert!(stream.kept_bytes() <= most, "with those in use they take no more than all took");
    confirm(&mut stream, 3 * SPARE_SEGMENTS as u64);
    assert_eq!(stream.segments.spare.len(), SPARE_SEGMENTS_IDLE);
}
