//! The run queue and timer queue of an endpoint's connections, as a scheduler has: a call visits only connections that may have something
//! to do.
//!
//! Called by the endpoint. A connection is *touched* when a datagram, a timer or the application may have changed it. From then on it is
//! *ready* until it has nothing to send; ready connections are polled round robin. Every other connection has an entry in the timer
//! queue.
//!
//! Invariant: a connection that is neither touched nor ready has nothing to send and no events before its entry, and no connection has
//! more than one entry. An entry is never later than the connection's deadline, except for ready connections: they are polled anyway,
//! and their other timers are checked every millisecond while they cannot send. A deadline that moves later is corrected when its entry
//! comes first. So a call costs amortized O(log n) for n connections.

use super::slots::{ConnectionId, Slot, Slots};
use crate::connection::ConnectionEvent;
use crate::path::Addresses;
use crate::trace::Traced;
use segstream_base::endpoint::{Deadline, Transmit};
use segstream_base::{Duration, Instant};
use segstream_blocks::recount;
use std::collections::{BTreeSet, VecDeque};

/// How often the timers of a ready connection are checked.
const READY_TIMER_INTERVAL: Duration = Duration::from_millis(1);

/// The queue's state of one connection.
#[derive(Debug, Default)]
pub(super) struct Queued {
    touched: bool,
    /// It has pending events.
    has_pending_events: bool,
    /// Its trace has events.
    has_trace: bool,
    entry: Option<Instant>,
}

/// The connections that may have something to do.
#[derive(Debug, Default)]
pub(super) struct RunQueue {
    /// The latest time passed to the endpoint.
    now: Instant,
    touched: Vec<u32>,
    with_events: Vec<u32>,
    with_trace: Vec<u32>,
    ready: BTreeSet<u32>,
    entries: BTreeSet<(Instant, u32)>,
    /// Where the next search for something to send begins.
    turn: u32,
    /// The connections whose events come next, and how many of each.
    delivering: VecDeque<(ConnectionId, usize)>,
    /// For the connections that are due, kept for its buffer.
    due: Vec<u32>,
    /// How often a connection was looked at.
    #[cfg(test)]
    pub(super) visits: std::cell::Cell<u64>,
}

impl RunQueue {
    /// The time is `now`.
    pub(super) const fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    /// The connection in slot `index` may change.
    #[inline]
    pub(super) fn mark_touched(&mut self, index: u32, slot: &mut Slot) {
        slot.note_change();
        if !core::mem::replace(&mut slot.queued.touched, true) {
            self.touched.push(index);
        }
    }

    /// The connection is gone from its slot.
    pub(super) fn remove(&mut self, index: u32, queued: &Queued) {
        // Why not from the other lists: their entries are checked against the state of the slot.
        self.ready.remove(&index);
        if let Some(entry) = queued.entry {
            self.entries.remove(&(entry, index));
        }
    }

    /// Updates the touched connections.
    pub(super) fn process_touched(&mut self, slots: &mut Slots) {
        while let Some(index) = self.touched.pop() {
            let Some(slot) = slots.at_mut(index).filter(|slot| slot.queued.touched) else { continue };
            slot.queued.touched = false;
            self.ready.insert(index);
            self.update(index, slots);
        }
    }

    /// Updates the queue's state of a connection: its events, its state, its deadline.
    fn update(&mut self, index: u32, slots: &mut Slots) {
        slots.update_state(index);
        let Some(slot) = slots.at_mut(index) else { return };
        if slot.connection.has_events() && !core::mem::replace(&mut slot.queued.has_pending_events, true) {
            self.with_events.push(index);
        }
        if slot.connection.has_trace() && !core::mem::replace(&mut slot.queued.has_trace, true) {
            self.with_trace.push(index);
        }
        self.update_entry(index, slot);
    }

    /// The next connection whose trace has events, and the events.
    pub(super) fn poll_trace(&mut self, slots: &mut Slots) -> Option<(ConnectionId, Vec<Traced>)> {
        self.process_touched(slots);
        while let Some(index) = self.with_trace.pop() {
            if let Some(slot) = slots.at_mut(index).filter(|slot| slot.queued.has_trace) {
                slot.queued.has_trace = false;
                return Some((slot.id, slot.connection.take_trace()));
            }
        }
        None
    }

    /// Brings the entry of a connection up to date.
    fn update_entry(&mut self, index: u32, slot: &mut Slot) {
        #[cfg(test)]
        self.visits.set(self.visits.get() + 1);
        let earliest = if self.ready.contains(&index) { self.now + READY_TIMER_INTERVAL } else { Instant::ZERO };
        let due = slot.deadline().map(|deadline| deadline.at.max(earliest));
        debug_assert!(slot.queued.entry.is_none_or(|entry| self.entries.contains(&(entry, index))), "an entry is lost");
        if slot.queued.entry == due || slot.queued.entry.zip(due).is_some_and(|(entry, due)| entry < due) {
            return;
        }
        if let Some(entry) = slot.queued.entry.take() {
            self.entries.remove(&(entry, index));
        }
        slot.queued.entry = due;
        self.entries.extend(due.map(|due| (due, index)));
    }

    /// Takes the first entry out, if it is at `now` or before.
    fn take_expired(&mut self, now: Instant) -> Option<u32> {
        self.entries.first().filter(|(at, _)| *at <= now)?;
        self.entries.pop_first().map(|(_, index)| index)
    }

