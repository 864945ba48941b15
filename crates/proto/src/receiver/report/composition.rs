//! The composition of a report: which frames, in which order, in how many shipments (spec 5).
//!
//! Called by the half when a report is due. A report contains answers first, then the window of every stream, then requests, then verdicts
//! that the sender has not confirmed. What does not fit comes in its next shipment, or first in the next report.
//!
//! Invariant: all shipments of one report have the same echo; the absence of a frame means nothing.

use super::unconfirmed_verdicts::{SentVerdicts, UnconfirmedVerdicts};
use crate::live_streams::LiveStreams;
use crate::receiver::segment::{ALL_DUE, RecvSegment};
use crate::receiver::stream::RecvStream;
use crate::receiver::stream_credit::StreamCredit;
use segstream_base::codec::varint_len;
use segstream_base::halves::Verdict;
use segstream_base::{
    Duration, ExchangeNumber, Instant, Ordinal, Position, ReportNumber, Run, SegmentNumber, ShipmentNumber, StreamId, UnitIndex,
};
use segstream_blocks::loss_detector::LossDetector;
use segstream_blocks::loss_history;
use segstream_blocks::rare_queue::RareQueue;
use segstream_blocks::work::{self, Loop};
use segstream_wire::report::{Arrived, RUNS_MAX, RefuseReason, Runs};
use segstream_wire::{Class, Report, ReportFrame};

/// Shipments of one report at most; what does not fit comes first in the next one.
const SHIPMENTS_MAX: usize = 8;
/// Segments that one shipment of a report looks at; the next goes on there (spec 11.4). Why: a peer may have a report made of each of its
/// datagrams, while many segments wait for what it never sends.
const LOOKED_AT_MAX: u32 = 4096;
/// The most pending answers of each kind for streams that do not exist: a peer that asks for more is answered when it
/// repeats the statement.
const ANSWERS_MAX: usize = 64;

/// As long after a loss its sender is told how many shipments went by without another. It looks no further back, so it has learned by then
/// that nothing is lost any more.
const LOSSES_TOLD_FOR: Duration = loss_history::LOOKED_AT_MAX;

/// How many losses were told last, and when their number changed.
#[derive(Clone, Copy, Debug, Default)]
struct LossesTold {
    lost: u64,
    changed_at: Option<Instant>,
}

/// The newest state of the sender.
#[derive(Clone, Copy, Debug)]
struct NewestState {
    sync: ExchangeNumber,
    time: u64,
    arrived_at: Instant,
}

/// What the next report carries besides the state of the streams, and the progress of the present one.
#[derive(Debug, Default)]
pub(in crate::receiver) struct Composition {
    next_number: ReportNumber,
    newest_state: Option<NewestState>,
    /// The newest change of class that was taken.
    reclass: Option<(u64, Class)>,
    reclass_echo_pending: bool,
    /// The newest exchange, until it is reported. Why only once: the next one tells all that it would have.
    exchange: Option<Arrived>,
    refused: RareQueue<(StreamId, RefuseReason)>,
    /// Retired streams whose sender does not know that their end is known.
    retired: RareQueue<StreamId>,
    /// What was told of losses; `None` if the sender has no use for them.
    losses_told: Option<LossesTold>,
    /// Shipments the present report may still have.
    shipments_left: usize,
    /// The first stream whose window is not told yet, and the first whose confirmation is not. Of more streams than a report has room for
    /// the next one tells the rest.
    grant_from: usize,
    durable_from: usize,
    /// The present report tells confirmations first, since some wait for their turn.
    durable_first: bool,
}

impl Composition {
    /// The number the next report shipment will have.
    pub(in crate::receiver) const fn next_number(&self) -> ReportNumber {
        self.next_number
    }

    /// A state of the sender has arrived. Whether it is the newest.
    pub(in crate::receiver) fn on_state(&mut self, sync: ExchangeNumber, time: u64, arrived_at: Instant) -> bool {
        let newest = self.newest_state.is_none_or(|state| sync > state.sync);
        if newest {
            self.newest_state = Some(NewestState { sync, time, arrived_at });
        }
        newest
    }

