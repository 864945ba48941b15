//! A scenario: one scheme over one black box, as a value.
//!
//! Made by the studies and by the command line; run by [`crate::run`]; its canonical text is what the result
//! store addresses and what a sender over UDP tells the receiver.
//!
//! Invariant: a scenario that passes [`registry::check_pair`] can be run; equal canonical texts mean equal runs.

mod error;
mod record;
pub mod words;

pub use error::ScenarioError;

use crate::registry::{self, Scheme};
use record::Record;
use segstream_base::{Bandwidth, Bytes, Duration};
use segstream_blocks::{Accounting, Search, Tolerance};
use segstream_path::LossSpec;
use segstream_schemes::sstp::{Acknowledgment, FeedbackMode};
use segstream_schemes::tcp::Backoff;
use words::{Ptif, Ranges};

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
    /// Whether SNR takes each state for one interval, however many were lost before it, so that time slips (HT 4). Default no.
    pub slip: bool,
    /// Which packets without units are lost, in both directions; then the other losses concern data alone. `None`: they
    /// are lost as data is. Default `None`.
    pub control_loss: Option<LossSpec>,
    /// The forward queue in packets; `None` is a bandwidth-delay product. Default `None`.
    pub queue_packets: Option<u32>,
    /// New packets a second that the source has, in segments at even intervals; `None` always has one. Default `None`.
    pub offered: Option<u32>,
    /// What each data packet costs the sender's processor, zero for nothing (HT 6). Default zero.
    pub service: Duration,
    /// What each slot costs it that is searched in the table of sent packets. Default zero.
    pub search_cost: Duration,
    /// What each operation on its list of timers costs it, and each timer passed there. Default zero.
    pub timer_cost: (Duration, Duration),
    /// How often HTPNET exchanges state; `None` is an eighth of the round trip, 1 to 10 ms. Default `None`.
    pub sync_period: Option<Duration>,
    /// By how many exchanges HTPNET puts off its judgement of a packet. Default 0.
    pub offset: u16,
    /// How much of what it has HTPNET's receiver reports in an exchange. Default four runs.
    pub ranges: Ranges,
    /// How HTPNET searches its table of sent packets. Default FIFO.
    pub search: Search,
    /// The class of HTPNET: error control 4, flow control 2, rate control 1. Default 5.
    pub class: u8,
    /// By which law HTPNET avoids congestion. Default none.
    pub ptif: Ptif,
    /// What becomes of TCP's timeout when it was backed off. Default retained.
    pub backoff: Backoff,
    /// The tick of TCP's timers, zero for none. Default zero.
    pub timer_tick: Duration,
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
            slip: false,
            control_loss: None,
            queue_packets: None,
            offered: None,
            service: Duration::ZERO,
            search_cost: Duration::ZERO,
            timer_cost: (Duration::ZERO, Duration::ZERO),
            sync_period: None,
            offset: 0,
            ranges: Ranges::Four,
            search: Search::Fifo,
            class: 5,
            ptif: Ptif::Off,
            backoff: Backoff::Retain,
            timer_tick: Duration::ZERO,
            packets: 1_000_000,
        }
    }
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
/// The longest that a packet may occupy the processor, or a slot or a timer.
pub const SERVICE_MAX: Duration = Duration::from_secs(60);
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
        let costs = [self.service, self.search_cost, self.timer_cost.0, self.timer_cost.1, self.timer_tick];
        if let Some(cost) = costs.into_iter().find(|cost| *cost > SERVICE_MAX) {
            return Err(ScenarioError::Service(cost));
        }
        if self.offered == Some(0) || self.queue_packets == Some(0) {
            return Err(ScenarioError::Nothing);
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
        self.control_loss.as_ref().map_or(Ok(()), LossSpec::check)?;
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

    /// The time of a packet that throughput efficiency is measured in: what it takes of the sender's processor when that
    /// takes any, as HT measures; else t_p.
    pub fn reference_time_s(&self) -> f64 {
        if self.service.is_zero() { self.packet_time_s() } else { self.service.as_secs_f64() }
    }

    /// The window in packets.
    pub fn window_packets(&self) -> u32 {
        self.window.saturating_mul(self.segment_packets)
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
        let scenario = Scenario {
            control_loss: Some("1e-2".parse().unwrap()),
            queue_packets: Some(64),
            offered: Some(4000),
            service: Duration::from_micros(83),
            search_cost: Duration::from_nanos(1100),
            timer_cost: (Duration::from_micros(5), Duration::from_micros(1)),
            sync_period: Some(Duration::from_millis(5)),
            slip: true,
            offset: 2,
            ranges: Ranges::All,
            search: Search::Exhaustive,
            class: 7,
            ptif: Ptif::Held,
            backoff: Backoff::Oldest,
            timer_tick: Duration::from_millis(1),
            ..scenario
        };
        assert_eq!(Scenario::from_canonical(&scenario.canonical()).unwrap(), scenario);
    }

    #[test]
    fn a_text_without_the_later_settings_means_them_as_usual() {
        let text = Scenario::default().canonical();
        assert!(!text.contains("service") && !text.contains("backoff"), "{text}");
        assert_eq!(Scenario::from_canonical(&text).unwrap(), Scenario::default());
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
            (Scenario { service: Duration::from_secs(61), ..good() }, "a cost of 61s"),
            (Scenario { offered: Some(0), ..good() }, "offers nothing"),
        ];
        for (scenario, sentence) in cases {
            let told = scenario.check().expect_err(sentence).to_string();
            assert!(told.contains(sentence), "{told:?} does not say {sentence:?}");
        }
        good().check().unwrap();
    }
}
