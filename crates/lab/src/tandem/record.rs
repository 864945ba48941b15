//! The canonical text of a scenario over a tandem: one line of JSON.
//!
//! Called through [`TandemScenario::canonical`] and [`TandemScenario::from_canonical`].
//!
//! Numbers that are not whole stand as texts: as a number of JSON one may read back as its neighbour.
//!
//! Invariant: the text reads back as the same scenario, and equal scenarios have equal texts.

use super::scenario::{TandemScenario, TandemScenarioError, TandemScheme};
use super::value_names;
use segstream_base::Duration;
use segstream_sim::tandem::TandemConfig;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    #[serde(rename = "party")]
    scheme: SchemeRecord,
    window: u32,
    arrivals: String,
    user_rate: String,
    message_continue: String,
    message_packets_max: u32,
    packet_payload_bytes: u32,
    external_rate: String,
    packet_error_rate: String,
    slot_ns: u64,
    processing_slots: u32,
    xtp_processing_slots: u32,
    transmission_slots: u32,
    propagation_slots: u32,
    control_slots: u32,
    link1_room: u32,
    link2_room: u32,
    xtp2_room: u32,
    order: String,
    tie: String,
    slots: u64,
    warm_up_slots: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum SchemeRecord {
    Xtp { sender: String, receiver: String, wtimer_slots: u32, filter_slots: Option<u32>, asks: String, reads_slots: u32 },
    Segstream { rate: Option<String> },
}

impl TandemScenario {
    /// The scenario as one line of JSON, the same for equal scenarios.
    pub fn canonical(&self) -> String {
        let tandem = &self.tandem;
        let record = Record {
            scheme: SchemeRecord::from(&self.scheme),
            window: self.window,
            arrivals: value_names::of_arrivals(&tandem.arrivals),
            user_rate: tandem.arrivals.rate().to_string(),
            message_continue: tandem.message_continue.to_string(),
            message_packets_max: tandem.message_packets_max,
            packet_payload_bytes: tandem.packet_payload_bytes,
            external_rate: tandem.external_rate.to_string(),
            packet_error_rate: tandem.packet_error_rate.to_string(),
            slot_ns: tandem.slot.as_nanos(),
            processing_slots: tandem.processing_slots,
            xtp_processing_slots: tandem.xtp_processing_slots,
            transmission_slots: tandem.transmission_slots,
            propagation_slots: tandem.propagation_slots,
            control_slots: tandem.control_slots,
            link1_room: tandem.link1_room,
            link2_room: tandem.link2_room,
            xtp2_room: tandem.xtp2_room,
            order: value_names::of_order(tandem.order).to_owned(),
            tie: value_names::of_tie(tandem.tie).to_owned(),
            slots: tandem.slots,
            warm_up_slots: tandem.warm_up_slots,
        };
        // A record of numbers and short texts always has a JSON form.
        serde_json::to_string(&record).unwrap_or_default()
    }

    /// Reads what [`TandemScenario::canonical`] wrote.
    ///
    /// # Errors
    /// Says what cannot be read, or cannot be run.
    pub fn from_canonical(text: &str) -> Result<Self, TandemScenarioError> {
        let record: Record = serde_json::from_str(text).map_err(unreadable)?;
        let tandem = TandemConfig {
            slot: Duration::from_nanos(record.slot_ns),
            processing_slots: record.processing_slots,
            xtp_processing_slots: record.xtp_processing_slots,
            transmission_slots: record.transmission_slots,
            propagation_slots: record.propagation_slots,
            link1_room: record.link1_room,
            link2_room: record.link2_room,
            xtp2_room: record.xtp2_room,
            external_rate: number(&record.external_rate)?,
            packet_error_rate: number(&record.packet_error_rate)?,
            control_slots: record.control_slots,
            order: value_names::order(&record.order).map_err(unreadable)?,
            tie: value_names::tie(&record.tie).map_err(unreadable)?,
            arrivals: value_names::arrivals(&record.arrivals, number(&record.user_rate)?).map_err(unreadable)?,
            message_continue: number(&record.message_continue)?,
            message_packets_max: record.message_packets_max,
            packet_payload_bytes: record.packet_payload_bytes,
            slots: record.slots,
            warm_up_slots: record.warm_up_slots,
        };
        let scenario = Self { scheme: TandemScheme::try_from(record.scheme)?, window: record.window, tandem };
        scenario.check()?;
        Ok(scenario)
    }
}

impl From<&TandemScheme> for SchemeRecord {
    fn from(scheme: &TandemScheme) -> Self {
        match scheme {
            TandemScheme::Xtp { sender, receiver, wtimer_slots, filter_slots, asks, reads_slots } => Self::Xtp {
                sender: sender.to_string(),
                receiver: receiver.to_string(),
                wtimer_slots: *wtimer_slots,
                filter_slots: *filter_slots,
                asks: value_names::of_question(*asks).to_owned(),
                reads_slots: *reads_slots,
            },
            TandemScheme::Segstream { rate } => Self::Segstream { rate: rate.map(|rate| rate.to_string()) },
        }
    }
}

impl TryFrom<SchemeRecord> for TandemScheme {
    type Error = TandemScenarioError;

    fn try_from(record: SchemeRecord) -> Result<Self, TandemScenarioError> {
        Ok(match record {
            SchemeRecord::Xtp { sender, receiver, wtimer_slots, filter_slots, asks, reads_slots } => Self::Xtp {
                sender: sender.parse().map_err(unreadable)?,
                receiver: receiver.parse().map_err(unreadable)?,
                wtimer_slots,
                filter_slots,
                asks: value_names::question(&asks).map_err(unreadable)?,
                reads_slots,
            },
            SchemeRecord::Segstream { rate } => Self::Segstream { rate: rate.as_deref().map(number).transpose()? },
        })
    }
}

fn number(text: &str) -> Result<f64, TandemScenarioError> {
    text.parse().map_err(|_| unreadable(format!("\"{text}\" is not a number")))
}

fn unreadable(error: impl std::fmt::Display) -> TandemScenarioError {
    TandemScenarioError::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_schemes::xtp::{Question, ReceiverStrategy, SenderStrategy};
    use segstream_sim::tandem::{Arrivals, Order, Tie};

    #[test]
    fn the_canonical_text_reads_back_as_the_same_scenario() {
        let usual = TandemScenario::default();
        let tandem = TandemConfig {
            arrivals: Arrivals::Interrupted { rate: 0.1 + 0.2 - 0.2, scv: 10.0, alpha: 0.9 },
            external_rate: 0.1 + 0.05,
            order: Order::ArrivalsFirst,
            tie: Tie::Drawn,
            link1_room: 15,
            ..usual.tandem
        };
        let scheme = TandemScheme::Xtp {
            sender: SenderStrategy::HandshakeGoBackN,
            receiver: ReceiverStrategy::StoreConservative,
            wtimer_slots: 150,
            filter_slots: Some(40),
            asks: Question::Delivery,
            reads_slots: 3,
        };
        let odd = TandemScenario { scheme, window: 75, tandem };
        let ours = TandemScenario { scheme: TandemScheme::Segstream { rate: Some(0.42) }, ..odd.clone() };
        for scenario in [usual, odd, ours] {
            assert_eq!(TandemScenario::from_canonical(&scenario.canonical()).unwrap(), scenario);
        }
        let message = TandemScenario::from_canonical("{}").unwrap_err().to_string();
        assert!(message.contains("cannot be read"), "{message}");
    }
}
