//! Cross traffic: TCP as hosts run it today, and unresponsive sources.
//!
//! Called by the laboratory, which hands these halves to the simulator as it does those of any scheme. They are models, not
//! implementations: packets are counted, not bytes; every packet is acknowledged by one of its own; connections need no
//! set-up. What matters to others on the path is in: window and pacing laws, loss recovery, timeouts.
//!
//! Not to be taken for [`crate::tcp`], the TCP of HT's time with a fixed window, which HTPNET is compared with.
//!
//! - [`Sender`], [`Receiver`]: a greedy or timed TCP under a [`segstream_blocks::congestion::Controller`], and what acknowledges it.
//! - [`Constant`], [`Sink`]: packets at a rate, regardless of what happens to them.
//! - [`Supply`]: when there is something to send.
//! - `scoreboard`, `round_trip`: what is in flight, how long it takes.
//!
//! Invariant: the same controller and acknowledgments give the same packets; only random on-off sources draw numbers.

pub mod constant;
pub mod packet;
pub mod receiver;
mod round_trip;
mod scoreboard;
pub mod sender;
pub mod supply;

pub use constant::{Constant, Sink};
pub use packet::{ACK_BYTES, Ack, DATA_BYTES, Data, PAYLOAD_BYTES};
pub use receiver::Receiver;
pub use sender::{BOUNDS, Sender};
pub use supply::Supply;
