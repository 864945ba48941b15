//! A scenario: one scheme over one black box, as a value.
//!
//! Made by the studies and by the command line; run by [`crate::run`]; its canonical text is what the result
//! store addresses and what a sender over UDP tells the receiver.
//!
//! Invariant: a scenario that passes [`registry::check_pair`] can be run; equal canonical texts mean equal runs.

use crate::registry::{self, Scheme};
use segstream_base::{Bandwidth, Bytes, Duration};
use segstream_blocks::{Accounting, Tolerance};
use segstream_path::{LossSpec, SpecError};
use segstream_schemes::sstp::{Acknowledgment, FeedbackMode};
use serde::{Deserialize, Serialize};

/// One scheme over one black box.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The key of the scheme in the registry. Default `sstp`.
    pub scheme: String,
    /// The round trip of the black box, half of it each way. Default 60 ms (EC 5).
    pub rtt: Duration,
    /// Its bandwidth, bare packets counted. Default 500 Mbit/s.
    pub bandwidth: Bandwidth,
    /// A whole data packet, its header included. Default 1024 bytes.
    pub packet_bytes: u32,
    /// Packets of a segment. Default 256.
    pub segment_packets: u32,
    /// The window in segments. Default 36, which is 2.5 w_a at the default point.
    pub window: u32,
    /// The receiver's buffer in segments, at most the window; `None` is the window. Default `None`.
    pub buffer: Option<u32>,
    /// What a receiver does whose buffer is smaller than its window. Default hard.
    pub ack: Acknowledgment,
    /// (W, E, B) in packets. Default (256, 0, 0).
    pub tolerance: Tolerance,
    /// How tolerated losses are counted. Default strict-all.
    pub accounting: Accounting,
    /// Which packets the path loses on their way to the receiver. Default none.
    pub loss: LossSpec,
    /// Which packets it loses on their way back. Default none.
    pub loss_back: LossSpec,
    /// Whether the receiver is told the fate of each packet group, or finds out. Default full.
    pub feedback: FeedbackMode,
    /// The re-sequencing distance R. Default 0, a path in order.
    pub reorder: u32,
    /// How often SNR exchanges state; `None` is a twelfth of the round trip. Default `None`.
    pub status_period: Option<Duration>,
    /// New data packets, rounded down to whole segments. Default 1,000,000.
    pub packets: u64,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            scheme: "sstp".to_owned(),
            rtt: Duration::from_millis(60),
            bandwidth: Bandwidth::from_megabits_per_second(500),
            packet_bytes: 1024,
            segment_packets: 256,
            window: 36,
            buffer: None,
            ack: Acknowledgment::Hard,
            tolerance: Tolerance::reliable(256),
            accounting: Accounting::StrictAll,
            loss: LossSpec::None,
            loss_back: LossSpec::None,
            feedback: FeedbackMode::Full,
            reorder: 0,
            status_period: None,
            packets: 1_000_000,
        }
    }
}

/// Why a scenario cannot be run: a fault of whoever wrote it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// See the message.
    #[error("there is no scheme \"{0}\"; known are {known}", known = registry::keys())]
    UnknownScheme(String),
    /// See the message.
    #[error("scheme \"{asked}\" is asked for, but it is {here} here; give both ends the same --scheme")]
    OtherScheme {
        /// The key that is asked for.
        asked: String,
        /// The key of the scheme that is run.
        here: &'static str,
    },
    /// See the message.
    #[error("--{setting} means nothing to {scheme}; leave it out")]
    NotApplicable {
        /// The setting's name on the command line.
        setting: &'static str,
        /// The scheme.
        scheme: String,
    },
    /// See the message.
    #[error("a window of {0} segments is not possible; give 1 to {WINDOW_MAX}")]
    Window(u32),
    /// See the message.
    #[error("a buffer of {buffer} segments does not fit a window of {window}; give 1 to {window}")]
    Buffer {
        /// The buffer asked for.
        buffer: u32,
        /// The window.
        window: u32,
    },
    /// See the message.
    #[error("packets of {0} bytes are not possible; give {PACKET_BYTES_MIN} to {PACKET_BYTES_MAX}")]
    PacketBytes(u32),
    /// See the message.
    #[error("segments of {0} packets are not possible; give 1 to {SEGMENT_PACKETS_MAX}")]
    SegmentPackets(u32),
    /// See the message.
    #[error(
        "at {bandwidth} a packet of {packet_bytes} bytes takes less than a nanosecond, which the clock cannot tell; give a lower bandwidth"
    )]
    NoPacketTime {
        /// The bandwidth.
        bandwidth: Bandwidth,
        /// The packet.
        packet_bytes: u32,
    },
    /// See the message.
    #[error("a bandwidth of zero lets nothing pass; give one above it")]
    NoBandwidth,
    /// See the message.
    #[error("the round trip of {0} is too long; give at most {RTT_MAX}")]
    Rtt(Duration),
    /// See the message.
    #[error("the tolerance counts over W = {window} packets, but a segment has {segment_packets}; W must be the segment")]
    ToleranceWindow {
        /// W.
        window: u32,
        /// Packets of a segment.
        segment_packets: u32,
    },
    /// See the message.
    #[error("{packets} packets are less than one segment of {segment_packets}; give more")]
    TooFewPackets {
        /// New packets asked for.
        packets: u64,
        /// Packets of a segment.
        segment_packets: u32,
    },
    /// See the message.
    #[error("the re-sequencing distance {0} is too long; give at most {REORDER_MAX}")]
    Reorder(u32),
    /// See the message.
    #[error("a status every {0} is not possible; give at least {STATUS_PERIOD_MIN}")]
    StatusPeriod(Duration),
    /// See the message.
    #[error("the loss: {0}")]
    Loss(#[from] SpecError),
    /// See the message.
    #[error("the scheme refuses: {0}")]
    Scheme(String),
    /// See the message.
    #[error("the parameters cannot be read: {0}")]
    Unreadable(String),
}

