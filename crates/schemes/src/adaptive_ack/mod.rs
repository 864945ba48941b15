//! Adaptive acknowledgment (AA): the receiver reports by a timer of its own, seldom while nothing is missing, often while
//! something is.
//!
//! What is built is AA 2: new data in order of sequence numbers, a gap requested again as soon as it is seen, and
//! a status whenever the receiver's timer runs out, whose period is T_normal or T_error. The sender polls nothing and has
//! no timer.
//!
//! Called by the laboratory, which drives [`Sender`] and [`Receiver`] under the contract of the halves.
//!
//! - `packet`: the acknowledgment and its bytes; data and its end are `crate::numbered_packet`'s.
//! - `config`: what both halves must agree on.
//! - `sender`: what leaves next, what an acknowledgment does; the buffer is `crate::transmission_buffer`.
//! - `retransmission`: which of the packets asked for are retransmitted, and the round trip that decides it.
//! - `tail`: the rule that finds a lost tail, which the paper lacks.
//! - `receiver`: what it reports to `status`; the reassembly is in `crate::in_order`.
//! - `rearming`: when the timer of the status is set anew, which the paper leaves open.
//! - `status`: gaps, the two periods and the acknowledgments that follow from them.
//!
//! Invariant: every packet below the cumulative number has been delivered, in order and once; what either half keeps is
//! bounded by the window.

mod config;
mod packet;
mod rearming;
mod receiver;
mod retransmission;
mod sender;
mod settings;
mod status;
mod tail;
#[cfg(test)]
mod tests;

pub use config::{Config, ConfigError};
pub use packet::{Feedback, Forward, Place};
pub use rearming::{Rearming, UnknownRearming};
pub use receiver::Receiver;
pub use sender::Sender;
pub use settings::Settings;
