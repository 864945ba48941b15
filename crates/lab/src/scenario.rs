//! A scenario: one scheme over one black box, as a value.
//!
//! Made by the studies and by the command line; run by [`crate::run`]; its canonical text is what the result
//! store addresses and what a sender over UDP tells the receiver.
//!
//! - `black_box`: the path, and what the processors of its ends take; `workload`: what is transferred;
//! - the scheme's own settings are the scheme's ([`SchemeConfig`]);
//! - `halves`: the pair of halves that a scenario means; `record`: the canonical text.
//!
//! Invariant: a scenario that passes [`check_pair`] can be run; equal canonical texts mean equal runs.

mod black_box;
mod error;
mod halves;
mod hop;
mod record;
mod usual;
mod workload;

pub use black_box::{BlackBox, RTT_MAX, SERVICE_MAX};
pub use error::ScenarioError;
pub use halves::{Visitor, check_pair, segment_bytes, visit};
pub use hop::Hop;
pub use usual::Usual;
pub use workload::{PACKET_BYTES_MAX, PACKET_BYTES_MIN, SEGMENT_PACKETS_MAX, WINDOW_MAX, Workload};

use crate::registry::{self, Scheme, SchemeConfig};
use segstream_base::Bytes;
use segstream_blocks::RateSpec;
use segstream_schemes::setting::Value;
use segstream_schemes::transport::{Bursts, Transfer, Transport};

/// One scheme over one black box.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// The path, and what the processors of its ends take.
    pub black_box: BlackBox,
    /// What is transferred.
    pub workload: Workload,
    /// The scheme and its own settings. Default SSTP.
    pub scheme: SchemeConfig,
}

impl Scenario {
    /// The default scenario of `scheme`: its segments are as long as it takes them, its window is as long in packets.
    pub fn of(scheme: &Scheme) -> Self {
        let default = Self { scheme: scheme.config(), ..Self::default() };
        let segment_packets = default.workload.segment_packets.min(scheme.segment_packets_max);
        default.with_segments(segment_packets)
    }

    /// The same with a change: `scenario.with(|it| it.black_box.rtt = rtt)`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The same with a change of the scheme's settings, if they are of this type; those of another scheme stay.
    #[must_use]
    pub fn with_settings<T: Transport>(mut self, change: impl FnOnce(&mut T)) -> Self {
        self.scheme.change(change);
        self
    }

    /// Sets the setting of the scheme with this flag. One that belongs to another scheme may stay as by default, and is accepted
    /// without effect where a paper compares the two.
    ///
    /// # Errors
    /// Says which values are possible, or that the scheme has no such setting.
    pub fn set(&mut self, flag: &str, value: &Value) -> Result<(), ScenarioError> {
        if self.scheme.set(flag, value.clone())? {
            return Ok(());
        }
        let scheme = self.scheme.scheme();
        match registry::settings().into_iter().find(|(about, _)| about.flag == flag) {
            Some((about, default)) if *value != default && !scheme.accepts_without_effect(flag) => {
                Err(ScenarioError::NotApplicable { setting: about.flag, scheme: scheme.key })
            }
            _ => Ok(()),
        }
    }

    /// The same with segments of this many packets, all of which must arrive; the window stays as long in packets.
    #[must_use]
    pub fn with_segments(self, segment_packets: u32) -> Self {
        Self { workload: self.workload.with_segments(segment_packets), ..self }
    }

