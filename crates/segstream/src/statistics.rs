//! The statistics of a connection: one documented structure to which fields are only ever added.
//!
//! Read with `statistics()` of a connection; written as a line of JSON by `--stats`.
//! *Total* counts since the connection began; *now* is the present value. An unknown value is `None`, and null in JSON.
//!
//! Invariant: names end with their measure; totals never decrease.

use crate::histogram::Histogram;
use segstream_proto::connection::Connection;
use segstream_proto::sender::StreamCounters;
use serde::Serialize;

/// The statistics of one connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// Datagrams sent, total; each is one shipment.
    pub shipments_sent: u64,
    /// Bytes of datagrams sent, total, without IP and UDP headers.
    pub bytes_sent: u64,
    /// Datagrams received that were authenticated, total.
    pub shipments_received: u64,
    /// Bytes of them, total.
    pub bytes_received: u64,
    /// Units sent, first transmissions and retransmissions, total.
    pub units_sent: u64,
    /// Units retransmitted, total; at most `units_sent`.
    pub units_retransmitted: u64,
    /// Payload bytes sent, first transmissions and retransmissions, total.
    pub payload_bytes_sent: u64,
    /// State shipments (TXS) sent, total.
    pub state_shipments_sent: u64,
    /// Report shipments (RXS) sent, total.
    pub report_shipments_sent: u64,
    /// Segments of ours abandoned because their lifetime had passed, total.
    pub segments_skipped: u64,
    /// Segments of ours of which any unit was retransmitted or restored on request, total.
    pub segments_repaired: u64,
    /// Segments of ours that the peer's application has confirmed, total.
    pub segments_durable: u64,
    /// Repair units sent, total; no part of `units_sent`.
    pub repair_units_sent: u64,
    /// Repair units sent ahead, before anything was asked for, total; at most `repair_units_sent`.
    pub repair_units_ahead: u64,
    /// Units of ours kept until the verdict on their segment comes, now.
    pub units_buffered: u64,
    /// From the source's time of each segment of ours to when its verdict was known here; *unknown* is no verdict.
    pub verdict_ms: Histogram,
    /// Units received for the first time, total.
    pub units_received: u64,
    /// Repair units received and kept, total; no part of `units_received`.
    pub repair_units_received: u64,
    /// Units that repair units restored, total; no part of `units_received`.
    pub units_restored: u64,
    /// Segments of the peer of which any unit was restored, total.
    pub segments_restored: u64,
    /// Of them, those restored before any repair unit that was asked for could come: each saved a round trip, total.
    pub round_trips_saved: u64,
    /// Duplicate units received, total.
    pub units_duplicate: u64,
    /// Units declared lost, total; includes those repaired later.
    pub units_detected_lost: u64,
    /// Holes that the tolerance allowed to stay, total: repairs that were not needed.
    pub units_tolerated: u64,
    /// Parts outside the window or contradicting earlier ones, total.
    pub parts_refused: u64,
    /// Segments of the peer judged complete, total.
    pub segments_complete: u64,
    /// Segments of the peer judged within tolerance, total.
    pub segments_within_tolerance: u64,
    /// Segments of the peer judged expired, total.
    pub segments_expired: u64,
    /// The longest run of missing units in any judged segment of the peer, total.
    pub holes_longest_run: u32,
    /// Segments of the peer that the application has confirmed, total.
    pub segments_confirmed: u64,
    /// From the arrival of the first unit or repair unit of each accepted segment of the peer to its verdict: what repair costs.
    pub assembly_ms: Histogram,
    /// From the source's time of each accepted segment of the peer to its verdict, less the least of the connection so far: the two clocks
    /// need not agree.
    pub delay_over_least_ms: Histogram,
    /// Shipments of the peer declared lost, total; includes those that came late (spurious losses).
    pub shipments_detected_lost: u64,
    /// Runs of consecutive shipments of the peer that were declared lost, total: `shipments_detected_lost` by it is the mean length of a
    /// burst.
    pub shipment_runs_lost: u64,
    /// The lengths of these runs, in shipments; a run counts once it has ended.
    pub loss_run_shipments: Histogram,
    /// Shipments of the peer that were reordered: they came after a higher number, total.
    pub shipments_late: u64,
    /// Datagrams that failed authentication (the AEAD tag; in plain mode the checksum), total.
    pub authentication_failures: u64,
    /// Datagrams with a number seen before, total.
    pub shipments_duplicate: u64,
    /// Authenticated datagrams that could not be decoded, total.
    pub shipments_malformed: u64,
    /// Moves of the peer to another address that was validated, total.
    pub peer_migrations: u64,
    /// The reordering threshold R in force (RFC 9002 6.1.1), now.
    pub reordering_threshold_shipments: u32,
    /// The smallest round trip of the last ten seconds, now.
    pub rtt_ms_min: Option<f64>,
    /// The smoothed round trip, now.
    pub rtt_ms_smoothed: Option<f64>,
    /// The rate in force in our direction, now; `None` when unpaced.
    pub rate_bps: Option<u64>,
    /// Bytes in flight in our direction, in whole IP packets, now; `None` unless the rate is automatic.
    pub in_flight_bytes: Option<u64>,
    /// How many bytes may be in flight, now; `None` unless the rate is automatic.
    pub in_flight_cap_bytes: Option<u64>,
    /// The standing queue on the path in our direction, now; `None` unless the rate is automatic and this is known.
    pub queue_ms: Option<f64>,
    /// The spacing of state shipments where they arrive over their spacing where they left (rho), now: above 1 a queue grows. `None` as
    /// `queue_ms`.
    pub rho: Option<f64>,
    /// The delivery rate of our direction, in whole IP packets, now; `None` as `queue_ms`.
    pub delivery_bps: Option<f64>,
    /// The phase of the congestion controller, now: `start_up`, `delay`, `competitive`, `policed` or `outage`; `None` unless the rate is
    /// automatic.
    pub phase: Option<&'static str>,
    /// The datagram size in use, now.
    pub datagram_bytes: u64,
    /// The class in force in our direction, now.
    pub class: u8,
}

