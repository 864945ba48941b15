//! Verdicts: when a segment is accepted, when all missing units are requested, and when it has expired.
//!
//! Called by the receiving half whenever a segment may have changed. Strict accounting (EC 5.3 made strict): a tolerated hole stays
//! counted, and the first violation requests all missing units, so that one round of retransmission is enough.
//!
//! Invariant: *complete* means that every unit is present, *within tolerance* that every missing unit was declared lost or abandoned by its
//! sender, and that all holes together satisfy (W, E, B).

use super::RecvHalf;
use super::segment::{ALL_DUE, About};
use super::segment_times::SegmentTimes;
use super::verdict_log::VerdictLog;
use crate::trace::SegmentJudged;
use segstream_base::halves::Verdict;
use segstream_base::{Instant, SegmentNumber, StreamId, UnitIndex};
use segstream_blocks::bitmap::Bitmap;
use segstream_blocks::work::{self, Loop};

/// What judging keeps beside the segments.
///
/// Invariant: `in_repair` is the sum of what the streams count.
#[derive(Debug, Default)]
pub(super) struct Judging {
    /// Violated and unjudged segments of all streams.
    pub(super) in_repair: u64,
    scratch: Bitmap<UnitIndex>,
    pub(super) log: VerdictLog,
    pub(super) times: SegmentTimes,
}

impl RecvHalf {
    /// Evaluates a segment, and judges it if a verdict is due.
    pub(super) fn reevaluate(&mut self, now: Instant, stream: StreamId, number: SegmentNumber) {
        let Some(segment) = self.streams.get_mut(stream).and_then(|stream| stream.segments.get_mut(number)) else { return };
        // Why first: so nearly every segment ends.
        if segment.layout.units == Some(segment.presence.got) && !segment.is_closed() {
            segment.presence.more_is_lost = false;
            return self.judge(now, stream, number, Verdict::Complete);
        }
        let listed = segment.list_more(&mut self.unfinished.positions_left);
        let verdict = match listed {
            Some(verdict) => verdict,
            None => {
                let Some(verdict) = self.evaluate(now, stream, number) else { return };
                let segment = self.streams.get_mut(stream).and_then(|stream| stream.segments.get_mut(number));
                (!segment.is_some_and(|segment| segment.list_in_turns(now, verdict))).then_some(verdict)
            }
        };
        match verdict {
            Some(verdict) => self.judge(now, stream, number, verdict),
            None => self.unfinished.push(stream, number),
        }
    }

    fn judge(&mut self, now: Instant, id: StreamId, number: SegmentNumber, verdict: Verdict) {
        let next_report = self.reports.composition.next_number();
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Some(in_repair) = stream.on_judged(now, number, verdict, next_report, &mut self.judging.scratch) else { return };
        self.judging.in_repair -= u64::from(in_repair);
        self.reports.verdicts.on_judged();
        if let Some(segment) = stream.segments.get(number) {
            let longest = segment.judgement.holes.iter().map(|hole| hole.len()).max().unwrap_or(0);
            self.counters.holes_longest_run = self.counters.holes_longest_run.max(longest);
            let delay_over_least = self.judging.times.on_judged(now, verdict, segment.first_arrival, segment.source_time);
            if verdict == Verdict::WithinTolerance {
                self.counters.units_tolerated += u64::from(segment.extent() - segment.presence.got);
            }
            if self.judging.log.is_on() {
                self.judging.log.push(SegmentJudged {
                    stream: id,
                    segment: number,
                    verdict,
                    units: segment.extent(),
                    units_lost: segment.presence.units_lost,
                    holes: segment.judgement.holes.clone(),
                    first_arrival: segment.first_arrival,
                    source_time: segment.source_time,
                    delay_over_least,
                });
            }
        }
        match verdict {
            Verdict::Complete => self.counters.segments[0] += 1,
            Verdict::WithinTolerance => self.counters.segments[1] += 1,
            Verdict::Expired | Verdict::Unknown => self.counters.segments[2] += 1,
        }
        if stream.all_judged() {
            // The sender waits for this verdict only.
            self.reports.schedule.report_now(now);
        }
        self.events.deliverable = true;
    }

