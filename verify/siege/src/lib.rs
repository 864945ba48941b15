//! Attacks on real endpoints over loopback: what the victims spend is measured, and bounded by what the code promises.
//!
//! - [`attacks`]: the attacks, each in a file that says what it does;
//! - [`victim`]: the endpoint under attack, in a process of its own;
//! - [`sender`]: an honest sender beside an attack, in a process of its own;
//! - [`process`], [`messages`], `asks`: how these are started and asked; [`spent`]: what they have spent;
//! - [`attacker`]: a stranger with many addresses; [`relay`]: somebody on the path; [`client`]: an honest client;
//!   [`labels`]: which datagram is of which kind; `forge`: what can be made without keys;
//! - [`outcome`]: what an attack has cost, and its bounds.
//!
//! Called by the command `segstream-siege` and by tests. Nothing that is shipped may depend on it.
//!
//! Invariant: an attack holds no key of the victim and none of its honest clients.

#![cfg(target_os = "linux")]

mod asks;
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
pub mod sender;
pub mod spent;
pub mod victim;
