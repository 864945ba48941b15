//! Shipments as they arrive, whatever they carry: which numbers are lost, what is counted of all, and what becomes true once a number has
//! been passed.
//!
//! Owned by the half. All of it speaks of the numbers of one path.
//!
//! Invariant: each shipment is counted once; one that came before, or is too old to tell, is not.

use super::arrival_counters::ArrivalCounters;
use super::frontier::{Frontier, Passed};
use segstream_base::{ExchangeNumber, Instant, ShipmentNumber, StreamId};
use segstream_blocks::loss_detector::{Arrival, LossDetector};
use segstream_wire::report::Arrived;

/// What the numbers of shipments tell.
#[derive(Debug)]
pub(crate) struct Arrivals {
    pub(crate) detector: LossDetector,
    pub(super) counters: ArrivalCounters,
    pub(super) frontier: Frontier,
}

impl Arrivals {
    /// Nothing has arrived; with the reordering threshold at first, and whether it adapts.
    pub(super) fn new(reorder: u32, reorder_adapting: bool) -> Self {
        Self { detector: LossDetector::new(reorder, reorder_adapting), counters: ArrivalCounters::default(), frontier: Frontier::default() }
    }

    /// Shipment `number` of `bytes` IP bytes was received. False for a duplicate.
    #[inline]
    pub(super) fn on_shipment(&mut self, received: Instant, number: ShipmentNumber, bytes: u64) -> bool {
        let marked = self.counters.take_mark();
        if matches!(self.detector.on_arrival(number.0), Arrival::Duplicate | Arrival::TooOld) {
            return false;
        }
        self.counters.on_shipment(received, bytes, marked);
        true
    }

    /// Whether anything has become true since the last arrival.
    #[inline]
    pub(super) fn has_passed(&self) -> bool {
        self.frontier.has_passed(&self.detector)
    }

    /// The next of what has become true.
    #[inline]
    pub(super) fn pop_passed(&mut self) -> Option<(StreamId, Passed)> {
        self.frontier.pop_passed(&self.detector)
    }

    /// The counters at the arrival of the present shipment, the TXS `sync`.
    pub(super) fn arrived(&self, sync: ExchangeNumber) -> Arrived {
        self.counters.arrived(sync, &self.detector)
    }
}
