//! The scoreboard of a model TCP: what is in flight, acknowledged, and declared lost.
//!
//! Called by [`super::Sender`].
//!
//! Invariant: a transmission is declared lost when three later ones are acknowledged; so a lost retransmission is detected as well, as
//! Linux does since RACK. The paths of flows keep packets in order.
//! Source: RFC 6675 4 (IsLost, pipe), RFC 8985 for repetitions.

use super::packet::Ack;
use segstream_blocks::congestion::rate_sample::Departure;
use std::collections::VecDeque;

/// How many later transmissions must be acknowledged (RFC 6675 2: DupThresh).
const THRESHOLD: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Flying,
    Lost,
    Acknowledged,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    transmission: u64,
    state: State,
    departure: Departure,
}

/// Packets from the first that is not acknowledged on.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    first: u64,
    slots: VecDeque<Slot>,
    /// Transmissions that may yet be declared lost, in order, with their packets.
    order: VecDeque<(u64, u64)>,
    /// Packets to send again; those acknowledged since are skipped.
    lost: VecDeque<u64>,
    transmissions: u64,
    in_flight: u64,
}

/// What an acknowledgment has changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    pub(super) acknowledged: u64,
    pub(super) lost: u64,
    /// How the packet that caused the acknowledgment departed, if this is news and that transmission was its last.
    pub(super) departure: Option<Departure>,
}

impl Scoreboard {
    /// Packets in flight.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The first packet that is not acknowledged.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// The packet that will be sent next for the first time.
    pub(super) fn next(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Whether anything waits to be retransmitted.
    pub(super) fn has_lost(&mut self) -> bool {
        while let Some(sequence) = self.lost.front() {
            if self.slot(*sequence).is_some_and(|slot| slot.state == State::Lost) {
                return true;
            }
            self.lost.pop_front();
        }
        false
    }

    /// Sends the next packet: one that is lost, else a new one. Returns its transmission, its number, and whether it goes again.
    pub(super) fn send(&mut self, departure: Departure) -> (u64, u64, bool) {
        let transmission = self.transmissions;
        self.transmissions += 1;
        self.in_flight += 1;
        let slot = Slot { transmission, state: State::Flying, departure };
        let again = self.has_lost().then(|| self.lost.pop_front()).flatten();
        let sequence = again.unwrap_or_else(|| self.next());
        match self.index(sequence).and_then(|at| self.slots.get_mut(at)) {
            Some(old) => *old = slot,
            None => self.slots.push_back(slot),
        }
        self.order.push_back((transmission, sequence));
        (transmission, sequence, again.is_some())
    }

    /// Takes an acknowledgment.
    pub(super) fn acknowledge(&mut self, ack: &Ack) -> Change {
        let mut change = Change::default();
        if let Some(slot) = self.slot(ack.sequence)
            && slot.transmission == ack.transmission
            && slot.state != State::Acknowledged
        {
            change.departure = Some(slot.departure);
        }
        for sequence in (ack.block.0..=ack.sequence).rev() {
            if !self.mark_acknowledged(sequence, &mut change) {
                break;
            }
        }
        for sequence in ack.sequence + 1..ack.block.1 {
            if !self.mark_acknowledged(sequence, &mut change) {
                break;
            }
        }
        while self.first < ack.next && !self.slots.is_empty() {
            self.mark_acknowledged(self.first, &mut change);
            self.slots.pop_front();
            self.first += 1;
        }
        change.lost = self.find_lost(ack.transmission);
        change
    }

    /// Holds all that is in flight lost.
    pub(super) fn lose_all(&mut self) {
        self.order.clear();
        self.lost.clear();
        self.in_flight = 0;
        for (sequence, slot) in (self.first..).zip(&mut self.slots) {
            if slot.state != State::Acknowledged {
                slot.state = State::Lost;
                self.lost.push_back(sequence);
            }
        }
    }

    /// Returns whether that was news.
    fn mark_acknowledged(&mut self, sequence: u64, change: &mut Change) -> bool {
        let Some(slot) = self.index(sequence).and_then(|at| self.slots.get_mut(at)) else { return false };
        if slot.state == State::Acknowledged {
            return false;
        }
        self.in_flight -= u64::from(slot.state == State::Flying);
        slot.state = State::Acknowledged;
        change.acknowledged += 1;
        true
    }

    fn find_lost(&mut self, acknowledged: u64) -> u64 {
        let mut lost = 0;
        while let Some((transmission, sequence)) = self.order.front().copied()
            && transmission + THRESHOLD <= acknowledged
        {
            self.order.pop_front();
            let Some(slot) = self.index(sequence).and_then(|at| self.slots.get_mut(at)) else { continue };
            if slot.transmission == transmission && slot.state == State::Flying {
                slot.state = State::Lost;
                self.in_flight -= 1;
                self.lost.push_back(sequence);
                lost += 1;
            }
        }
        lost
    }

    fn index(&self, sequence: u64) -> Option<usize> {
        usize::try_from(sequence.checked_sub(self.first)?).ok()
    }

    fn slot(&self, sequence: u64) -> Option<&Slot> {
        self.slots.get(self.index(sequence)?)
    }
}
