//! How many streams have what, so that a poll need not look at every stream.
//!
//! Owned by the half, which brings a stream's standing up to date after whatever may have changed it.
//! Invariant: each count is the number of streams whose last noted standing says so.

use super::stream::{FirstTime, SendStream};

/// What one stream has to do: a set of the bits below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing(u8);

/// Units wanted again.
const AGAIN: u8 = 1;
/// Units that could leave but for the pacer.
const ELIGIBLE: u8 = 2;
/// New units that only the window holds back.
const WAITS: u8 = 4;
/// Segments without a verdict.
const UNSETTLED: u8 = 8;
/// Something the receiver has not confirmed: the stream, its end, or the SKIP of its oldest segment.
const UNCONFIRMED: u8 = 16;

impl Standing {
    /// The present standing of `stream`; `flow` says whether the window counts.
    #[inline]
    pub(super) fn of(stream: &SendStream, flow: bool) -> Self {
        if stream.refused.is_some() {
            return Self::default();
        }
        let again = if stream.again_total > 0 { AGAIN | ELIGIBLE } else { 0 };
        let first_time = match stream.first_time() {
            FirstTime::Nothing => 0,
            FirstTime::Window if flow => WAITS,
            FirstTime::Ready | FirstTime::Window => ELIGIBLE,
        };
        let unsettled = if stream.unsettled > 0 { UNSETTLED } else { 0 };
        let unconfirmed = if stream.has_unconfirmed() { UNCONFIRMED } else { 0 };
        Self(again | first_time | unsettled | unconfirmed)
    }
}

/// The streams of each standing, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) again: u32,
    pub(super) eligible: u32,
    pub(super) waits: u32,
    pub(super) unsettled: u32,
    pub(super) unconfirmed: u32,
}

impl Tally {
    /// A stream that stood like `old` stands like `new`.
    #[inline]
    pub(super) fn replace(&mut self, old: Standing, new: Standing) {
        if old != new {
            self.count(old, new);
        }
    }

    fn count(&mut self, old: Standing, new: Standing) {
        let counts = [
            (&mut self.again, AGAIN),
            (&mut self.eligible, ELIGIBLE),
            (&mut self.waits, WAITS),
            (&mut self.unsettled, UNSETTLED),
            (&mut self.unconfirmed, UNCONFIRMED),
        ];
        for (count, bit) in counts {
            *count = *count + u32::from(new.0 & bit != 0) - u32::from(old.0 & bit != 0);
        }
    }
}
