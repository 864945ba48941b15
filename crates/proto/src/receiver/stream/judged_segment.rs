//! For tests of what happens to verdicts: a segment that has one.

use super::RecvStream;
use crate::receiver::segment::About;
use segstream_base::halves::Verdict;
use segstream_base::{Instant, Position, ReportNumber, SegmentNumber, Tolerance};
use segstream_blocks::bitmap::Bitmap;
use segstream_wire::Class;

/// Segment `number` of `units` units gets `verdict`; if it is *complete* all of its units have arrived, otherwise every second one.
pub(in crate::receiver) fn judge(stream: &mut RecvStream, number: SegmentNumber, units: u32, verdict: Verdict) {
    let length = Some(u64::from(units) * u64::from(stream.contract.unit_bytes));
    let about = About { opened: false, length, own: Some(Tolerance::any(units)), source_time: Instant::ZERO };
    stream.admit(number, &about, Position(units), Class::ALL, &mut 1000);
    let step = if verdict == Verdict::Complete { 1 } else { 2 };
    for position in (0..units).step_by(step) {
        stream.segments.get_mut(number).unwrap().mark(Position(position), 1);
    }
    stream.on_judged(Instant::ZERO, number, verdict, ReportNumber::FIRST, &mut Bitmap::new()).unwrap();
}
