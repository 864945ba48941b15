//! The tolerance of one segment, and what it lets a shipment carry.
//!
//! Owned by the segment. Invariant: it is clipped to the units of the segment as soon as their number is known, and what a shipment may carry
//! follows from it.

use crate::layout::Layout;
use segstream_base::tolerance::Tolerance;

/// The tolerance of one segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentTolerance {
    /// What both ends go by, clipped to the units of the segment.
    pub(crate) in_force: Tolerance,
    /// The segment's own tolerance when it overrides the stream's.
    pub(crate) own: Option<Tolerance>,
    /// The most units of it that one shipment may carry.
    pub(crate) per_shipment: u32,
}

impl SegmentTolerance {
    /// That of a segment that lies in units as `layout` says; `promise` is its own or the stream's.
    #[inline]
    pub(crate) fn new(promise: Tolerance, own: Option<Tolerance>, layout: &Layout) -> Self {
        let mut tolerance = Self { in_force: promise, own, per_shipment: 1 };
        tolerance.fit(layout);
        tolerance
    }

    /// Clips it to the units of `layout`, and fixes how many units one shipment may carry: under a partial tolerance a lost datagram must
    /// not break the promise by itself.
    pub(super) fn fit(&mut self, layout: &Layout) {
        let units = layout.units.unwrap_or(u32::MAX);
        self.in_force = self.in_force.clipped_to(units);
        self.per_shipment = if self.in_force.is_partial() { layout.order.burst_tolerated(self.in_force, units).max(1) } else { u32::MAX };
    }
}
