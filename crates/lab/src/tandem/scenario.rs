//! A tandem and the halves that transfer over it, as a value.
//!
//! Made by studies and by the command line; run by [`super::run`]; its canonical text ([`super::record`]) is what the
//! result store addresses.
//!
//! Invariant: a scenario that passes [`TandemScenario::check`] can be run; equal canonical texts mean equal runs.

use crate::flagship::{self, FlagshipError};
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_proto::rate::Rate;
use segstream_schemes::xtp::{self, Question, ReceiverStrategy, SenderStrategy};
use segstream_sim::tandem::{TandemConfig, TandemConfigError};

/// How many slots WTIMER runs unless told otherwise. The paper does not say; from 60 to 200 hardly anything changes, and below
/// the round trip of control with full queues, 90, questions would be repeated for nothing.
pub const WTIMER_SLOTS: u32 = 200;

/// Error control over a tandem of finite queues.
#[derive(Clone, Debug, PartialEq)]
pub struct TandemScenario {
    /// Whose halves transfer. Default: XTP with selective repeat and a storing, aggressive receiver.
    pub scheme: TandemScheme,
    /// The window in packets. Default 60 (XT 4).
    pub window: u32,
    /// The stations, the traffic and the length of a run. A message is a segment; a packet carries
    /// [`TandemConfig::packet_payload_bytes`] of it and takes a slot of the link, whatever its header takes.
    pub tandem: TandemConfig,
}

/// Whose halves transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TandemScheme {
    /// XTP.
    Xtp {
        /// What the sender retransmits.
        sender: SenderStrategy,
        /// What the receiver does with what comes out of order.
        receiver: ReceiverStrategy,
        /// How long the answer to a question is waited for, in slots. Default [`WTIMER_SLOTS`].
        wtimer_slots: u32,
        /// Within how many slots nothing is retransmitted twice: of what is missing no packet, and when all from RSEQ on is sent
        /// again, nothing for the same RSEQ. `None`: the round trip of control, and [`GO_BACK_FILTER_SLOTS`] where the sender
        /// goes back, as it must to a receiver that discards.
        filter_slots: Option<u32>,
        /// What the last packet of a window asks for. Default: the status (XT 2).
        asks: Question,
        /// How many slots the receiver's user takes for each packet in sequence, behind XTP2. Default 0: it takes all at once.
        reads_slots: u32,
    },
    /// The flagship: one stream in order, everything delivered. What carries no data travels as control does.
    Segstream {
        /// Its contracted rate in packets a slot; `None` for no pacing, where the server of XTP1 sets the pace.
        rate: Option<f64>,
    },
}

/// The filter of a sender that goes back: the round trip of control, 29, and what the queues add. With 29 alone it goes back a
/// second time for packets that have just left and still stand in LINK1, and keeps LINK1 full.
pub const GO_BACK_FILTER_SLOTS: u32 = 50;

impl TandemScheme {
    /// XTP with the usual timer and filter.
    pub const fn xtp(sender: SenderStrategy, receiver: ReceiverStrategy) -> Self {
        let (wtimer_slots, filter_slots, asks, reads_slots) = (WTIMER_SLOTS, None, Question::Status, 0);
        Self::Xtp { sender, receiver, wtimer_slots, filter_slots, asks, reads_slots }
    }
}

impl Default for TandemScenario {
    fn default() -> Self {
        let scheme = TandemScheme::xtp(SenderStrategy::SelectiveRepeat, ReceiverStrategy::StoreAggressive);
        Self { scheme, window: 60, tandem: TandemConfig::default() }
    }
}

