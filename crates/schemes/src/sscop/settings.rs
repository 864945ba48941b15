//! The settings of SSCOP, and the halves that they make.
//!
//! Called by the laboratory through [`Transport`].
//!
//! Invariant: equal settings and transfers give equal halves; a segment is one packet.

use super::{Config, ConfigError, Receiver, Sender};
use crate::setting::{About, Kind, Place, Setting, Value};
use crate::transport::{Transfer, Transport, UsualPoint, halves_from_config};
use segstream_base::{Duration, Instant};

/// The settings of SSCOP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How often it polls while data is outstanding: Timer_POLL. Default 40 ms (AA 3.2.2).
    pub timer_poll: Duration,
    /// After how many packets it polls before that: MaxPD; `None` never. Default `None`.
    pub max_pd: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { timer_poll: Duration::from_millis(40), max_pd: None }
    }
}

impl Transport for Settings {
    const KEY: &'static str = "sscop";
    const NAME: &'static str = "SSCOP";
    const SOURCE: &'static str = "ITU-T Q.2110, which AA compares with";
    const SETTINGS: &'static [Setting<Self>] = &[
        Setting {
            about: About {
                flag: "timer-poll",
                value_name: "T",
                help: "The interval at which sscop polls while data is outstanding (Timer_POLL)",
                by_default: None,
                record: "timer_poll_ns",
                place: Place::Section,
                noun: "a poll every {}",
                kind: Kind::REPORT_PERIOD,
            },
            get: |settings| settings.timer_poll.into(),
            set: |settings, value| value.read(&mut settings.timer_poll),
        },
        Setting {
            about: About {
                flag: "max-pd",
                value_name: "N",
                help: "The number of packets after which sscop polls at the latest (MaxPD)",
                by_default: Some("no limit"),
                record: "max_pd",
                place: Place::Section,
                noun: "a poll after {} packets",
                kind: Kind::Count { min: 1, max: u32::MAX as u64 },
            },
            get: |settings| Value::optional(settings.max_pd),
            set: |settings, value| value.read_optional(&mut settings.max_pd),
        },
    ];
    const USUAL_POINT: UsualPoint = UsualPoint::AtmCluster;
    // Its unit of transfer is one SD (Q.2110).
    const SEGMENT_PACKETS_MAX: u32 = 1;

    halves_from_config!();
}

impl Settings {
    fn config(&self, transfer: &Transfer) -> Config {
        Config {
            packet_bytes: transfer.packet_bytes,
            window: transfer.window,
            rate: transfer.rate(),
            rtt: transfer.rtt,
            timer_poll: self.timer_poll,
            max_pd: self.max_pd,
            ..Config::default()
        }
    }
}