/// The longest window, in segments.
pub const WINDOW_MAX: u32 = 65_536;
/// The smallest packet: a header and a little payload of every scheme.
pub const PACKET_BYTES_MIN: u32 = 64;
/// The largest packet, which a UDP datagram still takes.
pub const PACKET_BYTES_MAX: u32 = 65_000;
/// The longest segment, in packets.
pub const SEGMENT_PACKETS_MAX: u32 = 32_768;
/// The longest round trip.
pub const RTT_MAX: Duration = Duration::from_secs(3600);
/// The shortest status period: a peer that may choose it must not make us send more often.
pub const STATUS_PERIOD_MIN: Duration = Duration::from_micros(100);
/// The longest re-sequencing distance.
pub const REORDER_MAX: u32 = 1023;

impl Scenario {
    /// The scheme's entry in the registry.
    pub fn registered(&self) -> Result<&'static Scheme, ScenarioError> {
        registry::find(&self.scheme).ok_or_else(|| ScenarioError::UnknownScheme(self.scheme.clone()))
    }

    /// Whether its numbers can be; what its scheme cannot be told or refuses is found by [`registry::check_pair`].
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.registered()?;
        self.check_black_box()?;
        if self.window == 0 || self.window > WINDOW_MAX {
            return Err(ScenarioError::Window(self.window));
        }
        if let Some(buffer) = self.buffer.filter(|buffer| *buffer == 0 || *buffer > self.window) {
            return Err(ScenarioError::Buffer { buffer, window: self.window });
        }
        if self.segment_packets == 0 || self.segment_packets > SEGMENT_PACKETS_MAX {
            return Err(ScenarioError::SegmentPackets(self.segment_packets));
        }
        if self.tolerance.window() != self.segment_packets {
            return Err(ScenarioError::ToleranceWindow { window: self.tolerance.window(), segment_packets: self.segment_packets });
        }
        if self.segments() == 0 {
            return Err(ScenarioError::TooFewPackets { packets: self.packets, segment_packets: self.segment_packets });
        }
        if self.reorder > REORDER_MAX {
            return Err(ScenarioError::Reorder(self.reorder));
        }
        if let Some(period) = self.status_period.filter(|period| *period < STATUS_PERIOD_MIN) {
            return Err(ScenarioError::StatusPeriod(period));
        }
        Ok(())
    }

    fn check_black_box(&self) -> Result<(), ScenarioError> {
        if !(PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&self.packet_bytes) {
            return Err(ScenarioError::PacketBytes(self.packet_bytes));
        }
        if self.bandwidth.is_zero() {
            return Err(ScenarioError::NoBandwidth);
        }
        if self.packet_time_s() < 1e-9 {
            return Err(ScenarioError::NoPacketTime { bandwidth: self.bandwidth, packet_bytes: self.packet_bytes });
        }
        if self.rtt > RTT_MAX {
            return Err(ScenarioError::Rtt(self.rtt));
        }
        self.loss.check()?;
        self.loss_back.check()?;
        Ok(())
    }

    /// Segments that are sent: the packets rounded down.
    pub fn segments(&self) -> u64 {
        self.packets / u64::from(self.segment_packets.max(1))
    }

    /// The receiver's buffer in segments.
    pub fn buffer_segments(&self) -> u32 {
        self.buffer.unwrap_or(self.window)
    }

    /// The time a packet takes at the bandwidth, in seconds: t_p.
    pub fn packet_time_s(&self) -> f64 {
        f64::from(self.packet_bytes) * 8.0 / self.bandwidth.bits_per_second() as f64
    }

    /// The size of a packet as the black box counts it.
    pub fn packet_size(&self) -> Bytes {
        Bytes::new(u64::from(self.packet_bytes))
    }

    /// The scenario as one line of JSON in base measures, the same for equal scenarios.
    pub fn canonical(&self) -> String {
        // A record of numbers and short texts always has a JSON form.
        serde_json::to_string(&Record::from(self)).unwrap_or_default()
    }

    /// Reads what [`Scenario::canonical`] wrote.
    pub fn from_canonical(text: &str) -> Result<Self, ScenarioError> {
        let record: Record = serde_json::from_str(text).map_err(|error| ScenarioError::Unreadable(error.to_string()))?;
        let scenario = Self::try_from(record)?;
        scenario.check()?;
        Ok(scenario)
    }
}

