//! The settings of HTPNET, and the halves that they make.
//!
//! Called by the laboratory through [`Transport`].
//!
//! Invariant: equal settings and transfers give equal halves.

use super::{Class, Config, ConfigError, Ptif, Ranges, Receiver, Sender, SyncPeriod};
use crate::setting::{About, Kind, Place, Setting, SettingError, Value};
use crate::transport::{Takes, Transfer, Transport, UsualPoint, halves_from_config};
use segstream_base::{Duration, Instant};
use segstream_blocks::Search;

/// The settings of HTPNET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How often state is exchanged; `None` is an eighth of the round trip, 1 to 10 ms. Default `None`.
    pub sync_period: Option<Duration>,
    /// By how many exchanges the judgement of a packet is put off. Default 0.
    pub offset: u16,
    /// How much of what it has the receiver reports in an exchange. Default eight runs.
    pub ranges: Ranges,
    /// How the table of sent packets is searched. Default FIFO.
    pub search: Search,
    /// The class. Default 5: error and rate control.
    pub class: Class,
    /// By which law congestion is avoided. Default none.
    pub ptif: Ptif,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sync_period: None,
            offset: 0,
            ranges: Ranges::Eight,
            search: Search::Fifo,
            class: Class::ERROR_AND_RATE_CONTROL,
            ptif: Ptif::Off,
        }
    }
}

impl Transport for Settings {
    const KEY: &'static str = "htpnet";
    const NAME: &'static str = "HTPNET";
    const SOURCE: &'static str = "Chan and Gorton (HT)";
    const TAKES: &'static [Takes] = &[Takes::SenderCosts];
    const SETTINGS: &'static [Setting<Self>] = &[
        Setting {
            about: About {
                flag: "sync-period",
                value_name: "T",
                help: "The interval at which htpnet exchanges state",
                by_default: Some("an eighth of the round-trip time, 1 to 10 ms"),
                record: "sync_period_ns",
                place: Place::Section,
                noun: "an exchange every {}",
                kind: Kind::Time { min: Duration::ZERO, max: Duration::MAX },
            },
            get: |settings| Value::optional(settings.sync_period),
            set: |settings, value| value.read_optional(&mut settings.sync_period),
        },
        Setting {
            about: About {
                flag: "offset",
                value_name: "N",
                help: "How many exchanges htpnet waits before it declares a packet lost",
                by_default: None,
                record: "offset",
                place: Place::Section,
                noun: "an offset of {}",
                kind: Kind::Count { min: 0, max: u16::MAX as u64 },
            },
            get: |settings| settings.offset.into(),
            set: |settings, value| value.read(&mut settings.offset),
        },
        Setting {
            about: About {
                flag: "ranges",
                value_name: "HOW",
                help: "How many ranges of packets htpnet's receiver reports: 8, 4, all, or rotate (4 at a time, in turns)",
                by_default: None,
                record: "ranges",
                place: Place::Section,
                noun: "{} runs",
                kind: Kind::Word { bare: None },
            },
            get: |settings| Value::word(settings.ranges),
            set: |settings, value| value.read_word(&mut settings.ranges),
        },
        Setting {
            about: About {
                flag: "search",
                value_name: "HOW",
                help: "How htpnet searches its table of sent packets: fifo or exhaustive",
                by_default: None,
                record: "search",
                place: Place::Section,
                noun: "the search {}",
                kind: Kind::Word { bare: None },
            },
            get: |settings| Value::word(settings.search),
            set: |settings, value| value.read_word(&mut settings.search),
        },
        Setting {
            about: About {
                flag: "class",
                value_name: "N",
                help: "The class of htpnet: error control 4, flow control 2, rate control 1",
                by_default: None,
                record: "class",
                place: Place::Section,
                noun: "class {}",
                kind: Kind::Count { min: 0, max: 7 },
            },
            get: |settings| settings.class.number().into(),
            set: set_class,
        },
        Setting {
            about: About {
                flag: "ptif",
                value_name: "LAW",
                help: "Congestion avoidance of htpnet: off, held (holds the rate that the bottleneck serves) or literal (the law exactly as in HT)",
                by_default: None,
                record: "ptif",
                place: Place::Section,
                noun: "the law {}",
                kind: Kind::Word { bare: Some("held") },
            },
            get: |settings| Value::word(settings.ptif),
            set: |settings, value| value.read_word(&mut settings.ptif),
        },
    ];
    const COMPARED_WITH: &'static [&'static str] = &["tcp"];
    const USUAL_POINT: UsualPoint = UsualPoint::ProcessorBound;

    halves_from_config!();
}

fn set_class(settings: &mut Settings, value: Value) -> Result<(), SettingError> {
    let number = u8::try_from(value)?;
    let unknown = || SettingError::OutOfRange { what: format!("class {number}"), range: "0 to 7".to_owned() };
    settings.class = Class::new(number).ok_or_else(unknown)?;
    Ok(())
}

impl Settings {
    fn config(&self, transfer: &Transfer) -> Config {
        // Not stated in HT; what the transmitter would find by itself, which keeps one value through a run.
        let period = self.sync_period.unwrap_or_else(|| SyncPeriod::Adaptive.at(transfer.rtt));
        let config = Config {
            packet_bytes: transfer.packet_bytes,
            segment_packets: transfer.segment_packets,
            window: transfer.window_packets(),
            sync_period: SyncPeriod::Fixed(period),
            offset: self.offset,
            ranges: self.ranges,
            search: self.search,
            class: self.class,
            ptif: self.ptif,
            rtt: transfer.rtt,
            ..Config::default()
        };
        // Where the processor sets the pace, as in HT 6, nothing else does. RATE tells whole microseconds.
        let paced = self.class.has_rate_control() && !transfer.processor_paces;
        let gap = Some(config.gap_of(transfer.bandwidth)).filter(|gap| paced && *gap >= Duration::from_micros(1));
        Config { gap, ..config }
    }
}
