//! SSTP among the schemes: what it is told of its own, and the halves that come of it.
//!
//! Called by the laboratory through [`Transport`].
//!
//! Invariant: equal settings and transfers give equal halves.

use super::{Acknowledgment, Config, ConfigError, Receiver, Sender};
use crate::setting::{About, Kind, Place, Setting, Value};
use crate::transport::{CONNECTION, Takes, Transfer, Transport};
use segstream_base::Instant;
use segstream_blocks::Accounting;

/// What SSTP is told of its own.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// What a receiver does whose buffer is smaller than its window. Default hard.
    pub ack: Acknowledgment,
    /// How tolerated losses are counted. Default strict-all.
    pub accounting: Accounting,
    /// The reordering threshold R. Default 0, a path in order.
    pub reordering_threshold: u32,
}

impl Transport for Settings {
    const KEY: &'static str = "sstp";
    const NAME: &'static str = "SSTP";
    const SOURCE: &'static str = "Gong and Parulkar 1992 (EC, FC)";
    const TAKES: &'static [Takes] = &[Takes::IdealFeedback, Takes::PartialTolerance, Takes::Buffer];
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

    type Sender = Sender;
    type Receiver = Receiver;
    type Error = ConfigError;

    fn halves(&self, transfer: &Transfer, now: Instant) -> Result<(Sender, Receiver), ConfigError> {
        let config = self.config(transfer);
        Ok((Sender::new(config, now)?, Receiver::new(config, now)?))
    }

    fn payload_bytes(&self, transfer: &Transfer) -> u32 {
        self.config(transfer).payload_bytes()
    }
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
            tolerance: transfer.tolerance,
            accounting: self.accounting,
            rate: transfer.rate(),
            reorder: self.reordering_threshold,
            feedback: transfer.feedback,
        }
    }
}