    /// The verdict that is due of a segment that is not complete, if any; notes a violation.
    fn evaluate(&mut self, now: Instant, id: StreamId, number: SegmentNumber) -> Option<Verdict> {
        let error_control = self.config.class.error_control();
        let stream = self.streams.get_mut(id)?;
        let important = stream.contract.importance;
        let segment = stream.segments.get_mut(number)?;
        if segment.is_closed() {
            return None;
        }
        let more_is_lost = std::mem::take(&mut segment.presence.more_is_lost);
        if segment.skipped {
            let met = segment.allows_missing(important, &mut self.judging.scratch);
            return Some(if met { Verdict::WithinTolerance } else { Verdict::Expired });
        }
        let none_of_an_unknown_length = segment.layout.units.is_none() && segment.presence.due == ALL_DUE;
        if segment.presence.lost == 0 && !none_of_an_unknown_length {
            return None;
        }
        let all_due = segment.all_due();
        if segment.violated_at.is_none() || all_due {
            let reliable_tail = none_of_an_unknown_length && segment.tolerance.is_reliable();
            let met = if reliable_tail { Some(false) } else { segment.allows_lost(important, &mut self.unfinished.positions_left) };
            if none_of_an_unknown_length {
                // Only its sender can tell how long it was.
                self.reports.schedule.report_delayed(now);
            }
            match met {
                Some(true) => return all_due.then_some(Verdict::WithinTolerance),
                Some(false) => {}
                None => {
                    segment.presence.more_is_lost = more_is_lost;
                    self.unfinished.push(id, number);
                    return None;
                }
            }
            if !error_control {
                return all_due.then_some(Verdict::Expired);
            }
            if segment.violated_at.is_none() {
                segment.violated_at = Some(now);
                stream.in_repair += 1;
                self.judging.in_repair += 1;
            }
        }
        let asked_for = error_control && stream.segments.get(number).is_some_and(|segment| segment.violated_at.is_some());
        if asked_for && more_is_lost {
            // Each loss is reported immediately: the short period is for requests that were lost on their way, and a
            // new request that waits for it is late by half of it on average.
            self.reports.schedule.report_now_within_budget(now);
        }
        None
    }

    /// Class without flow control: the buffer is fixed, and the oldest open segment, if it is not newer than
    /// `number`, is evicted. False when another call would free nothing.
    pub(super) fn make_room(&mut self, now: Instant, id: StreamId, number: SegmentNumber, about: &About) -> bool {
        let class = self.config.class;
        let Some(stream) = self.streams.get_mut(id) else { return false };
        let Some(oldest) = stream.oldest_open().filter(|&oldest| oldest <= number) else { return false };
        if oldest == number {
            stream.admit_empty(number, about, class, &mut self.unfinished.places_left);
        }
        stream.begin(oldest);
        let freed = stream.evict(oldest);
        let important = stream.contract.importance;
        let met = stream
            .segments
            .get(oldest)
            .is_some_and(|segment| segment.layout.units.is_some() && segment.allows_missing(important, &mut self.judging.scratch));
        self.events.dropped.push_back((id, oldest));
        self.judge(now, id, oldest, if met { Verdict::WithinTolerance } else { Verdict::Expired });
        freed > 0 || oldest == number
    }

    /// Error control has begun or ended, on which requests depend: all segments are evaluated, those that one turn does not reach in further
    /// ones.
    pub(super) fn reevaluate_all(&mut self, now: Instant) {
        for place in 0..self.streams.len() {
            self.unfinished.sweep(self.streams.number(place), self.streams[place].segments.base);
        }
        self.sweep(now);
    }

    /// A turn: evaluates segments of streams whose class has changed.
    pub(super) fn sweep(&mut self, now: Instant) {
        let error_control = self.config.class.error_control();
        while self.unfinished.segments_left > 0 {
            self.unfinished.segments_left -= 1;
            let Some((id, number)) =
                self.unfinished.next_swept(|id| self.streams.get(id).map(|stream| (stream.segments.base, stream.segments.next_number())))
            else {
                return;
            };
            work::note(Loop::Segments, 1);
            if !error_control && self.streams.get_mut(id).is_some_and(|stream| stream.clear_request(number)) {
                self.judging.in_repair -= 1;
            }
            self.reevaluate(now, id, number);
        }
    }
}
