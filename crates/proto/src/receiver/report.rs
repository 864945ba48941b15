//! When the receiver's state is due and what it says (AA 2, EC 4.3, HT 3.1: RXS).
//!
//! Called by the half. A report is due at once when something is found missing and nothing was, on request,
//! when the sender would soon come to the edge of the window, and when a whole stream is judged; within the short
//! period while something is missing or the sender waits for the window; and every long period while data
//! arrives or a verdict is unconfirmed. What is found missing is told at once as long as the budget of reports
//! allows ([`segstream_blocks::report_budget`]), in which a long report counts for its shipments.
//!
//! Invariant: while something is wanted or a verdict is unconfirmed, some report is due. All shipments
//! of one report have the same echo, and none says anything of what it does not name.

use super::RecvHalf;
use super::segment::RecvSegment;
use super::stream::RecvStream;
use segstream_base::codec::varint_len;
use segstream_base::endpoint::Deadline;
use segstream_base::halves::Verdict;
use segstream_base::{Duration, Instant};
use segstream_blocks::report_budget::ReportBudget;
use segstream_blocks::report_period::{ReportPeriod, SHARE_NORMAL};
use segstream_blocks::rtt::Rtt;
use segstream_wire::report::{Arrived, Runs};
use segstream_wire::state::Confirmed;
use segstream_wire::{Report, ReportFrame};
use std::collections::VecDeque;

/// Shipments of one report at most; what does not fit comes first in the next one.
const SHIPMENTS_MAX: usize = 8;
/// Reports whose contents are remembered until they are confirmed.
const REMEMBERED: u64 = 64;
/// Reports whose times are remembered, for the round trip: many may leave before the first is confirmed.
const TIMES: usize = 256;
/// Runs in one frame at most.
const RUNS_MAX: usize = 400;
/// Verdict frames remembered at most.
const CARRIED_MAX: usize = 8192;
/// The longest that one shipment is taken to last.
const SHIPMENT_TIME_MOST: Duration = Duration::from_millis(1);
/// The slowest pace at which a silent sender is reminded.
const SLOWEST: Duration = Duration::from_millis(500);
/// How many times as fast as before shipments come when the periods are fitted anew before a report leaves.
const REFIT_FASTER: u64 = 8;

/// A verdict frame that a report carried.
#[derive(Clone, Copy, Debug)]
struct Carried {
    report: u64,
    stream: u32,
    from: u64,
    to: u64,
    /// For a map of holes: the units it speaks of.
    map: Option<(u32, u32)>,
}

/// The clock of the receiver's state.
#[derive(Debug)]
pub(super) struct ReportClock {
    number: u64,
    pub(super) period: ReportPeriod,
    budget: ReportBudget,
    hasten: Option<Instant>,
    last: Instant,
    /// Anything arrived since the last report.
    pub(super) news: bool,
    /// Reports since the sender's state last came.
    unheard: u32,
    carried: VecDeque<Carried>,
    /// The newest TXS: its time, and when it arrived.
    pub(super) time: Option<(u64, Instant)>,
    pub(super) sync: Option<u64>,
    pub(super) reclass: Option<(u64, segstream_wire::Class)>,
    pub(super) reclass_told: bool,
    /// The newest exchange, until it is told. Why only once: the next one tells all that it would have.
    pub(super) arrival: Option<Arrived>,
    pub(super) refused: VecDeque<(u32, segstream_wire::report::RefuseReason)>,
    /// When the last reports left that the sender has not confirmed; the highest it has; and what that says
    /// of the round trip. Limit: it includes the time the sender took to confirm.
    left: VecDeque<Instant>,
    confirmed: Option<u64>,
    rtt: Rtt,
    /// The same as the sending half of the connection measures it.
    shared_rtt: Option<Duration>,
    /// The smallest window of a stream, in units.
    window: u64,
    /// The highest number the last report echoed, and how many shipments have come lately in how long.
    echoed: u64,
    arrivals: (Duration, u64),
    /// Report shipments left of the present report.
    burst: usize,
    grant_from: usize,
}

