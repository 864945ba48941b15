//! SSCOP, the protocol that AA compares itself with: a sender that polls, a receiver that lists what is missing.
//!
//! What is built is the data transfer of ITU-T Q.2110 on its own PDUs, with set-up in front and release behind: a sender
//! asks for the state with a POLL every Timer_POLL, a receiver answers with a STAT that lists every gap, and tells of a
//! gap it sees by itself in a USTAT, once. A segment is one SDU and travels in one SD.
//!
//! Called by the laboratory, which drives [`Sender`] and [`Receiver`] under the contract of the halves.
//!
//! - `pdu`: the trailer, the types and the 24-bit numbers that all PDUs share.
//! - `packet`: the PDUs of each direction as typed packets.
//! - `config`: what both halves must agree on: the standard's parameters and their values.
//! - `connection`: set-up, release and recovery from a protocol error, as the sender sees them.
//! - `poll`: when a POLL is due: the active, the transient and the idle phase and their timers.
//! - `status`: what a STAT or a USTAT says, once it is found possible.
//! - `sender`: numbering, credit, retransmission before new data.
//! - `receiver`: what is here, what is missing, and the answers.
//!
//! Invariant: every segment below N(R) has been delivered, in order and once; what either half keeps is bounded by the
//! window.

mod config;
mod connection;
mod packet;
mod pdu;
mod poll;
mod receiver;
mod sender;
mod settings;
mod status;
#[cfg(test)]
mod tests;

pub use config::{Config, ConfigError};
pub use packet::{Feedback, Forward};
pub use receiver::Receiver;
pub use sender::Sender;
pub use settings::Settings;
