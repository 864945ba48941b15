//! What the receiver's application has confirmed of our streams (spec 5.13).
//!
//! Called by the processing of reports. A stream that the receiver confirms stays after its end until all of it is confirmed, or the receiver
//! says that no more will be; at an honest receiver it counts as live as long.
//!
//! Invariant: a watermark never retreats and never exceeds what was submitted; a receiver that never confirms makes us keep no more streams
//! than it allows to be live, and at most [`WAITING_MAX`].

use super::stream::SendStream;
use super::{SendHalf, SenderHalfEvent};
use segstream_base::{Instant, SegmentNumber, StreamId};

/// Streams that may wait for confirmations, whatever limit a peer sets.
const WAITING_MAX: u32 = 4096;

/// What of a stream the receiver's application has in safety.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durable {
    /// All segments below this one.
    pub segments: SegmentNumber,
    /// No more will be confirmed.
    pub last: bool,
}

impl Durable {
    /// Nothing yet.
    pub const NONE: Self = Self { segments: SegmentNumber::FIRST, last: false };
}

impl SendStream {
    /// Takes what the receiver says. Returns whether it is news.
    fn take_durable(&mut self, told: Durable) -> bool {
        let before = self.durable;
        // Limit: a receiver can name what never arrived; it cannot name what was never submitted.
        self.durable.segments = before.segments.max(told.segments.min(self.segments.next_number()));
        self.durable.last |= told.last;
        self.durable != before
    }

    /// Whether the receiver will confirm no more of it.
    pub(super) fn is_confirmed(&self) -> bool {
        self.end.refused.is_some() || self.durable.last || self.end.finished && self.durable.segments >= self.segments.next_number()
    }
}

impl SendHalf {
    /// The receiver confirms what it receives, and lets `live_max` streams live at a time.
    pub(crate) fn expect_confirmations(&mut self, live_max: u32) {
        self.credit.confirms_max = Some(live_max.min(WAITING_MAX));
    }

    /// What the receiver's application has of a stream; `None` if it confirms nothing, or the stream is gone.
    pub(crate) fn durable(&self, stream: StreamId) -> Option<Durable> {
        self.credit.confirms_max?;
        self.streams.get(stream).map(|stream| stream.durable)
    }

    /// Whether the receiver confirms what it receives.
    pub(crate) const fn has_confirmations(&self) -> bool {
        self.credit.confirms_max.is_some()
    }

    /// Whether so many streams wait for confirmations that no more may be opened.
    pub(super) fn waits_for_confirmations(&self) -> bool {
        let waiting = || self.streams.iter().filter(|stream| !stream.is_confirmed()).count();
        self.credit.confirms_max.is_some_and(|most| waiting() >= most as usize)
    }

    pub(super) fn handle_durable(&mut self, now: Instant, id: StreamId, told: Durable) {
        if self.credit.confirms_max.is_none() {
            return;
        }
        // Also of a stream that has left: the receiver repeats it until it is confirmed.
        self.state_timer.confirm_later(now, 0);
        let Some(stream) = self.streams.get_mut(id) else { return };
        let before = stream.durable;
        if !stream.take_durable(told) {
            return;
        }
        let (before, durable) = (before.segments, stream.durable);
        self.counters.segments_durable += durable.segments.since(before);
        self.events.push_back(SenderHalfEvent::Durable(id, durable));
        if self.credit.is_blocked() && !self.waits_for_confirmations() && self.credit.unblock() {
            self.events.push_back(SenderHalfEvent::StreamsAvailable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;
    use crate::sender::SenderConfig;
    use segstream_base::{Bandwidth, Duration, ReportNumber};
    use segstream_wire::report::Report;
    use segstream_wire::{Class, Contract, ReportFrame};

    fn half(live_max: Option<u32>) -> SendHalf {
        let config = SenderConfig {
            class: Class::ALL,
            body_bytes: 1100,
            overhead_bytes: 40,
            rate: Rate::smooth(Bandwidth::from_megabits_per_second(10)),
            epoch: Duration::ZERO,
            circuit_breaker: false,
            pacing_quantum: Duration::ZERO,
            keep_alive: Duration::from_secs(1),
        };
        let mut half = SendHalf::new(config, Instant::ZERO);
        half.set_max_streams(1 << 40);
        live_max.into_iter().for_each(|live_max| half.expect_confirmations(live_max));
        half
    }

    /// A stream with one segment that the receiver has whole, and whose end it knows.
    fn judged_stream(half: &mut SendHalf, number: u64) -> StreamId {
        let stream = half.open_stream(Instant::ZERO, Contract::default()).unwrap();
        half.submit(Instant::ZERO, stream, Some(10), Instant::ZERO, None).unwrap();
        half.finish(Instant::ZERO, stream);
        let grant = ReportFrame::Grant { stream, segments: 9, units: 9, end_known: true };
        told(half, number, [grant, ReportFrame::Complete { stream, first: SegmentNumber(0), count: 1 }]);
        stream
    }

    fn told(half: &mut SendHalf, number: u64, frames: impl IntoIterator<Item = ReportFrame>) {
        let report = Report { number: ReportNumber(number), frames: frames.into_iter().collect(), ..Report::default() };
        half.handle_report(Instant::ZERO, &report);
    }

    fn durable(stream: StreamId, segments: u64) -> ReportFrame {
        ReportFrame::Durable { stream, segments: SegmentNumber(segments), last: false }
    }

    #[test]
    fn a_receiver_cannot_confirm_what_was_never_submitted_nor_take_anything_back() {
        let mut half = half(Some(9));
        let stream = judged_stream(&mut half, 0);
        told(&mut half, 1, [durable(stream, (1 << 62) - 1), durable(stream, 0), durable(StreamId(77), 5)]);
        assert_eq!(half.durable(stream), Some(Durable { segments: SegmentNumber(1), last: false }));
        assert_eq!(half.counters.segments_durable, 1);
        let heard = half.events.iter().filter(|event| matches!(event, SenderHalfEvent::Durable(..))).count();
        assert_eq!(heard, 1);
    }

    #[test]
    fn a_receiver_that_has_not_said_that_it_confirms_is_not_believed() {
        let mut half = half(None);
        let stream = judged_stream(&mut half, 0);
        told(&mut half, 1, [durable(stream, 1)]);
        assert_eq!((half.durable(stream), half.counters.segments_durable), (None, 0));
    }

    #[test]
    fn a_receiver_that_never_confirms_makes_us_keep_no_more_streams_than_may_be_live() {
        for (limit, most) in [(3, 3), (u32::MAX, WAITING_MAX)] {
            let mut half = half(Some(limit));
            let mut opened = 0;
            while half.may_open_stream() {
                judged_stream(&mut half, opened);
                opened += 1;
                assert!(opened <= u64::from(most));
            }
            assert_eq!((opened, half.streams.len()), (u64::from(most), most as usize));
            told(&mut half, opened, [durable(StreamId(1), 1)]);
            assert!(half.events.contains(&SenderHalfEvent::StreamsAvailable) && half.may_open_stream());
            judged_stream(&mut half, opened + 1);
            assert_eq!((half.streams.len(), half.durable(StreamId(1))), (most as usize, None), "what is confirmed has gone");
        }
    }
}