    /// Whether its numbers can be; what its scheme cannot be told or refuses is found by [`check_pair`].
    ///
    /// # Errors
    /// Says which cannot be.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.workload.check_packet()?;
        self.black_box.check(self.workload.packet_bytes)?;
        self.workload.check()?;
        self.check_bursts()?;
        Ok(self.scheme.check()?)
    }

    /// Whether bursts have packets, come at all, and fit the bandwidth (FC 3.3: F <= P / (8 L l)).
    fn check_bursts(&self) -> Result<(), ScenarioError> {
        let Some(bursts) = self.workload.bursts else { return Ok(()) };
        let rate = RateSpec::new(self.black_box.bandwidth, bursts.per_second, bursts.packets);
        rate.and_then(|rate| rate.check(self.packet_size())).map_err(ScenarioError::Bursts)
    }

    /// What the scheme is told of black box and workload.
    pub fn transfer(&self) -> Transfer {
        let (black_box, workload) = (&self.black_box, &self.workload);
        Transfer {
            packet_bytes: workload.packet_bytes,
            segment_packets: workload.segment_packets,
            window: workload.window,
            buffer: workload.buffer_segments(),
            tolerance: workload.tolerance,
            bandwidth: black_box.bandwidth,
            bursts: workload.bursts,
            slowdown: workload.slowdown,
            rtt: black_box.rtt,
            feedback: black_box.feedback,
            processor_paces: !black_box.service.is_zero(),
        }
    }

    /// Segments that are sent: the packets rounded down.
    pub fn segments(&self) -> u64 {
        self.workload.segments()
    }

    /// The window in packets.
    pub fn window_packets(&self) -> u32 {
        self.workload.window_packets()
    }

    /// The time a packet takes at the bandwidth, in seconds: t_p.
    pub fn packet_time_s(&self) -> f64 {
        self.black_box.packet_time_s(self.workload.packet_bytes)
    }

    /// The time of a packet that throughput efficiency is measured in: what it takes of the sender's processor when that
    /// takes any, as HT measures; where both ends work, what a data packet takes of a processor or of the link, whichever
    /// is longer, as a stream without errors does (AA 3.2.1); in bursts, the time at their average rate A (FC 3.3, 4.1: the
    /// connection's rate); else t_p.
    pub fn reference_time_s(&self) -> f64 {
        match self.black_box.end_system() {
            Some(system) => system.work(u64::from(self.workload.packet_bytes)).as_secs_f64().max(self.packet_time_s()),
            None if self.black_box.service.is_zero() => self.average_packet_time_s(),
            None => self.black_box.service.as_secs_f64(),
        }
    }

    /// The mean time from packet to packet that the rate allows: t_p, or 1 / (F L).
    fn average_packet_time_s(&self) -> f64 {
        let of_bursts = |bursts: Bursts| 1.0 / (f64::from(bursts.per_second) * f64::from(bursts.packets));
        self.workload.bursts.map_or_else(|| self.packet_time_s(), of_bursts)
    }

    /// The size of a packet as the black box counts it.
    pub fn packet_size(&self) -> Bytes {
        Bytes::new(u64::from(self.workload.packet_bytes))
    }

    /// The scenario as one line of JSON in base measures, the same for equal scenarios.
    pub fn canonical(&self) -> String {
        record::write(self)
    }

    /// Reads what [`Scenario::canonical`] wrote.
    ///
    /// # Errors
    /// Says what cannot be read, or cannot be run.
    pub fn from_canonical(text: &str) -> Result<Self, ScenarioError> {
        let scenario = record::read(text)?;
        scenario.check()?;
        Ok(scenario)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::{Bandwidth, Duration, Instant, Tolerance};
    use segstream_blocks::Search;
    use segstream_blocks::user::Slowdown;
    use segstream_schemes::htpnet::{Class, Ptif, Ranges};
    use segstream_schemes::sstp::Acknowledgment;
    use segstream_schemes::tcp::Backoff;
    use segstream_schemes::{adaptive_ack, htpnet, snr, sscop, sstp, tcp};

    fn assert_reads_back(scenario: &Scenario) {
        assert_eq!(Scenario::from_canonical(&scenario.canonical()).unwrap(), *scenario);
    }

    #[test]
    fn the_canonical_text_reads_back_as_the_same_scenario() {
        let scenario = Scenario {
            scheme: sstp::Settings { ack: Acknowledgment::SoftLazy, reordering_threshold: 3, ..sstp::Settings::default() }.into(),
            ..Scenario::default()
        };
        let scenario = scenario.with(|it| {
            it.black_box.loss = "bursty:good=1620ms,bad=180ms,loss=1e-3".parse().unwrap();
            it.workload.buffer = Some(7);
        });
        assert_reads_back(&scenario);
        let mut scenario = scenario.with(|it| {
            it.black_box.control_loss = Some("1e-2".parse().unwrap());
            it.black_box.queue_packets = Some(64);
            it.black_box.service = Duration::from_micros(83);
            it.black_box.search_cost = Duration::from_nanos(1100);
            it.black_box.timer_cost = (Duration::from_micros(5), Duration::from_micros(1));
            it.workload.offered = Some(4000);
            it.workload.bursts = Some(Bursts { per_second: 100, packets: 257 });
            let at = |millis| Instant::ZERO + Duration::from_millis(millis);
            it.workload.slowdown = Some(Slowdown { from: at(3), until: Instant::FAR_FUTURE, takes: Duration::from_nanos(7) });
        });
        let htpnet = htpnet::Settings {
            sync_period: Some(Duration::from_millis(5)),
            offset: 2,
            ranges: Ranges::All,
            search: Search::Exhaustive,
            class: Class::ALL,
            ptif: Ptif::Held,
        };
        let tcp = tcp::Settings { backoff: Backoff::Oldest, timer_tick: Duration::from_millis(1) };
        let snr = snr::Settings { status_period: Some(Duration::from_millis(5)), slip: true };
        for scheme in [htpnet.into(), tcp.into(), snr.into()] {
            scenario.scheme = scheme;
            assert_reads_back(&scenario);
        }
        let mut scenario = Scenario::default().with(|it| {
            it.black_box.bandwidth_back = Some(Bandwidth::from_megabits_per_second(10));
            it.black_box.work = (Duration::from_micros(70), Duration::from_nanos(50));
        });
        let adaptive_ack = adaptive_ack::Settings {
            t_normal: Duration::from_millis(20),
            t_error: Duration::from_millis(2),
            rearming: adaptive_ack::Rearming::Gap,
            tail_rule: false,
        };
        let sscop = sscop::Settings { timer_poll: Duration::from_millis(10), max_pd: Some(25) };
        for scheme in [adaptive_ack.into(), sscop.into()] {
            scenario.scheme = scheme;
            assert_reads_back(&scenario);
        }
    }

    #[test]
    fn what_both_ends_work_and_the_link_is_what_a_packet_is_measured_in() {
        let work = (Duration::from_micros(70), Duration::from_nanos(50));
        let bandwidth = Bandwidth::from_megabits_per_second;
        let table_1 = Scenario::default().with(|it| (it.black_box.bandwidth, it.black_box.work) = (bandwidth(100), work));
        assert!((table_1.reference_time_s() - 121.2e-6).abs() < 1e-12);
        let slow = table_1.with(|it| it.black_box.bandwidth = bandwidth(8));
        assert!((slow.reference_time_s() - 1.024e-3).abs() < 1e-12);
    }

    #[test]
    fn bursts_are_measured_in_the_packet_time_of_their_average() {
        let bursts = Scenario::default().with(|it| it.workload.bursts = Some(Bursts { per_second: 100, packets: 250 }));
        assert!((bursts.reference_time_s() - 40e-6).abs() < 1e-15);
        assert!((bursts.packet_time_s() - 16.384e-6).abs() < 1e-15);
        let others = Scenario { scheme: sscop::Settings::default().into(), ..bursts.with_segments(1) };
        assert_eq!(check_pair(&others).unwrap_err().to_string(), "sscop does not use --burst; leave it out");
    }

    #[test]
    fn a_text_without_the_later_settings_means_them_as_by_default() {
        let text = Scenario::default().canonical();
        assert!(!text.contains("service") && !text.contains("backoff") && !text.contains("work") && !text.contains("poll"), "{text}");
        assert_eq!(Scenario::from_canonical(&text).unwrap(), Scenario::default());
    }

    #[test]
    fn the_canonical_text_is_what_it_always_was() {
        let scenario = Scenario {
            scheme: htpnet::Settings { offset: 1, ..htpnet::Settings::default() }.into(),
            ..Scenario::default().with_segments(1)
        };
        let scenario = scenario.with(|it| {
            it.black_box.control_loss = Some("none".parse().unwrap());
            it.black_box.service = Duration::from_micros(83);
            it.black_box.bandwidth_back = Some(Bandwidth::from_megabits_per_second(10));
        });
        let text = concat!(
            r#"{"scheme":"htpnet","rtt_ns":60000000,"bandwidth_bps":500000000,"packet_bytes":1024,"segment_packets":1,"#,
            r#""window_segments":9216,"buffer_segments":null,"ack":"hard","tolerance":[1,0,0],"accounting":"strict-all","loss":"none","#,
            r#""loss_back":"none","feedback":"full","reorder":0,"status_period_ns":null,"packets":1000000,"control_loss":"none","#,
            r#""costs_ns":[83000,0,0,0],"htpnet":{"sync_period_ns":null,"offset":1,"ranges":"8","search":"fifo","class":5,"ptif":"off"},"#,
            r#""bandwidth_back_bps":10000000}"#
        );
        assert_eq!(scenario.canonical(), text);
        let snr = scenario.with(|it| it.scheme = snr::Settings { slip: true, ..snr::Settings::default() }.into());
        let end = r#""costs_ns":[83000,0,0,0],"snr_slips":true,"bandwidth_back_bps":10000000}"#;
        assert!(snr.canonical().ends_with(end), "{}", snr.canonical());
    }

    #[test]
    fn a_text_with_what_means_nothing_to_its_scheme_is_refused() {
        let text = Scenario::default().canonical();
        let cases = [
            (text.replace(r#""status_period_ns":null"#, r#""status_period_ns":5000000"#), "sstp does not use --status-period"),
            (text.replace('}', r#","tcp":{"backoff":"own","timer_tick_ns":0}}"#), "sstp does not use --backoff"),
            (text.replace('}', r#","colour":"red"}"#), "unknown field `colour`"),
            (text.replace(r#""reorder":0"#, r#""reorder":"far""#), "is not what \"reorder\" can be"),
            (text.replace(r#""reorder":0"#, r#""reorder":1024"#), "threshold 1024"),
            (text.replace(r#""rtt_ns":60000000,"#, ""), "rtt_ns"),
            (text.replace("sstp", "stcp"), "there is no scheme \"stcp\""),
        ];
        for (text, sentence) in cases {
            let message = Scenario::from_canonical(&text).expect_err(sentence).to_string();
            assert!(message.contains(sentence), "{message:?} does not say {sentence:?}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        fn change(change: fn(&mut Scenario)) -> Scenario {
            Scenario::default().with(change)
        }
        let of = |scheme| Scenario { scheme, ..Scenario::default() };
        let adaptive_ack = adaptive_ack::Settings::default;
        let cases: Vec<(Scenario, &str)> = vec![
            (change(|it| it.workload.window = 0), "a window of 0 segments"),
            (change(|it| it.workload.buffer = Some(37)), "a buffer of 37 segments"),
            (change(|it| it.workload.buffer = Some(0)), "a buffer of 0 segments"),
            (change(|it| it.workload.packet_bytes = 20), "packets of 20 bytes"),
            (change(|it| it.workload.segment_packets = 0), "segments of 0 packets"),
            (change(|it| it.black_box.bandwidth = Bandwidth::from_bits_per_second(u64::MAX)), "less than a nanosecond"),
            (change(|it| it.black_box.bandwidth = Bandwidth::ZERO), "a bandwidth of zero"),
            (change(|it| it.workload.tolerance = Tolerance::reliable(255)), "W = 255 packets"),
            (change(|it| it.workload.packets = 255), "255 packets are less than one segment"),
            (of(sstp::Settings { reordering_threshold: 1024, ..sstp::Settings::default() }.into()), "threshold 1024"),
            (change(|it| it.black_box.rtt = Duration::from_secs(3601)), "round trip"),
            (change(|it| it.black_box.service = Duration::from_secs(61)), "a cost of 61s"),
            (change(|it| it.workload.offered = Some(0)), "offers nothing"),
            (change(|it| it.workload.bursts = Some(Bursts { per_second: 0, packets: 256 })), "F = 0 bursts per second"),
            (change(|it| it.workload.bursts = Some(Bursts { per_second: 100, packets: 0 })), "L = 0 datagrams"),
            (change(|it| it.workload.bursts = Some(Bursts { per_second: 239, packets: 256 })), "above the peak"),
            (change(|it| it.black_box.bandwidth_back = Some(Bandwidth::ZERO)), "a bandwidth of zero"),
            (change(|it| it.black_box.work = (Duration::ZERO, Duration::from_secs(61))), "a cost of 61s"),
            (of(adaptive_ack::Settings { t_error: Duration::ZERO, ..adaptive_ack() }.into()), "every 0ns"),
            (of(adaptive_ack::Settings { t_normal: Duration::from_secs(3601), ..adaptive_ack() }.into()), "every 3601s"),
            (of(sscop::Settings { timer_poll: Duration::from_nanos(1), max_pd: None }.into()), "every 1ns"),
            (of(sscop::Settings { max_pd: Some(0), ..sscop::Settings::default() }.into()), "a poll after 0 packets"),
            (
                change(|it| {
                    it.black_box.service = Duration::from_micros(83);
                    it.black_box.work = (Duration::from_micros(70), Duration::ZERO);
                }),
                "either what both ends work",
            ),
        ];
        for (scenario, sentence) in cases {
            let message = scenario.check().expect_err(sentence).to_string();
            assert!(message.contains(sentence), "{message:?} does not say {sentence:?}");
        }
        Scenario::default().check().unwrap();
    }
}
