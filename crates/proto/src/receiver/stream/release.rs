//! How segments leave an incoming stream: taken by the application, their verdict confirmed by the sender.
//!
//! Called by the half. Invariant: a segment that was taken gives up its room in the window, unless the holes that are kept of it until its
//! verdict is confirmed would exceed an eighth of the window; then it gives it up with the confirmation.

use super::RecvStream;
use core::ops::Range;
use segstream_base::{Position, ReportNumber, Run, SegmentNumber, UnitIndex};
use segstream_blocks::work::{self, Loop};

/// How many finished segments are kept for reuse while there are others. Why so many: where segments are small, one report confirms thousands,
/// and to free and allocate them all costs a tenth of everything. With those in use they are never more than the stream is charged with.
pub(super) const SPARE_SEGMENTS: usize = 4096;
/// And how many when there are none.
const SPARE_SEGMENTS_IDLE: usize = 64;

/// Runs of holes, of segments that were taken and whose verdicts are not confirmed, take an eighth of the window's bytes at most, or so
/// many runs if that is more.
const KEPT_RUNS_MIN: u64 = 4096;

/// Segments that leave the queue in one turn (spec 11.4).
const RETIRED_A_TURN: u64 = 512;

impl RecvStream {
    /// The application has taken the segment: its units are free for new ones.
    pub(crate) fn release(&mut self, number: SegmentNumber) {
        let (kept_runs, most) = (self.kept_runs, self.kept_runs_max());
        let Some(segment) = self.get_mut(number).filter(|segment| segment.judged() && !segment.room.released) else { return };
        segment.room.released = true;
        let runs = segment.judgement.unconfirmed_runs();
        // Why: a sender that confirms nothing must not make us keep holes without bound; so they keep the window closed.
        segment.room.holds_window = runs > 0 && kept_runs + runs > most;
        let held = if segment.room.holds_window { u64::from(segment.room.reserved) } else { 0 };
        let freed = (!segment.room.holds_window).then(|| segment.free_room());
        self.held += held;
        self.kept_runs += runs;
        self.on_freed(freed);
        while self.get(self.lowest_unreleased).is_some_and(|segment| segment.room.released) {
            self.lowest_unreleased += 1;
        }
        self.retire();
    }

    /// Notes that the sender has confirmed the verdicts of `from..to` carried by `report`, looking at `left` segments at most. Returns up to
    /// where that is done.
    pub(crate) fn confirm(&mut self, from: SegmentNumber, to: SegmentNumber, report: ReportNumber, left: &mut u64) -> SegmentNumber {
        let to = to.min(self.next_segment());
        let mut from = from.max(self.base);
        // Why only the gaps: many reports carry the verdicts that wait behind one that is not confirmed.
        while *left > 0
            && let Some(gap) = self.confirmed.first_gap(from.0..to.0)
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
            let Some(segment) = self.get_mut(number) else { break };
            if segment.judgement.confirm(report) {
                let runs = if segment.room.released { segment.judgement.holes.len() as u64 } else { 0 };
                let freed = core::mem::take(&mut segment.room.holds_window).then(|| segment.free_room());
                self.unconfirmed -= 1;
                self.kept_runs -= runs;
                self.held -= freed.map_or(0, |(_, reserved)| reserved);
                self.on_freed(freed);
                if run.end < number.0 {
                    self.confirmed.insert(run);
                    run = number.0..number.0;
                }
                run.end = number.0 + 1;
            }
        }
        self.confirmed.insert(run);
    }

    /// A segment has given up its room: so many units in the window, of which so many were reserved.
    fn on_freed(&mut self, freed: Option<(u64, u64)>) {
        if let Some((units, reserved)) = freed {
            self.reserved -= reserved;
            self.window.release(units);
        }
    }

    /// How many runs of holes may be kept of segments that were taken.
    fn kept_runs_max(&self) -> u64 {
        let window_bytes = self.window.size().1 * u64::from(self.contract.unit_bytes);
        (window_bytes / 8 / size_of::<Run<UnitIndex>>() as u64).max(KEPT_RUNS_MIN)
    }

    /// Whether the oldest segment can leave the queue.
    pub(crate) fn is_retiring(&self) -> bool {
        let front = self.segments.front().and_then(Option::as_deref);
        front.is_some_and(|segment| segment.room.released && segment.judgement.confirmed)
    }

    /// Segments leave the queue, so many at a time; whether more could follows from [`RecvStream::is_retiring`].
    pub(crate) fn retire(&mut self) {
        let end = self.base + RETIRED_A_TURN;
        while self.is_retiring() && self.base < end {
            work::note(Loop::Segments, 1);
            let mut used = self.segments.pop_front().flatten();
            self.base += 1;
            if self.spare.len() < SPARE_SEGMENTS {
                used.iter_mut().for_each(|used| used.shrink());
                self.spare.extend(used);
            }
        }
        if self.segments.is_empty() && self.spare.len() > SPARE_SEGMENTS_IDLE {
            self.spare.truncate(SPARE_SEGMENTS_IDLE);
            self.spare.shrink_to_fit();
        }
        if self.confirmed.first().is_some_and(|first| first.start < self.base.0) {
            self.confirmed.remove(0..self.base.0);
        }
        self.lowest_unreleased = self.lowest_unreleased.max(self.base);
        self.lowest_unjudged = self.lowest_unjudged.max(self.base);
        self.high = self.high.max((self.base, Position::FIRST));
        self.frontier = self.frontier.max((self.base, Position::FIRST));
    }
}

#[cfg(test)]
#[path = "release_tests.rs"]
mod tests;