    /// An exchange has arrived, which is to be reported.
    pub(in crate::receiver) const fn on_exchange(&mut self, arrived: Arrived) {
        self.exchange = Some(arrived);
    }

    /// Whether a change of class is newer than any that was taken.
    pub(in crate::receiver) fn is_new_change(&self, change: u64) -> bool {
        self.reclass.is_none_or(|(known, _)| change > known)
    }

    /// A change of class has been answered with `class`.
    pub(in crate::receiver) const fn on_class_change(&mut self, change: u64, class: Class) {
        self.reclass = Some((change, class));
    }

    /// The newest change of class is to be echoed, once more if it was.
    pub(in crate::receiver) const fn echo_class_change(&mut self) {
        self.reclass_echo_pending = true;
    }

    /// A stream was refused.
    pub(in crate::receiver) fn on_refused(&mut self, stream: StreamId, reason: RefuseReason) {
        if self.refused.len() < ANSWERS_MAX && !self.refused.iter().any(|refused| refused.0 == stream) {
            self.refused.push_back((stream, reason));
        }
    }

    /// The sender still repeats a statement about a retired stream.
    pub(in crate::receiver) fn on_retired_named(&mut self, stream: StreamId) {
        if self.retired.len() < ANSWERS_MAX && !self.retired.iter().any(|retired| *retired == stream) {
            self.retired.push_back(stream);
        }
    }

    /// The sender wants to know what the path loses.
    pub(in crate::receiver) fn tell_losses(&mut self) {
        self.losses_told.get_or_insert_default();
    }

    /// What the path has lost, if that is more or less than was told last, or was so lately.
    fn add_losses(&mut self, now: Instant, detector: &LossDetector, report: &mut Report, room: &mut usize) {
        let Some(told) = self.losses_told else { return };
        let lost = detector.newly_lost() - detector.late_after_lost();
        let changed_at = if lost == told.lost { told.changed_at } else { Some(now) };
        if changed_at.is_none_or(|at| now.since(at) > LOSSES_TOLD_FOR) {
            return;
        }
        let judged = detector.highest().map_or(0, |highest| highest.saturating_sub(u64::from(detector.reorder())));
        let lost_by_then = lost.min(judged);
        let frame = ReportFrame::Losses { judged, lost: lost_by_then, runs: detector.lost_runs().min(lost_by_then) };
        if push(report, room, frame) {
            self.losses_told = Some(LossesTold { lost, changed_at });
        }
    }

    /// Whether a report is incomplete.
    pub(super) const fn is_under_way(&self) -> bool {
        self.shipments_left > 0
    }

    /// A report of so many streams begins; `confirms` says whether any stream has a confirmation to tell.
    pub(super) fn start(&mut self, streams: usize, confirms: bool) {
        let rest_or_all = |from: usize| if from < streams { from } else { 0 };
        self.shipments_left = SHIPMENTS_MAX;
        self.grant_from = rest_or_all(self.grant_from);
        self.durable_first = confirms && self.durable_from < streams;
        self.durable_from = if confirms { rest_or_all(self.durable_from) } else { usize::MAX };
    }

