//! The end of a stream of ours: when it is removed, and what happens when the peer refuses it.
//!
//! A stream has ended when it is finished, every segment has its verdict and the receiver knows the end, or when it was
//! refused. It is removed when the next one is opened; until then its counters can be read.
//!
//! Called by the half. Invariant: a removed stream has no data, statement or verdict outstanding.

use super::stream_counts::StreamFlags;
use super::{SendHalf, SenderHalfEvent};
use segstream_base::StreamId;
use segstream_wire::report::RefuseReason;

impl SendHalf {
    /// Another stream is opened: removes those that have ended.
    pub(super) fn remove_ended(&mut self) {
        let confirms = self.credit.confirms_max.is_some();
        let turn = (self.turn < self.streams.len()).then(|| self.streams.number(self.turn));
        self.streams.retain(|_, stream| {
            let ended = stream.is_over() && !stream.is_being_written() && (!confirms || stream.is_confirmed());
            debug_assert!(!ended || stream.flags == StreamFlags::default(), "a stream that has ended has something to do");
            !ended
        });
        // The round robin stays at its stream, or advances to the next one.
        let behind = |turn| self.streams.numbers().position(|number| number >= turn);
        self.turn = turn.and_then(behind).unwrap_or(0);
    }

    /// Whether another stream may be opened. If not, [`SenderHalfEvent::StreamsAvailable`] tells when.
    pub fn may_open_stream(&mut self) -> bool {
        if self.waits_for_confirmations() {
            self.credit.block();
            return false;
        }
        self.credit.allows_one_more()
    }

    /// The number the next stream will have.
    pub const fn next_stream(&self) -> StreamId {
        self.credit.next()
    }

    /// The receiver allows so many streams in all.
    pub fn set_max_streams(&mut self, total: u64) {
        if self.credit.on_total(total) {
            self.events.push_back(SenderHalfEvent::StreamsAvailable);
        }
    }

    /// Refuses the streams that were opened before the limit was known and are beyond it.
    pub(crate) fn refuse_beyond(&mut self, live_max: u32) {
        let beyond: Vec<StreamId> = self.streams.numbers().filter(|&number| number.0 >= live_max).collect();
        for number in beyond {
            self.on_refused(number, RefuseReason::TooManyStreams);
        }
        self.set_max_streams(u64::from(live_max));
    }

    /// The receiver has refused the stream.
    pub(super) fn on_refused(&mut self, number: StreamId, reason: RefuseReason) {
        if let Some(refused) = self.streams.get_mut(number)
            && refused.end.refused.is_none()
        {
            refused.end.refused = Some(reason);
            self.credit.on_refused();
            self.invalidate_due();
            self.abandon_stream(number);
            self.events.push_back(SenderHalfEvent::Refused(number, reason));
        }
    }
}