impl ReportClock {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            number: 0,
            period: ReportPeriod::new(now),
            budget: ReportBudget::new(now),
            hasten: None,
            last: now,
            news: false,
            unheard: 0,
            carried: VecDeque::new(),
            time: None,
            sync: None,
            reclass: None,
            reclass_told: true,
            arrival: None,
            refused: VecDeque::new(),
            left: VecDeque::new(),
            confirmed: None,
            rtt: Rtt::new(),
            shared_rtt: None,
            window: 0,
            echoed: 0,
            arrivals: (Duration::ZERO, 0),
            burst: 0,
            grant_from: 0,
        }
    }

    /// The number the next report shipment will have.
    pub(super) const fn next_number(&self) -> u64 {
        self.number
    }

    /// A report is wanted at once: the sender has asked for it, or can do nothing before it comes.
    pub(super) fn hasten(&mut self, now: Instant) {
        self.wanted_at(now.max(self.last + self.shipment_time() * 2));
    }

    /// A report is wanted as soon as the budget allows.
    pub(super) fn hasten_within_budget(&mut self, now: Instant) {
        let at = self.budget.earliest(now, self.period.gap());
        self.wanted_at(at.max(self.last + self.shipment_time() * 2));
    }

    fn wanted_at(&mut self, at: Instant) {
        self.hasten = Some(self.hasten.map_or(at, |earlier| earlier.min(at)));
    }

    /// A report is wanted within the short period.
    pub(super) fn soon(&mut self, now: Instant) {
        self.wanted_at(now.max(self.last + self.period.error()));
    }

    /// Whether a sender at the measured rate comes to the end of a window of `units`, one a shipment, within
    /// two round trips: then it may wait for what is reported.
    pub(super) fn outlasts(&self, units: u64) -> bool {
        let (span, shipments) = self.arrivals;
        let window = span * units / shipments.max(1);
        self.rtt.min().is_some_and(|rtt| window < rtt * 2)
    }

    /// How long before a sender comes to the edge of its window it must be told of a new one. `None` until a round trip
    /// is known.
    // Why a half more: the least round trip is without the work that a busy end does first.
    pub(super) fn lead(&self) -> Option<Duration> {
        self.round_trip().map(|rtt| rtt * 3 / 2 + self.shipment_time() * 2)
    }

    /// Up to number `highest` has arrived when a report leaves.
    fn measure_arrivals(&mut self, now: Instant, highest: u64) {
        let (span, shipments) = self.arrivals;
        // The past fades by an eighth with each report.
        let (span, shipments) = (span.saturating_sub(span / 8), shipments - shipments / 8);
        self.arrivals = (span + now.since(self.last), shipments + highest.saturating_sub(self.echoed));
        self.echoed = highest;
    }

    /// Fits the periods anew where shipments, the highest of which is `highest`, come far faster than before.
    ///
    /// Why: the few of set-up, or of a sender that had little to send, tell of a rate at which a whole window goes by before
    /// the next report. Where as many have come as a report stands for, one should have left.
    fn refit(&mut self, now: Instant, highest: u64) {
        let shipments = highest.saturating_sub(self.echoed);
        if shipments >= SHARE_NORMAL {
            let span = now.since(self.last);
            if span * REFIT_FASTER < self.shipment_time() * shipments {
                self.arrivals = (span, shipments);
                self.fit_period();
            }
        }
    }

    pub(super) const fn on_state(&mut self) {
        self.unheard = 0;
    }

    /// The round trip as somebody else has measured it.
    pub(super) fn set_round_trip(&mut self, rtt: Duration) {
        self.shared_rtt = Some(rtt);
        self.fit_period();
    }

    /// The sender has confirmed reports up to `highest`: a round trip since the first state that says so.
    pub(super) fn on_round_trip(&mut self, now: Instant, highest: Option<u64>) {
        let Some(highest) = highest.filter(|&highest| self.confirmed.is_none_or(|known| highest > known)) else { return };
        if highest >= self.number {
            return;
        }
        self.confirmed = Some(highest);
        let behind = usize::try_from(self.number - highest).unwrap_or(usize::MAX);
        if let Some(at) = self.left.len().checked_sub(behind) {
            self.rtt.on_sample(now, now.since(self.left[at]));
            self.left.drain(..=at);
            self.fit_period();
        }
    }

    fn round_trip(&self) -> Option<Duration> {
        let own = self.rtt.min();
        own.zip(self.shared_rtt).map(|(own, shared)| own.min(shared)).or(own).or(self.shared_rtt)
    }

    /// The time of a shipment by what has arrived lately.
    // Why at most: few arrivals may be a sender that has little to send, of whom nothing should be heard later for that.
    fn shipment_time(&self) -> Duration {
        let (span, shipments) = self.arrivals;
        (span / shipments.max(1)).min(SHIPMENT_TIME_MOST)
    }

    fn fit_period(&mut self) {
        if let Some(rtt) = self.round_trip() {
            self.period.set_from(rtt, self.shipment_time(), self.window);
        }
    }

    fn slowed(&self, period: Duration) -> Duration {
        let doublings = (self.unheard.saturating_sub(16) / 8).min(10);
        (period * (1 << doublings)).min(SLOWEST.max(period))
    }
}

