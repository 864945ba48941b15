//! What has arrived, whatever it carried, and what an ARRIVAL tells of it (HT 3.2).
//!
//! Owned by the half. Invariant: every shipment counts once; the totals never shrink, but for losses that came after
//! all.

use segstream_base::{ExchangeNumber, Instant};
use segstream_blocks::loss_detector::LossDetector;
use segstream_wire::report::Arrived;

/// Everything that has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    /// When the present shipment was received.
    received: Instant,
    /// Shipments, and their bytes in whole IP packets.
    shipments: u64,
    bytes: u64,
    marked: u64,
    /// The next shipment was marked on its way.
    mark_noted: bool,
}

impl Arrivals {
    /// The next shipment was marked.
    pub(super) const fn note_mark(&mut self) {
        self.mark_noted = true;
    }

    /// The mark that was noted, which belongs to the present shipment, whatever becomes of it.
    #[inline]
    pub(super) const fn take_mark(&mut self) -> bool {
        core::mem::replace(&mut self.mark_noted, false)
    }

    /// A shipment of `bytes` IP bytes was received.
    #[inline]
    pub(super) fn on_shipment(&mut self, received: Instant, bytes: u64, marked: bool) {
        self.received = received;
        self.shipments += 1;
        self.bytes += bytes;
        self.marked += u64::from(marked);
    }

    /// When the present shipment was received.
    pub(super) const fn received(&self) -> Instant {
        self.received
    }

    /// The present shipment is the TXS `sync`: what had arrived by then.
    pub(super) fn arrived(&self, sync: ExchangeNumber, detector: &LossDetector) -> Arrived {
        let Self { received, shipments, bytes, marked, .. } = *self;
        let lost = detector.newly_lost() - detector.late_after_lost();
        Arrived { sync, at: received.as_nanos(), bytes, shipments, lost, marked }
    }
}
