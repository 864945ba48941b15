//! The flagship as a scheme among the others: its data plane over the black box of a scenario.
//!
//! Called by [`crate::registry`], and by [`crate::tandem`] for messages over finite queues.
//!
//! Invariant: these are the halves a real connection uses, with the limits of a real receiver; only the
//! connection around them (set-up, seal, addresses) is missing.

use crate::scenario::{Scenario, ScenarioError};
use segstream_base::{Duration, Instant};
use segstream_blocks::congestion::Algorithm;
use segstream_proto::halves::{LoneReceiver, LoneSender, SHIPMENT_OVERHEAD_BYTES};
use segstream_proto::rate::Rate;
use segstream_proto::receiver::ReceiverConfig;
use segstream_proto::sender::SenderConfig;
use segstream_wire::contract::{Contract, Order};
use segstream_wire::{Class, Part};

/// The two halves.
pub(crate) type Pair = (LoneSender, LoneReceiver);

/// A sender and a receiver for the scenario, at the fixed rate of its bandwidth.
pub(crate) fn pair(scenario: &Scenario, now: Instant) -> Result<Pair, ScenarioError> {
    pair_at(scenario, Rate::smooth(scenario.bandwidth), now)
}

/// The same under a congestion controller, for a link that others share.
pub(crate) fn controlled_pair(scenario: &Scenario, congestion: &'static Algorithm, now: Instant) -> Result<Pair, ScenarioError> {
    pair_at(scenario, Rate::AUTO.under(congestion), now)
}

fn pair_at(scenario: &Scenario, rate: Rate, now: Instant) -> Result<Pair, ScenarioError> {
    let body_bytes = (scenario.packet_bytes as usize).saturating_sub(SHIPMENT_OVERHEAD_BYTES);
    // Limit: a header varies by a few bytes with the numbers in it, and the size of a unit does not. A shipment
    // is `packet_bytes` with the numbers that most have; over a run the mean is within 0.1 % of that, and
    // throughput efficiency may exceed its bound by as much.
    let unit_bytes = body_bytes.checked_sub(usual_part(scenario).header_len()).filter(|bytes| *bytes > 0);
    let unit_bytes = unit_bytes.ok_or(ScenarioError::PacketBytes(scenario.packet_bytes))? as u32;
    let units = |segments: u32| u64::from(segments) * u64::from(scenario.segment_packets);
    let window_units = units(scenario.window);
    let contract = Contract {
        unit_bytes,
        tolerance: (scenario.tolerance.window(), scenario.tolerance.errors(), scenario.tolerance.burst()),
        // The papers' delay ends at acceptance, whatever comes before.
        order: Order::AsAccepted,
        window_units: u32::try_from(window_units).map_err(|_| ScenarioError::Window(scenario.window))?,
        window_segments: scenario.window,
        ..Contract::default()
    };
    // A window larger than the buffer: what hard acknowledgment is studied for (FC 4.3.1).
    let buffer_bytes = (scenario.buffer_segments() < scenario.window).then(|| units(scenario.buffer_segments()) * u64::from(unit_bytes));
    let change = |receiver: ReceiverConfig| ReceiverConfig { reorder: scenario.reorder, buffer_bytes, ..receiver };
    halves(contract, body_bytes + HEADER_SLACK_BYTES, rate, change, now)
}

/// A sender and a receiver for messages over a tandem: one stream in order, everything delivered, a unit of `payload_bytes`
/// in each shipment and so many of them in the window.
pub(crate) fn message_pair(payload_bytes: u32, window: u32, rate: Rate, now: Instant) -> Result<Pair, ScenarioError> {
    let contract = Contract { unit_bytes: payload_bytes, window_units: window, window_segments: window, ..Contract::default() };
    let body_bytes = message_packet_bytes(payload_bytes) - SHIPMENT_OVERHEAD_BYTES + HEADER_SLACK_BYTES;
    halves(contract, body_bytes, rate, |receiver| receiver, now)
}

/// A whole data packet of such messages, in bytes.
pub(crate) fn message_packet_bytes(payload_bytes: u32) -> usize {
    let part = Part { segment: 100_000, length: Some(2 * u64::from(payload_bytes)), payload_bytes, ..usual_part(&Scenario::default()) };
    SHIPMENT_OVERHEAD_BYTES + part.header_len() + payload_bytes as usize
}

/// Halves of one stream in shipments of `body_bytes`; `change` has the last word about the receiver.
fn halves(
    contract: Contract,
    body_bytes: usize,
    rate: Rate,
    change: impl FnOnce(ReceiverConfig) -> ReceiverConfig,
    now: Instant,
) -> Result<Pair, ScenarioError> {
    let sender = SenderConfig {
        class: Class::ALL,
        body_bytes,
        overhead_bytes: SHIPMENT_OVERHEAD_BYTES,
        rate,
        // A path that loses almost everything is studied, not left.
        circuit_breaker: false,
        pacing_quantum: Duration::ZERO,
        keep_alive: Duration::from_secs(1),
    };
    let window_bytes = u64::from(contract.window_units) * u64::from(contract.unit_bytes);
    let receiver = change(ReceiverConfig {
        class: Class::ALL,
        class_max: Class::ALL,
        unlimited: false,
        body_bytes: REPORT_BODY_BYTES,
        // In a study rates count bare packets.
        overhead_bytes: 0,
        reorder: 0,
        reorder_adapting: true,
        streams_max: 256,
        stream_window_bytes: window_bytes,
        connection_window_bytes: window_bytes,
        window_segments_max: contract.window_segments,
        buffer_bytes: None,
    });
    let sender = LoneSender::new(sender, &[contract], now).map_err(|error| ScenarioError::Scheme(error.to_string()))?;
    Ok((sender, LoneReceiver::new(receiver, now)))
}

/// How much longer a header can become than the usual one.
const HEADER_SLACK_BYTES: usize = 16;
/// What a report may carry: a datagram of 1200 bytes.
const REPORT_BODY_BYTES: usize = 1200 - SHIPMENT_OVERHEAD_BYTES;

/// A part with the numbers that most parts of a long run have.
fn usual_part(scenario: &Scenario) -> Part {
    Part {
        stream: 0,
        segment: 1000,
        first: scenario.segment_packets / 2,
        count: 1,
        again: false,
        opened: false,
        length: Some(u64::from(scenario.segment_packets) * u64::from(scenario.packet_bytes)),
        tolerance: None,
        source_time: Instant::ZERO + Duration::from_secs(1),
        payload_bytes: scenario.packet_bytes,
    }
}

/// The payload of a data packet, in bytes.
pub(crate) fn payload_bytes(scenario: &Scenario) -> u64 {
    let overhead = SHIPMENT_OVERHEAD_BYTES + usual_part(scenario).header_len();
    (scenario.packet_bytes as usize).saturating_sub(overhead) as u64
}
