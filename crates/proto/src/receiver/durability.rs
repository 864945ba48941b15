//! Confirmations: up to where a stream is safe with the application that receives it (spec 5.13).
//!
//! A verdict says what has arrived; a confirmation says what is durable, and only the application knows. The receiver repeats the newest
//! one of a stream until a report that carried it is confirmed. Until the end of a stream is confirmed, the stream counts as live.
//!
//! Called by the half and by the composition of reports.
//!
//! Invariant: what is told never decreases and never exceeds what the application has taken; a stream keeps a constant amount for it,
//! whatever the sender confirms.

use super::RecvHalf;
use super::stream::RecvStream;
use crate::error::ConfirmError;
use crate::live_streams::LiveStreams;
use segstream_base::{Instant, ReportNumber, SegmentNumber, StreamId};
use segstream_wire::ReportFrame;
use segstream_wire::state::Confirmed;

/// How far a stream is confirmed, and which reports have said so.
#[derive(Debug, Default)]
pub(super) struct Durability {
    /// All segments below this one are safe.
    segments: SegmentNumber,
    /// No more will be confirmed.
    last: bool,
    /// No report that said so is confirmed.
    unconfirmed: bool,
    /// The newest report that carried the present value, and which of those before it did: bit i is the report i numbers older.
    carried: Option<ReportNumber>,
    carried_before: u64,
}

impl Durability {
    /// Everything below `segments` is safe; with `last` nothing more will be. Returns whether that is news.
    fn advance(&mut self, segments: SegmentNumber, last: bool) -> bool {
        let is_news = segments > self.segments || last && !self.last;
        if is_news {
            self.segments = self.segments.max(segments);
            self.last |= last;
            (self.unconfirmed, self.carried, self.carried_before) = (true, None, 0);
        }
        is_news
    }

    /// The frame that the next report is to carry, if any.
    pub(super) fn frame(&self, stream: StreamId) -> Option<ReportFrame> {
        self.unconfirmed.then_some(ReportFrame::Durable { stream, segments: self.segments, last: self.last })
    }

    /// Report `number` carries the present value.
    pub(super) fn on_carried(&mut self, number: ReportNumber) {
        let since = self.carried.map_or(u64::MAX, |newest| number.0.saturating_sub(newest.0));
        let before = u32::try_from(since).ok().and_then(|since| self.carried_before.checked_shl(since)).unwrap_or(0);
        (self.carried, self.carried_before) = (Some(number), before | 1);
    }

    /// The sender has confirmed reports. Returns whether one of them carried the present value for the first time.
    fn on_confirmed(&mut self, confirmed: &Confirmed) -> bool {
        let Some(newest) = self.carried.filter(|_| self.unconfirmed) else { return false };
        let heard = (0..64).any(|older| {
            let carried = self.carried_before >> older & 1 == 1;
            carried && newest.0.checked_sub(older).is_some_and(|number| confirmed.contains(ReportNumber(number)))
        });
        self.unconfirmed &= !heard;
        heard
    }

    /// Whether nothing is left to say of a stream that ends at `end`.
    pub(super) fn is_over(&self, end: Option<SegmentNumber>) -> bool {
        !self.unconfirmed && (self.last || end.is_some_and(|end| self.segments >= end))
    }

    pub(super) const fn is_unconfirmed(&self) -> bool {
        self.unconfirmed
    }
}

/// The confirmations of all streams.
#[derive(Debug, Default)]
pub(super) struct Confirmations {
    /// The application confirms what it receives, and the peer takes it.
    in_force: bool,
    /// Streams whose newest confirmation no confirmed report has carried.
    pub(super) unconfirmed: u64,
}

impl Confirmations {
    /// What a new stream keeps for it.
    pub(super) fn of_new_stream(&self) -> Option<Durability> {
        self.in_force.then(Durability::default)
    }