/// The statistics of one stream of ours; a part of those of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StreamStatistics {
    /// Units sent, first transmissions and retransmissions, total.
    pub units_sent: u64,
    /// Units retransmitted, total; at most `units_sent`.
    pub units_retransmitted: u64,
    /// Segments of which any unit was retransmitted or restored on request, total.
    pub segments_repaired: u64,
    /// Repair units sent, total; no part of `units_sent`.
    pub repair_units_sent: u64,
    /// Repair units sent ahead, total; at most `repair_units_sent`.
    pub repair_units_ahead: u64,
}

impl StreamStatistics {
    pub(crate) const fn of(counters: StreamCounters) -> Self {
        let StreamCounters { units_sent, units_retransmitted, segments_repaired, repair_units_sent, repair_units_ahead } = counters;
        Self { units_sent, units_retransmitted, segments_repaired, repair_units_sent, repair_units_ahead }
    }
}

impl Statistics {
    pub(crate) fn of(connection: &Connection) -> Self {
        let (sender, receiver, counters) = (connection.sender_counters(), connection.receiver_counters(), connection.counters);
        let (lost, late) = connection.shipments_lost();
        let (rtt, in_flight) = (connection.rtt(), connection.in_flight());
        let (shared, times) = (connection.shared_path(), connection.segment_times());
        Self {
            shipments_sent: counters.datagrams_sent,
            bytes_sent: counters.bytes_sent,
            shipments_received: counters.datagrams_received,
            bytes_received: counters.bytes_received,
            units_sent: sender.units_sent,
            units_retransmitted: sender.units_retransmitted,
            payload_bytes_sent: sender.payload_bytes,
            state_shipments_sent: sender.state_shipments,
            report_shipments_sent: receiver.report_shipments,
            segments_skipped: sender.segments_skipped,
            segments_repaired: sender.segments_repaired,
            segments_durable: sender.segments_durable,
            repair_units_sent: sender.repair_units_sent,
            repair_units_ahead: sender.repair_units_ahead,
            units_buffered: connection.buffered_units_total(),
            verdict_ms: Histogram::of_times(connection.verdict_times()),
            units_received: receiver.units_received,
            repair_units_received: receiver.repair_units_received,
            units_restored: receiver.units_restored,
            segments_restored: receiver.segments_restored,
            round_trips_saved: receiver.round_trips_saved,
            units_duplicate: receiver.units_duplicate,
            units_detected_lost: receiver.units_detected_lost,
            units_tolerated: receiver.units_tolerated,
            parts_refused: receiver.parts_refused,
            segments_complete: receiver.segments[0],
            segments_within_tolerance: receiver.segments[1],
            segments_expired: receiver.segments[2],
            holes_longest_run: receiver.holes_longest_run,
            segments_confirmed: receiver.segments_confirmed,
            assembly_ms: Histogram::of_times(&times.assembly),
            delay_over_least_ms: Histogram::of_times(&times.delay_over_least),
            shipments_detected_lost: lost,
            shipment_runs_lost: connection.shipment_runs_lost(),
            loss_run_shipments: Histogram::of_runs(connection.lost_run_lengths()),
            shipments_late: late,
            authentication_failures: counters.authentication_failures,
            shipments_duplicate: counters.duplicates,
            shipments_malformed: counters.malformed,
            peer_migrations: counters.migrations,
            reordering_threshold_shipments: connection.reorder(),
            rtt_ms_min: rtt.map(|(min, _)| min.as_millis_f64()),
            rtt_ms_smoothed: rtt.map(|(_, smoothed)| smoothed.as_millis_f64()),
            rate_bps: connection.rate().map(|rate| rate.bits_per_second()),
            in_flight_bytes: in_flight.map(|(bytes, _)| bytes),
            in_flight_cap_bytes: in_flight.map(|(_, cap)| cap),
            queue_ms: shared.and_then(|shared| shared.queue_ms),
            rho: shared.and_then(|shared| shared.rho),
            delivery_bps: shared.and_then(|shared| shared.delivery_bps),
            phase: shared.map(|shared| shared.phase),
            datagram_bytes: connection.datagram_bytes() as u64,
            class: connection.class().number(),
        }
    }
}
