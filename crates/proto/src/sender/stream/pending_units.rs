//! Units of a stream that are to leave besides those that leave for the first time: retransmissions, or repair units.
//!
//! Owned by the stream, which has one for each kind. How many of a segment are pending, and which, the segment says.
//!
//! Invariant: `total` is the sum over the segments; each segment with pending units is among `segments`.

use segstream_base::SegmentNumber;
use std::collections::BTreeSet;

/// Pending units of one kind.
#[derive(Debug, Default)]
pub(crate) struct PendingUnits {
    /// How many there are.
    pub(crate) total: u32,
    /// The segments that they are of, and perhaps some without.
    pub(super) segments: BTreeSet<SegmentNumber>,
}

impl PendingUnits {
    /// So many more units of `segment` are to leave.
    pub(crate) fn add(&mut self, segment: SegmentNumber, count: u32) {
        if count > 0 {
            self.total += count;
            self.segments.insert(segment);
        }
    }

    /// So many pending units of `segment` are cancelled: all that there were.
    pub(super) fn cancel(&mut self, segment: SegmentNumber, count: u32) {
        if count > 0 {
            self.total -= count;
            self.segments.remove(&segment);
        }
    }

    /// The oldest segment with pending units; `has_pending` says whether one has any.
    pub(crate) fn oldest(&mut self, has_pending: impl Fn(SegmentNumber) -> bool) -> Option<SegmentNumber> {
        while let Some(&oldest) = self.segments.first() {
            if has_pending(oldest) {
                return Some(oldest);
            }
            self.segments.pop_first();
        }
        None
    }
}
