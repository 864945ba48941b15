//! What everything else stands on: time, quantities, sequence numbers, the byte codec, named random
//! streams, and the two contracts that carry the house.
//!
//! - [`time`]: [`Instant`] and [`Duration`], integer nanoseconds from zero. Time is always an argument.
//! - [`quantity`]: [`Bandwidth`] and [`Bytes`], types until they are printed.
//! - [`numbers`]: [`StreamId`], [`SegmentNumber`] and the others: numbers that cannot be taken for one another.
//! - [`tolerance`]: how much of a segment may be missing, the promise of a stream.
//! - [`sequence`]: wrapping serial numbers and 64-bit numbers sent truncated.
//! - [`codec`]: a bounds-checked [`codec::Reader`] and [`codec::Writer`]; no input can make them panic.
//! - [`random`]: one root seed, one independent stream for each name.
//! - [`halves`]: the first contract, one direction of a transfer with typed packets.
//! - [`endpoint`]: the second contract, datagrams and time in, datagrams and one deadline out.
//! - [`stage`]: one process of a protocol that is parallel by function.
//!
//! Everyone calls this crate; it calls nobody of ours.
//!
//! Invariant: no clock, socket, thread or entropy is reachable from here.

#![forbid(unsafe_code)]

pub mod codec;
pub mod endpoint;
pub mod halves;
pub mod numbers;
pub mod quantity;
pub mod random;
pub mod sequence;
pub mod stage;
pub mod time;
pub mod tolerance;

pub use numbers::{ExchangeNumber, ReportNumber, SegmentNumber, ShipmentNumber, StreamId};
pub use quantity::{Bandwidth, Bytes};
pub use time::{Duration, Instant};
pub use tolerance::{Tolerance, ToleranceError};
