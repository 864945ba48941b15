//! HTPNET, the parallel transport of Chan and Gorton (HT): data and control apart, a state exchange that the transmitter
//! paces, loss found by comparing exchange numbers instead of times, four processes that can run beside each other.
//!
//! - [`Config`]: what both halves are made with; [`Class`], [`Ranges`], [`SyncPeriod`], [`Ptif`].
//! - [`Forward`], [`Feedback`]: the eight packet types (HT 3.2).
//! - [`Tx1`], [`Tx2`], [`Rx1`], [`Rx2`], [`CongestionAvoidance`]: the processes as stages that exchange [`Message`] values (HT 5),
//!   and [`pipeline`], which makes all of them for a runner.
//! - [`Sender`], [`Receiver`]: the halves, made of the same processes.
//!
//! Called by the laboratory: by its registry and, through it, by the simulator and the adapter over UDP; by the runner of
//! threads and the model of processors. `README.md` beside this file maps the paper's sections and lists every decision
//! where it is silent or contradicts itself.
//!
//! Inside, numbers have 64 bits and never wrap; on the wire they have 16 and do.
//!
//! Invariant: the stream is always `StreamId(0)`; no process reads a clock or draws entropy.

mod checksum;
mod class;
mod config;
mod connection;
mod message;
mod packet;
mod pipeline;
mod presence;
mod ptif;
mod receiver;
mod rx1;
mod rx2;
mod sender;
mod settings;
mod ticks;
mod tx1;
mod tx2;

pub use class::Class;
pub use config::{Config, ConfigError, Ranges, SyncPeriod, UnknownRanges};
pub use message::{ConnectionNews, Measured, Message, SentLog, Status, Unit, Verdicts};
pub use packet::{
    Control, Coverage, Data, Feedback, Forward, Pairs, RangeList, Reason, ReceiverState, Release, Step, Terms, TransmitterState,
};
pub use pipeline::{Ends, Pipeline, Routes, pipeline};
pub use ptif::{CongestionAvoidance, Ptif, UnknownPtif};
pub use receiver::Receiver;
pub use rx1::Rx1;
pub use rx2::Rx2;
pub use sender::Sender;
pub use settings::Settings;
pub use tx1::Tx1;
pub use tx2::Tx2;

#[cfg(test)]
mod tests;
