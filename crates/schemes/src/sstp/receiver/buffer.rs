//! The receiving buffer of B segments below a window of W: what is kept and what is dropped.
//!
//! Called by the receiving half for the first packet of a segment and for its end. Source: FC 4.3.1. An
//! accepted segment leaves the buffer when everything before it is accepted, as the application takes it
//! at once.
//!
//! Invariant: at most B segments are held. A segment in [R_l, R_l + B - 1] is never discarded: it is the
//! largest of a full buffer only if B segments lie in [R_l, it], and then no smaller one is outside. So
//! only beyond R_l + B - 1 is an acknowledgment soft, and with B = W hard and soft are the same.

use super::slot::Slots;
use crate::sstp::Acknowledgment;

/// The fate of a segment that wanted a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It has one.
    Held,
    /// It has one, which was that of this segment.
    Displaced(u64),
    /// It has none: its packet is dropped.
    Refused,
}

/// The buffer.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    acknowledgment: Acknowledgment,
    size: u64,
    held: u64,
    /// No held segment is larger.
    largest: u64,
    bits: u32,
}

impl Buffer {
    pub(super) const fn new(acknowledgment: Acknowledgment, size: u32, segment_packets: u32) -> Self {
        Self { acknowledgment, size: size as u64, held: 0, largest: 0, bits: segment_packets }
    }

    /// How many segments are held.
    pub(super) const fn held(&self) -> u64 {
        self.held
    }

    /// Whether an acknowledgment of `segment` is firm.
    pub(super) const fn is_firm(&self, slots: &Slots, segment: u64) -> bool {
        segment < slots.low() + self.size
    }

    /// Finds a place for `segment`, which lies in the window and has none.
    pub(super) fn place(&mut self, slots: &mut Slots, segment: u64) -> Place {
        if self.acknowledgment == Acknowledgment::Hard && !self.is_firm(slots, segment) {
            // FC 4.3.1: segments outside [n, n + B - 1] are simply discarded.
            slots.get_mut(segment).discarded = true;
            return Place::Refused;
        }
        if self.held < self.size {
            self.hold(slots, segment);
            return Place::Held;
        }
        let old = self.largest;
        if segment > old {
            slots.get_mut(segment).discarded = true;
            return Place::Refused;
        }
        // FC 4.3.1, step 3: the largest segment is evicted for a smaller one.
        slots.get_mut(old).discard();
        self.held -= 1;
        self.find_largest(slots);
        self.hold(slots, segment);
        Place::Displaced(old)
    }

    /// The lowest segment of the window is accepted and leaves the buffer.
    pub(super) const fn release(&mut self) {
        self.held = self.held.saturating_sub(1);
    }

    fn hold(&mut self, slots: &mut Slots, segment: u64) {
        slots.get_mut(segment).hold(self.bits);
        self.held += 1;
        self.largest = self.largest.max(segment);
    }

    fn find_largest(&mut self, slots: &Slots) {
        let below = (slots.low()..self.largest).rev();
        self.largest = below.into_iter().find(|segment| slots.get(*segment).held).unwrap_or(0);
    }
}
