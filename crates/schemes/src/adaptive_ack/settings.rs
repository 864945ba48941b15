//! The settings of adaptive acknowledgment, and the halves that they make.
//!
//! Called by the laboratory through [`Transport`].
//!
//! Invariant: equal settings and transfers give equal halves.

use super::{Config, ConfigError, Rearming, Receiver, Sender};
use crate::setting::{About, Kind, Place, Setting, Value};
use crate::transport::{CONNECTION, Transfer, Transport, UsualPoint, halves_from_config};
use segstream_base::{Duration, Instant};

/// The settings of adaptive acknowledgment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How often the receiver reports while nothing is missing. Default 40 ms (AA 3.2.2).
    pub t_normal: Duration,
    /// How often while something is. Default 5 ms (AA 3.2.2).
    pub t_error: Duration,
    /// When the receiver's timer is set anew. Default when an error phase begins.
    pub rearming: Rearming,
    /// Whether a tail that was lost is found, which the paper's scheme does not do. Default yes.
    pub tail_rule: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { t_normal: Duration::from_millis(40), t_error: Duration::from_millis(5), rearming: Rearming::Phase, tail_rule: true }
    }
}

impl Transport for Settings {
    const KEY: &'static str = "adaptive-ack";
    const NAME: &'static str = "Adaptive ack.";
    const SOURCE: &'static str = "adaptive acknowledgment for an ATM clustering system (AA)";
    const SETTINGS: &'static [Setting<Self>] = &[
        Setting {
            about: About {
                flag: "t-normal",
                value_name: "T",
                help: "The report interval of adaptive-ack's receiver while nothing is missing",
                by_default: None,
                record: "t_normal_ns",
                place: Place::Section,
                noun: "a report every {}",
                kind: Kind::REPORT_PERIOD,
            },
            get: |settings| settings.t_normal.into(),
            set: |settings, value| value.read(&mut settings.t_normal),
        },
        Setting {
            about: About {
                flag: "t-error",
                value_name: "T",
                help: "The report interval of adaptive-ack's receiver while something is missing",
                by_default: None,
                record: "t_error_ns",
                place: Place::Section,
                noun: "a report every {}",
                kind: Kind::REPORT_PERIOD,
            },
            get: |settings| settings.t_error.into(),
            set: |settings, value| value.read(&mut settings.t_error),
        },
        Setting {
            about: About {
                flag: "rearming",
                value_name: "WHEN",
                help: "When adaptive-ack's receiver sets its timer anew: phase, when an error phase begins; first, only when its period is \
                       T_normal; gap, at each gap; expiry, never before it has run out; recovery, also when all is recovered",
                by_default: None,
                record: "rearming",
                place: Place::Section,
                noun: "a timer set anew at {}",
                kind: Kind::Word { bare: None },
            },
            get: |settings| Value::word(settings.rearming),
            set: |settings, value| value.read_word(&mut settings.rearming),
        },
        Setting {
            about: About {
                flag: "no-tail-rule",
                value_name: "",
                help: "adaptive-ack's sender waits for ever when the last packets are lost, as in the paper",
                by_default: None,
                record: "tail_rule",
                place: Place::Section,
                noun: "{}",
                kind: Kind::Switch { given: false },
            },
            get: |settings| settings.tail_rule.into(),
            set: |settings, value| value.read(&mut settings.tail_rule),
        },
    ];
    const USUAL_POINT: UsualPoint = UsualPoint::AtmCluster;

    halves_from_config!();
}

impl Settings {
    fn config(&self, transfer: &Transfer) -> Config {
        Config {
            connection: CONNECTION,
            packet_bytes: transfer.packet_bytes,
            segment_packets: transfer.segment_packets,
            window: transfer.window_packets(),
            rate: transfer.rate(),
            rtt: transfer.rtt,
            t_normal: self.t_normal,
            t_error: self.t_error,
            rearming: self.rearming,
            tail_rule: self.tail_rule,
        }
    }
}
