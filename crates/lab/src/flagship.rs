//! The flagship as a scheme among the others: its data plane over a black box.
//!
//! Called by [`crate::registry`], and by [`crate::tandem`] for messages over finite queues.
//!
//! Invariant: these are the halves a real connection uses, with the limits of a real receiver; only the
//! connection around them (set-up, seal, addresses) is missing.

use segstream_base::{Bandwidth, Duration, Instant, Position, SegmentNumber, StreamId};
use segstream_blocks::congestion::{Algorithm, UnknownAlgorithm};
use segstream_proto::coding_choice::{Coding, ParseCodingError};
use segstream_proto::halves::{LoneReceiver, LoneSender, SHIPMENT_OVERHEAD_BYTES};
use segstream_proto::rate::Rate;
use segstream_proto::receiver::ReceiverConfig;
use segstream_proto::sender::SenderConfig;
use segstream_schemes::setting::{About, Kind, Place, Setting, SettingError, Value};
use segstream_schemes::transport::{Takes, Transfer, Transport};
use segstream_wire::contract::{Contract, Order};
use segstream_wire::{Class, Part};

/// The two halves.
pub(crate) type Pair = (LoneSender, LoneReceiver);

/// What the flagship is told of its own.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// The reordering threshold R. Default 0, a path in order.
    pub reordering_threshold: u32,
    /// What controls the rate. Default nothing: it is fixed to the bandwidth.
    pub congestion: Option<&'static Algorithm>,
    /// What is done with repair units. Default [`Coding::Off`]: the papers' schemes have none, and the flagship stands beside them.
    pub coding: SimulatedCoding,
}

/// Why halves of the flagship cannot be made: an error in the scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlagshipError {
    /// See the message.
    #[error("packets of {0} bytes hold no payload; give more")]
    PacketBytes(u32),
    /// See the message.
    #[error("a window of {0} segments is not possible; give fewer, or shorter ones")]
    Window(u32),
    /// A contract or a configuration that the sender refuses.
    #[error("{0}")]
    Sender(String),
}

impl Transport for Settings {
    const KEY: &'static str = "segstream";
    const NAME: &'static str = "Segstream";
    const SOURCE: &'static str = "this project's transport";
    const TAKES: &'static [Takes] = &[Takes::PartialTolerance, Takes::Buffer, Takes::Bursts, Takes::Slowdown];
    const SETTINGS: &'static [Setting<Self>] = &[
        Setting {
            about: About::REORDERING_THRESHOLD,
            get: |settings| settings.reordering_threshold.into(),
            set: |settings, value| value.read(&mut settings.reordering_threshold),
        },
        Setting {
            about: About {
                flag: "congestion",
                value_name: "NAME",
                help: "The congestion control of an automatic rate: auto, bbr, cubic or prague; or of the models of cross traffic bbr1, \
                       linux_cubic or reno",
                by_default: Some("a fixed rate, the bandwidth"),
                record: "congestion",
                place: Place::Section,
                noun: "congestion control {}",
                kind: Kind::Word { bare: None },
            },
            get: |settings| settings.congestion.map_or(Value::None, |algorithm| Value::word(algorithm.name)),
            set: set_congestion,
        },
        Setting {
            about: About {
                flag: "coding",
                value_name: "CODING",
                help: "Repair units: off, hedged (more than was asked for where much is lost), or auto:latency=80ms,budget=10% (also ahead of \
                       any loss)",
                by_default: Some("off"),
                record: "coding",
                place: Place::Section,
                noun: "coding {}",
                kind: Kind::Word { bare: None },
            },
            get: |settings| if settings.coding.0 == Coding::Off { Value::None } else { Value::word(settings.coding.0) },
            set: set_coding,
        },
    ];
    // It has connections of its own, and its halves do not say where the payload lies.
    const IS_LIVE: bool = false;
    const HAS_AUTOMATIC_RATE: bool = true;

    type Sender = LoneSender;
    type Receiver = LoneReceiver;
    type Error = FlagshipError;

    /// At the fixed rate of the bandwidth, in bursts if there are any, or one that is controlled.
    fn halves(&self, transfer: &Transfer, now: Instant) -> Result<Pair, FlagshipError> {
        let rate = self.congestion.map_or(Rate::Fixed(transfer.rate()), |congestion| Rate::AUTO.under(congestion));
        self.pair_at(transfer, Pacing { rate, epoch: Duration::ZERO }, Duration::ZERO, now)
    }

    fn payload_bytes(&self, transfer: &Transfer) -> u32 {
        let overhead = SHIPMENT_OVERHEAD_BYTES + default_part(transfer.segment_packets, transfer.packet_bytes).header_len();
        transfer.packet_bytes.saturating_sub(overhead as u32)
    }
}

