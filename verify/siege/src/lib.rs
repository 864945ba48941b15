//! Attacks on real endpoints over loopback: what the victims spend is measured, and bounded by what the code promises.
//!
//! - [`attacks`]: the attacks, each in a file that says what it does;
//! - [`victim`]: the endpoint under attack, in a process of its own;
//! - [`sender`]: an honest sender beside an attack, in a process of its own;
//! - [`process`], [`messages`], `requests`: how these are started and controlled; [`resource_usage`]: what they have used;
//! - [`attacker`]: an off-path attacker with many source addresses; [`relay`]: an on-path attacker; [`client`]: an honest client;
//!   [`labels`]: the kind of each datagram; `forge`: datagrams that can be made without keys;
//! - [`outcome`]: what an attack has cost, and its bounds.
//!
//! Called by the command `segstream-siege` and by tests. Nothing that is shipped may depend on it.
//!
//! Invariant: an attack holds no key of the victim and none of its honest clients.

#![cfg(target_os = "linux")]

pub mod attacker;
pub mod attacks;
pub mod client;
mod forge;
pub mod labels;
pub mod messages;
pub mod outcome;
mod pattern;
pub mod process;
pub mod relay;
mod requests;
pub mod resource_usage;
pub mod sender;
pub mod victim;
