//! Segstream's own protocol as sans-IO state machines.
//!
//! - [`endpoint`]: all connections behind one socket; datagrams and time in, datagrams and one deadline out.
//! - [`connection`]: one connection: set-up, the two halves, close.
//! - [`sender`] and [`receiver`]: the halves, one direction each, where the protocol's decisions are.
//! - [`session`]: what seals shipments.
//! - [`store`]: the payload bytes, which the halves never touch.
//! - [`coding_choice`]: what a connection does with repair units.
//! - [`trace`]: what a connection does, event by event, for tools that record it.
//! - [`halves`]: the halves under the common contract, for the simulator.
//!
//! How to drive an endpoint is said in [`segstream_base::endpoint`]. The bytes are in `segstream_wire`,
//! the mechanisms in `segstream_blocks`, the specification in `docs/spec`.
//!
//! Invariant: no clock, socket, thread or entropy; no input of a peer panics, allocates without a limit,
//! or loses what was accepted.

#![forbid(unsafe_code)]

pub mod coding;
pub mod coding_choice;
pub mod config;
pub mod connection;
pub mod endpoint;
pub mod error;
pub mod halves;
mod initial;
pub mod layout;
mod live_streams;
pub mod number;
mod path;
pub mod rate;
pub mod receiver;
mod segment_buffers;
pub mod sender;
pub mod session;
pub mod store;
pub mod trace;