/// Reads the name of a congestion control, one of the laboratory's too.
fn set_congestion(settings: &mut Settings, value: Value) -> Result<(), SettingError> {
    settings.congestion = match value {
        Value::None => None,
        Value::Word(name) => {
            let found = Algorithm::named(&name).ok_or(UnknownAlgorithm(name));
            Some(found.map_err(|error| SettingError::Unknown(error.to_string()))?)
        }
        other => return Err(SettingError::OtherKind(other)),
    };
    Ok(())
}

/// What is done with repair units in a simulation: nothing, unless it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedCoding(pub Coding);

impl Default for SimulatedCoding {
    fn default() -> Self {
        Self(Coding::Off)
    }
}

/// Reads what is done with repair units.
fn set_coding(settings: &mut Settings, value: Value) -> Result<(), SettingError> {
    settings.coding = match value {
        Value::None => SimulatedCoding::default(),
        Value::Word(text) => SimulatedCoding(text.parse().map_err(|error: ParseCodingError| SettingError::Unknown(error.to_string()))?),
        other => return Err(SettingError::OtherKind(other)),
    };
    Ok(())
}

impl Settings {
    /// The halves under a congestion controller, for a link that others share; the hosts' time of day shows `epoch` at the start.
    pub(crate) fn controlled_pair(
        &self,
        transfer: &Transfer,
        congestion: &'static Algorithm,
        live: Option<Live>,
        epoch: Duration,
    ) -> Result<Pair, FlagshipError> {
        let rate = Rate::AUTO.under(congestion);
        let rate = live.map_or(rate, |live| rate.starting_at(live.rate));
        let lifetime = live.map_or(Duration::ZERO, |live| live.lifetime);
        self.pair_at(transfer, Pacing { rate, epoch }, lifetime, Instant::ZERO)
    }

    fn pair_at(&self, transfer: &Transfer, pacing: Pacing, lifetime: Duration, now: Instant) -> Result<Pair, FlagshipError> {
        let body_bytes = (transfer.packet_bytes as usize).saturating_sub(SHIPMENT_OVERHEAD_BYTES);
        // Limit: a header varies by a few bytes with the numbers in it, and the size of a unit does not. A shipment
        // is `packet_bytes` with the numbers that most have; over a run the mean is within 0.1 % of that, and
        // throughput efficiency may exceed its bound by as much.
        let header_bytes = default_part(transfer.segment_packets, transfer.packet_bytes).header_len();
        let unit_bytes = body_bytes.checked_sub(header_bytes).filter(|bytes| *bytes > 0);
        let unit_bytes = unit_bytes.ok_or(FlagshipError::PacketBytes(transfer.packet_bytes))? as u32;
        let units = |segments: u32| u64::from(segments) * u64::from(transfer.segment_packets);
        let window_units = units(transfer.window);
        let contract = Contract {
            unit_bytes,
            tolerance: transfer.tolerance,
            // The papers' delay ends at acceptance, whatever comes before.
            order: Order::AsAccepted,
            window_units: u32::try_from(window_units).map_err(|_| FlagshipError::Window(transfer.window))?,
            window_segments: transfer.window,
            lifetime: lifetime.into(),
            ..Contract::default()
        };
        // A window larger than the buffer: what hard acknowledgment is studied for (FC 4.3.1).
        let buffer_bytes = (transfer.buffer < transfer.window).then(|| units(transfer.buffer) * u64::from(unit_bytes));
        let change = |receiver: ReceiverConfig| ReceiverConfig { reorder: self.reordering_threshold, buffer_bytes, ..receiver };
        let (mut sender, mut receiver) = halves(contract, body_bytes + HEADER_SLACK_BYTES, pacing, change, now)?;
        let SimulatedCoding(coding) = self.coding;
        if coding.is_on() {
            sender.half.set_coding();
            receiver.half.set_coding();
            sender.half.set_coding_target(StreamId::FIRST, coding.target());
        }
        Ok((sender, receiver.with_slowdown(transfer.slowdown)))
    }
}

