//! How many streams the peer may open, and which of its streams have ended (compare RFC 9000 4.6).
//!
//! The limit counts live streams. What travels is a total that only grows, as in QUIC's MAX_STREAMS: the limit and as many
//! as have been retired. The first total is the limit itself, of which set-up tells.
//!
//! Owned by the half. Numbers of retired streams are not kept one by one: a number below the highest one opened that is
//! neither live nor in a gap is one of a stream that was. A late packet for it is known by that, and ignored.
//!
//! Invariant: `opened - retired` is the number of live streams and never above the limit; `gaps` ascend, are not empty, do
//! not touch, and lie below `next`. Memory is bounded whatever numbers a peer uses.

use core::ops::Range;
use segstream_base::{ReportNumber, StreamId};
use segstream_wire::state::Confirmed;

/// Runs of skipped identifiers that are remembered and may still be opened. An honest peer leaves only those whose OPEN was
/// lost or overtaken.
const GAPS_MAX: usize = 256;

/// The stream limit that the peer is given, and what it has used of it.
#[derive(Debug)]
pub(super) struct StreamCredit {
    live_max: u32,
    opened: u64,
    retired: u64,
    /// One more than the highest number opened, and the runs below it that were not.
    next: u64,
    gaps: Vec<Range<u64>>,
    /// The highest total that was told, at first by the limits of set-up.
    told: u64,
    /// The first report that carried it, until the sender has confirmed that or a later one.
    told_in: Option<ReportNumber>,
    /// The next report is to carry the total.
    due: bool,
}

impl StreamCredit {
    /// A peer may have `live_max` streams at a time.
    pub(super) fn new(live_max: u32) -> Self {
        let told = u64::from(live_max);
        Self { live_max, opened: 0, retired: 0, next: 0, gaps: Vec::new(), told, told_in: None, due: false }
    }

    /// Whether one more stream may be opened.
    pub(super) fn allows_one_more(&self) -> bool {
        self.live() < u64::from(self.live_max)
    }

    /// Whether stream `number` was opened, live or not.
    pub(super) fn was_opened(&self, number: StreamId) -> bool {
        let number = u64::from(number);
        number < self.next && !self.gaps.iter().any(|gap| gap.contains(&number))
    }

    /// Stream `number` is opened, which was not before.
    pub(super) fn on_opened(&mut self, number: StreamId) {
        let number = u64::from(number);
        debug_assert!(self.allows_one_more());
        self.opened += 1;
        if number >= self.next {
            if number > self.next {
                self.gaps.push(self.next..number);
            }
            self.next = number + 1;
        } else if let Some(at) = self.gaps.iter().position(|gap| gap.contains(&number)) {
            let gap = self.gaps.remove(at);
            let rest = [gap.start..number, number + 1..gap.end].into_iter().filter(|rest| !rest.is_empty());
            self.gaps.splice(at..at, rest);
        }
        if self.gaps.len() > GAPS_MAX {
            // Identifiers skipped for so long count as retired.
            self.gaps.remove(0);
        }
        self.update_due();
        self.debug_assert_gaps();
    }

    /// How many streams are live.
    pub(super) const fn live(&self) -> u64 {
        self.opened - self.retired
    }

    /// The gaps are not empty, ascend, do not touch, and lie below `next`.
    fn debug_assert_gaps(&self) {
        debug_assert!(self.gaps.len() <= GAPS_MAX && self.live() <= u64::from(self.live_max));
        debug_assert!(self.gaps.iter().all(|gap| gap.start < gap.end && gap.end < self.next), "{:?} below {}", self.gaps, self.next);
        debug_assert!(self.gaps.windows(2).all(|pair| pair[0].end < pair[1].start), "{:?} are not in order", self.gaps);
    }

    /// A stream is retired. Returns whether the peer may be blocked by the limit.
    pub(super) fn on_retired(&mut self) -> bool {
        debug_assert!(self.retired < self.opened);
        self.retired += 1;
        self.update_due();
        self.due && self.left() == 0
    }

