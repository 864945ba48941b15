//! XTP among the schemes: the strategies that XT finds best (XT 5), selective repeat and a receiver that stores and tells of
//! a gap. All others are studied over XT's tandem of queues.
//!
//! Called by the laboratory through [`Transport`].
//!
//! Invariant: equal transfers give equal halves.

use super::{Config, ConfigError, Question, Receiver, ReceiverStrategy, Sender, SenderStrategy};
use crate::transport::{CONNECTION, Takes, Transfer, Transport, halves_from_config};
use segstream_base::{Duration, Instant};

/// How long the answer of XTP's receiver is waited for beyond two round trips: what queues and a busy machine may add.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(20);

/// The settings of XTP: nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings;

impl Transport for Settings {
    const KEY: &'static str = "xtp";
    const NAME: &'static str = "XTP";
    const SOURCE: &'static str =
        "XTP's error control (XT): here with selective repeat and a storing receiver; all others over its tandem of queues";
    const TAKES: &'static [Takes] = &[Takes::RoundTrip { needed: false }];

    halves_from_config!();
}

impl Settings {
    fn config(&self, transfer: &Transfer) -> Config {
        Config {
            key: u64::from(CONNECTION),
            packet_bytes: transfer.packet_bytes,
            segment_packets: transfer.segment_packets,
            window: transfer.window_packets(),
            sender: SenderStrategy::SelectiveRepeat,
            receiver: ReceiverStrategy::StoreAggressive,
            asks: Question::Status,
            reads: Duration::ZERO,
            wtimer: transfer.rtt * 2 + ANSWER_TIMEOUT,
            control_rtt: transfer.rtt,
            // As much may wait as is in flight, so that the source never holds up a window that opens.
            asks_in_pauses: true,
            backlog_packets: Some(transfer.window_packets().max(transfer.segment_packets)),
            rate: Some(transfer.rate()),
        }
    }
}
