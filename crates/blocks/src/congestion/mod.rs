//! Congestion control: how fast a sender may send on a path that others share.
//!
//! Called by the senders of protocols, which tell a controller what the path does and do what it answers.
//!
//! ```text
//!   sender  --- state exchange, report, silence, change of path --->  controller
//!           <-- pacing rate, cap in flight, quantum, next exchange --
//! ```
//!
//! - [`controller`]: the contract, [`Controller`], and what it is told: [`Exchange`], [`Report`], [`Silence`].
//! - [`algorithm`]: the list of all controllers by name, [`ALGORITHMS`]; each file below adds its entry.
//! - [`auto`]: a rate from the delay of state exchanges (HT 3.5, PTIF), made safe beside others.
//! - [`reno`] (RFC 5681), [`cubic`] (RFC 9438, with the delay exit of HyStart), [`bbr`] (version 1,
//!   draft-cardwell-iccrg-bbr-congestion-control-00): windows that acknowledgments clock.
//! - [`rate_sample`]: how fast packets are delivered; [`spacing`]: how far apart exchanges leave; `window`: packets as bytes.
//!
//! Why here and not in `base`: `base` holds the contracts that join crates which do not know each other (halves, endpoints). A
//! controller joins nothing: only crates that send know one, and those know `blocks`. A simulator or a driver never sees it.
//!
//! Invariant: a controller knows no clock, and draws random numbers only from the seed it was started with. So the same events
//! give the same answers.

pub mod algorithm;
pub mod auto;
pub mod bbr;
pub mod controller;
pub mod cubic;
pub mod rate_sample;
pub mod reno;
pub mod spacing;
mod window;

pub use algorithm::{ALGORITHMS, Algorithm, Clock, Start, UnknownAlgorithm};
pub use controller::{Bounds, CongestionEvent, Controller, DeliverySample, Exchange, Limit, Report, Silence};
pub use spacing::exchange_period;
