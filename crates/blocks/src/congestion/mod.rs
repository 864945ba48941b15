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
//! - [`auto`]: the controller of the flagship: delay from state exchanges (HT 3.5, PTIF), made safe beside others.
//!
//! Why here and not in `base`: `base` holds the contracts that join crates which do not know each other (halves, endpoints). A
//! controller joins nothing: only crates that send know one, and those know `blocks`. A simulator or a driver never sees it.
//!
//! Invariant: a controller knows no clock, and draws random numbers only from the seed it was started with. So the same events
//! give the same answers.

pub mod algorithm;
pub mod auto;
pub mod controller;

pub use algorithm::{ALGORITHMS, Algorithm, Start, UnknownAlgorithm};
pub use controller::{Bounds, CongestionEvent, Controller, DeliverySample, Exchange, Limit, Report, Silence};
