//! What must hold of a sending half in debug builds: its hand-kept counts and caches against what they follow from.
//!
//! Called by the half before it decides what leaves, and after it has taken a report: whatever changes the half comes between two
//! such calls.
//!
//! Invariant: only the half's own state is judged, never what a peer or an application says.

use super::SendHalf;
use super::tally::{Standing, Tally};
use segstream_blocks::recount;

impl SendHalf {
    /// The tally is that of the streams as they are, and each stream counts its segments rightly.
    #[inline]
    pub(super) fn debug_assert_counts(&self) {
        if !recount::is_due(self.streams.len()) {
            return;
        }
        let (flow, mut tally) = (self.config.class.flow_control(), Tally::default());
        for stream in self.streams.iter() {
            let standing = Standing::of(stream, flow);
            debug_assert_eq!(standing, stream.standing, "a stream has changed and was not brought up to date");
            tally.replace(Standing::default(), standing);
            stream.debug_assert_counts();
        }
        debug_assert_eq!(tally, self.tally, "the tally is not that of the streams");
    }
}
