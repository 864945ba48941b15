//! The judge: when a segment is accepted, when everything missing is wanted, and when it has expired.
//!
//! Called by the receiving half whenever a segment may have changed. Strict accounting (EC 5.3 made
//! strict): a tolerated hole stays counted, and the first violation asks for everything missing, so that
//! one round is enough.
//!
//! Invariant: *complete* means that every unit is present, *within tolerance* that every missing unit was
//! held lost, or given up by its sender, and that all holes together satisfy (W, E, B).

use super::RecvHalf;
use super::stream::About;
use segstream_base::halves::Verdict;
use segstream_base::{Instant, SegmentNumber, StreamId};

impl RecvHalf {
    /// Looks at one segment again.
    pub(super) fn reconsider(&mut self, now: Instant, stream: StreamId, number: SegmentNumber) {
        if let Some(verdict) = self.consider(now, stream, number) {
            self.judge(now, stream, number, verdict);
        }
    }

    fn judge(&mut self, now: Instant, id: StreamId, number: SegmentNumber, verdict: Verdict) {
        let next_report = self.reports.composition.next_number();
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Some(wanted) = stream.on_judged(now, number, verdict, next_report, &mut self.scratch) else { return };
        self.wanting -= u64::from(wanted);
        self.reports.memory.on_judged();
        if let Some(segment) = stream.get(number) {
            let longest = segment.holes.iter().map(|hole| hole.1 - hole.0).max().unwrap_or(0);
            self.counters.holes_longest_run = self.counters.holes_longest_run.max(longest);
            if verdict == Verdict::WithinTolerance {
                self.counters.units_tolerated += u64::from(segment.extent() - segment.got);
            }
        }
        match verdict {
            Verdict::Complete => self.counters.segments[0] += 1,
            Verdict::WithinTolerance => self.counters.segments[1] += 1,
            Verdict::Expired | Verdict::Unknown => self.counters.segments[2] += 1,
        }
        if stream.all_judged() {
            // Nothing is left: the sender is waiting for just this verdict.
            self.reports.schedule.report_now(now);
        }
        self.deliverable = true;
    }

    /// The verdict that is due, if any; notes a violation.
    fn consider(&mut self, now: Instant, stream: StreamId, number: SegmentNumber) -> Option<Verdict> {
        let error_control = self.config.class.error_control();
        let stream = self.streams.get_mut(stream)?;
        let important = stream.contract.importance;
        let segment = stream.get_mut(number)?;
        if segment.judged() {
            return None;
        }
        let more_is_lost = std::mem::take(&mut segment.changed);
        if segment.layout.units == Some(segment.got) {
            return Some(Verdict::Complete);
        }
        if segment.skipped {
            let met = segment.allows_missing(important, &mut self.scratch);
            return Some(if met { Verdict::WithinTolerance } else { Verdict::Expired });
        }
        let none_of_an_unknown_length = segment.layout.units.is_none() && segment.due == u32::MAX;
        if segment.lost == 0 && !none_of_an_unknown_length {
            return None;
        }
        let all_due = segment.all_due();
        if !segment.violated || all_due {
            let reliable_tail = none_of_an_unknown_length && segment.tolerance.is_reliable();
            let met = !reliable_tail && segment.allows_lost(important, &mut self.scratch);
            if none_of_an_unknown_length {
                // Only its sender can tell how long it was.
                self.reports.schedule.report_delayed(now);
            }
            if met {
                return all_due.then_some(Verdict::WithinTolerance);
            }
            if !error_control {
                return all_due.then_some(Verdict::Expired);
            }
            if !segment.violated {
                segment.violated = true;
                stream.wanting += 1;
                self.wanting += 1;
            }
        }
        let asked_for = error_control && stream.get(number).is_some_and(|segment| segment.violated);
        if asked_for && more_is_lost {
            // Each loss is reported immediately: the short period is for requests that were lost on their way, and a
            // new request that waits for it is late by half of it on average.
            self.reports.schedule.report_now_within_budget(now);
        }
        None
    }

    /// Class without flow control: the buffer is fixed, and the oldest open segment, if it is not newer than
    /// `number`, makes room. False when nothing more is gained by asking again.
    pub(super) fn make_room(&mut self, now: Instant, id: StreamId, number: SegmentNumber, about: &About) -> bool {
        let class = self.config.class;
        let Some(stream) = self.streams.get_mut(id) else { return false };
        let Some(oldest) = stream.oldest_open().filter(|&oldest| oldest <= number) else { return false };
        if oldest == number {
            stream.admit_empty(number, about, class);
        }
        let freed = stream.forget(oldest);
        let important = stream.contract.importance;
        let met = stream
            .get(oldest)
            .is_some_and(|segment| segment.layout.units.is_some() && segment.allows_missing(important, &mut self.scratch));
        self.dropped.push_back((id, oldest));
        self.judge(now, id, oldest, if met { Verdict::WithinTolerance } else { Verdict::Expired });
        freed > 0 || oldest == number
    }

    /// The class has changed: what is wanted depends on it.
    pub(super) fn reconsider_all(&mut self, now: Instant) {
        for place in 0..self.streams.len() {
            let (id, stream) = (self.streams.number(place), &mut self.streams[place]);
            let numbers = stream.base.up_to(stream.next_segment());
            if !self.config.class.error_control() {
                self.wanting -= stream.want_nothing();
            }
            for number in numbers {
                self.reconsider(now, id, number);
            }
        }
    }
}
