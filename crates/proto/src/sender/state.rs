//! When the sender's state is due, and its frames (HT 3.1: TXS).
//!
//! Called by the half. The first situation that applies determines the interval:
//! - a new statement (a stream, an end, a SKIP, a confirmed report): immediate, but at least a quarter of the short period after the last;
//! - a tail: unjudged data, nothing eligible, and the echo has not yet passed the last data shipment by R + 1. R + 1 states follow
//!   quickly, so that the receiver can declare it lost, then one every short period, and ever rarer up to the long one;
//! - a statement is unconfirmed: every short period, and ever rarer up to the long one;
//! - the window blocks data: every short period, and every long one after some time;
//! - unjudged data, or no report yet: every long period; otherwise: the keep-alive.
//!
//! Invariant: while anything is unjudged or unconfirmed, a state is due, and its number is above every shipment sent before. Unanswered
//! states back off to one every quarter of a round trip, 10 to 200 ms, and never stop. So do those of a fixed rate on a path that loses
//! more than half (RFC 8085 3.1: control traffic responds to congestion too).

use super::segment::SendSegment;
use super::stream::{FirstTime, SendStream};
use super::{Outgoing, SendHalf};
use crate::number::ShipmentCounter;
use segstream_base::endpoint::Deadline;
use segstream_base::{Duration, ExchangeNumber, Instant, Position, SegmentNumber, ShipmentNumber, StreamId};
use segstream_blocks::report_period::ReportPeriod;
use segstream_wire::state::{Confirmed, Reached};
use segstream_wire::{Class, State, StateFrame};
use std::cell::Cell;

/// Finished segments listed in one state at most.
const FINISHED_LISTED: u64 = 24;
/// After so many unanswered states reports count as missing.
const REPORTS_STAY_AWAY: u32 = 2;
/// So few unconfirmed verdicts never fill the memory of a receiver.
const JUDGED_LEAST: u64 = 256;
/// Unanswered states before the back-off begins.
const UNANSWERED: u32 = 24;
/// How many states after the last data a window-blocked sender sends at the short period.
const WAITING_SHORT: u32 = 16;
/// So many states that no data has followed are a short period apart otherwise. Why more than there are in a round trip: what was finished
/// is listed after one.
const REPEATED_SHORT: u32 = 24;
/// The longest back-off towards a silent receiver.
const SLOWEST: Duration = Duration::from_millis(200);
/// The lower bound of the longest back-off, which is a quarter of the round trip: on a short path the end of an outage is
/// noticed within a few round trips.
const SLOWEST_LEAST: Duration = Duration::from_millis(10);

/// The spacing is doubled so often at most.
const DOUBLINGS_MOST: u32 = 10;

/// Why states are further apart than the situation asks.
#[derive(Clone, Copy, Debug, Default)]
struct Backoff {
    /// States sent since the last report came.
    unanswered: u32,
    /// Seconds in which less than half of a fixed rate arrived, less those in which more did.
    crowded: u32,
}

impl Backoff {
    /// How often the spacing is doubled: for every eight unanswered states beyond the first [`UNANSWERED`], and for every second on a
    /// crowded path.
    fn doublings(self) -> u32 {
        (self.unanswered.saturating_sub(UNANSWERED) / 8 + self.crowded).min(DOUBLINGS_MOST)
    }
}

/// Changes of class and rate.
#[derive(Clone, Copy, Debug, Default)]
struct Reclass {
    /// How many were asked for, which numbers them from 1 on.
    asked: u64,
    /// The one that the receiver has not echoed yet.
    pending: Option<(u64, Class)>,
}

