//! Counters of all received shipments, which an ARRIVAL reports (HT 3.2).
//!
//! Owned by the half. Invariant: every shipment counts once; the totals never decrease, except for spurious losses.

use segstream_base::{ExchangeNumber, Instant};
use segstream_blocks::loss_detector::LossDetector;
use segstream_wire::report::Arrived;

/// Counters of all received shipments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArrivalCounters {
    /// When the present shipment was received.
    received: Instant,
    /// Shipments, and their bytes in whole IP packets.
    shipments: u64,
    bytes: u64,
    marked: u64,
    /// The next shipment had the CE codepoint.
    mark_noted: bool,
}

impl ArrivalCounters {
    /// Records that the next shipment has the CE codepoint.
    pub(super) const fn note_mark(&mut self) {
        self.mark_noted = true;
    }

    /// Takes the recorded mark, which belongs to the present shipment.
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

    /// The counters at the arrival of the present shipment, the TXS `sync`.
    pub(super) fn arrived(&self, sync: ExchangeNumber, detector: &LossDetector) -> Arrived {
        let Self { received, shipments, bytes, marked, .. } = *self;
        let lost = detector.newly_lost() - detector.late_after_lost();
        Arrived { sync, at: received.as_nanos(), bytes, shipments, lost, marked }
    }
}