impl RecvHalf {
    /// Whether a report is due for another reason than that time has passed.
    pub fn wants_report(&self, now: Instant) -> bool {
        self.report.hasten.is_some_and(|at| at <= now)
    }

    /// When the next report is due, and why.
    pub(super) fn report_due(&self) -> Option<Deadline> {
        let clock = &self.report;
        let mut due = clock.hasten.map(|at| Deadline { at, timer: "report.news" });
        if self.wanting > 0 {
            let at = clock.last + clock.slowed(clock.period.error());
            due = Deadline::earlier(due, Some(Deadline { at, timer: "report.short" }));
        } else if clock.news || self.unconfirmed > 0 {
            let at = clock.last + clock.slowed(clock.period.normal());
            due = Deadline::earlier(due, Some(Deadline { at, timer: "report.long" }));
        }
        due
    }

    /// The next shipment of the report that is due, if one is.
    pub fn poll_report(&mut self, now: Instant) -> Option<Report> {
        if self.report.burst == 0 {
            // Why here and not with each arrival: what comes in a train is taken as if it had come one by one.
            self.report.refit(now, self.detector.highest().unwrap_or(0));
            if self.report_due().is_none_or(|deadline| deadline.at > now) {
                return None;
            }
            self.report.burst = SHIPMENTS_MAX;
            self.start_report(now);
        }
        let first = self.report.burst == SHIPMENTS_MAX;
        self.report.burst -= 1;
        let report = self.compose(now, first);
        let more = self.report.burst > 0 && self.more_to_say();
        if !more {
            self.end_report();
        }
        if report.frames.is_empty() && !first {
            return None;
        }
        if self.report.left.len() >= TIMES {
            self.report.left.pop_front();
        }
        self.report.left.push_back(now);
        self.report.number += 1;
        self.counters.report_shipments += 1;
        Some(report)
    }

    fn start_report(&mut self, now: Instant) {
        let highest = self.detector.highest().unwrap_or(0);
        let clock = &mut self.report;
        clock.measure_arrivals(now, highest);
        clock.window = self.streams.iter().flatten().map(|stream| stream.window.size().1).min().unwrap_or(0);
        clock.fit_period();
        clock.last = now;
        clock.hasten = None;
        clock.news = false;
        clock.unheard = clock.unheard.saturating_add(1);
        for stream in self.streams.iter_mut().flatten() {
            if stream.window.freed_since_report() != (0, 0) {
                stream.sender_waits = false;
            }
            stream.mark_reported(now);
            stream.request_from = stream.request_from.max((stream.base, 0));
            stream.verdict_from = stream.verdict_from.max((stream.base, 0));
        }
        self.report.grant_from = 0;
    }

    /// The next report starts from the oldest segment again, unless this one did not come to its end.
    fn end_report(&mut self) {
        let clock = &mut self.report;
        clock.budget.spend(clock.last, clock.period.gap(), (SHIPMENTS_MAX - clock.burst) as u64);
        clock.burst = 0;
        for stream in self.streams.iter_mut().flatten() {
            let end = stream.next_segment();
            if stream.wanting == 0 || stream.request_from.0 >= end {
                stream.request_from = (0, 0);
            }
            if stream.unconfirmed == 0 || stream.verdict_from.0 >= end {
                stream.verdict_from = (0, 0);
            }
        }
    }

    fn more_to_say(&self) -> bool {
        self.report.grant_from < self.streams.len()
            || self.streams.iter().flatten().any(|stream| {
                let end = stream.next_segment();
                stream.wanting > 0 && stream.request_from.0 < end || stream.unconfirmed > 0 && stream.verdict_from.0 < end
            })
    }

