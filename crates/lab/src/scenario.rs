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
use segstream_sim::EndSystem;
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
    /// Its bandwidth on the way back; `None` is the same. Default `None`.
    pub bandwidth_back: Option<Bandwidth>,
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
    /// What each packet costs the processor of either end, data or control, and each of its bytes; zero for nothing (AA
    /// Table 1). Default zero.
    pub work: (Duration, Duration),
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
    /// How often adaptive acknowledgment reports while nothing is missing. Default 40 ms (AA 3.2.2).
    pub t_normal: Duration,
    /// How often while something is. Default 5 ms (AA 3.2.2).
    pub t_error: Duration,
    /// Whether adaptive acknowledgment finds a tail that was lost, which the paper's does not. Default yes.
    pub tail_rule: bool,
    /// How often SSCOP polls while data is outstanding: Timer_POLL. Default 40 ms (AA 3.2.2).
    pub timer_poll: Duration,
    /// After how many packets SSCOP polls before that: MaxPD; `None` never. Default `None`.
    pub max_pd: Option<u32>,
    /// New data packets, rounded down to whole segments. Default 1,000,000.
    pub packets: u64,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            scheme: "sstp".to_owned(),
            rtt: Duration::from_millis(60),
            bandwidth: Bandwidth::from_megabits_per_second(500),
            bandwidth_back: None,
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
            work: (Duration::ZERO, Duration::ZERO),
            sync_period: None,
            offset: 0,
            ranges: Ranges::Four,
            search: Search::Fifo,
            class: 5,
            ptif: Ptif::Off,
            backoff: Backoff::Retain,
            timer_tick: Duration::ZERO,
            t_normal: Duration::from_millis(40),
            t_error: Duration::from_millis(5),
            tail_rule: true,
            timer_poll: Duration::from_millis(40),
            max_pd: None,
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
/// The longest.
pub const STATUS_PERIOD_MAX: Duration = Duration::from_secs(3600);
/// The longest that a packet may occupy the processor, or a byte, a slot or a timer.
pub const SERVICE_MAX: Duration = Duration::from_secs(60);
/// How many packets an end that works may put in front of its link. Why so few: AA's end systems have queues in the lower
/// layer, of a length it does not state; a few keep the link busy, and many would only make feedback older.
const LOWER_QUEUE: u32 = 4;
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
        self.check_periods()?;
        self.check_costs()?;
        if self.offered == Some(0) || self.queue_packets == Some(0) {
            return Err(ScenarioError::Nothing);
        }
        Ok(())
    }

    fn check_periods(&self) -> Result<(), ScenarioError> {
        if let Some(period) = self.status_period.filter(|period| *period < STATUS_PERIOD_MIN) {
            return Err(ScenarioError::StatusPeriod(period));
        }
        let periods = [self.t_normal, self.t_error, self.timer_poll];
        match periods.into_iter().find(|period| !(STATUS_PERIOD_MIN..=STATUS_PERIOD_MAX).contains(period)) {
            Some(period) => Err(ScenarioError::ReportPeriod(period)),
            None if self.max_pd == Some(0) => Err(ScenarioError::MaxPd),
            None => Ok(()),
        }
    }

    fn check_costs(&self) -> Result<(), ScenarioError> {
        let of_sender = [self.service, self.search_cost, self.timer_cost.0, self.timer_cost.1];
        let of_both = [self.work.0, self.work.1];
        let costs = of_sender.into_iter().chain(of_both).chain([self.timer_tick]);
        if let Some(cost) = costs.into_iter().find(|cost| *cost > SERVICE_MAX) {
            return Err(ScenarioError::Service(cost));
        }
        let any = |costs: &[Duration]| costs.iter().any(|cost| !cost.is_zero());
        if any(&of_sender) && any(&of_both) { Err(ScenarioError::TwoCosts) } else { Ok(()) }
    }

    fn check_black_box(&self) -> Result<(), ScenarioError> {
        if !(PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&self.packet_bytes) {
            return Err(ScenarioError::PacketBytes(self.packet_bytes));
        }
        if self.bandwidth.is_zero() || self.bandwidth_back.is_some_and(Bandwidth::is_zero) {
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
    /// takes any, as HT measures; where both ends work, what a data packet takes of a processor or of the link, whichever
    /// is longer, as a stream without errors does (AA 3.2.1); else t_p.
    pub fn reference_time_s(&self) -> f64 {
        match self.end_system() {
            Some(system) => system.work(u64::from(self.packet_bytes)).as_secs_f64().max(self.packet_time_s()),
            None if self.service.is_zero() => self.packet_time_s(),
            None => self.service.as_secs_f64(),
        }
    }

    /// What the work of both ends costs, if it costs anything.
    pub fn end_system(&self) -> Option<EndSystem> {
        let (packet, byte) = self.work;
        (!packet.is_zero() || !byte.is_zero()).then_some(EndSystem { packet, byte, lower_queue: LOWER_QUEUE })
    }

    /// The usual scenario of `scheme`: its segments are as long as it takes them, its window is as long in packets.
    pub fn of(scheme: &Scheme) -> Self {
        let usual = Self { scheme: scheme.key.to_owned(), ..Self::default() };
        let segment_packets = usual.segment_packets.min(scheme.segment_packets_max());
        usual.with_segments(segment_packets)
    }

    /// The same with segments of so many packets, all of which must arrive; the window stays as long in packets.
    #[must_use]
    pub fn with_segments(self, segment_packets: u32) -> Self {
        let window = self.window_packets().checked_div(segment_packets).unwrap_or(self.window);
        Self { segment_packets, window, tolerance: Tolerance::reliable(segment_packets), ..self }
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
        let scenario = Scenario {
            bandwidth_back: Some(Bandwidth::from_megabits_per_second(10)),
            work: (Duration::from_micros(70), Duration::from_nanos(50)),
            t_normal: Duration::from_millis(20),
            t_error: Duration::from_millis(2),
            tail_rule: false,
            timer_poll: Duration::from_millis(10),
            max_pd: Some(25),
            ..Scenario::default()
        };
        assert_eq!(Scenario::from_canonical(&scenario.canonical()).unwrap(), scenario);
    }

    #[test]
    fn what_both_ends_work_and_the_link_is_what_a_packet_is_measured_in() {
        let work = (Duration::from_micros(70), Duration::from_nanos(50));
        let bandwidth = Bandwidth::from_megabits_per_second;
        let table_1 = Scenario { bandwidth: bandwidth(100), work, ..Scenario::default() };
        assert!((table_1.reference_time_s() - 121.2e-6).abs() < 1e-12);
        let slow = Scenario { bandwidth: bandwidth(8), ..table_1 };
        assert!((slow.reference_time_s() - 1.024e-3).abs() < 1e-12);
    }

    #[test]
    fn a_text_without_the_later_settings_means_them_as_usual() {
        let text = Scenario::default().canonical();
        assert!(!text.contains("service") && !text.contains("backoff") && !text.contains("work") && !text.contains("poll"), "{text}");
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
            (Scenario { bandwidth_back: Some(Bandwidth::ZERO), ..good() }, "a bandwidth of zero"),
            (Scenario { work: (Duration::ZERO, Duration::from_secs(61)), ..good() }, "a cost of 61s"),
            (Scenario { t_error: Duration::ZERO, ..good() }, "every 0ns"),
            (Scenario { t_normal: Duration::from_secs(3601), ..good() }, "every 3601s"),
            (Scenario { timer_poll: Duration::from_nanos(1), ..good() }, "every 1ns"),
            (Scenario { max_pd: Some(0), ..good() }, "a poll after 0 packets"),
            (
                Scenario { service: Duration::from_micros(83), work: (Duration::from_micros(70), Duration::ZERO), ..good() },
                "either what both ends work",
            ),
        ];
        for (scenario, sentence) in cases {
            let told = scenario.check().expect_err(sentence).to_string();
            assert!(told.contains(sentence), "{told:?} does not say {sentence:?}");
        }
        good().check().unwrap();
    }
}
