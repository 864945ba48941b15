//! The traffic a path is shared with: models of TCP with Reno, CUBIC and BBR, and sources that ask nobody.
//!
//! Called by laboratories and tests, through [`crate::Simulation`] as any other pair of halves. They are models, not
//! implementations: packets are counted, not bytes; every packet is acknowledged by one of its own; connections need no
//! set-up. What matters to others on the path is in: window and pacing laws, loss recovery, timeouts.
//!
//! - [`Sender`], [`Receiver`]: a greedy or timed sender under any [`Congestion`] control, and what acknowledges it.
//! - [`Reno`] (RFC 5681), [`Cubic`] (RFC 9438, with the delay exit of HyStart), [`Bbr`] (version 1,
//!   draft-cardwell-iccrg-bbr-congestion-control-00).
//! - [`Constant`], [`Sink`]: packets at a rate, whatever becomes of them.
//! - [`Supply`]: when there is something to send.
//! - `scoreboard`, `rate_sample`, `round_trip`: what is under way, how fast it is delivered, how long it takes.
//!
//! Invariant: the same seed and acknowledgments give the same packets; only BBR and random on-off sources draw numbers.

pub mod bbr;
pub mod congestion;
pub mod constant;
pub mod cubic;
pub mod packet;
mod rate_sample;
pub mod receiver;
pub mod reno;
mod round_trip;
mod scoreboard;
pub mod sender;
pub mod supply;

pub use bbr::Bbr;
pub use congestion::{Acknowledged, Congestion};
pub use constant::{Constant, Sink};
pub use cubic::Cubic;
pub use packet::{ACK_BYTES, Ack, DATA_BYTES, Data, PAYLOAD_BYTES};
pub use receiver::Receiver;
pub use reno::Reno;
pub use sender::Sender;
pub use supply::Supply;
