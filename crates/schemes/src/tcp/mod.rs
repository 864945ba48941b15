//! TCP as HTPNET is compared with: a fixed window, a timer for every packet in a delta list, cumulative acknowledgment.
//!
//! What is built is the implementation that HT 7 describes, in packets instead of bytes: the retransmission timeout is
//! twice a round trip smoothed with 0.9, nothing is sampled from retransmitted packets (Karn and Partridge 1987), a timer
//! that has run out is set to twice the time. There is neither fast retransmit nor a congestion window: HT names
//! neither. It is no TCP that talks to others.
//!
//! Called by the laboratory, which drives [`Sender`] and [`Receiver`] under the contract of the halves.
//!
//! - `packet`: the acknowledgment and its bytes; data and its end are `crate::numbered_packet`'s.
//! - `config`: what both halves must agree on, and what happens to a timeout that was backed off.
//! - `sender`: retransmission before new data; what it keeps is in `crate::transmission_buffer`.
//! - `retransmission`: the round trip, the timeout and how it is backed off.
//! - `delta_list`: the timers, and what it costs to keep them.
//! - `receiver`: an acknowledgment for every packet; the reassembly is in `crate::in_order`.
//!
//! Invariant: every packet up to the cumulative acknowledgment has been delivered, in order and once; what either half
//! keeps is bounded by the window.

mod config;
mod delta_list;
mod packet;
mod receiver;
mod retransmission;
mod sender;
mod settings;
#[cfg(test)]
mod tests;

pub use config::{Backoff, BackoffError, Config, ConfigError};
pub use packet::{Feedback, Forward, Place};
pub use receiver::Receiver;
pub use sender::Sender;
pub use settings::Settings;
