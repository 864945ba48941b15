//! Which streams of a connection may still bring data, and what is done with it.
//!
//! Called by the connection's state ([`super::incoming`]).
//!
//! Invariant: a stream is read until its end, also when nobody wants its data any more. Why: a stream that is not read keeps its
//! place, and a sender whose places are all taken opens no other.

use segstream::StreamId;
use std::collections::BTreeSet;

/// The most streams that a sender can have live, and so name before they are opened here.
const STREAMS_AHEAD: u32 = 256;

/// The streams that have been opened and have not ended.
#[derive(Debug, Default)]
pub(super) struct OpenStreams {
    wanted: BTreeSet<StreamId>,
    discarded: BTreeSet<StreamId>,
    /// Behind the last that was opened.
    next: Option<StreamId>,
    /// How many of data have been opened.
    count: u32,
}

impl OpenStreams {
    /// The sender has opened `stream`.
    pub(super) fn open(&mut self, stream: StreamId) {
        self.next = self.next.max(Some(stream.saturating_add(1)));
    }

    /// The data of `stream` are wanted; how many such streams there were before.
    pub(super) fn want(&mut self, stream: StreamId) -> u32 {
        self.wanted.insert(stream);
        self.count += 1;
        self.count - 1
    }

    /// What still comes on `stream` is discarded.
    pub(super) fn discard(&mut self, stream: StreamId) {
        if self.wanted.remove(&stream) {
            self.discarded.insert(stream);
        }
    }

    /// `stream` has ended.
    pub(super) fn end(&mut self, stream: StreamId) {
        self.wanted.remove(&stream);
        self.discarded.remove(&stream);
    }

    /// The streams whose data are wanted, in the order of their identifiers.
    pub(super) fn wanted(&self) -> Vec<StreamId> {
        self.wanted.iter().copied().collect()
    }

    /// The streams whose data are discarded.
    pub(super) fn discarded(&self) -> impl Iterator<Item = StreamId> {
        self.discarded.iter().copied()
    }

    /// Whether the sender has opened `stream`, which may have ended since.
    pub(super) fn was_opened(&self, stream: StreamId) -> bool {
        Some(stream) < self.next
    }

    /// Whether the sender can open `stream` before one ends that is live now.
    pub(super) fn is_within_reach(&self, stream: StreamId) -> bool {
        stream <= self.next.unwrap_or(StreamId::FIRST).saturating_add(STREAMS_AHEAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_known_and_counted_after_it_has_ended() {
        let mut streams = OpenStreams::default();
        let [first, second, third] = [0, 1, 2].map(|number| StreamId::FIRST.saturating_add(number));
        assert!(!streams.was_opened(first));
        assert!(streams.is_within_reach(first.saturating_add(256)) && !streams.is_within_reach(first.saturating_add(257)));
        for (stream, number) in [(first, 0), (second, 1)] {
            streams.open(stream);
            assert_eq!(streams.want(stream), number);
            streams.end(stream);
        }
        assert!(streams.was_opened(second) && !streams.was_opened(third));
        assert!(streams.is_within_reach(third.saturating_add(256)));
        streams.open(third);
        assert_eq!((streams.want(third), streams.wanted()), (2, vec![third]));
    }

    #[test]
    fn what_is_discarded_is_so_until_its_end() {
        let mut streams = OpenStreams::default();
        streams.open(StreamId::FIRST);
        streams.want(StreamId::FIRST);
        streams.discard(StreamId::FIRST);
        assert_eq!((streams.wanted().len(), streams.discarded().count()), (0, 1));
        streams.end(StreamId::FIRST);
        streams.discard(StreamId::FIRST);
        assert_eq!(streams.discarded().count(), 0);
    }
}
