//! The processes of both ends as a list of stages, for the runtime that spreads them over processors (HT 3.1, HT 5, HT Fig 7).
//!
//! Called by the runner of threads, by the model of processors, and, for the identities alone, by the halves.
//!
//! Invariant: a [`Routes`] names every process and the three ends outside; no other messages exist.

use super::message::Message;
use super::ptif::CongestionAvoidance;
use super::{Config, ConfigError, Rx1, Rx2, Tx1, Tx2};
use segstream_base::Instant;
use segstream_base::stage::{Stage, StageId};

/// Who is who.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routes {
    /// Tx1.
    pub tx1: StageId,
    /// Tx2.
    pub tx2: StageId,
    /// The congestion avoidance process.
    pub ptif: StageId,
    /// Rx1, which gets every packet of the transmitter, in the order of arrival.
    pub rx1: StageId,
    /// Rx2.
    pub rx2: StageId,
    /// For this end: who gives its processes units, or takes them.
    pub host: StageId,
    /// For this end: who takes its packets to the other one.
    pub network: StageId,
}

impl Routes {
    /// The identities that the halves use; there are only two ends.
    pub(super) const HALF: Self = Self {
        tx1: StageId(0),
        tx2: StageId(1),
        ptif: StageId(2),
        rx1: StageId(3),
        rx2: StageId(4),
        host: StageId(5),
        network: StageId(6),
    };
}

/// The ends outside of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Offers units to Tx1; receives freed slots and events of the connection.
    pub host_in: StageId,
    /// Takes the transmitter's packets; their copies, lost or late, go to Rx1.
    pub network_forward: StageId,
    /// Takes the receiver's packets; they go to Tx2.
    pub network_back: StageId,
    /// Is given what has been received; answers with [`Message::Consumed`] when a slot is free, which CREDIT counts on.
    pub host_out: StageId,
}

/// The processes of both ends.
pub struct Pipeline {
    /// Tx1, Tx2, PTIF, Rx1, Rx2: each has the identity `first` plus its place here.
    pub stages: Vec<Box<dyn Stage<Message = Message> + Send>>,
    /// The transmit data packet processor.
    pub tx1: StageId,
    /// The transmit state packet processor.
    pub tx2: StageId,
    /// Congestion avoidance; without work when it is off.
    pub ptif: StageId,
    /// The receiver data packet processor.
    pub rx1: StageId,
    /// The receiver state packet processor.
    pub rx2: StageId,
}

/// The processes of both ends, with identities from `first` on.
///
/// A process may have something to say before anything is said to it: ask each for its deadline at the start.
///
/// # Errors
/// When [`Config::check`] refuses `config`.
pub fn pipeline(config: &Config, now: Instant, first: StageId, ends: Ends) -> Result<Pipeline, ConfigError> {
    config.check()?;
    let id = |place: usize| StageId(first.0 + place);
    let (tx1, tx2, ptif, rx1, rx2) = (id(0), id(1), id(2), id(3), id(4));
    let sending = Routes { tx1, tx2, ptif, rx1, rx2, host: ends.host_in, network: ends.network_forward };
    let receiving = Routes { host: ends.host_out, network: ends.network_back, ..sending };
    let stages: Vec<Box<dyn Stage<Message = Message> + Send>> = vec![
        Box::new(Tx1::new(config, sending, now)),
        Box::new(Tx2::new(config, sending, now)),
        Box::new(CongestionAvoidance::new(config.ptif, sending)),
        Box::new(Rx1::new(config, receiving)),
        Box::new(Rx2::new(config, receiving)),
    ];
    Ok(Pipeline { stages, tx1, tx2, ptif, rx1, rx2 })
}
