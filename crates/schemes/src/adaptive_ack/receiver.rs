//! The receiving half of adaptive acknowledgment: what is here, and in order.
//!
//! Called by the laboratory under the contract of the halves. Source: AA 2, receiver operations.
//!
//! What arrives behind a gap is kept, up to the window, and delivered when the gap is filled. What is told, and when, is
//! the business of `status`. The timer runs from the start to the end of the half: only so does a sender whose acknowledgments
//! were lost learn of the end.
//!
//! Invariant: the slots hold the packets of the window behind `next`, and nothing outside it changes anything;
//! segments are delivered in order, whole, once.

use super::packet::{Feedback, Forward, Place};
use super::status::Status;
use super::{Config, ConfigError};
use segstream_base::Instant;
use segstream_base::halves::{Deadline, Probe, ReceiverEvent, SegmentNumber, StreamId, Verdict};
use std::collections::VecDeque;

/// A packet of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Missing,
    Data(Place),
    End,
}

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    status: Status,
    /// Packet n is in slot n modulo the window.
    slots: Vec<Slot>,
    /// The cumulative number: the first packet that is missing.
    next: u32,
    /// Which packet of which segment that is.
    segment: u32,
    packet: u16,
    ended: bool,
    held: u32,
    received_again: u64,
    events: VecDeque<ReceiverEvent>,
}

impl Receiver {
    /// A receiver whose first status is due T_normal after `now`.
    ///
    /// # Errors
    /// When [`Config::check`] refuses `config`.
    pub fn new(config: Config, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            status: Status::new(&config, now),
            slots: vec![Slot::Missing; config.window as usize],
            next: 0,
            segment: 0,
            packet: 0,
            ended: false,
            held: 0,
            received_again: 0,
            events: VecDeque::new(),
            config,
        })
    }

    #[inline]
    fn slot(&mut self, sequence: u32) -> Option<&mut Slot> {
        let index = sequence % self.config.window;
        self.slots.get_mut(index as usize)
    }

    /// Keeps a packet of the window.
    #[inline]
    fn keep(&mut self, now: Instant, sequence: u32, packet: Slot) {
        let Some(ahead) = sequence.checked_sub(self.next) else {
            self.received_again += 1;
            return;
        };
        if ahead >= self.config.window || self.ended {
            return;
        }
        match self.slot(sequence) {
            Some(slot) if *slot == Slot::Missing => {
                *slot = packet;
                self.held += 1;
                self.status.on_arrival(now, sequence, self.next);
                self.advance(now);
            }
            _ => self.received_again += 1,
        }
    }

    /// Delivers what is here in order.
    #[inline]
    fn advance(&mut self, now: Instant) {
        while let Some(slot) = self.slot(self.next)
            && *slot != Slot::Missing
        {
            let packet = core::mem::replace(slot, Slot::Missing);
            self.held -= 1;
            let taken = match packet {
                Slot::Data(place) => self.take(place),
                Slot::End => self.end(),
                Slot::Missing => false,
            };
            // Why: what does not continue the segment is not what the window has room for; it stays missing.
            if !taken {
                self.status.on_refused(now, self.next);
                return;
            }
            self.next += 1;
        }
    }

    fn take(&mut self, place: Place) -> bool {
        if (place.segment, place.packet) != (self.segment, self.packet) || u32::from(place.packets) > self.config.segment_packets {
            return false;
        }
        self.packet += 1;
        if place.is_last() {
            let (segment, units) = (SegmentNumber(u64::from(place.segment)), u32::from(place.packets));
            self.events.push_back(ReceiverEvent::Delivered { stream: StreamId(0), segment, verdict: Verdict::Complete, units, holes: 0 });
            self.segment += 1;
            self.packet = 0;
        }
        true
    }

    fn end(&mut self) -> bool {
        if self.packet != 0 {
            return false;
        }
        self.ended = true;
        self.status.on_end();
        self.events.push_back(ReceiverEvent::Ended { stream: StreamId(0), segments: u64::from(self.segment) });
        true
    }
}

impl segstream_base::halves::Receiver for Receiver {
    type Forward = Forward;
    type Feedback = Feedback;

    #[inline]
    fn handle_forward(&mut self, now: Instant, packet: &Forward) {
        let (connection, sequence, slot) = match *packet {
            Forward::Data { connection, sequence, place, .. } => (connection, sequence, Slot::Data(place)),
            Forward::End { connection, sequence } => (connection, sequence, Slot::End),
        };
        // Why below the maximum: the number after the last packet must exist.
        if connection == self.config.connection && sequence != u32::MAX {
            self.keep(now, sequence, slot);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, _now: Instant) -> Option<Feedback> {
        self.status.pop()
    }

    /// `status`: T_normal or T_error after the timer was set last.
    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        Some(Deadline { at: self.status.due(), timer: "status" })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.status.on_timeout(now, self.next);
    }

    #[inline]
    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("next_packet", f64::from(self.next));
        out.gauge("held_packets", f64::from(self.held));
        out.gauge("gaps", self.status.gaps() as f64);
        out.gauge("error_phase", if self.status.in_error() { 1.0 } else { 0.0 });
        out.gauge("received_again_packets", self.received_again as f64);
    }
}
