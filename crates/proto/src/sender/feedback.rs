//! Processes reports: the echo, the window, verdicts, and requests.
//!
//! Called by the half for every RXS. Invariant: reports may be late, duplicated or reordered; every frame is a statement that stays true,
//! so each is processed when it arrives.

use super::{Durable, SendHalf, SenderHalfEvent};
use core::ops::Range;
use segstream_base::halves::Verdict;
use segstream_base::{Instant, Position, Run, SegmentNumber, StreamId, UnitIndex};
use segstream_blocks::histogram::TIME_BOUNDS_NANOS;
use segstream_blocks::two_state_loss::LossCounts;
use segstream_blocks::work::{self, Loop};
use segstream_wire::{Report, ReportFrame};

impl SendHalf {
    /// Takes a report of the receiver.
    pub fn handle_report(&mut self, now: Instant, report: &Report) {
        self.invalidate_due();
        self.unfinished.begin_turn();
        self.state_timer.on_answer();
        let newest = self.state_timer.confirmed.highest.is_none_or(|highest| report.number > highest);
        self.state_timer.confirmed.insert(report.number);
        if let Some(echo) = report.echo
            && self.path.echo.is_none_or(|highest| echo > highest)
        {
            self.path.echo = Some(echo);
            self.path.congestion.exchanges.on_progress();
        }
        let mut fresh = None;
        if newest {
            self.path.reordering_threshold = report.reorder;
            fresh = report.time.and_then(|time| self.path.round_trip_of(now, time, report.held));
            if let Some(sample) = fresh {
                self.on_rtt_sample(now, sample);
            }
        }
        for frame in &report.frames {
            self.handle_frame(now, report, frame);
        }
        self.on_delivery(now, fresh);
        if !self.has_eligible() {
            self.path.pacer.on_idle(now);
        }
        self.debug_assert_counts();
    }

    /// Takes a frame outside a report: the grants of a connection confirm.
    pub fn handle_grant(&mut self, now: Instant, frame: &ReportFrame) {
        self.invalidate_due();
        self.unfinished.begin_turn();
        self.handle_frame(now, &Report::default(), frame);
    }

    fn handle_frame(&mut self, now: Instant, report: &Report, frame: &ReportFrame) {
        match *frame {
            ReportFrame::Grant { stream, segments, units, end_known } => self.handle_grant_of(now, stream, segments, units, end_known),
            ReportFrame::Complete { stream, first, count } => self.handle_complete(now, stream, first, count),
            ReportFrame::Judged { stream, segment, verdict, units, from, to, ref holes } => {
                self.handle_judged(now, stream, segment, verdict, (units, from..to), holes);
                self.owe_confirmation(now, stream);
            }
            ReportFrame::Request { stream, segment, ref missing, tail_from, length_wanted } => {
                if length_wanted {
                    self.want_length(now, stream, segment, tail_from.is_some());
                }
                self.handle_request(now, report, (stream, segment), missing, tail_from);
            }
            ReportFrame::ReclassEcho { change, class: echoed } => {
                if let Some(asked) = self.state_timer.on_reclass_echo(change) {
                    // Anything but what was asked for is a refusal: the class stays as it is.
                    let class = if echoed == asked { asked } else { self.config.class };
                    self.config.class = class;
                    self.set_pacing(now);
                    for place in 0..self.streams.len() {
                        self.refresh_at(place);
                    }
                    self.events.push_back(SenderHalfEvent::Reclassed(class));
                }
            }
            ReportFrame::Arrival(ref arrived) => self.on_arrived(now, arrived),
            ReportFrame::Refused { stream, reason } => {
                self.on_refused(stream, reason);
            }
            ReportFrame::Losses { judged, lost, runs } => self.on_losses(now, LossCounts { passed: judged, lost, runs }),
            ReportFrame::AnyRepairs { stream, segment, lost, held } => self.on_any_repairs(stream, segment, report.echo, (lost, held)),
            ReportFrame::MaxStreams { streams } => {
                self.set_max_streams(streams);
                self.state_timer.confirm_later(now, 0);
            }
            ReportFrame::Durable { stream, segments, last } => self.handle_durable(now, stream, Durable { segments, last }),
        }
    }

