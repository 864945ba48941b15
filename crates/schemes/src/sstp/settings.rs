//! The settings of SSTP, and the halves that they make.
//!
//! Called by the laboratory through [`Transport`].
//!
//! Invariant: equal settings and transfers give equal halves.

use super::{Acknowledgment, Config, ConfigError, Discard, KeepAlive, Receiver, Repeats, Sender, Throttle};
use crate::setting::{About, Kind, Place, Setting, Value};
use crate::transport::{CONNECTION, Takes, Transfer, Transport, halves_from_config};
use segstream_base::{Duration, Instant};
use segstream_blocks::Accounting;

/// The settings of SSTP.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// What a receiver does whose buffer is smaller than its window. Default hard.
    pub ack: Acknowledgment,
    /// When it decides what to keep. Default by packet.
    pub discard: Discard,
    /// Whether repeats interrupt a group that is being sent. Default they do.
    pub repeats: Repeats,
    /// What a receiver does whose user is slow for a while. Default it withholds the window.
    pub throttle: Throttle,
    /// When a sender with nothing to send says so. Default a quarter of a round trip apart.
    pub keep_alive: KeepAlive,
    /// After how long without a packet of the other an end closes. Default never.
    pub close_after: Option<Duration>,
    /// How tolerated losses are counted. Default strict-all.
    pub accounting: Accounting,
    /// The reordering threshold R. Default 0, a path in order.
    pub reordering_threshold: u32,
}

impl Transport for Settings {
    const KEY: &'static str = "sstp";
    const NAME: &'static str = "SSTP";
    const SOURCE: &'static str = "Gong and Parulkar 1992 (EC, FC)";
    const TAKES: &'static [Takes] = &[Takes::IdealFeedback, Takes::PartialTolerance, Takes::Buffer, Takes::Bursts, Takes::Slowdown];
    const SETTINGS: &'static [Setting<Self>] = &[
        Setting {
            about: About {
                flag: "ack",
                value_name: "ACK",
                help: "How a receiver acknowledges whose buffer is smaller than its window: hard, soft-lazy or soft-eager",
                by_default: None,
                record: "ack",
                place: Place::Always,
                noun: "the acknowledgment {}",
                kind: Kind::Word { bare: None },
            },
            get: |settings| Value::word(settings.ack),
            set: |settings, value| value.read_word(&mut settings.ack),
        },
        Setting {
            about: About {
                flag: "discard",
                value_name: "HOW",
                help: "When a receiver with a small buffer decides what it keeps: packet, at each packet, or group, at the end of a packet group \
                       (with ideal feedback)",
                by_default: None,
                record: "discard",
                place: Place::Section,
                noun: "discarding by {}",
                kind: Kind::Word { bare: None },
            },
            get: |settings| Value::word(settings.discard),
            set: |settings, value| value.read_word(&mut settings.discard),
        },
        Setting {
            about: About {
                flag: "repeats",
                value_name: "HOW",
                help: "Whether repeated packets interrupt a packet group that is being sent: preempt or wait",
                by_default: None,
                record: "repeats",
                place: Place::Section,
                noun: "repeats that {}",
                kind: Kind::Word { bare: None },
            },
            get: |settings| Value::word(settings.repeats),
            set: |settings, value| value.read_word(&mut settings.repeats),
        },
        Setting {
            about: About {
                flag: "throttle",
                value_name: "HOW",
                help: "What a receiver does whose user is slow: withhold, the window moves as the user takes segments; or resize, it also \
                       becomes smaller",
                by_default: None,
                record: "throttle",
                place: Place::Section,
                noun: "throttling by {}",
                kind: Kind::Word { bare: None },
            },
            get: |settings| Value::word(settings.throttle),
            set: |settings, value| value.read_word(&mut settings.throttle),
        },
        Setting {
            about: About {
                flag: "keep-alive",
                value_name: "HOW",
                help: "When a sender with nothing to send says so: spaced, each quarter of a round trip; or tick, on each tick of its bursts, \
                       which ends the burst (with --burst)",
                by_default: None,
                record: "keep_alive",
                place: Place::Section,
                noun: "keep-alive packets that are {}",
                kind: Kind::Word { bare: None },
            },
            get: |settings| Value::word(settings.keep_alive),
            set: |settings, value| value.read_word(&mut settings.keep_alive),
        },
        Setting {
            about: About {
                flag: "close-after",
                value_name: "TIME",
                help: "After how long without a packet of the other an end closes the connection (with full feedback)",
                by_default: Some("never"),
                record: "close_after_ns",
                place: Place::Section,
                noun: "closing after {}",
                kind: Kind::Time { min: Duration::from_millis(1), max: Duration::MAX },
            },
            get: |settings| Value::optional(settings.close_after),
            set: |settings, value| value.read_optional(&mut settings.close_after),
        },
        Setting {
            about: About {
                flag: "accounting",
                value_name: "HOW",
                help: "How tolerated losses are counted: strict-all, strict-burst or paper-literal",
                by_default: None,
                record: "accounting",
                place: Place::Always,
                noun: "the accounting {}",
                kind: Kind::Word { bare: None },
            },
            get: |settings| Value::word(settings.accounting),
            set: |settings, value| value.read_word(&mut settings.accounting),
        },
        Setting {
            about: About::REORDERING_THRESHOLD,
            get: |settings| settings.reordering_threshold.into(),
            set: |settings, value| value.read(&mut settings.reordering_threshold),
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
            buffer: transfer.buffer,
            acknowledgment: self.ack,
            discard: self.discard,
            repeats: self.repeats,
            tolerance: transfer.tolerance,
            accounting: self.accounting,
            rate: transfer.rate(),
            reorder: self.reordering_threshold,
            feedback: transfer.feedback,
            slowdown: transfer.slowdown,
            throttle: self.throttle,
            keep_alive: self.keep_alive,
            close_after: self.close_after,
        }
    }
}
