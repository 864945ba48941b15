//! The end of a stream of ours: when it leaves, and what a peer that refuses it changes.
//!
//! A stream has ended when it is finished, every segment has its verdict and the receiver knows the end, or when it was
//! refused. It leaves when the next one is opened; until then its counters can be read.
//!
//! Called by the half. Invariant: a stream that leaves has nothing to send, to say or to wait for.

use super::tally::Standing;
use super::{SendHalf, SenderHalfEvent};
use segstream_base::StreamId;
use segstream_wire::report::RefuseReason;

impl SendHalf {
    /// Another stream comes: those that have ended leave.
    pub(super) fn remove_ended(&mut self) {
        let turn = (self.turn < self.streams.len()).then(|| self.streams.number(self.turn));
        self.streams.retain(|_, stream| {
            let ended = stream.is_over() && !stream.is_being_written();
            debug_assert!(!ended || stream.standing == Standing::default(), "a stream that has ended has something to do");
            !ended
        });
        // The turn stays with its stream, or goes to the one behind it.
        let behind = |turn| self.streams.numbers().position(|number| number >= turn);
        self.turn = turn.and_then(behind).unwrap_or(0);
    }

    /// Whether another stream may be opened. If not, [`SenderHalfEvent::StreamsAvailable`] tells when.
    pub fn may_open_stream(&mut self) -> bool {
        self.credit.allows_one_more()
    }

    /// The number the next stream will have.
    pub const fn next_stream(&self) -> StreamId {
        self.credit.next()
    }

    /// The receiver takes so many streams in all.
    pub fn set_max_streams(&mut self, total: u64) {
        if self.credit.on_total(total) {
            self.events.push_back(SenderHalfEvent::StreamsAvailable);
        }
    }

    /// What was opened before the peer's limit was known and is beyond it is refused, without asking.
    pub(crate) fn refuse_beyond(&mut self, live_max: u32) {
        let beyond: Vec<StreamId> = self.streams.numbers().filter(|&number| number.0 >= live_max).collect();
        for number in beyond {
            self.on_refused(number, RefuseReason::TooManyStreams);
        }
        self.set_max_streams(u64::from(live_max));
    }

    /// The receiver does not take the stream.
    pub(super) fn on_refused(&mut self, number: StreamId, reason: RefuseReason) {
        if let Some(refused) = self.streams.get_mut(number)
            && refused.refused.is_none()
        {
            refused.refused = Some(reason);
            self.credit.on_refused();
            self.stale();
            self.abandon_stream(number);
            self.events.push_back(SenderHalfEvent::Refused(number, reason));
        }
    }
}
