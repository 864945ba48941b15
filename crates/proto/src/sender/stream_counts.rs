//! Counts of streams by what they have to do, so that a poll need not visit every stream.
//!
//! Owned by the half, which updates the flags of a stream after everything that may have changed them.
//! Invariant: each count is the number of streams that had the flag at their last update.

use super::stream::{FirstTime, SendStream};

/// What one stream has to do, as a bit set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamFlags(u8);

/// It has pending retransmissions or repair units.
const RETRANSMIT: u8 = 1;
/// It has units that wait only for the pacer.
const ELIGIBLE: u8 = 2;
/// It has new units that wait only for the window.
const WINDOW_BLOCKED: u8 = 4;
/// It has segments without a verdict.
const UNJUDGED: u8 = 8;
/// It has an unconfirmed OPEN, END, or SKIP of its oldest segment.
const UNCONFIRMED: u8 = 16;

impl StreamFlags {
    /// The present flags of `stream`; `flow` says whether flow control is on.
    #[inline]
    pub(super) fn of(stream: &SendStream, flow: bool) -> Self {
        if stream.end.refused.is_some() {
            return Self::default();
        }
        let retransmit = if stream.retransmissions.total > 0 || stream.repairs.total > 0 { RETRANSMIT | ELIGIBLE } else { 0 };
        let first_time = match stream.first_time() {
            FirstTime::Nothing => 0,
            FirstTime::Window if flow => WINDOW_BLOCKED,
            FirstTime::Ready | FirstTime::Window => ELIGIBLE,
        };
        let unjudged = if stream.buffer.unjudged > 0 { UNJUDGED } else { 0 };
        let unconfirmed = if stream.has_unconfirmed() { UNCONFIRMED } else { 0 };
        Self(retransmit | first_time | unjudged | unconfirmed)
    }
}

/// The number of streams with each flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamCounts {
    pub(super) retransmit: u32,
    pub(super) eligible: u32,
    pub(super) window_blocked: u32,
    pub(super) unjudged: u32,
    pub(super) unconfirmed: u32,
}

impl StreamCounts {
    /// The flags of a stream change from `old` to `new`.
    pub(super) fn replace(&mut self, old: StreamFlags, new: StreamFlags) {
        let counts = [
            (&mut self.retransmit, RETRANSMIT),
            (&mut self.eligible, ELIGIBLE),
            (&mut self.window_blocked, WINDOW_BLOCKED),
            (&mut self.unjudged, UNJUDGED),
            (&mut self.unconfirmed, UNCONFIRMED),
        ];
        for (count, bit) in counts {
            *count = *count + u32::from(new.0 & bit != 0) - u32::from(old.0 & bit != 0);
        }
    }
}
