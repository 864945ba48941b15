//! The black box between two ends: bandwidth, queue and policer, delay, loss, reordering, duplication, corruption.
//!
//! A [`Path`] is one direction. It is told when a packet enters and how long it is, and answers at once
//! what becomes of it: a [`Passage`]. It holds no packets and reads no clock, so the simulator drives it
//! in virtual time at millions of packets a second and the link emulator drives the same model with real
//! datagrams.
//!
//! - [`config`]: [`PathConfig`], everything a user can ask of one direction.
//! - [`passage`]: [`Path`], the order in which the impairments meet a packet, and the counters.
//! - [`bottleneck`]: serialisation behind a queue, [`codel`]: what manages the queue (RFC 8289, with marks after
//!   RFC 3168), [`policer`]: a token bucket in front of it.
//! - `transmitter`: departures at a bandwidth that is constant or follows a trace; [`rate_trace`]: how one is written down.
//! - [`delay`]: a constant delay and jitter that never reorders.
//! - [`loss`] and [`loss_spec`]: the loss processes, and how they are written down.
//! - [`reorder`], [`duplicate`], [`corrupt`]: the rarer impairments.
//! - [`probability`], `rate_text` and [`spec_error`]: the numbers a specification holds, and what can be wrong with it.
//!
//! Called by `sim` and by the link emulator of `net`; calls `base` alone.
//!
//! Invariant: the same configuration, seed, direction and calls give the same passages on every platform.
//! Every impairment and direction draws from a named stream of its own and draws once for each packet
//! sent, whatever becomes of the packet: changing one impairment never changes which packets another one
//! picks.

#![forbid(unsafe_code)]

pub mod bottleneck;
pub mod codel;
pub mod config;
pub mod corrupt;
pub mod delay;
pub mod duplicate;
pub mod loss;
pub mod loss_spec;
pub mod passage;
pub mod policer;
pub mod probability;
mod rate_text;
pub mod rate_trace;
pub mod reorder;
pub mod spec_error;
mod transmitter;

pub use bottleneck::QueueLimit;
pub use codel::Aqm;
pub use config::{LossPlace, PathConfig};
pub use loss_spec::{Dwell, LossSpec};
pub use passage::{Fate, Passage, Path, PathCounters};
pub use policer::Policer;
pub use probability::Probability;
pub use rate_trace::RateTrace;
pub use reorder::ReorderSpec;
pub use spec_error::SpecError;