    fn handle_grant_of(&mut self, now: Instant, id: StreamId, segments: u64, units: u64, end_known: bool) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if !stream.window.granted && stream.fit_window(units) {
            self.state_timer.schedule_immediate(now);
        }
        stream.window.edges.advance(segments, units);
        stream.end.confirmed |= end_known && stream.end.finished;
        self.refresh(id);
    }

    fn handle_complete(&mut self, now: Instant, id: StreamId, first: SegmentNumber, count: u64) {
        let Some(stream) = self.streams.get(id) else { return self.owe_confirmation(now, id) };
        // Limit: only segments that exist are looked at, whatever the count says.
        let told = first.max(stream.segments.base)..first.saturating_add(count).min(stream.segments.next_number());
        self.settle_complete(now, id, told);
        self.owe_confirmation(now, id);
        self.refresh(id);
    }

    /// A verdict was told: the receiver repeats it until it is confirmed, also when it was known here.
    fn owe_confirmation(&mut self, now: Instant, id: StreamId) {
        // Why also of a stream that has left: only a confirmation lets the receiver retire it too.
        let window = self.streams.get(id).map_or(0, |stream| stream.contract.window_segments);
        if id < self.credit.next() {
            self.state_timer.confirm_later(now, window);
        }
    }

    /// A verdict counts once the whole map of holes has come.
    fn handle_judged(
        &mut self,
        now: Instant,
        id: StreamId,
        number: SegmentNumber,
        verdict: Verdict,
        (units, told): (u32, Range<UnitIndex>),
        holes: &[Run<UnitIndex>],
    ) {
        let Some(segment) = self.streams.get_mut(id).and_then(|stream| stream.segments.get_mut(number)) else { return };
        if segment.judged() {
            return;
        }
        if let Some(holes) = segment.on_holes(units, &told, holes) {
            self.settle(now, id, number, verdict, (units, holes));
            self.refresh(id);
        }
    }

    /// Notes a verdict on a segment that had `units` and `holes` at the receiver; the caller updates the stream counts.
    fn settle(&mut self, now: Instant, id: StreamId, number: SegmentNumber, verdict: Verdict, (units, holes): (u32, Vec<Run<UnitIndex>>)) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if let Some(source_time) = stream.settle(number, verdict, Some(units)) {
            self.verdict_times.record(&TIME_BOUNDS_NANOS, now.since(source_time).as_nanos());
            self.tell_judged(id, number..number.next(), verdict, holes);
        }
    }

    /// Notes one verdict without holes, which came at `now` or never did, on those of `segments` that have none; the caller updates the stream
    /// counts.
    pub(super) fn settle_all(&mut self, id: StreamId, segments: Range<SegmentNumber>, verdict: Verdict, now: Option<Instant>) {
        // Why runs: of small segments a report judges hundreds, and each event goes through all the layers above.
        let mut run = segments.start..segments.start;
        work::note(Loop::Segments, segments.end.since(segments.start) as usize);
        for number in segments.start.up_to(segments.end) {
            let Some(stream) = self.streams.get_mut(id) else { return };
            let Some(source_time) = stream.settle(number, verdict, None) else { continue };
            if let Some(now) = now {
                self.verdict_times.record(&TIME_BOUNDS_NANOS, now.since(source_time).as_nanos());
            }
            if run.end < number {
                self.tell_judged(id, core::mem::replace(&mut run, number..number), verdict, Vec::new());
            }
            run.end = number.next();
        }
        self.tell_judged(id, run, verdict, Vec::new());
    }

    fn tell_judged(&mut self, id: StreamId, segments: Range<SegmentNumber>, verdict: Verdict, holes: Vec<Run<UnitIndex>>) {
        if segments.is_empty() {
            return;
        }
        self.state_timer.on_judged(segments.end - segments.start);
        self.events.push_back(SenderHalfEvent::Judged { stream: id, segments, verdict, holes });
        if let Some(stream) = self.streams.get_mut(id)
            && core::mem::take(&mut stream.buffer.blocked)
        {
            self.events.push_back(SenderHalfEvent::WindowOpen(id));
        }
    }

    /// The receiver needs the length of a segment, and perhaps all of it: then what is sent again tells it.
    fn want_length(&mut self, now: Instant, id: StreamId, number: SegmentNumber, with_units: bool) {
        if let Some(segment) = self.streams.get_mut(id).and_then(|stream| stream.segments.get_mut(number))
            && segment.layout.length.is_some_and(|length| length == 0 || !with_units)
        {
            segment.length_wanted = true;
            self.state_timer.schedule_immediate(now);
        }
    }

    fn handle_request(
        &mut self,
        now: Instant,
        report: &Report,
        (id, number): (StreamId, SegmentNumber),
        missing: &[Run<Position>],
        tail_from: Option<Position>,
    ) {
        let Some(echo) = report.echo else { return };
        if tail_from.is_none() && !missing.is_empty() && self.answer_with_repairs(now, id, number, missing, (echo, report.reorder)) {
            self.refresh(id);
            return;
        }
        let Some(stream) = self.streams.get_mut(id) else { return };
        let tail = tail_from.and_then(|from| Run::new(from, Position(u32::MAX)));
        let runs = missing.iter().copied().chain(tail);
        stream.request(number, runs, (echo, report.reorder), &mut self.unfinished.positions_left);
        self.refresh(id);
    }
}
