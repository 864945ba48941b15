//! Discrete-event simulation of any pair of halves over the black box.
//!
//! A [`Simulation`] joins a sender and a receiver by two [`segstream_path::Path`]s and a [`Source`], and runs
//! them in virtual time. Packets are typed values with a length and no payload, so ten million of them cost
//! no copy; [`Setup::check`] encodes and decodes every one of them and must change nothing.
//!
//! - [`setup`]: [`Setup`] and [`Control`], the configuration of a run besides the halves.
//! - [`processor`]: [`SenderCost`], the processing cost of the sending half; [`end_system`]: [`EndSystem`], that of both
//!   ends.
//! - [`source`]: [`Source`], who submits segments, and when.
//! - [`simulation`]: [`Simulation`], the event loop; [`end`]: [`End`], how a run ended.
//! - [`observer`]: [`Observer`], which sees the events of a run.
//! - [`event_log`] and [`pcap`]: observers that write a line or a captured packet for every event.
//! - [`traffic`]: [`Traffic`], the counters of a run.
//! - [`stages`]: [`stages::StageModel`], processes of a protocol on processors.
//! - [`tandem`]: [`tandem::Tandem`], a tandem of finite queues in slots, with external traffic.
//! - [`shared`]: [`Shared`], several flows over one link.
//! - `event_queue`, `channel`, `control_loss`, `encoding_check`: the events to come, packets in flight, losses of data and control
//!   apart, and check mode.
//!
//! Called by laboratories, studies and tests; calls `base` and `path`. It names no protocol.
//!
//! Invariant: the same halves, source, setup and seed give the same events in the same order, on every
//! platform. Nothing but the paths draws random numbers, from the streams of `seed.child("path")`, so that
//! every pair of halves meets the same loss process under one seed.

#![forbid(unsafe_code)]

mod channel;
mod control_loss;
mod encoding_check;
pub mod end;
pub mod end_system;
pub mod event_log;
mod event_queue;
pub mod observer;
pub mod pcap;
pub mod processor;
pub mod setup;
pub mod shared;
pub mod simulation;
pub mod source;
pub mod stages;
pub mod tandem;
pub mod traffic;

pub use end::{EncodingFault, End};
pub use end_system::EndSystem;
pub use event_log::EventLog;
pub use observer::{Direction, Moment, Observer, PacketEvent, PacketFate};
pub use pcap::{Pcap, Vantage};
pub use processor::SenderCost;
pub use setup::{Control, Setup};
pub use shared::{Shared, SharedError};
pub use simulation::Simulation;
pub use source::Source;
pub use traffic::{DirectionTraffic, Traffic};
