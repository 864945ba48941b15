//! Reordering of numbered packets: what has arrived within the window, and the complete segments.
//!
//! Called by the receivers of TCP and adaptive acknowledgment. What arrives behind a gap is kept, up to the window, and
//! delivered when the gap is filled.
//!
//! Invariant: the slots hold the packets of the window behind `next`, and nothing outside it changes anything;
//! segments are delivered in order, whole, once.

use crate::numbered_packet::{Forward, Place};
use segstream_base::halves::{ReceiverEvent, SegmentNumber, StreamId, Verdict};
use std::collections::VecDeque;

/// A packet of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Missing,
    Data(Place),
    End,
}

/// The window of a receiver.
#[derive(Clone, Debug)]
pub(crate) struct InOrder {
    /// Packet n is in slot n modulo the window.
    slots: Vec<Slot>,
    window: u32,
    /// The packets of the longest segment.
    segment_packets: u32,
    /// The first packet that is missing.
    next: u32,
    /// Which packet of which segment that is.
    segment: u32,
    packet: u16,
    ended: bool,
    held: u32,
    received_again: u64,
    events: VecDeque<ReceiverEvent>,
}

impl InOrder {
    /// Nothing has come; `window` is above 0.
    pub(crate) fn new(window: u32, segment_packets: u32) -> Self {
        Self {
            slots: vec![Slot::Missing; window as usize],
            window,
            segment_packets,
            next: 0,
            segment: 0,
            packet: 0,
            ended: false,
            held: 0,
            received_again: 0,
            events: VecDeque::new(),
        }
    }

    /// The first packet that is missing.
    #[inline]
    pub(crate) const fn next(&self) -> u32 {
        self.next
    }

    /// Whether the end has come, and all before it.
    #[inline]
    pub(crate) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Packets that are kept behind a gap.
    pub(crate) const fn held(&self) -> u32 {
        self.held
    }

    /// Packets of the window and before it that had come already.
    pub(crate) const fn received_again(&self) -> u64 {
        self.received_again
    }

    #[inline]
    fn slot(&mut self, sequence: u32) -> Option<&mut Slot> {
        let index = sequence % self.window;
        self.slots.get_mut(index as usize)
    }

    /// Keeps a packet of the window. Whether it is new: then [`InOrder::advance`] is due.
    #[inline]
    pub(crate) fn keep(&mut self, packet: &Forward) -> bool {
        let Some(ahead) = packet.sequence().checked_sub(self.next) else {
            self.received_again += 1;
            return false;
        };
        if ahead >= self.window || self.ended {
            return false;
        }
        match self.slot(packet.sequence()) {
            Some(slot) if *slot == Slot::Missing => {
                *slot = match *packet {
                    Forward::Data { place, .. } => Slot::Data(place),
                    Forward::End { .. } => Slot::End,
                };
                self.held += 1;
                true
            }
            _ => {
                self.received_again += 1;
                false
            }
        }
    }

    /// Delivers what is here in order. `false` when what was here at [`InOrder::next`] does not continue the segment.
    #[inline]
    pub(crate) fn advance(&mut self) -> bool {
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
                return false;
            }
            self.next += 1;
        }
        true
    }

    fn take(&mut self, place: Place) -> bool {
        if (place.segment, place.packet) != (self.segment, self.packet) || u32::from(place.packets) > self.segment_packets {
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
        self.events.push_back(ReceiverEvent::Ended { stream: StreamId(0), segments: u64::from(self.segment) });
        true
    }

    /// The next thing to tell the user.
    #[inline]
    pub(crate) fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }
}