    /// The next shipment of the report under way, with `body_bytes` of frames; and how many shipments the report had, if it
    /// ends with this one. No shipment when nothing was left to say.
    pub(super) fn next_shipment(
        &mut self,
        now: Instant,
        detector: &LossDetector,
        body_bytes: usize,
        (streams, credit): (&mut LiveStreams<RecvStream>, &mut StreamCredit),
        verdicts: &mut UnconfirmedVerdicts,
    ) -> (Option<Report>, Option<u64>) {
        let first = self.shipments_left == SHIPMENTS_MAX;
        self.shipments_left -= 1;
        let mut report = self.prelude(now, detector);
        let mut room = body_bytes - Report::PRELUDE_BYTES_MAX;
        if let Some(streams) = credit.total_for(report.number) {
            push(&mut report, &mut room, ReportFrame::MaxStreams { streams });
        }
        if first {
            self.add_answers(&mut report, &mut room);
            self.add_losses(now, detector, &mut report, &mut room);
        }
        if self.durable_first {
            self.add_durable(streams, &mut report, &mut room);
        }
        self.add_grants(streams, &mut report, &mut room);
        self.add_durable(streams, &mut report, &mut room);
        let mut looks = LOOKED_AT_MAX;
        // What came up to here is not on its way any more (spec 7.3).
        let passed = detector.highest().and_then(|highest| highest.checked_sub(u64::from(detector.reorder()) + 1)).map(ShipmentNumber);
        for (id, stream) in streams.numbered_mut() {
            add_requests((id, stream), passed, &mut report, &mut room, &mut looks);
        }
        for (id, stream) in streams.numbered_mut() {
            add_verdicts(id, stream, &mut report, (&mut room, &mut looks), verdicts);
        }
        work::note(Loop::Segments, (LOOKED_AT_MAX - looks) as usize);
        debug_assert!(report.encoded_len() <= body_bytes, "a report of {} bytes for {body_bytes}", report.encoded_len());
        debug_assert!(self.grant_from <= streams.len() && self.shipments_left < SHIPMENTS_MAX);
        let says_something = first || !report.frames.is_empty();
        // Why not after one that says nothing: what it has looked at needs no report, and the next report goes on behind it.
        let more = says_something && self.shipments_left > 0 && self.has_more_to_say(streams);
        let ended = (!more).then(|| self.end(streams));
        self.next_number += u64::from(says_something);
        (says_something.then_some(report), ended)
    }

    /// The report ends; the next one starts from the oldest segment, unless this one was cut short.
    fn end(&mut self, streams: &mut LiveStreams<RecvStream>) -> u64 {
        let shipments = SHIPMENTS_MAX - core::mem::take(&mut self.shipments_left);
        for stream in streams.iter_mut() {
            stream.on_report_end();
        }
        shipments as u64
    }

    fn has_more_to_say(&self, streams: &LiveStreams<RecvStream>) -> bool {
        self.grant_from < streams.len() || self.durable_from < streams.len() || streams.iter().any(RecvStream::has_more_to_report)
    }

    fn prelude(&self, now: Instant, detector: &LossDetector) -> Report {
        Report {
            number: self.next_number,
            echo: detector.highest().map(ShipmentNumber),
            reorder: detector.reorder(),
            time: self.newest_state.map(|state| state.time),
            held: self.newest_state.map_or(0, |state| now.since(state.arrived_at).as_nanos()),
            frames: smallvec::SmallVec::new(),
        }
    }

    fn add_answers(&mut self, report: &mut Report, room: &mut usize) {
        if let Some((change, class)) = self.reclass.filter(|_| core::mem::take(&mut self.reclass_echo_pending)) {
            push(report, room, ReportFrame::ReclassEcho { change, class });
        }
        if let Some(arrived) = self.exchange.take() {
            push(report, room, ReportFrame::Arrival(arrived));
        }
        while let Some(&(stream, reason)) = self.refused.front() {
            if !push(report, room, ReportFrame::Refused { stream, reason }) {
                break;
            }
            self.refused.pop_front();
        }
        while let Some(&stream) = self.retired.front() {
            // Of a retired stream nothing is left to say but that its end is known. Edges never retreat: zero says nothing.
            if !push(report, room, ReportFrame::Grant { stream, segments: 0, units: 0, end_known: true }) {
                break;
            }
            self.retired.pop_front();
        }
    }

    fn add_grants(&mut self, streams: &LiveStreams<RecvStream>, report: &mut Report, room: &mut usize) {
        while self.grant_from < streams.len() {
            if !push(report, room, grant(streams.number(self.grant_from), &streams[self.grant_from])) {
                return;
            }
            self.grant_from += 1;
        }
    }

