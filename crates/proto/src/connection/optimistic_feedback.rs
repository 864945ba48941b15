//! Detects false reports: the echo of a shipment that was not sent, or more received than sent (RFC 9000 21.4: optimistic
//! acknowledgments).
//!
//! Called for every report before it is processed. Such a receiver would make the sender exceed the capacity of the path, at the cost of
//! other flows. A correct peer never does that, so the connection ends.
//!
//! Invariant: no report of a correct peer is rejected, however shipments are lost, reordered or translated on the path.
//!
//! Limit: a peer may claim to have received what was sent and lost. Then it is not retransmitted, and the congestion controller works with
//! false values; such a receiver harms itself and other flows (RFC 9000 21.4 proposes to skip packet numbers).

use super::Connection;
use crate::error::{CloseReason, PROTOCOL_VIOLATION_CODE};
use segstream_base::{Instant, ShipmentNumber};
use segstream_wire::handshake::Disconnect;
use segstream_wire::report::Arrived;
use segstream_wire::{Report, ReportFrame};

/// How much longer a packet arrives after translation from IPv4 to IPv6 (RFC 7915).
const TRANSLATION_BYTES: u64 = 20;
/// The longest IP packet: a probe of the datagram size that was declared lost and arrives after all.
const PACKET_BYTES_MAX: u64 = 65_535;

impl Connection {
    /// Processes a report, unless it is false.
    pub(super) fn on_report(&mut self, now: Instant, report: &Report) {
        if let Some(violation) = self.optimism_of(now, report) {
            return self.end_for_violation(now, violation);
        }
        self.send.handle_report(now, report);
        self.share_round_trip();
        self.detect_lost_probe(now);
    }

    /// What is false in the report.
    fn optimism_of(&self, now: Instant, report: &Report) -> Option<&'static str> {
        let next = self.protection.counter.peek();
        if report.echo.is_some_and(|echo| echo >= next) {
            return Some("it echoed a shipment that never left");
        }
        if report.time.is_some_and(|time| time > now.as_nanos()) {
            return Some("it echoed a time that has not come");
        }
        report.frames.iter().find_map(|frame| match frame {
            ReportFrame::Arrival(arrived) => self.optimism_of_arrival(next, arrived),
            _ => None,
        })
    }

    fn optimism_of_arrival(&self, next: ShipmentNumber, arrived: &Arrived) -> Option<&'static str> {
        let shipments = next.since(ShipmentNumber::FIRST);
        if arrived.shipments > shipments || arrived.lost > shipments || arrived.marked > arrived.shipments {
            return Some("it told of more shipments than were sent");
        }
        let exchanges = &self.send.path.congestion.exchanges;
        let late_probes = (exchanges.probes_lost() + 1).saturating_mul(PACKET_BYTES_MAX);
        let sent = exchanges.sent_bytes().saturating_add(shipments.saturating_mul(TRANSLATION_BYTES)).saturating_add(late_probes);
        (arrived.bytes > sent).then_some("it told of more bytes than were sent")
    }

    /// The peer has violated the protocol.
    fn end_for_violation(&mut self, now: Instant, violation: &'static str) {
        if self.close.is_over() {
            return;
        }
        self.close.abort_with(Disconnect { code: PROTOCOL_VIOLATION_CODE, abort: true, detail: violation.to_owned() });
        self.end(now, CloseReason::ProtocolViolation(violation));
    }
}
