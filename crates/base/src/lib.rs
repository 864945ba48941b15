//! The foundation of all other crates: time, quantities, sequence numbers, the byte codec, named random streams, and the two
//! contracts.
//!
//! - [`time`]: [`Instant`] and [`Duration`], integer nanoseconds from zero. Time is always an argument.
//! - [`quantity`]: [`Bandwidth`] and [`Bytes`], types until they are printed.
//! - [`numbers`]: [`StreamId`], [`SegmentNumber`] and the others: numbers that cannot be taken for one another.
//! - [`run`]: [`Run`]s of such numbers, of units and of positions.
//! - [`tolerance`]: how much of a segment may be missing, the promise of a stream.
//! - [`sequence`]: wrapping serial numbers and 64-bit numbers sent truncated.
//! - [`codec`]: a bounds-checked [`codec::Reader`] and [`codec::Writer`]; no input can make them panic.
//! - [`random`]: one root seed, one independent stream for each name.
//! - [`halves`]: the first contract, one direction of a transfer with typed packets.
//! - [`endpoint`]: the second contract, datagrams and time in, datagrams and one deadline out.
//! - [`stage`]: one process of a protocol that is parallel by function.
//!
//! All other crates use this one; it uses none of them.
//!
//! Invariant: no clock, socket, thread or entropy is reachable from here.

#![forbid(unsafe_code)]

pub mod codec;
pub mod endpoint;
pub mod halves;
pub mod numbers;
pub mod quantity;
pub mod random;
pub mod run;
pub mod sequence;
pub mod stage;
pub mod time;
pub mod tolerance;

pub use numbers::{ExchangeNumber, Position, ReportNumber, SegmentNumber, ShipmentNumber, StreamId, UnitIndex};
pub use quantity::{Bandwidth, Bytes};
pub use run::{Ordinal, Run};
pub use time::{Duration, Instant};
pub use tolerance::{Tolerance, ToleranceError};
