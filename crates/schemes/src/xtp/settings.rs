//! XTP among the schemes: the strategies that XT finds best (XT 5), selective repeat and a receiver that stores and tells of
//! a gap. All others are studied over XT's tandem of queues.
//!
//! Called by the laboratory through [`Transport`].
//!
//! Invariant: equal transfers give equal halves.

use super::{Config, ConfigError, Receiver, ReceiverStrategy, Sender, SenderStrategy};
use crate::transport::{CONNECTION, Takes, Transfer, Transport};
use segstream_base::{Duration, Instant};

/// How long the answer of XTP's receiver is waited for beyond two round trips: what queues and a busy machine may add.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(20);

/// What XTP is told of its own: nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings;

impl Transport for Settings {
    const KEY: &'static str = "xtp";
    const NAME: &'static str = "XTP";
    const SOURCE: &'static str =
        "XTP's error control (XT): here with selective repeat and a storing receiver; all others over its tandem of queues";
    const TAKES: &'static [Takes] = &[Takes::RoundTrip { needed: false }];

    type Sender = Sender;
    type Receiver = Receiver;
    type Error = ConfigError;

    fn halves(&self, transfer: &Transfer, now: Instant) -> Result<(Sender, Receiver), ConfigError> {
        let config = config(transfer);
        Ok((Sender::new(config.clone(), now)?, Receiver::new(config, now)?))
    }

    fn payload_bytes(&self, transfer: &Transfer) -> u32 {
        config(transfer).payload_bytes()
    }
}

fn config(transfer: &Transfer) -> Config {
    Config {
        key: u64::from(CONNECTION),
        packet_bytes: transfer.packet_bytes,
        segment_packets: transfer.segment_packets,
        window: transfer.window_packets(),
        sender: SenderStrategy::SelectiveRepeat,
        receiver: ReceiverStrategy::StoreAggressive,
        wtimer: transfer.rtt * 2 + ANSWER_TIMEOUT,
        control_rtt: transfer.rtt,
        // As much may wait as is in flight, so that the source never holds up a window that opens.
        asks_in_pauses: true,
        backlog_packets: Some(transfer.window_packets().max(transfer.segment_packets)),
        rate: Some(transfer.rate()),
    }
}