    fn add_durable(&mut self, streams: &mut LiveStreams<RecvStream>, report: &mut Report, room: &mut usize) {
        while self.durable_from < streams.len() {
            let id = streams.number(self.durable_from);
            let told = streams[self.durable_from].durability.as_mut();
            if let Some((told, frame)) = told.and_then(|told| told.frame(id).map(|frame| (told, frame))) {
                if !push(report, room, frame) {
                    return;
                }
                told.on_carried(report.number);
            }
            self.durable_from += 1;
        }
    }
}

/// Requests everything declared lost of violated segments, oldest first.
fn add_requests(
    (id, stream): (StreamId, &mut RecvStream),
    passed: Option<ShipmentNumber>,
    report: &mut Report,
    room: &mut usize,
    looks: &mut u32,
) {
    if stream.in_repair == 0 && stream.cursor.request_from.0 >= stream.progress.frontier.0 {
        return;
    }
    while stream.cursor.request_from.0 < stream.segments.next_number() && take_look(looks) {
        let (number, from) = stream.cursor.request_from;
        if let Some(segment) = stream.segments.get(number).filter(|segment| !segment.judged())
            && let Some((frame, to)) = request(id, number, segment, from, *room)
        {
            if let Some(code) = &segment.code {
                let held = passed.map_or(0, |passed| code.held_up_to(passed));
                let any = ReportFrame::AnyRepairs { stream: id, segment: number, lost: segment.protected_lost(code.fence), held };
                if any.encoded_len() + frame.encoded_len() <= *room {
                    push(report, room, any);
                }
            }
            let cut_short = matches!(&frame, ReportFrame::Request { missing, .. } if missing.is_empty()) && to.is_some();
            if cut_short || !push(report, room, frame) {
                return;
            }
            if let Some(to) = to {
                stream.cursor.request_from = (number, to);
                return;
            }
        }
        stream.cursor.request_from = (number + 1, Position::FIRST);
    }
}

/// Adds verdicts that the sender has not confirmed, oldest first.
fn add_verdicts(
    id: StreamId,
    stream: &mut RecvStream,
    report: &mut Report,
    (room, looks): (&mut usize, &mut u32),
    verdicts: &mut UnconfirmedVerdicts,
) {
    if stream.verdicts.unconfirmed == 0 {
        return;
    }
    while let Some((frame, sent)) = next_verdict(id, stream, report.number, *room, looks) {
        if !push(report, room, frame) {
            return;
        }
        stream.cursor.verdict_from = match sent.map {
            Some(map) if stream.segments.get(sent.from).is_some_and(|segment| map.end().0 < segment.extent()) => (sent.from, map.end()),
            _ => (sent.to, UnitIndex::FIRST),
        };
        verdicts.on_sent(sent);
    }
}

/// Whether one more segment may be looked at.
const fn take_look(looks: &mut u32) -> bool {
    let may = *looks > 0;
    *looks -= may as u32;
    may
}

/// Adds a frame if it fits.
fn push(report: &mut Report, room: &mut usize, frame: ReportFrame) -> bool {
    let length = frame.encoded_len();
    if length > *room {
        return false;
    }
    *room -= length;
    report.frames.push(frame);
    true
}

/// The present grant of a stream.
pub(in crate::receiver) fn grant(id: StreamId, stream: &RecvStream) -> ReportFrame {
    let (segments, units) = stream.edges();
    ReportFrame::Grant { stream: id, segments, units, end_known: stream.end.at.is_some() }
}