    /// The sender has confirmed reports.
    pub(super) fn on_confirmed(&mut self, confirmed: &Confirmed, streams: &mut LiveStreams<RecvStream>) {
        if self.unconfirmed == 0 {
            return;
        }
        let told = streams.iter_mut().filter_map(|stream| stream.durability.as_mut());
        self.unconfirmed -= told.map(|told| u64::from(told.on_confirmed(confirmed))).sum::<u64>();
    }
}

impl RecvHalf {
    /// From now on the application confirms what it receives.
    pub(crate) fn set_confirms(&mut self) {
        self.confirmations.in_force = true;
        for stream in self.streams.iter_mut() {
            stream.durability.get_or_insert_default();
        }
    }

    /// Whether the application confirms what it receives, and the peer takes it.
    pub(crate) const fn confirms(&self) -> bool {
        self.confirmations.in_force
    }

    /// The application has all segments of `stream` below `segments` in safety; with `last` it will confirm no more of it.
    pub(crate) fn confirm(&mut self, now: Instant, id: StreamId, segments: SegmentNumber, last: bool) -> Result<(), ConfirmError> {
        if !self.confirmations.in_force {
            return Err(ConfirmError::NotAgreed);
        }
        let stream = self.streams.get_mut(id).ok_or(ConfirmError::Unknown(id))?;
        let taken = stream.taken();
        if segments > taken {
            return Err(ConfirmError::NotTaken { segments, taken });
        }
        let Some(durability) = stream.durability.as_mut() else { return Err(ConfirmError::Unknown(id)) };
        // Why: of a stream that is confirmed to its end there is nothing more to say.
        let last = last && stream.end.at.is_none_or(|end| durability.segments < end);
        let (before, known) = (durability.is_unconfirmed(), durability.segments);
        if durability.advance(segments, last) {
            self.counters.segments_confirmed += segments.since(known);
            self.confirmations.unconfirmed += u64::from(!before);
            self.reports.schedule.report_delayed(now);
        }
        Ok(())
    }

    /// Up to where the application may confirm `stream`: all segments below it were taken.
    pub(crate) fn taken(&self, stream: StreamId) -> Option<SegmentNumber> {
        self.streams.get(stream).map(RecvStream::taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirmed(highest: u64, before: u64) -> Confirmed {
        Confirmed { highest: Some(ReportNumber(highest)), before }
    }

    #[test]
    fn a_confirmation_is_told_until_any_report_that_carried_it_is_confirmed() {
        let mut told = Durability::default();
        assert_eq!(told.frame(StreamId(3)), None);
        assert!(told.advance(SegmentNumber(5), false) && !told.advance(SegmentNumber(4), false));
        told.on_carried(ReportNumber(10));
        told.on_carried(ReportNumber(12));
        assert!(!told.on_confirmed(&confirmed(9, u64::MAX)) && !told.on_confirmed(&confirmed(11, 0)), "these did not carry it");
        assert!(told.on_confirmed(&confirmed(13, 0b100)), "10 did");
        assert_eq!((told.frame(StreamId(3)), told.on_confirmed(&confirmed(12, 0))), (None, false));
    }

    #[test]
    fn what_carried_an_older_value_confirms_no_newer_one() {
        let mut told = Durability::default();
        told.advance(SegmentNumber(5), false);
        told.on_carried(ReportNumber(10));
        told.advance(SegmentNumber(6), false);
        assert!(!told.on_confirmed(&confirmed(10, 0)));
        told.on_carried(ReportNumber(200));
        assert!(!told.on_confirmed(&confirmed(199, u64::MAX)), "and none that is forgotten");
        assert!(told.on_confirmed(&confirmed(200, 0)));
        assert!(!told.is_over(None) && !told.is_over(Some(SegmentNumber(7))) && told.is_over(Some(SegmentNumber(6))));
        assert!(told.advance(SegmentNumber(6), true), "that no more will come is news");
        assert!(!told.is_over(Some(SegmentNumber(7))));
        told.on_carried(ReportNumber(201));
        assert!(told.on_confirmed(&confirmed(203, 0b10)) && told.is_over(None));
    }
}