/// A scenario in base measures.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    scheme: String,
    rtt_ns: u64,
    bandwidth_bps: u64,
    packet_bytes: u32,
    segment_packets: u32,
    window_segments: u32,
    buffer_segments: Option<u32>,
    ack: String,
    tolerance: (u32, u32, u32),
    accounting: String,
    loss: String,
    loss_back: String,
    feedback: String,
    reorder: u32,
    status_period_ns: Option<u64>,
    packets: u64,
}

impl From<&Scenario> for Record {
    fn from(scenario: &Scenario) -> Self {
        let tolerance = scenario.tolerance;
        Self {
            scheme: scenario.scheme.clone(),
            rtt_ns: scenario.rtt.as_nanos(),
            bandwidth_bps: scenario.bandwidth.bits_per_second(),
            packet_bytes: scenario.packet_bytes,
            segment_packets: scenario.segment_packets,
            window_segments: scenario.window,
            buffer_segments: scenario.buffer,
            ack: scenario.ack.to_string(),
            tolerance: (tolerance.window(), tolerance.errors(), tolerance.burst()),
            accounting: scenario.accounting.to_string(),
            loss: scenario.loss.to_string(),
            loss_back: scenario.loss_back.to_string(),
            feedback: scenario.feedback.to_string(),
            reorder: scenario.reorder,
            status_period_ns: scenario.status_period.map(Duration::as_nanos),
            packets: scenario.packets,
        }
    }
}

impl TryFrom<Record> for Scenario {
    type Error = ScenarioError;

    fn try_from(record: Record) -> Result<Self, ScenarioError> {
        fn read<T: std::str::FromStr>(text: &str) -> Result<T, ScenarioError>
        where
            T::Err: std::fmt::Display,
        {
            text.parse().map_err(|error: T::Err| ScenarioError::Unreadable(error.to_string()))
        }
        let (window, errors, burst) = record.tolerance;
        Ok(Self {
            scheme: record.scheme,
            rtt: Duration::from_nanos(record.rtt_ns),
            bandwidth: Bandwidth::from_bits_per_second(record.bandwidth_bps),
            packet_bytes: record.packet_bytes,
            segment_packets: record.segment_packets,
            window: record.window_segments,
            buffer: record.buffer_segments,
            ack: read(&record.ack)?,
            tolerance: Tolerance::new(window, errors, burst).map_err(|error| ScenarioError::Unreadable(error.to_string()))?,
            accounting: read(&record.accounting)?,
            loss: read(&record.loss)?,
            loss_back: read(&record.loss_back)?,
            feedback: read(&record.feedback)?,
            reorder: record.reorder,
            status_period: record.status_period_ns.map(Duration::from_nanos),
            packets: record.packets,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_text_reads_back_as_the_same_scenario() {
        let scenario = Scenario {
            loss: "bursty:good=1620ms,bad=180ms,loss=1e-3".parse().unwrap(),
            buffer: Some(7),
            ack: Acknowledgment::SoftLazy,
            status_period: Some(Duration::from_millis(5)),
            ..Scenario::default()
        };
        assert_eq!(Scenario::from_canonical(&scenario.canonical()).unwrap(), scenario);
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        let good = Scenario::default;
        let cases: Vec<(Scenario, &str)> = vec![
            (Scenario { scheme: "stcp".into(), ..good() }, "there is no scheme \"stcp\""),
            (Scenario { window: 0, ..good() }, "a window of 0 segments"),
            (Scenario { buffer: Some(37), ..good() }, "a buffer of 37 segments"),
            (Scenario { buffer: Some(0), ..good() }, "a buffer of 0 segments"),
            (Scenario { packet_bytes: 20, ..good() }, "packets of 20 bytes"),
            (Scenario { segment_packets: 0, ..good() }, "segments of 0 packets"),
            (Scenario { bandwidth: Bandwidth::from_bits_per_second(u64::MAX), ..good() }, "less than a nanosecond"),
            (Scenario { bandwidth: Bandwidth::ZERO, ..good() }, "a bandwidth of zero"),
            (Scenario { tolerance: Tolerance::reliable(255), ..good() }, "W = 255 packets"),
            (Scenario { packets: 255, ..good() }, "255 packets are less than one segment"),
            (Scenario { reorder: 1024, ..good() }, "distance 1024"),
            (Scenario { rtt: Duration::from_secs(3601), ..good() }, "round trip"),
        ];
        for (scenario, sentence) in cases {
            let told = scenario.check().expect_err(sentence).to_string();
            assert!(told.contains(sentence), "{told:?} does not say {sentence:?}");
        }
        good().check().unwrap();
    }
}
