//! The settings of SNR, and the halves that they make.
//!
//! Called by the laboratory through [`Transport`].
//!
//! Invariant: equal settings and transfers give equal halves.

use super::{Config, ConfigError, Receiver, Sender};
use crate::setting::{About, Kind, Place, Setting, Value};
use crate::transport::{CONNECTION, Takes, Transfer, Transport, halves_from_config};
use segstream_base::{Duration, Instant};

/// The shortest period of states: a peer that may choose it must not make us send more often.
const STATUS_PERIOD_MIN: Duration = Duration::from_micros(100);

/// The settings of SNR.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// How often each end states what it knows; `None` is a twelfth of the round trip. Default `None`.
    pub status_period: Option<Duration>,
    /// Whether each state counts for one interval, however many were lost before it, so that time slips (HT 4). Default no.
    pub slip: bool,
}

impl Transport for Settings {
    const KEY: &'static str = "snr";
    const NAME: &'static str = "SNR";
    const SOURCE: &'static str = "Netravali, Roome and Sabnani 1990, as EC describes it";
    const TAKES: &'static [Takes] = &[Takes::IdealFeedback, Takes::RoundTrip { needed: true }];
    const SETTINGS: &'static [Setting<Self>] = &[
        Setting {
            about: About {
                flag: "status-period",
                value_name: "T",
                help: "The interval at which snr exchanges state",
                by_default: Some("a twelfth of the round-trip time"),
                record: "status_period_ns",
                place: Place::Always,
                noun: "a status every {}",
                kind: Kind::Time { min: STATUS_PERIOD_MIN, max: Duration::MAX },
            },
            get: |settings| Value::optional(settings.status_period),
            set: |settings, value| value.read_optional(&mut settings.status_period),
        },
        Setting {
            about: About {
                flag: "slip",
                value_name: "",
                help: "snr counts each received state as one interval, however many states were lost before it",
                by_default: None,
                record: "snr_slips",
                place: Place::UnlessDefault,
                noun: "{}",
                kind: Kind::Switch { given: true },
            },
            get: |settings| settings.slip.into(),
            set: |settings, value| value.read(&mut settings.slip),
        },
    ];

    halves_from_config!();
}

impl Settings {
    fn config(&self, transfer: &Transfer) -> Config {
        Config {
            connection: CONNECTION,
            packet_bytes: transfer.packet_bytes,
            segment_packets: transfer.segment_packets,
            window: transfer.window,
            rate: transfer.rate(),
            rtt: transfer.rtt,
            // EC 5: 5 ms at a round trip of 60 ms.
            status_period: self.status_period.unwrap_or(transfer.rtt / Config::STATUS_PERIODS_PER_ROUND_TRIP),
            reliable: !transfer.tolerance.is_any(),
            count_intervals: !self.slip,
        }
    }
}
