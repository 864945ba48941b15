//! The settings of TCP, and the halves that they make.
//!
//! Called by the laboratory through [`Transport`].
//!
//! Invariant: equal settings and transfers give equal halves.

use super::{Backoff, Config, ConfigError, Receiver, Sender};
use crate::setting::{About, Kind, Place, Setting, Value};
use crate::transport::{CONNECTION, Takes, Transfer, Transport, UsualPoint, halves_from_config};
use segstream_base::{Duration, Instant};

/// The tick of the timers on real sockets, where none is given.
const SOCKET_TICK: Duration = Duration::from_millis(1);
/// The longest tick.
const TICK_MAX: Duration = Duration::from_secs(60);

/// The settings of TCP.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// What happens to a timeout that was backed off. Default retained.
    pub backoff: Backoff,
    /// The tick of the timers, zero for none. Default zero.
    pub timer_tick: Duration,
}

impl Transport for Settings {
    const KEY: &'static str = "tcp";
    const NAME: &'static str = "TCP";
    const SOURCE: &'static str = "the TCP that Chan and Gorton compare HTPNET with (HT 7)";
    const TAKES: &'static [Takes] = &[Takes::SenderCosts];
    const SETTINGS: &'static [Setting<Self>] = &[
        Setting {
            about: About {
                flag: "backoff",
                value_name: "HOW",
                help: "How tcp backs off its retransmission timeout: retain (Karn), own (one for each packet) or oldest (one timer)",
                by_default: None,
                record: "backoff",
                place: Place::Section,
                noun: "the backoff {}",
                kind: Kind::Word { bare: None },
            },
            get: |settings| Value::word(settings.backoff),
            set: |settings, value| value.read_word(&mut settings.backoff),
        },
        Setting {
            about: About {
                flag: "timer-tick",
                value_name: "T",
                help: "The granularity of tcp's timers",
                by_default: Some("none"),
                record: "timer_tick_ns",
                place: Place::Section,
                noun: "a timer tick of {}",
                kind: Kind::Time { min: Duration::ZERO, max: TICK_MAX },
            },
            get: |settings| settings.timer_tick.into(),
            set: |settings, value| value.read(&mut settings.timer_tick),
        },
    ];
    const COMPARED_WITH: &'static [&'static str] = &["htpnet"];
    const USUAL_POINT: UsualPoint = UsualPoint::ProcessorBound;

    halves_from_config!();

    fn on_sockets(self) -> Self {
        let timer_tick = if self.timer_tick.is_zero() { SOCKET_TICK } else { self.timer_tick };
        Self { timer_tick, ..self }
    }
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
            backoff: self.backoff,
            granularity: self.timer_tick,
        }
    }
}
