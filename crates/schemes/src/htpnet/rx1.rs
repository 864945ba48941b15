//! Rx1, the receiver data packet processor (HT 5): takes data, passes them on in order, tells Rx2 what it has.
//!
//! Called as a [`Stage`]. Everything from the network comes here, in the order of arrival. A state packet is the marker at
//! which the bitmap is taken: it goes through the queue of data, and on to Rx2 with what was received in front of it, so
//! that no report misses data that arrived before it, on whatever processors the two run.
//!
//! With error control data are passed on in order. Without, they are passed on as they arrive, and what is missing when a
//! state packet has told of it is not waited for. A class holds from the data behind the state packet that asks for it, and
//! the class that a receiver does not have is not granted.
//!
//! Invariant: a packet is passed on once; what is kept spans less than half of the sequence space.

use super::config::SPAN_MAX;
use super::message::{Message, Status, Unit};
use super::packet::{Control, Data, Forward, Terms, TransmitterState};
use super::pipeline::Routes;
use super::{Class, Config};
use segstream_base::Instant;
use segstream_base::sequence::expand;
use segstream_base::stage::{Stage, StageId};
use segstream_blocks::Bitmap;
use std::collections::VecDeque;

/// A packet beyond the first that is waited for.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Missing,
    /// It is queued.
    Waiting(Unit),
    /// It has been passed on.
    Delivered,
}

/// The receiver data packet processor.
#[derive(Clone, Debug)]
pub struct Rx1 {
    routes: Routes,
    id: u8,
    /// The most that is granted.
    own_class: Class,
    open: bool,
    heard: bool,
    capacity: u16,
    offset: usize,
    /// The first number that is waited for, and the slots from it on.
    next: u64,
    slots: VecDeque<Slot>,
    /// From which number on there is error control, or none: ascending, the first at or below `next`.
    reliable_from: VecDeque<(u64, bool)>,
    flow_control: bool,
    /// The number after the highest SYNC.
    sync: u64,
    /// How much had been sent by the last exchanges, oldest first: `offset` of them are waited for.
    told: VecDeque<u64>,
    /// Passed on, and not consumed by the host.
    unconsumed: u64,
    /// The number after the last that was missing and is not waited for.
    given_up: u64,
    ended: bool,
    duplicates: u64,
    late: u64,
    refused: u64,
}

impl Rx1 {
    /// A processor that has received nothing.
    pub fn new(config: &Config, routes: Routes) -> Self {
        Self {
            routes,
            id: config.connection,
            own_class: config.class,
            open: !config.connect,
            heard: false,
            capacity: config.credit,
            offset: usize::from(config.offset),
            next: 0,
            slots: VecDeque::new(),
            reliable_from: VecDeque::from([(0, config.class.has_error_control())]),
            flow_control: config.class.has_flow_control(),
            sync: 0,
            told: VecDeque::new(),
            unconsumed: 0,
            given_up: 0,
            ended: false,
            duplicates: 0,
            late: 0,
            refused: 0,
        }
    }

    /// Data packets that came although they were there already.
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Data packets that came when they were not waited for any more, and are dropped.
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Data packets for which there was no buffer.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// The first number that is waited for: the one after CAACK.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Packets that wait for one before them.
    pub fn held(&self) -> usize {
        self.slots.iter().filter(|slot| matches!(slot, Slot::Waiting(_))).count()
    }

    fn credit(&self) -> u16 {
        u64::from(self.capacity).saturating_sub(self.unconsumed) as u16
    }

    /// Whether packet `seq` has error control.
    #[inline]
    fn is_reliable(&self, seq: u64) -> bool {
        self.reliable_from.iter().rev().find(|(from, _)| *from <= seq).is_none_or(|(_, reliable)| *reliable)
    }

    fn deliver(&mut self, seq: u64, unit: Unit, out: &mut Vec<(StageId, Message)>) {
        self.unconsumed += 1;
        out.push((self.routes.host, Message::Deliver { unit, seq }));
    }

    #[inline]
    fn on_data(&mut self, data: &Data, slot: u32, out: &mut Vec<(StageId, Message)>) {
        if !self.heard {
            self.heard = true;
            out.push((self.routes.rx2, Message::Heard));
        }
        let seq = expand(u64::from(data.seq), 16, self.next);
        let Some(index) = seq.checked_sub(self.next).map(|index| index as usize) else {
            // Why: what was not waited for has not been here, when it comes after all.
            let count = if seq >= self.given_up { &mut self.duplicates } else { &mut self.late };
            *count += 1;
            out.push((self.routes.host, Message::Release { segment: data.segment, slot, arrived: false }));
            return;
        };
        let room = if self.flow_control { u64::from(self.credit()).min(SPAN_MAX) } else { SPAN_MAX };
        if index as u64 >= room {
            self.refused += 1;
            out.push((self.routes.host, Message::Release { segment: data.segment, slot, arrived: false }));
            return;
        }
        let unit = Unit { segment: data.segment, packet: data.packet, last: data.last, bytes: data.bytes, slot };
        if index >= self.slots.len() {
            self.slots.resize(index + 1, Slot::Missing);
        }
        if !matches!(self.slots[index], Slot::Missing) {
            self.duplicates += 1;
            out.push((self.routes.host, Message::Release { segment: data.segment, slot, arrived: false }));
            return;
        }
        if self.is_reliable(seq) {
            self.slots[index] = Slot::Waiting(unit);
        } else {
            self.slots[index] = Slot::Delivered;
            self.deliver(seq, unit, out);
        }
        if index == 0 {
            self.advance(0, out);
        }
    }