    fn compose(&mut self, now: Instant, first: bool) -> Report {
        let time = self.report.time;
        let mut report = Report {
            number: self.report.number,
            echo: self.detector.highest(),
            reorder: self.detector.reorder(),
            time: time.map(|(time, _)| time),
            held: time.map_or(0, |(_, at)| now.since(at).as_nanos()),
            frames: smallvec::SmallVec::new(),
        };
        let mut room = self.config.body_bytes - Report::PRELUDE_BYTES_MAX;
        if first {
            self.add_answers(&mut report, &mut room);
        }
        self.add_grants(&mut report, &mut room);
        for id in 0..self.streams.len() {
            self.add_requests(id, &mut report, &mut room);
        }
        for id in 0..self.streams.len() {
            self.add_verdicts(id, &mut report, &mut room);
        }
        report
    }

    fn add_answers(&mut self, report: &mut Report, room: &mut usize) {
        if let Some((change, class)) = self.report.reclass.filter(|_| !self.report.reclass_told) {
            self.report.reclass_told = true;
            push(report, room, ReportFrame::ReclassEcho { change, class });
        }
        if let Some(arrived) = self.report.arrival.take() {
            push(report, room, ReportFrame::Arrival(arrived));
        }
        while let Some(&(stream, reason)) = self.report.refused.front() {
            if !push(report, room, ReportFrame::Refused { stream, reason }) {
                break;
            }
            self.report.refused.pop_front();
        }
    }

    fn add_grants(&mut self, report: &mut Report, room: &mut usize) {
        while let Some(slot) = self.streams.get(self.report.grant_from) {
            let id = self.report.grant_from as u32;
            if let Some(stream) = slot
                && !push(report, room, grant(id, stream))
            {
                return;
            }
            self.report.grant_from += 1;
        }
    }

    /// Asks for everything held lost of violated segments, oldest first.
    fn add_requests(&mut self, id: usize, report: &mut Report, room: &mut usize) {
        let Some(Some(stream)) = self.streams.get_mut(id) else { return };
        if stream.wanting == 0 && stream.request_from.0 >= stream.frontier.0 {
            return;
        }
        while stream.request_from.0 < stream.next_segment() {
            let (number, from) = stream.request_from;
            if let Some(segment) = stream.get(number).filter(|segment| !segment.judged())
                && let Some((frame, to)) = request(id as u32, number, segment, from, *room)
            {
                let cut_short = matches!(&frame, ReportFrame::Request { missing, .. } if missing.is_empty()) && to.is_some();
                if cut_short || !push(report, room, frame) {
                    return;
                }
                if let Some(to) = to {
                    stream.request_from = (number, to);
                    return;
                }
            }
            stream.request_from = (number + 1, 0);
        }
    }

    /// Tells verdicts the sender has not confirmed, oldest first.
    fn add_verdicts(&mut self, id: usize, report: &mut Report, room: &mut usize) {
        let Some(Some(stream)) = self.streams.get_mut(id) else { return };
        if stream.unconfirmed == 0 {
            return;
        }
        while let Some((frame, carried)) = next_verdict(id as u32, stream, report.number, *room) {
            if !push(report, room, frame) {
                return;
            }
            stream.verdict_from = match carried.map {
                Some((_, to)) if stream.get(carried.from).is_some_and(|segment| to < segment.extent()) => (carried.from, to),
                _ => (carried.to, 0),
            };
            if self.report.carried.len() >= CARRIED_MAX {
                self.report.carried.pop_front();
            }
            self.report.carried.push_back(carried);
        }
    }

