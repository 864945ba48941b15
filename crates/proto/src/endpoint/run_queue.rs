//! Which connections may have something to do: only those are asked, however many there are.
//!
//! Called by the endpoint. A connection is *touched* when anyone may have changed it: a datagram, the time, the
//! application. It is *ready* from then on until it has nothing to send; the ready ones are asked in turns. Of every other
//! one is known when it is due: an entry in the order of time. This is a run queue and a timer queue, as schedulers have.
//!
//! Invariant: a connection that is neither touched nor ready has nothing to send or to say before its entry, and nobody has
//! more than one entry. An entry is never later than the connection's deadline, but for those that are ready: they are
//! asked anyway, and are looked at for other timers every millisecond while nothing of theirs can leave. A deadline that
//! moves later is found out when its entry comes first. So each call costs O(log n) of n connections, taken over many calls.

use super::slots::{ConnectionId, Slot, Slots};
use crate::connection::ConnectionEvent;
use crate::path::Addresses;
use segstream_base::endpoint::{Deadline, Transmit};
use segstream_base::{Duration, Instant};
use segstream_blocks::recount;
use std::collections::{BTreeSet, VecDeque};

/// How often the timers of a connection are looked at that waits for its turn to send.
const WAITING_PAUSE: Duration = Duration::from_millis(1);

/// What the queue knows of one connection.
#[derive(Debug, Default)]
pub(super) struct Queued {
    touched: bool,
    /// It has events that nobody has taken.
    speaking: bool,
    entry: Option<Instant>,
}

/// The connections that may have something to do.
#[derive(Debug, Default)]
pub(super) struct RunQueue {
    /// The latest time told.
    now: Instant,
    touched: Vec<u32>,
    speaking: Vec<u32>,
    ready: BTreeSet<u32>,
    entries: BTreeSet<(Instant, u32)>,
    /// Where the next search for something to send begins.
    turn: u32,
    /// Whose events are told next, and how many of each connection's.
    telling: VecDeque<(ConnectionId, usize)>,
    /// For the connections that are due, kept for its buffer.
    due: Vec<u32>,
    /// How often a connection was looked at.
    #[cfg(test)]
    pub(super) looks: std::cell::Cell<u64>,
}

impl RunQueue {
    /// The time is `now`.
    pub(super) const fn tell(&mut self, now: Instant) {
        self.now = now;
    }

    /// Somebody may change the connection in slot `index`.
    #[inline]
    pub(super) fn touch(&mut self, index: u32, slot: &mut Slot) {
        slot.note_change();
        if !core::mem::replace(&mut slot.queued.touched, true) {
            self.touched.push(index);
        }
    }

    /// The connection is gone from its slot.
    pub(super) fn remove(&mut self, index: u32, queued: &Queued) {
        // Why not from the other lists: whoever is in the slot next says itself whether it is in them.
        self.ready.remove(&index);
        if let Some(entry) = queued.entry {
            self.entries.remove(&(entry, index));
        }
    }

    /// Looks at what was touched.
    pub(super) fn settle(&mut self, slots: &mut Slots) {
        while let Some(index) = self.touched.pop() {
            let Some(slot) = slots.at_mut(index).filter(|slot| slot.queued.touched) else { continue };
            slot.queued.touched = false;
            self.ready.insert(index);
            self.look(index, slots);
        }
    }

    /// Notes what has become of a connection: its events, its state, its deadline.
    fn look(&mut self, index: u32, slots: &mut Slots) {
        slots.update_state(index);
        let Some(slot) = slots.at_mut(index) else { return };
        if slot.connection.has_events() && !core::mem::replace(&mut slot.queued.speaking, true) {
            self.speaking.push(index);
        }
        self.enter(index, slot);
    }

    /// Brings the entry of a connection up to date.
    fn enter(&mut self, index: u32, slot: &mut Slot) {
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
        let earliest = if self.ready.contains(&index) { self.now + WAITING_PAUSE } else { Instant::ZERO };
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

    /// The next thing a connection tells.
    pub(super) fn poll_event(&mut self, slots: &mut Slots) -> Option<(ConnectionId, ConnectionEvent)> {
        self.settle(slots);
        // Why in order: what is told must not depend on who was touched first.
        self.speaking.sort_unstable();
        // Why counted all at once: what the application does between two events must not change those that were due before.
        for index in self.speaking.drain(..) {
            let Some(slot) = slots.at_mut(index) else { continue };
            slot.queued.speaking = false;
            self.telling.push_back((slot.id, slot.connection.count_events()));
        }
        loop {
            let (id, left) = self.telling.front_mut()?;
            let told = *id;
            // A connection that is gone tells nothing any more.
            let event = left.checked_sub(1).and_then(|_| slots.get_mut(told)?.connection.poll_event());
            *left = left.saturating_sub(1);
            if event.is_none() || *left == 0 {
                self.telling.pop_front();
            }
            if let Some(event) = event {
                return Some((told, event));
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
        self.settle(slots);
        self.wake(now, slots);
        while let Some(index) = self.next() {
            if let Some(slot) = slots.at_mut(index) {
                #[cfg(test)]
                self.looks.set(self.looks.get() + 1);
                if let Some((Addresses { remote, local }, datagram_bytes)) = slot.connection.poll_transmit(now, max_datagrams, out) {
                    self.turn = index + 1;
                    self.touch(index, slot);
                    return Some(Transmit { to: remote, from: local, datagram_bytes, ecn: slot.connection.ecn() });
                }
                slot.note_change();
            }
            self.ready.remove(&index);
            self.look(index, slots);
        }
        self.correct_first(slots);
        self.debug_assert_entries(slots);
        None
    }

    /// Nobody has more than one entry, and whoever is neither touched nor ready has nothing to say or to do before it. Called when
    /// nothing is left to send.
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
                debug_assert!(queued.speaking || !slot.connection.has_events(), "an event is not told");
            }
        }
        debug_assert_eq!(self.entries.len(), entries, "somebody has two entries");
    }

    /// Those that are due become ready.
    fn wake(&mut self, now: Instant, slots: &mut Slots) {
        while let Some(index) = self.take_expired(now) {
            let Some(slot) = slots.at_mut(index) else { continue };
            slot.queued.entry = None;
            if slot.deadline().is_some_and(|deadline| deadline.at <= now) {
                self.ready.insert(index);
            }
            self.enter(index, slot);
        }
    }

    /// Entries whose deadline has moved later give way until the first one is true.
    fn correct_first(&mut self, slots: &mut Slots) {
        while let Some(&(at, index)) = self.entries.first() {
            let Some(slot) = slots.at_mut(index) else { return };
            if slot.deadline().is_some_and(|deadline| deadline.at <= at) {
                return;
            }
            self.entries.pop_first();
            slot.queued.entry = None;
            self.enter(index, slot);
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

    /// Tells those that are due that time has passed.
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
        // Why in order: what happens must not depend on who was touched first.
        due.sort_unstable();
        due.dedup();
        for index in due.drain(..) {
            let Some(slot) = slots.at_mut(index) else { continue };
            if slot.deadline().is_some_and(|deadline| deadline.at <= now) {
                slot.connection.handle_timeout(now);
                self.touch(index, slot);
            } else if !slot.queued.touched {
                self.enter(index, slot);
            }
        }
        self.due = due;
    }
}
