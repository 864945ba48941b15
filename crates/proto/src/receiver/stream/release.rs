//! How segments leave an incoming stream: taken by the application, their verdict confirmed by the sender.
//!
//! Called by the half. Invariant: a segment that was taken gives up its room in the window, unless the holes that are kept of it until its
//! verdict is confirmed would exceed an eighth of the window; then it gives it up with the confirmation.

use super::RecvStream;
use core::ops::Range;
use segstream_base::{ReportNumber, Run, SegmentNumber, UnitIndex};
use segstream_blocks::ranges::RangeSet;
use segstream_blocks::work::{self, Loop};

/// Runs of holes, of segments that were taken and whose verdicts are not confirmed, take an eighth of the window's bytes at most, or so
/// many runs if that is more.
const KEPT_RUNS_MIN: u64 = 4096;

/// Segments that leave the queue in one turn (spec 11.4).
const RETIRED_A_TURN: u64 = 512;

/// The verdicts of a stream, and what is kept of them until the sender has confirmed them.
///
/// Invariant: each of the three is what the segments in the queue say.
#[derive(Debug, Default)]
pub(crate) struct StreamVerdicts {
    /// Segments with a verdict that the sender has not confirmed.
    pub(crate) unconfirmed: u64,
    /// Those in the queue whose verdict it has.
    confirmed: RangeSet,
    /// Runs of holes of segments that were taken and whose verdicts are not confirmed.
    pub(super) kept_runs: u64,
}

impl StreamVerdicts {
    /// Segments before `base` have left the queue.
    fn on_left(&mut self, base: SegmentNumber) {
        if self.confirmed.first().is_some_and(|first| first.start < base.0) {
            self.confirmed.remove(0..base.0);
        }
    }

    /// The memory that it takes, in bytes.
    pub(super) fn kept_bytes(&self) -> u64 {
        (4 * size_of::<u64>() * self.confirmed.range_count()) as u64
    }
}

impl RecvStream {
    /// The application has taken the segment: its units are free for new ones.
    pub(crate) fn release(&mut self, number: SegmentNumber) {
        let (kept_runs, most) = (self.verdicts.kept_runs, self.kept_runs_max());
        let Some(segment) = self.segments.get_mut(number).filter(|segment| segment.judged() && !segment.room.released) else { return };
        segment.room.released = true;
        let runs = segment.judgement.unconfirmed_runs();
        // Why: a sender that confirms nothing must not make us keep holes without bound; so they keep the window closed.
        segment.room.holds_window = runs > 0 && kept_runs + runs > most;
        let held = if segment.room.holds_window { u64::from(segment.room.reserved) } else { 0 };
        let freed = (!segment.room.holds_window).then(|| segment.free_room());
        self.room.held += held;
        self.verdicts.kept_runs += runs;
        self.room.on_freed(freed);
        self.delivery.on_released(&self.segments);
        self.retire();
    }

    /// Notes that the sender has confirmed the verdicts of `from..to` carried by `report`, looking at `left` segments at most. Returns up to
    /// where that is done.
    pub(crate) fn confirm(&mut self, from: SegmentNumber, to: SegmentNumber, report: ReportNumber, left: &mut u64) -> SegmentNumber {
        let to = to.min(self.segments.next_number());
        let mut from = from.max(self.segments.base);
        // Why only the gaps: many reports carry the verdicts that wait behind one that is not confirmed.
        while *left > 0
            && let Some(gap) = self.verdicts.confirmed.first_gap(from.0..to.0)
        {
            let end = gap.end.min(gap.start + *left);
            *left -= end - gap.start;
            from = SegmentNumber(end);
            self.confirm_each(SegmentNumber(gap.start)..from, report);
        }
        self.retire();
        if *left > 0 { to.max(from) } else { from }
    }

    fn confirm_each(&mut self, numbers: Range<SegmentNumber>, report: ReportNumber) {
        let mut run = numbers.start.0..numbers.start.0;
        for number in numbers.start.up_to(numbers.end) {
            work::note(Loop::Segments, 1);
            let Some(segment) = self.segments.get_mut(number) else { break };
            if segment.judgement.confirm(report) {
                let runs = if segment.room.released { segment.judgement.holes.len() as u64 } else { 0 };
                let freed = core::mem::take(&mut segment.room.holds_window).then(|| segment.free_room());
                self.verdicts.unconfirmed -= 1;
                self.verdicts.kept_runs -= runs;
                self.room.held -= freed.map_or(0, |(_, reserved)| reserved);
                self.room.on_freed(freed);
                if run.end < number.0 {
                    self.verdicts.confirmed.insert(run);
                    run = number.0..number.0;
                }
                run.end = number.0 + 1;
            }
        }
        self.verdicts.confirmed.insert(run);
    }

    /// How many runs of holes may be kept of segments that were taken.
    fn kept_runs_max(&self) -> u64 {
        let window_bytes = self.room.window.size().1 * u64::from(self.contract.unit_bytes);
        (window_bytes / 8 / size_of::<Run<UnitIndex>>() as u64).max(KEPT_RUNS_MIN)
    }

    /// Segments leave the queue, so many at a time; whether more could follows from
    /// [`is_retiring`](super::segment_queue::SegmentQueue::is_retiring).
    pub(crate) fn retire(&mut self) {
        self.segments.retire(RETIRED_A_TURN);
        let base = self.segments.base;
        self.verdicts.on_left(base);
        self.delivery.on_left(base);
        self.progress.on_left(base);
    }
}

#[cfg(test)]
#[path = "release_tests.rs"]
mod tests;
