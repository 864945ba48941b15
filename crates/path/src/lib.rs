//! The black box between two ends: bandwidth, queue and policer, delay, loss, reordering, duplication, corruption.
//!
//! A [`Path`] is one direction. It is given the time and the length of each packet, and returns at once the fate of the packet, a
//! [`Passage`]. A [`ScheduledPath`] returns it as soon as it is decided. A path holds no packets and reads no clock: the simulator
//! drives it in virtual time at millions of packets a second, and the link emulator drives the same model with real datagrams.
//!
//! - [`config`]: [`PathConfig`], everything a user can ask of one direction.
//! - [`passage`]: [`Path`], the order in which the impairments meet a packet, and the counters.
//! - [`bottleneck`]: serialisation behind a queue, [`policer`]: a token bucket in front of it.
//! - [`aqm`]: active queue management, as a user writes it; `codel` (RFC 8289), `pie` (RFC 8033) and `red` (Floyd and Jacobson),
//!   which decide about a packet when it arrives, with marks after RFC 3168.
//! - [`scheduled`]: [`ScheduledPath`], for queues that decide at dequeue: FQ-CoDel (RFC 8290)
//!   and DualPI2 (RFC 9332).
//! - `transmitter`: departures at a bandwidth that is constant, follows a trace or was recorded; [`rate_trace`] and
//!   [`opportunity_trace`]: the two kinds of traces.
//! - [`delay`]: a delay, constant or in [`delay_steps`], and its variation without reordering: [`jitter`], `aggregate`.
//! - [`loss`] and [`loss_spec`]: the loss processes, and their text form.
//! - [`reorder`], [`duplicate`], [`corrupt`]: the rarer impairments.
//! - [`probability`], `rate_text` and [`spec_error`]: the numbers a specification holds, and what can be wrong with it.
//!
//! Called by `sim` and by the link emulator of `net`; calls `base` alone.
//!
//! Invariant: the same configuration, seed, direction and calls give the same passages on every platform.
//! Every impairment and direction draws from a named stream of its own and draws once for each packet
//! sent, regardless of what happens to the packet: changing one impairment never changes which packets another one
//! picks.

#![forbid(unsafe_code)]

mod aggregate;
pub mod aqm;
pub mod bottleneck;
mod codel;
pub mod config;
pub mod corrupt;
pub mod delay;
pub mod delay_steps;
pub mod duplicate;
pub mod jitter;
pub mod loss;
pub mod loss_spec;
pub mod opportunity_trace;
pub mod passage;
mod pie;
pub mod policer;
pub mod probability;
mod rate_text;
pub mod rate_trace;
mod red;
pub mod reorder;
pub mod scheduled;
pub mod spec_error;
mod transmitter;

pub use aqm::Aqm;
pub use bottleneck::QueueLimit;
pub use config::{LossPlace, PathConfig};
pub use delay_steps::DelaySteps;
pub use jitter::Jitter;
pub use loss_spec::{Dwell, LossSpec};
pub use opportunity_trace::OpportunityTrace;
pub use passage::{Fate, Passage, Path, PathCounters};
pub use policer::Policer;
pub use probability::Probability;
pub use rate_trace::RateTrace;
pub use reorder::ReorderSpec;
pub use scheduled::{PathPacket, ScheduledPath};
pub use spec_error::SpecError;
