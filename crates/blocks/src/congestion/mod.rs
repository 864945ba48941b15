//! Congestion control: how fast a sender may send on a path that others share.
//!
//! Called by the senders of protocols, which pass feedback to a controller and obey its outputs.
//!
//! ```text
//!   sender  --- state exchange, report, silence, change of path --->  controller
//!           <-- pacing rate, in-flight cap, quantum, next exchange --
//! ```
//!
//! - [`controller`]: the contract, [`Controller`], and its inputs: [`Exchange`], [`Report`], [`Silence`].
//! - [`algorithm`]: the list of all controllers by name, [`ALGORITHMS`]; each file below adds its entry.
//! - [`auto`]: a rate from the delay of state exchanges (HT 3.5, PTIF), made safe beside others.
//! - [`cubic`] (RFC 9438), [`bbr`] (version 3, draft-ietf-ccwg-bbr), [`prague`] (L4S, RFC 9331): what reports move on, as
//!   acknowledgments move TCP.
//! - [`reno`] (RFC 5681), [`cubic::LINUX`], [`bbr1`] (version 1, draft-cardwell-iccrg-bbr-congestion-control-00): the same for the
//!   cross traffic of simulations.
//! - [`rate_sample`]: how fast packets are delivered; [`spacing`]: how far apart exchanges leave; `window`: packets as bytes;
//!   `hystart` (RFC 9406), `delay_exit`: what ends slow start;
//!   `start_rate`: where it begins when the rate is known; `windowed_max`: the largest value of recent rounds.
//!
//! Why here and not in `base`: `base` holds the contracts that join crates which do not know each other (halves, endpoints). A
//! controller joins nothing: only crates that send know one, and those know `blocks`. A simulator or a driver never sees it.
//!
//! Invariant: a controller knows no clock, and draws random numbers only from the seed it was started with. So the same events
//! give the same answers.

pub mod algorithm;
pub mod auto;
pub mod bbr;
pub mod bbr1;
pub mod controller;
pub mod cubic;
mod delay_exit;
mod hystart;
pub mod prague;
pub mod rate_sample;
pub mod reno;
pub mod spacing;
mod start_rate;
mod window;
mod windowed_max;

pub use algorithm::{ALGORITHMS, Algorithm, Clock, Start, UnknownAlgorithm};
pub use controller::{Bounds, CongestionEvent, Controller, DeliverySample, Exchange, Limit, Report, Silence};
pub use spacing::exchange_period;