    /// The sender has confirmed reports.
    pub(super) fn on_confirmed(&mut self, confirmed: &Confirmed) {
        let Some(highest) = confirmed.highest else { return };
        let mut kept = core::mem::take(&mut self.report.carried);
        kept.retain(|carried| {
            if !confirmed.contains(carried.report) {
                return carried.report + REMEMBERED >= highest;
            }
            if let Some(Some(stream)) = self.streams.get_mut(carried.stream as usize) {
                if let (Some((from, to)), Some(segment)) = (carried.map, stream.get_mut(carried.from)) {
                    if from > segment.holes_confirmed && !segment.confirmed {
                        // The sender keeps it; it counts here when what comes before it is confirmed too.
                        return carried.report + REMEMBERED >= highest;
                    }
                    segment.holes_confirmed = segment.holes_confirmed.max(to);
                }
                let before = stream.unconfirmed;
                stream.confirm(carried.from, carried.to, carried.report);
                self.unconfirmed -= before - stream.unconfirmed;
            }
            false
        });
        self.report.carried = kept;
    }
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
pub(super) fn grant(id: u32, stream: &RecvStream) -> ReportFrame {
    let (segments, units) = stream.edges();
    ReportFrame::Grant { stream: id, segments, units, end_known: stream.end.is_some() }
}

/// What is wanted of a segment from position `from` on, cut to `room`, and the position at which it was cut;
/// `None` when nothing is wanted.
fn request(stream: u32, number: u64, segment: &RecvSegment, from: u32, room: usize) -> Option<(ReportFrame, Option<u32>)> {
    let unknown_length = segment.layout.units.is_none() && segment.due == u32::MAX;
    if !segment.violated && !unknown_length {
        return None;
    }
    let frame = |missing, tail_from| ReportFrame::Request { stream, segment: number, missing, tail_from, length_wanted: unknown_length };
    let tail_from = (segment.violated && unknown_length).then_some(segment.extent());
    let room = room.saturating_sub(frame(Runs::new(), tail_from).encoded_len());
    let due = if segment.violated { segment.due_extent() } else { 0 };
    let runs = segment.present.zero_runs(from, due).map(|(start, count)| (start, start + count));
    let (missing, cut) = fitting(runs, segment.lost as usize, room);
    let tail_from = tail_from.filter(|_| cut.is_none());
    let nothing = missing.is_empty() && tail_from.is_none() && !unknown_length && cut.is_none();
    (!nothing).then(|| (frame(missing, tail_from), cut))
}

/// As many of `runs`, of which there are at most `most`, as fit `room` bytes, and the start of the first that
/// does not.
fn fitting(runs: impl Iterator<Item = (u32, u32)>, most: usize, room: usize) -> (Runs, Option<u32>) {
    // One byte more for the number of runs, which is counted as one by an empty frame.
    let (mut kept, mut last, mut used) = (Runs::with_capacity(most.min(RUNS_MAX)), 0, 1);
    for (start, end) in runs {
        used += varint_len(u64::from(start - last)) + varint_len(u64::from(end - start));
        if used > room || kept.len() >= RUNS_MAX {
            return (kept, Some(start));
        }
        kept.push((start, end));
        last = end;
    }
    (kept, None)
}

/// The next verdict frame of `stream` from its cursor on; `None` when all is told or nothing more fits.
fn next_verdict(id: u32, stream: &mut RecvStream, report: u64, room: usize) -> Option<(ReportFrame, Carried)> {
    let untold = |segment: &RecvSegment| segment.judged() && !segment.confirmed;
    while stream.verdict_from.0 < stream.next_segment() && !stream.get(stream.verdict_from.0).is_some_and(untold) {
        stream.verdict_from = (stream.verdict_from.0 + 1, 0);
    }
    let (first, told) = stream.verdict_from;
    let segment = stream.get(first)?;
    let verdict = segment.verdict?;
    if verdict == Verdict::Complete {
        let mut to = first + 1;
        while stream.get(to).is_some_and(|next| next.verdict == Some(Verdict::Complete)) {
            to += 1;
        }
        let carried = Carried { report, stream: id, from: first, to, map: None };
        return Some((ReportFrame::Complete { stream: id, first, count: to - first }, carried));
    }
    let units = segment.extent();
    let from = segment.holes_confirmed.max(told);
    let frame = |to, holes| ReportFrame::Judged { stream: id, segment: first, verdict, units, from, to, holes };
    let room = room.checked_sub(frame(units, Runs::new()).encoded_len())?;
    let (holes, cut) = fitting(segment.holes.iter().copied().filter(|hole| hole.0 >= from), segment.holes.len(), room);
    if holes.is_empty() && cut.is_some() {
        return None;
    }
    let to = cut.unwrap_or(units);
    Some((frame(to, holes), Carried { report, stream: id, from: first, to: first + 1, map: Some((from, to)) }))
}