    /// Moves over what is here, and over what is missing before `given_up` where there is no error control.
    fn advance(&mut self, given_up: u64, out: &mut Vec<(StageId, Message)>) {
        loop {
            match self.slots.front().copied().unwrap_or(Slot::Missing) {
                Slot::Waiting(unit) => self.deliver(self.next, unit, out),
                Slot::Delivered => {}
                Slot::Missing if self.next < given_up && !self.is_reliable(self.next) => self.given_up = self.next + 1,
                Slot::Missing => break,
            }
            self.slots.pop_front();
            self.next += 1;
        }
        while self.reliable_from.get(1).is_some_and(|(from, _)| *from <= self.next) {
            self.reliable_from.pop_front();
        }
    }

    fn on_state(&mut self, now: Instant, state: TransmitterState, out: &mut Vec<(StageId, Message)>) {
        let sync = expand(u64::from(state.sync), 16, self.sync);
        if sync >= self.sync {
            self.sync = sync + 1;
            let sent = expand(u64::from(state.lseq.wrapping_add(1)), 16, self.next);
            // What cannot be in flight is not believed.
            if sent >= self.next && sent - self.next <= SPAN_MAX {
                self.change_class(state.class.and(self.own_class), sent, out);
                self.give_up(sent, out);
            }
        }
        let mut bitmap = Bitmap::new();
        bitmap.reset(self.slots.len() as u32);
        for (index, slot) in (0..).zip(&self.slots) {
            if !matches!(slot, Slot::Missing) {
                bitmap.set(index);
            }
        }
        let status = Status { state, arrived: now, next: self.next, bitmap, credit: self.credit() };
        out.push((self.routes.rx2, Message::Status(Box::new(status))));
    }

    /// Data from number `sent` on have `class`.
    fn change_class(&mut self, class: Class, sent: u64, out: &mut Vec<(StageId, Message)>) {
        self.flow_control = class.has_flow_control();
        let reliable = class.has_error_control();
        if self.reliable_from.back().is_some_and(|(_, now)| *now == reliable) {
            return;
        }
        // What was requested behind this holds no more. So a peer that changes its mind takes no memory.
        while self.reliable_from.len() > 1 && self.reliable_from.back().is_some_and(|(from, _)| *from >= sent) {
            self.reliable_from.pop_back();
        }
        self.reliable_from.push_back((sent, reliable));
        if !reliable {
            // What came early need not wait any more.
            let from = (sent - self.next) as usize;
            for index in from..self.slots.len() {
                if let Slot::Waiting(unit) = self.slots[index] {
                    self.slots[index] = Slot::Delivered;
                    self.deliver(self.next + index as u64, unit, out);
                }
            }
        }
    }

    /// An exchange tells that all before `sent` have left: without error control those of `offset` exchanges ago are not
    /// waited for.
    fn give_up(&mut self, sent: u64, out: &mut Vec<(StageId, Message)>) {
        self.told.push_back(sent);
        let given_up = if self.told.len() > self.offset { self.told.pop_front().unwrap_or(0) } else { 0 };
        let unreliable = self.reliable_from.iter().any(|(_, reliable)| !reliable);
        self.advance(given_up, out);
        if unreliable {
            out.push((self.routes.host, Message::Passed(self.next)));
        }
    }

    fn on_control(&mut self, control: Control, out: &mut Vec<(StageId, Message)>) {
        let mut settled = false;
        if let Control::Release { release, .. } = control
            && self.open
        {
            let sent = expand(u64::from(release.lseq.wrapping_add(1)), 16, self.next);
            self.advance(sent.min(self.next + SPAN_MAX), out);
            settled = self.next >= sent;
            if settled && !self.ended {
                self.ended = true;
                out.push((self.routes.host, Message::Ended(release.segments)));
            }
        }
        out.push((self.routes.rx2, Message::Control { control, settled }));
    }

    fn on_open(&mut self, terms: Terms) {
        if !self.open {
            self.open = true;
            self.capacity = terms.credit;
            self.flow_control = terms.class.has_flow_control();
            self.reliable_from = VecDeque::from([(0, terms.class.has_error_control())]);
        }
    }

    fn on_packet(&mut self, now: Instant, packet: &Forward, slot: u32, out: &mut Vec<(StageId, Message)>) {
        if packet.connection() != self.id {
            return;
        }
        match packet {
            Forward::Data(data) if self.open => self.on_data(data, slot, out),
            Forward::State(state) if self.open => self.on_state(now, *state, out),
            Forward::Control(control) => self.on_control(*control, out),
            Forward::Data(_) | Forward::State(_) => {}
        }
    }
}

impl Stage for Rx1 {
    type Message = Message;

    fn name(&self) -> &'static str {
        "Rx1"
    }

    #[inline]
    fn handle(&mut self, now: Instant, message: Message, out: &mut Vec<(StageId, Message)>) {
        match message {
            Message::Forward { packet, slot } => self.on_packet(now, &packet, slot, out),
            Message::Consumed(slots) => self.unconsumed = self.unconsumed.saturating_sub(u64::from(slots)),
            Message::Open(terms) => self.on_open(terms),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant, _out: &mut Vec<(StageId, Message)>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_keeps_changing_its_mind_takes_no_memory() {
        let config = Config::default();
        let mut rx1 = Rx1::new(&config, Routes::HALF);
        let classes = [1, 5].map(|number| Class::new(number).unwrap());
        for sync in 0..1000u16 {
            let class = classes[usize::from(sync) % 2];
            let state = TransmitterState { connection: config.connection, sync, time: 0, lseq: 9 + sync % 3, class, rate: 0 };
            rx1.handle(Instant::ZERO, Message::Forward { packet: Forward::State(state), slot: 0 }, &mut Vec::new());
        }
        assert!(rx1.reliable_from.len() <= 4, "{}", rx1.reliable_from.len());
        assert!(rx1.reliable_from.iter().is_sorted());
    }
}