/// The timer of the sender's state.
#[derive(Debug)]
pub(super) struct StateTimer {
    sync: ExchangeNumber,
    last_sent: Instant,
    /// When the last eligible unit left, and when data came after everything was judged.
    idle_since: Instant,
    busy_since: Instant,
    immediate_at: Option<Instant>,
    period: ReportPeriod,
    round_trip: Duration,
    pub(super) confirmed: Confirmed,
    /// A state has confirmed a report.
    confirms: bool,
    backoff: Backoff,
    /// States sent since the last data shipment.
    since_data: u32,
    /// Segments judged since the last state.
    judged: u64,
    reclass: Reclass,
    /// The stream whose statements come first in the next state.
    turn: usize,
    /// When the next state is due, as long as nothing has changed it; see [`SendHalf::invalidate_due`].
    due: Cell<Option<Option<Deadline>>>,
}

impl StateTimer {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            sync: ExchangeNumber::FIRST,
            last_sent: now,
            idle_since: now,
            busy_since: now,
            immediate_at: None,
            period: ReportPeriod::new(now),
            round_trip: Duration::ZERO,
            confirmed: Confirmed::default(),
            confirms: false,
            backoff: Backoff::default(),
            since_data: 0,
            judged: 0,
            reclass: Reclass::default(),
            turn: 0,
            due: Cell::new(None),
        }
    }

    /// Something may have changed when the next state is due.
    pub(super) fn invalidate_due(&mut self) {
        self.due.set(None);
    }

    /// There is a new statement: makes the next state immediate.
    pub(super) fn schedule_immediate(&mut self, now: Instant) {
        // The first state has no predecessor to be spaced from.
        let earliest = if self.sync == ExchangeNumber::FIRST { now } else { now.max(self.last_sent + self.period.error() / 4) };
        self.schedule_at(earliest);
    }

    /// The next state leaves at `at` at the latest, whatever its distance to the last.
    pub(super) fn schedule_at(&mut self, at: Instant) {
        self.immediate_at = Some(self.immediate_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Segments are judged, which the receiver does not know yet.
    pub(super) const fn on_judged(&mut self, segments: u64) {
        self.judged = self.judged.saturating_add(segments);
    }

    /// A confirmation is pending for verdicts of a stream whose window has so many segments.
    ///
    /// Why not at once: a confirmation only frees what the receiver keeps. So it may wait for the long period, until the
    /// receiver keeps the verdicts of a window. By the first one the receiver learns the round trip.
    pub(super) fn confirm_later(&mut self, now: Instant, window: u32) {
        if !self.confirms {
            return self.schedule_immediate(now);
        }
        let many = self.judged >= u64::from(window).max(JUDGED_LEAST);
        let period = if many { self.period.error() } else { self.period.normal() };
        self.schedule_at(now.max(self.last_sent + period));
    }

    pub(super) fn set_round_trip(&mut self, round_trip: Duration, shipment_time: Duration, window: u64) {
        self.round_trip = round_trip;
        self.period.set_from(round_trip, shipment_time, window);
    }

    /// Connection migration: the round trip of the new path is unknown, and the next state measures it first.
    pub(super) fn on_path_change(&mut self, now: Instant) {
        self.round_trip = Duration::ZERO;
        self.backoff.crowded = 0;
        self.period = ReportPeriod::new(now);
        self.schedule_immediate(now);
    }

    pub(super) fn announce_reclass(&mut self, now: Instant, class: Class) {
        self.reclass.asked += 1;
        self.reclass.pending = Some((self.reclass.asked, class));
        self.schedule_immediate(now);
    }

    /// Whether an immediate state is pending.
    pub(super) const fn has_immediate(&self) -> bool {
        self.immediate_at.is_some()
    }

    /// The number of the next TXS.
    pub(super) const fn take_sync(&mut self) -> ExchangeNumber {
        let sync = self.sync;
        self.sync = self.sync.next();
        sync
    }

    /// The class that is asked for and not yet in force.
    pub(super) const fn class_asked(&self) -> Option<Class> {
        match self.reclass.pending {
            Some((_, class)) => Some(class),
            None => None,
        }
    }

    pub(super) fn on_reclass_echo(&mut self, change: u64) -> Option<Class> {
        let (_, class) = self.reclass.pending.take_if(|(pending, _)| *pending == change)?;
        Some(class)
    }

    /// Whether reports arrive.
    pub(super) const fn is_answered(&self) -> bool {
        self.backoff.unanswered < UNANSWERED
    }

    pub(super) const fn on_answer(&mut self) {
        self.backoff.unanswered = 0;
    }

    /// What the path made of the last second of a fixed rate: `crowded` if less than half of it arrived.
    pub(super) fn on_carried(&mut self, crowded: bool) {
        let seconds = self.backoff.crowded;
        self.backoff.crowded = if crowded { (seconds + 1).min(DOUBLINGS_MOST) } else { seconds.saturating_sub(1) };
    }

    /// Data has left. Returns whether states had been sent since the last.
    pub(super) const fn on_data(&mut self) -> bool {
        core::mem::replace(&mut self.since_data, 0) > 0
    }

    /// The last eligible unit has just left: the states of the tail follow at once.
    pub(super) fn on_idle(&mut self, now: Instant) {
        self.idle_since = now;
    }

    /// New data after everything was judged: the keep-alive period ends, and no state is overdue.
    pub(super) fn on_busy(&mut self, now: Instant) {
        self.busy_since = now;
    }

    /// `period`, doubled as the back-off says.
    fn slowed(&self, period: Duration) -> Duration {
        let doublings = self.backoff.doublings();
        let slowest = if self.round_trip.is_zero() { SLOWEST } else { (self.round_trip / 4).clamp(SLOWEST_LEAST, SLOWEST) };
        (period * (1 << doublings)).min(slowest.max(period))
    }

    /// The short period, doubled with each state after [`REPEATED_SHORT`] that no data has followed, up to the long one.
    ///
    /// Why: such a state is of use only if those before it were lost. Where packets queue for many short periods, states of which each asks
    /// for a report filled a slow path both ways.
    fn repetition_period(&self) -> Duration {
        self.slowed(self.period.repetition(self.since_data.saturating_sub(REPEATED_SHORT)))
    }

    /// The spacing of the first R + 1 states after the last data, and of those after them.
    fn tail_spacing(&self, reorder: u32) -> Duration {
        if self.since_data > reorder {
            return self.repetition_period();
        }
        let quick = self.round_trip / 8 / (u64::from(reorder) + 1);
        let quick = quick.max(Duration::from_micros(200)).min(self.period.error());
        if self.backoff.crowded > 0 { self.slowed(quick) } else { quick }
    }
}

impl SendHalf {
    /// When the next state is due, and why.
    #[inline]
    pub(super) fn state_due(&self) -> Option<Deadline> {
        if let Some(due) = self.state_timer.due.get() {
            debug_assert_eq!(due, self.next_state(), "the next state's time has changed and was not invalidated");
            return due;
        }
        let due = self.next_state();
        self.state_timer.due.set(Some(due));
        due
    }

    #[cold]
    fn next_state(&self) -> Option<Deadline> {
        let clock = &self.state_timer;
        let since = if self.has_unjudged() { clock.last_sent.max(clock.busy_since) } else { clock.last_sent };
        let paced = |timer, period| Deadline { at: since + period, timer };
        let situation = if self.is_tail() {
            let since = clock.last_sent.max(clock.idle_since);
            Deadline { at: since + clock.tail_spacing(self.path.reordering_threshold), timer: "state.tail" }
        } else if self.has_unconfirmed() || self.stream_counts.window_blocked > 0 && clock.since_data <= WAITING_SHORT {
            paced("state.waiting", clock.repetition_period())
        } else if self.has_unjudged() || clock.sync > ExchangeNumber::FIRST && clock.confirmed.highest.is_none() {
            // Why the second: nothing has shown yet that any state arrives. The third leg of set-up may be lost.
            paced("state.long", clock.slowed(clock.period.normal()))
        } else {
            paced("state.keep_alive", self.config.keep_alive)
        };
        Deadline::earlier(clock.immediate_at.map(|at| Deadline { at, timer: "state.news" }), Some(situation))
    }

    fn is_tail(&self) -> bool {
        if !self.has_unjudged() || self.has_eligible() {
            return false;
        }
        let Some(last) = self.last_data else { return false };
        self.path.echo.is_none_or(|echo| echo <= last + u64::from(self.path.reordering_threshold))
    }

    /// Whether a stream, an end, a SKIP or a change of class is unconfirmed.
    fn has_unconfirmed(&self) -> bool {
        self.state_timer.reclass.pending.is_some() || self.stream_counts.unconfirmed > 0
    }

    #[cold]
    pub(super) fn emit_state(&mut self, now: Instant, counter: &mut ShipmentCounter) -> (ShipmentNumber, Outgoing) {
        self.invalidate_due();
        let number = counter.take();
        let mut state = State {
            sync: self.state_timer.take_sync(),
            time: now.as_nanos(),
            answer: self.is_tail() && self.state_timer.since_data >= self.path.reordering_threshold,
            exchange: self.asks_for_arrival(now),
            confirmed: self.state_timer.confirmed,
            frames: smallvec::SmallVec::new(),
        };
        self.add_frames(now, &mut state);
        debug_assert!(state.encoded_len() <= self.config.body_bytes, "a state of {} bytes", state.encoded_len());
        self.state_timer.last_sent = now;
        self.state_timer.immediate_at = None;
        self.state_timer.judged = 0;
        self.state_timer.confirms |= self.state_timer.confirmed.highest.is_some();
        self.state_timer.backoff.unanswered = self.state_timer.backoff.unanswered.saturating_add(1);
        self.state_timer.since_data = self.state_timer.since_data.saturating_add(1);
        self.on_state_sent(now, number, &state);
        (number, Outgoing::State(Box::new(state)))
    }

    fn overdue(&self, now: Instant) -> Overdue {
        let echoed = if self.state_timer.backoff.unanswered < REPORTS_STAY_AWAY { self.path.echo } else { Some(ShipmentNumber(u64::MAX)) };
        Overdue { ended_by: now - self.state_timer.round_trip - self.state_timer.period.error(), echoed }
    }

    fn add_frames(&mut self, now: Instant, state: &mut State) {
        let mut room = self.config.body_bytes - State::PRELUDE_BYTES_MAX;
        let mut push = |frame: StateFrame| {
            let fits = frame.encoded_len() <= room;
            if fits {
                room -= frame.encoded_len();
                state.frames.push(frame);
            }
            fits
        };
        if let Some((change, class)) = self.state_timer.reclass.pending {
            push(StateFrame::Reclass { change, class, rate: self.config.rate.peak() });
        }
        let overdue = self.overdue(now);
        // Round robin: when not everything fits, another stream comes first in the next state.
        let count = self.streams.len();
        let first = self.state_timer.turn.checked_rem(count).unwrap_or(0);
        self.state_timer.turn = first + 1;
        let turns = |step: usize| (first + step) % count;
        for place in (0..count).map(turns) {
            announce(self.streams.number(place), &self.streams[place], &mut push);
        }
        for place in (0..count).map(turns) {
            let id = self.streams.number(place);
            list_newest(id, &self.streams[place], &mut push);
            list_reached(id, &self.streams[place], &mut push);
        }
        for place in (0..count).map(turns) {
            list_finished(self.streams.number(place), &mut self.streams[place], overdue, &mut push);
        }
    }
}

/// Which segments should have been judged by now.
///
/// Why the second: of small segments hundreds wait for the next report, which tells of nearly all. Not so when reports are
/// missing: the receiver may know of none of them, and judges no segment whose length it does not know.
#[derive(Clone, Copy)]
struct Overdue {
    /// Those whose first pass ended by then ..
    ended_by: Instant,
    /// .. and of many, those whose first pass was over below this number, which a report has echoed.
    echoed: Option<ShipmentNumber>,
}

impl Overdue {
    fn holds(self, segment: &SendSegment, few: bool) -> bool {
        segment.sent.first_pass_ended <= self.ended_by && (few || segment.sent.first_pass_last <= self.echoed)
    }
}

/// What is true of the stream as a whole and not known to the receiver.
fn announce(id: StreamId, stream: &SendStream, push: &mut impl FnMut(StateFrame) -> bool) {
    if stream.end.refused.is_some() {
        return;
    }
    if !stream.window.granted {
        push(StateFrame::Open { stream: id, contract: Box::new(stream.contract.clone()) });
    }
    if stream.end.is_unconfirmed() {
        push(StateFrame::End { stream: id, segments: stream.segments.next_number().0 });
    }
    if stream.first_time() == FirstTime::Window {
        push(StateFrame::Waiting { stream: id });
    }
}

/// The statement about a segment whose first pass is over or that is given up.
fn statement(id: StreamId, stream: &SendStream, number: SegmentNumber) -> Option<StateFrame> {
    let segment = stream.segments.get(number).filter(|segment| !segment.judged())?;
    let finished = segment.statement(id, number);
    if segment.skipped {
        // A SKIP beyond the window would name a segment the receiver has no room to remember, and one out of
        // order would free units that are not counted yet.
        let in_turn = number.0 < stream.window.edges.segments() && number < stream.current;
        return in_turn.then_some(StateFrame::Skip(finished));
    }
    segment.first_pass_over().then_some(StateFrame::Finished(finished))
}

/// The newest segment that has left: with it the receiver can declare its tail lost.
fn list_newest(id: StreamId, stream: &SendStream, push: &mut impl FnMut(StateFrame) -> bool) {
    if let Some(frame) = stream.current.previous().and_then(|newest| statement(id, stream, newest)) {
        push(frame);
    }
}

/// How far an open segment has come, when everything of it that may leave has left.
fn list_reached(id: StreamId, stream: &SendStream, push: &mut impl FnMut(StateFrame) -> bool) {
    let Some(segment) = stream.segments.get(stream.current) else { return };
    let paused = segment.layout.units.is_none() && segment.sent.next > Position::FIRST && segment.sent.next == segment.ready();
    if let Some(last_shipment) = segment.sent.last_shipment.filter(|_| paused && !segment.judged() && !segment.skipped) {
        push(StateFrame::Reached(Reached {
            stream: id,
            segment: stream.current,
            position: segment.sent.next,
            source_time: segment.source_time,
            tolerance: segment.tolerance.own,
            last_shipment,
        }));
    }
}

/// Segments that should have been judged by now, oldest first and in turns.
fn list_finished(id: StreamId, stream: &mut SendStream, overdue: Overdue, push: &mut impl FnMut(StateFrame) -> bool) {
    if stream.listed_to + 1 >= stream.current || stream.listed_to < stream.segments.base {
        stream.listed_to = stream.segments.base;
    }
    let few = stream.current.since(stream.segments.base) <= FINISHED_LISTED;
    let mut listed = 0;
    while stream.listed_to + 1 < stream.current && listed < FINISHED_LISTED {
        let number = stream.listed_to;
        let is_due = |segment: &SendSegment| segment.skipped || segment.length_wanted || overdue.holds(segment, few);
        let due = stream.segments.get(number).is_some_and(is_due);
        if due && let Some(frame) = statement(id, stream, number) {
            if !push(frame) {
                return;
            }
            listed += 1;
        }
        stream.listed_to += 1;
    }
    if stream.listed_to + 1 >= stream.current {
        // Every stream has been listed. Why here and not when the next state begins: by then newer segments may
        // have started, and the oldest would never be listed again while data flows.
        stream.listed_to = stream.segments.base;
    }
}