/// What is requested of a segment from position `from` on, cut to `room`, and the position at which it was cut;
/// `None` when nothing is requested.
fn request(
    stream: StreamId,
    number: SegmentNumber,
    segment: &RecvSegment,
    from: Position,
    room: usize,
) -> Option<(ReportFrame, Option<Position>)> {
    let unknown_length = segment.layout.units.is_none() && segment.presence.due == ALL_DUE;
    let violated = segment.violated_at.is_some();
    if !violated && !unknown_length {
        return None;
    }
    let frame = |missing, tail_from| ReportFrame::Request { stream, segment: number, missing, tail_from, length_wanted: unknown_length };
    let tail_from = (violated && unknown_length).then_some(Position(segment.extent()));
    let room = room.saturating_sub(frame(Runs::new(), tail_from).encoded_len());
    let due = if violated { segment.due_extent() } else { Position::FIRST };
    let (missing, cut) = fitting(segment.presence.positions.zero_runs(from, due), segment.presence.lost as usize, room);
    let tail_from = tail_from.filter(|_| cut.is_none());
    let nothing = missing.is_empty() && tail_from.is_none() && !unknown_length && cut.is_none();
    (!nothing).then(|| (frame(missing, tail_from), cut))
}

/// As many of `runs`, of which there are at most `most`, as fit `room` bytes, and the start of the first that
/// does not.
fn fitting<N: Ordinal>(runs: impl Iterator<Item = Run<N>>, most: usize, room: usize) -> (Runs<N>, Option<N>) {
    // One byte more for the number of runs, which is counted as one by an empty frame.
    let (mut kept, mut last, mut used) = (Runs::with_capacity(most.min(RUNS_MAX)), 0, 1);
    for run in runs {
        used += varint_len(u64::from(run.start().index() - last)) + varint_len(u64::from(run.len()));
        if used > room || kept.len() >= RUNS_MAX {
            return (kept, Some(run.start()));
        }
        kept.push(run);
        last = run.end().index();
    }
    (kept, None)
}

/// The next verdict frame of `stream` from its cursor on; `None` when all is told or nothing more fits.
fn next_verdict(
    id: StreamId,
    stream: &mut RecvStream,
    report: ReportNumber,
    room: usize,
    looks: &mut u32,
) -> Option<(ReportFrame, SentVerdicts)> {
    let unconfirmed = |segment: &RecvSegment| segment.judgement.is_unconfirmed();
    let (segments, cursor) = (&stream.segments, &mut stream.cursor);
    while cursor.verdict_from.0 < segments.next_number() && !segments.get(cursor.verdict_from.0).is_some_and(unconfirmed) {
        if !take_look(looks) {
            return None;
        }
        cursor.verdict_from = (cursor.verdict_from.0 + 1, UnitIndex::FIRST);
    }
    let (first, told_to) = cursor.verdict_from;
    let segment = segments.get(first)?;
    let verdict = segment.judgement.verdict?;
    if verdict == Verdict::Complete {
        let mut to = first + 1;
        while segments.get(to).is_some_and(|next| next.judgement.verdict == Some(Verdict::Complete)) && take_look(looks) {
            to += 1;
        }
        let sent = SentVerdicts { report, stream: id, from: first, to, map: None };
        return Some((ReportFrame::Complete { stream: id, first, count: to - first }, sent));
    }
    let (units, end) = (segment.extent(), UnitIndex(segment.extent()));
    let from = segment.judgement.holes_confirmed.max(told_to);
    let frame = |to, holes| ReportFrame::Judged { stream: id, segment: first, verdict, units, from, to, holes };
    let room = room.checked_sub(frame(end, Runs::new()).encoded_len())?;
    // Why a search: of many holes each report tells some, and each is asked for by one datagram.
    let told = segment.judgement.holes.partition_point(|hole| hole.start() < from);
    let (holes, cut) = fitting(segment.judgement.holes[told..].iter().copied(), segment.judgement.holes.len() - told, room);
    if holes.is_empty() && cut.is_some() {
        return None;
    }
    let to = cut.unwrap_or(end);
    Some((frame(to, holes), SentVerdicts { report, stream: id, from: first, to: first + 1, map: Run::new(from, to) }))
}

#[cfg(test)]
#[path = "composition_tests.rs"]
mod tests;