    fn total(&self) -> u64 {
        u64::from(self.live_max) + self.retired
    }

    // Why not whenever it has grown: most connections open few streams and never need a higher limit.
    fn update_due(&mut self) {
        self.due = self.total() > self.told && self.left() <= u64::from(self.live_max / 2);
    }

    /// How many more streams the peer may open by the last total sent.
    fn left(&self) -> u64 {
        self.told.saturating_sub(self.opened)
    }

    /// Whether the total is to be sent, or was sent and is not confirmed.
    pub(super) const fn is_unconfirmed(&self) -> bool {
        self.due || self.told_in.is_some()
    }

    /// The total that the report shipment `report` is to carry, if any.
    pub(super) fn total_for(&mut self, report: ReportNumber) -> Option<u64> {
        if core::mem::take(&mut self.due) {
            self.told = self.total();
            self.told_in = Some(report);
        }
        self.told_in.map(|_| self.told)
    }

    /// The sender has confirmed reports. All from the first that carried the total on carry it.
    pub(super) fn on_confirmed(&mut self, confirmed: &Confirmed) {
        if self.told_in.zip(confirmed.highest).is_some_and(|(first, highest)| highest >= first) {
            self.told_in = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_told_when_half_of_the_streams_are_left_and_until_it_is_confirmed() {
        let mut credit = StreamCredit::new(4);
        credit.on_opened(StreamId(0));
        assert!(!credit.on_retired());
        assert!(!credit.is_unconfirmed(), "three are left of four");
        credit.on_opened(StreamId(1));
        assert!(!credit.on_retired(), "the peer does not wait yet");
        assert!(credit.is_unconfirmed());
        assert_eq!((credit.total_for(ReportNumber(7)), credit.total_for(ReportNumber(8))), (Some(6), Some(6)));
        credit.on_confirmed(&Confirmed { highest: Some(ReportNumber(6)), before: u64::MAX });
        assert!(credit.is_unconfirmed());
        credit.on_confirmed(&Confirmed { highest: Some(ReportNumber(8)), before: 0 });
        assert_eq!((credit.is_unconfirmed(), credit.total_for(ReportNumber(9))), (false, None));
    }

    #[test]
    fn a_peer_that_has_none_left_may_wait() {
        let mut credit = StreamCredit::new(2);
        credit.on_opened(StreamId(0));
        credit.on_opened(StreamId(1));
        assert!(!credit.allows_one_more());
        assert!(credit.on_retired());
        assert!(credit.allows_one_more());
        assert_eq!(credit.total_for(ReportNumber(0)), Some(3));
    }

    #[test]
    fn a_stream_that_retired_unnoticed_is_told_when_few_are_left() {
        let mut credit = StreamCredit::new(4);
        credit.on_opened(StreamId(0));
        assert!(!credit.on_retired() && !credit.is_unconfirmed());
        credit.on_opened(StreamId(1));
        assert!(credit.is_unconfirmed());
        assert_eq!(credit.total_for(ReportNumber(0)), Some(5));
    }

    #[test]
    fn numbers_passed_over_can_be_opened_once_and_memory_is_bounded() {
        let mut credit = StreamCredit::new(u32::MAX);
        credit.on_opened(StreamId(5));
        assert!((0..5).all(|number| !credit.was_opened(StreamId(number))));
        credit.on_opened(StreamId(2));
        assert_eq!(credit.gaps, [0..2, 3..5]);
        credit.on_opened(StreamId(0));
        credit.on_opened(StreamId(1));
        credit.on_opened(StreamId(4));
        assert_eq!(credit.gaps, vec![3..4; 1]);
        for number in (7..10_000).step_by(2) {
            credit.on_opened(StreamId(number));
        }
        assert_eq!(credit.gaps.len(), GAPS_MAX);
        assert!(credit.was_opened(StreamId(3)) && !credit.was_opened(StreamId(9996)) && !credit.was_opened(StreamId(10_001)));
        credit.on_opened(StreamId(u32::MAX));
        assert!(credit.was_opened(StreamId(u32::MAX)));
    }
}