    /// The next event of a connection.
    pub(super) fn poll_event(&mut self, slots: &mut Slots) -> Option<(ConnectionId, ConnectionEvent)> {
        self.process_touched(slots);
        // Why sorted: the order of events must not depend on the order of touching.
        self.with_events.sort_unstable();
        // Why counted all at once: what the application does between two events must not change those that were due before.
        for index in self.with_events.drain(..) {
            let Some(slot) = slots.at_mut(index) else { continue };
            slot.queued.has_pending_events = false;
            self.delivering.push_back((slot.id, slot.connection.count_events()));
        }
        loop {
            let (id, left) = self.delivering.front_mut()?;
            let from = *id;
            // A removed connection has no events.
            let event = left.checked_sub(1).and_then(|_| slots.get_mut(from)?.connection.poll_event());
            *left = left.saturating_sub(1);
            if event.is_none() || *left == 0 {
                self.delivering.pop_front();
            }
            if let Some(event) = event {
                return Some((from, event));
            }
        }
    }

    /// The ready connection whose turn it is.
    fn next(&self) -> Option<u32> {
        self.ready.range(self.turn..).next().or_else(|| self.ready.first()).copied()
    }

    /// Asks those that may have something to send, in turns.
    pub(super) fn poll_transmit(&mut self, now: Instant, slots: &mut Slots, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        self.process_touched(slots);
        self.wake(now, slots);
        while let Some(index) = self.next() {
            if let Some(slot) = slots.at_mut(index) {
                #[cfg(test)]
                self.visits.set(self.visits.get() + 1);
                if let Some((Addresses { remote, local }, datagram_bytes)) = slot.connection.poll_transmit(now, max_datagrams, out) {
                    self.turn = index + 1;
                    self.mark_touched(index, slot);
                    return Some(Transmit { to: remote, from: local, datagram_bytes, ecn: slot.connection.ecn() });
                }
                slot.note_change();
            }
            self.ready.remove(&index);
            self.update(index, slots);
        }
        self.correct_first(slots);
        self.debug_assert_entries(slots);
        None
    }

    /// No connection has more than one entry, and one that is neither touched nor ready has nothing to do before it. Called when nothing
    /// is left to send.
    fn debug_assert_entries(&self, slots: &Slots) {
        if !recount::is_due(slots.len()) {
            return;
        }
        let mut entries = 0;
        for slot in slots.iter() {
            let (queued, index) = (&slot.queued, slot.id.index());
            entries += usize::from(queued.entry.is_some());
            debug_assert!(queued.entry.is_none_or(|entry| self.entries.contains(&(entry, index))), "an entry is lost");
            if !queued.touched && !self.ready.contains(&index) {
                let due = slot.deadline().map(|deadline| deadline.at);
                let early = due.is_none_or(|due| queued.entry.is_some_and(|entry| entry <= due));
                debug_assert!(early, "an entry at {:?} for what is due at {due:?}", queued.entry);
                debug_assert!(queued.has_pending_events || !slot.connection.has_events(), "an event is not queued");
            }
        }
        debug_assert_eq!(self.entries.len(), entries, "somebody has two entries");
    }

    /// Makes due connections ready.
    fn wake(&mut self, now: Instant, slots: &mut Slots) {
        while let Some(index) = self.take_expired(now) {
            let Some(slot) = slots.at_mut(index) else { continue };
            slot.queued.entry = None;
            if slot.deadline().is_some_and(|deadline| deadline.at <= now) {
                self.ready.insert(index);
            }
            self.update_entry(index, slot);
        }
    }

    /// Corrects entries whose deadline has moved later, until the first entry is correct.
    fn correct_first(&mut self, slots: &mut Slots) {
        while let Some(&(at, index)) = self.entries.first() {
            let Some(slot) = slots.at_mut(index) else { return };
            if slot.deadline().is_some_and(|deadline| deadline.at <= at) {
                return;
            }
            self.entries.pop_first();
            slot.queued.entry = None;
            self.update_entry(index, slot);
        }
    }

    /// When the first connection is due. It is the very deadline once nothing is left to send, and may be early before.
    pub(super) fn poll_deadline(&self, slots: &Slots) -> Option<Deadline> {
        // Why two: what was touched may be due at another time than its entry says.
        let touched = self.touched.iter().filter_map(|&index| {
            let slot = slots.at(index).filter(|slot| slot.queued.touched)?;
            slot.deadline().map(|deadline| (deadline, index))
        });
        let mut others = self.entries.iter().filter_map(|&(at, index)| {
            let slot = slots.at(index).filter(|slot| !slot.queued.touched)?;
            slot.deadline().map(|deadline| (Deadline { at, ..deadline }, index))
        });
        touched.chain(others.next()).min_by_key(|(deadline, index)| (deadline.at, *index)).map(|(deadline, _)| deadline)
    }

    /// Calls the due connections.
    pub(super) fn handle_timeout(&mut self, now: Instant, slots: &mut Slots) {
        self.now = now;
        let mut due = core::mem::take(&mut self.due);
        due.extend_from_slice(&self.touched);
        while let Some(index) = self.take_expired(now) {
            if let Some(slot) = slots.at_mut(index) {
                slot.queued.entry = None;
                due.push(index);
            }
        }
        // Why sorted: the order of calls must not depend on the order of touching.
        due.sort_unstable();
        due.dedup();
        for index in due.drain(..) {
            let Some(slot) = slots.at_mut(index) else { continue };
            if slot.deadline().is_some_and(|deadline| deadline.at <= now) {
                slot.connection.handle_timeout(now);
                self.mark_touched(index, slot);
            } else if !slot.queued.touched {
                self.update_entry(index, slot);
            }
        }
        self.due = due;
    }
}
