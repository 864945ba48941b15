//! What must hold of a sending half in debug builds: its hand-kept counts and caches against what they follow from.
//!
//! Called by the half before it decides what leaves, and after it has taken a report: whatever changes the half comes between two
//! such calls.
//!
//! Invariant: only the half's own state is judged, never what a peer or an application says.

use super::SendHalf;
use super::stream_counts::{StreamCounts, StreamFlags};
use segstream_blocks::recount;

impl SendHalf {
    /// The stream counts are those of the streams, and each stream counts its segments rightly.
    #[inline]
    pub(super) fn debug_assert_counts(&self) {
        if !recount::is_due(self.streams.len()) {
            return;
        }
        let (flow, mut counts) = (self.config.class.flow_control(), StreamCounts::default());
        for stream in self.streams.iter() {
            let flags = StreamFlags::of(stream, flow);
            debug_assert_eq!(flags, stream.flags, "a stream has changed and was not brought up to date");
            counts.replace(StreamFlags::default(), flags);
            stream.debug_assert_counts();
        }
        debug_assert_eq!(counts, self.stream_counts, "the stream counts are not those of the streams");
    }
}