/// Why a scenario over a tandem cannot be run: an error in its definition.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TandemScenarioError {
    /// See the message.
    #[error(transparent)]
    Tandem(#[from] TandemConfigError),
    /// See the message.
    #[error("xtp: {0}")]
    Xtp(#[from] xtp::ConfigError),
    /// See the message.
    #[error("segstream: {0}")]
    Segstream(FlagshipError),
    /// See the message.
    #[error("a rate of {0} packets a slot is not possible; give more than 0 and at most 1, or none")]
    Rate(f64),
    /// See the message.
    #[error("a payload of {bytes} bytes does not fit a packet; give at most {most}")]
    Payload {
        /// What was given.
        bytes: u32,
        /// What fits.
        most: u32,
    },
    /// See the message.
    #[error("the scenario cannot be read: {0}")]
    Unreadable(String),
}

impl TandemScenario {
    /// Whether it can be run.
    ///
    /// # Errors
    /// Says which value is invalid.
    pub fn check(&self) -> Result<(), TandemScenarioError> {
        self.tandem.check()?;
        let (bytes, most) = (self.tandem.packet_payload_bytes, crate::scenario::PACKET_BYTES_MAX);
        if bytes > most {
            return Err(TandemScenarioError::Payload { bytes, most });
        }
        match self.scheme {
            TandemScheme::Xtp { .. } => self.xtp_config().map_or(Ok(()), |config| config.check()).map_err(Into::into),
            TandemScheme::Segstream { rate } => {
                if let Some(rate) = rate.filter(|rate| !(*rate > 0.0 && *rate <= 1.0)) {
                    return Err(TandemScenarioError::Rate(rate));
                }
                self.segstream_pair().map(|_| ())
            }
        }
    }

    /// The same over this many measured slots.
    #[must_use]
    pub fn with_slots(&self, slots: u64) -> Self {
        Self { tandem: TandemConfig { slots, ..self.tandem }, ..self.clone() }
    }

    /// The configuration of XTP's halves; `None` for another scheme.
    pub(super) fn xtp_config(&self) -> Option<xtp::Config> {
        let TandemScheme::Xtp { sender, receiver, wtimer_slots, filter_slots, asks, reads_slots } = self.scheme else { return None };
        let tandem = &self.tandem;
        let goes_back = sender.goes_back() || receiver == ReceiverStrategy::Discard;
        let usual = if goes_back { u64::from(GO_BACK_FILTER_SLOTS) } else { tandem.control_round_trip_slots() };
        Some(xtp::Config {
            key: 1,
            packet_bytes: tandem.packet_payload_bytes.saturating_add(xtp::Forward::OVERHEAD_BYTES),
            segment_packets: tandem.message_packets_max,
            window: self.window,
            sender,
            receiver,
            asks,
            reads: self.slots(u64::from(reads_slots)),
            wtimer: self.slots(u64::from(wtimer_slots)),
            control_rtt: self.slots(filter_slots.map_or(usual, u64::from)),
            // XTP1 has an unlimited queue (XT 3.2), and its server sets the pace.
            backlog_packets: None,
            // XT 2: asked is by the packet with byte ALLOC - 1, and the users of the study go on forever.
            asks_in_pauses: false,
            rate: None,
        })
    }

    /// The flagship's halves.
    pub(super) fn segstream_pair(&self) -> Result<flagship::Pair, TandemScenarioError> {
        let payload = self.tandem.packet_payload_bytes;
        let rate = match self.scheme {
            TandemScheme::Segstream { rate: Some(packets) } => {
                let bits = flagship::message_packet_bytes(payload) as f64 * 8.0 * packets;
                Rate::smooth(Bandwidth::from_bits_per_second((bits / self.tandem.slot.as_secs_f64()).round() as u64))
            }
            _ => Rate::Unpaced,
        };
        flagship::message_pair(payload, self.window, rate, Instant::ZERO).map_err(TandemScenarioError::Segstream)
    }

    /// This many slots as time.
    fn slots(&self, slots: u64) -> Duration {
        Duration::from_nanos(self.tandem.slot.as_nanos().saturating_mul(slots))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        let good = TandemScenario::default();
        let tandem = |change: fn(&mut TandemConfig)| {
            let mut scenario = TandemScenario::default();
            change(&mut scenario.tandem);
            scenario
        };
        let rate = |rate| TandemScenario { scheme: TandemScheme::Segstream { rate: Some(rate) }, ..TandemScenario::default() };
        let xtp = TandemScheme::Xtp {
            sender: SenderStrategy::GoBackN,
            receiver: ReceiverStrategy::Discard,
            wtimer_slots: 0,
            filter_slots: None,
            asks: Question::Status,
            reads_slots: 0,
        };
        let cases = [
            (TandemScenario { window: 0, ..good.clone() }, "xtp: a window of 0 packets"),
            (TandemScenario { window: 0, ..rate(0.4) }, "segstream: "),
            (TandemScenario { scheme: xtp, ..good.clone() }, "WTIMER is 0"),
            (rate(0.0), "a rate of 0 packets a slot"),
            (rate(f64::NAN), "a rate of NaN packets a slot"),
            (tandem(|tandem| tandem.slots = 0), "measured slots is 0"),
            (tandem(|tandem| tandem.external_rate = 2.0), "the rate of the external traffic is 2"),
            (tandem(|tandem| tandem.packet_payload_bytes = 1 << 20), "a payload of 1048576 bytes"),
        ];
        for (scenario, sentence) in cases {
            let message = scenario.check().expect_err(sentence).to_string();
            assert!(message.contains(sentence), "{message:?} does not say {sentence:?}");
        }
        good.check().unwrap();
        rate(0.4).check().unwrap();
    }
}
