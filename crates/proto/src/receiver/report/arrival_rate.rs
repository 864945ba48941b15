//! How fast shipments have come lately, as the numbers echoed by successive reports tell.
//!
//! Owned by the schedule, which fits its periods to it.
//!
//! Invariant: the past fades by an eighth with each report.

use segstream_base::{Duration, ShipmentNumber};

/// The longest that one shipment is taken to last.
// Why: few arrivals may be a sender that has little to send, of whom nothing should be heard later for that.
const SHIPMENT_TIME_MAX: Duration = Duration::from_millis(1);

/// So many shipments in such a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArrivalRate {
    span: Duration,
    shipments: u64,
    /// The highest number the last report echoed.
    echoed: ShipmentNumber,
}

impl ArrivalRate {
    /// A report leaves `elapsed` after the one before it and echoes `highest`.
    pub(super) fn on_report(&mut self, elapsed: Duration, highest: ShipmentNumber) {
        let (span, shipments) = (self.span.saturating_sub(self.span / 8), self.shipments - self.shipments / 8);
        self.span = span + elapsed;
        self.shipments = shipments + self.since_report(highest);
        self.echoed = highest;
    }

    /// The past counts no more: all that came since the last report took `elapsed`.
    pub(super) const fn restart(&mut self, elapsed: Duration, highest: ShipmentNumber) {
        self.span = elapsed;
        self.shipments = self.since_report(highest);
    }

    /// How many shipments have come since the last report if `highest` is the highest.
    pub(super) const fn since_report(&self, highest: ShipmentNumber) -> u64 {
        highest.since(self.echoed)
    }

    /// How long so many shipments take at this rate.
    pub(super) fn time_of(&self, shipments: u64) -> Duration {
        self.span * shipments / self.shipments.max(1)
    }

    /// The time of one shipment, as the periods use it.
    pub(super) fn shipment_time(&self) -> Duration {
        (self.span / self.shipments.max(1)).min(SHIPMENT_TIME_MAX)
    }
}