/// A sender and a receiver for messages over a tandem: one stream in order, everything delivered, a unit of `payload_bytes`
/// in each shipment and this many of them in the window.
pub(crate) fn message_pair(payload_bytes: u32, window: u32, rate: Rate, now: Instant) -> Result<Pair, FlagshipError> {
    let contract = Contract { unit_bytes: payload_bytes, window_units: window, window_segments: window, ..Contract::default() };
    let body_bytes = message_packet_bytes(payload_bytes) - SHIPMENT_OVERHEAD_BYTES + HEADER_SLACK_BYTES;
    halves(contract, body_bytes, Pacing { rate, epoch: Duration::ZERO }, |receiver| receiver, now)
}

/// A whole data packet of such messages, in bytes.
pub(crate) fn message_packet_bytes(payload_bytes: u32) -> usize {
    let part = Part {
        segment: SegmentNumber(100_000),
        length: Some(2 * u64::from(payload_bytes)),
        payload_bytes,
        ..default_part(DEFAULT_SEGMENT_PACKETS, 0)
    };
    SHIPMENT_OVERHEAD_BYTES + part.header_len() + payload_bytes as usize
}

/// A live source: its rate, which the sender knows in advance, and how old a segment may become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) rate: Bandwidth,
    pub(crate) lifetime: Duration,
}

/// What the pacing of a sender follows.
#[derive(Clone, Copy)]
struct Pacing {
    rate: Rate,
    /// What the hosts' time of day shows at the start.
    epoch: Duration,
}

/// Halves of one stream in shipments of `body_bytes`; `change` has the last word about the receiver.
fn halves(
    contract: Contract,
    body_bytes: usize,
    pacing: Pacing,
    change: impl FnOnce(ReceiverConfig) -> ReceiverConfig,
    now: Instant,
) -> Result<Pair, FlagshipError> {
    let sender = SenderConfig {
        class: Class::ALL,
        body_bytes,
        overhead_bytes: SHIPMENT_OVERHEAD_BYTES,
        rate: pacing.rate,
        epoch: pacing.epoch,
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
        // Studies say themselves what is kept: what state is charged with never lowers their windows.
        connection_window_bytes: u64::MAX,
        window_segments_max: contract.window_segments,
        buffer_bytes: None,
    });
    let sender = LoneSender::new(sender, &[contract], now).map_err(|error| FlagshipError::Sender(error.to_string()))?;
    Ok((sender, LoneReceiver::new(receiver, now)))
}

/// How much longer a header can become than [`default_part`]'s.
const HEADER_SLACK_BYTES: usize = 16;
/// What a report may carry: a datagram of 1200 bytes.
const REPORT_BODY_BYTES: usize = 1200 - SHIPMENT_OVERHEAD_BYTES;

/// Packets of a segment in the part of a message, of which only the sizes of its numbers matter.
const DEFAULT_SEGMENT_PACKETS: u32 = 256;

/// A part with the numbers that most parts of a long run have.
fn default_part(segment_packets: u32, packet_bytes: u32) -> Part {
    Part {
        stream: StreamId(0),
        segment: SegmentNumber(1000),
        first: Position(segment_packets / 2),
        count: 1,
        retransmission: false,
        opened: false,
        length: Some(u64::from(segment_packets) * u64::from(packet_bytes)),
        tolerance: None,
        source_time: Instant::ZERO + Duration::from_secs(1),
        payload_bytes: packet_bytes,
    }
}
