//! XTP's error control as a study of it has it: what the sender retransmits, and what the receiver does with what comes
//! out of order, in all combinations.
//!
//! The receiver sees gaps in the sequence of bytes; the sender asks for the receiver's state and acts on it. No packet
//! has a timer of its own: one, WTIMER, guards the last question. The window slides only with the answers, so a
//! sender asks when it has sent the last byte that it may (XT 2).
//!
//! Called by the laboratory, which drives [`Sender`] and [`Receiver`] under the contract of the halves.
//!
//! - `packet`: DATA and CNTL, and their bytes.
//! - `options`: the option bits of a packet.
//! - `config`: what both halves must agree on, and the strategy of each.
//! - `sender`: window, questions, repetitions before new data.
//! - `segments`: the messages that wait for their first transmission.
//! - `unacknowledged`: the packets that have left.
//! - `repetition`: which of them leave again, and what keeps a repeated request from being served twice.
//! - `requests`: questions by number, and WTIMER.
//! - `receiver`: in sequence or not, and when it reports that.
//! - `store`: what came out of sequence and is kept.
//! - `delivery`: what is in sequence and not read by the user yet, which is where SREQ and DREQ differ.
//!
//! Invariant: all bytes below RSEQ have been delivered, in order and once; what either half keeps is bounded by the window,
//! beside what the user has submitted and is not sent.

mod config;
mod delivery;
mod options;
mod packet;
mod receiver;
mod repetition;
mod requests;
mod segments;
mod sender;
mod settings;
mod store;
#[cfg(test)]
mod tests;
mod unacknowledged;

pub use config::{Config, ConfigError, Question, ReceiverStrategy, SenderStrategy, StrategyError};
pub use options::Options;
pub use packet::{Feedback, Forward, Place};
pub use receiver::Receiver;
pub use sender::Sender;
pub use settings::Settings;
