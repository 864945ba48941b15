//! What the receiver keeps of each segment in its window: SEGMAP and PKTMAP of EC 4.2.
//!
//! Called by the receiving half. Slots cover [R_l, R_h]; a slot that is *held* has a place in the buffer,
//! which its first packet reserves (FC 4.3.1).
//!
//! Invariant: `missing` is the number of zero bits of `present` below `units` while the slot is held; an
//! accepted slot is never changed until R_l has passed it.

use segstream_base::Instant;
use segstream_blocks::Bitmap;

/// One segment of the window.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// It has a place in the buffer.
    pub held: bool,
    /// The tolerance checker has accepted it.
    pub accepted: bool,
    /// The event to the user was sent.
    pub delivered: bool,
    /// Something of it came and was not kept, or was kept and discarded later.
    pub discarded: bool,
    /// It was acknowledged softly and then discarded.
    pub revoked: bool,
    /// It is in ACKQ: its request is repeated.
    pub asked: bool,
    /// Ideal feedback: a packet group of it is in flight, or will be without a request.
    pub outstanding: bool,
    /// Its length in packets is known and not only assumed.
    pub length_known: bool,
    /// Its length in packets.
    pub units: u32,
    /// Packets that are not here.
    pub missing: u32,
    /// The last expected packet: the segment's last, or the last that was requested.
    pub expected_last: u32,
    /// Packets missing when it was accepted.
    pub holes: u32,
    /// When its request is repeated.
    pub repeat_at: Instant,
    /// How often it was requested, and when first.
    pub requests: u32,
    pub requested_at: Instant,
    /// Packets that are here; with literal accounting also those tolerated.
    pub present: Bitmap,
    /// Packets whose loss was tolerated.
    pub tolerated: Bitmap,
    /// Packets of the group that is arriving, where the buffer decides by groups.
    pub arriving: Bitmap,
}

impl Slot {
    /// Makes it the slot of a segment of which nothing is known; the bitmaps keep their memory.
    pub(super) fn renew(&mut self, units: u32) {
        let (present, tolerated) = (core::mem::take(&mut self.present), core::mem::take(&mut self.tolerated));
        let mut arriving = core::mem::take(&mut self.arriving);
        arriving.reset(units);
        *self = Self { present, tolerated, arriving, outstanding: true, units, expected_last: units - 1, ..Self::default() };
    }

    /// Gives it a place in the buffer, empty.
    pub(super) fn hold(&mut self, bits: u32) {
        self.held = true;
        self.discarded = false;
        self.revoked = false;
        self.missing = self.units;
        self.present.reset(bits);
        self.tolerated.reset(bits);
    }

    /// Takes its place away, with all that came (FC 4.3.1).
    pub(super) const fn discard(&mut self) {
        self.held = false;
        self.revoked = self.accepted;
        self.accepted = false;
        self.discarded = true;
    }

    /// Sets its length. A length that contradicts what has arrived is ignored.
    pub(super) fn learn_length(&mut self, units: u32) {
        let longer_here = self.held && self.present.next_one(units, self.units).is_some();
        if self.length_known || units == 0 || units > self.units || longer_here || self.accepted {
            return;
        }
        self.length_known = true;
        self.missing = self.missing.saturating_sub(self.units - units);
        self.expected_last = self.expected_last.min(units - 1);
        self.units = units;
    }
}

/// The slots of the window and its edges (FC 3.4).
#[derive(Clone, Debug)]
pub(super) struct Slots {
    ring: Box<[Slot]>,
    mask: usize,
    /// R_l: the lowest segment not accepted.
    low: u64,
    /// R_h + 1.
    limit: u64,
    /// W, as it is now.
    window: u64,
    segment_packets: u32,
}

impl Slots {
    pub(super) fn new(window: u32, segment_packets: u32) -> Self {
        let size = (window as usize).next_power_of_two();
        let mut slot = Slot::default();
        slot.renew(segment_packets);
        slot.hold(segment_packets);
        slot.renew(segment_packets);
        let ring = vec![slot; size].into_boxed_slice();
        Self { ring, mask: size - 1, low: 0, limit: u64::from(window), window: u64::from(window), segment_packets }
    }

    /// R_l.
    #[inline]
    pub(super) const fn low(&self) -> u64 {
        self.low
    }

    /// R_h + 1.
    #[inline]
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether `segment` lies in the window.
    #[inline]
    pub(super) const fn contains(&self, segment: u64) -> bool {
        segment.wrapping_sub(self.low) < self.limit - self.low
    }

    /// The slot of `segment`, which lies in the window.
    #[inline]
    pub(super) fn get(&self, segment: u64) -> &Slot {
        &self.ring[segment as usize & self.mask]
    }

    /// The slot of `segment`, which lies in the window, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, segment: u64) -> &mut Slot {
        &mut self.ring[segment as usize & self.mask]
    }

    /// R_l = i + 1, R_h = max(R_h, R_l + W - 1) (FC 3.4).
    pub(super) fn advance(&mut self) {
        let units = self.segment_packets;
        let low = self.low;
        self.get_mut(low).renew(units);
        self.low += 1;
        self.limit = self.limit.max(self.low + self.window);
    }

    /// W, at least 1; the edges stay until enough segments are accepted, as R_h never retreats.
    pub(super) fn resize(&mut self, window: u32) {
        self.window = u64::from(window).clamp(1, self.ring.len() as u64);
        self.limit = self.limit.max(self.low + self.window);
    }
}
