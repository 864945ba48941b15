//! A swarm: whole endpoints, several connections and hosts, over the black box in virtual time.
//!
//! Everything is drawn from a seed: hosts and what they are told, paths and what they do to datagrams, contracts,
//! segments, classes and rates, and what goes wrong: hosts that crash and start again, hang, or do not read; ways that
//! are blocked; applications that close or break off at any time; an attacker who puts datagrams in between. Checkers
//! watch what the protocol promises. A failing seed is a test that can be run again, with a trace.
//!
//! - [`runner`]: runs seeds, on any number of threads; [`watch`]: where everything that happens goes by;
//! - `plan`, `paths`, `fault`, `side_plan`: what a seed makes of a run;
//! - `swarm`: the loop around a [`segstream_network::Network`]; `task`: what is due besides datagrams and timers; `host`, `side`,
//!   `hostile`: who takes part; `addresses`: where they are; `onlooker`: who sees every datagram;
//! - [`event`]: what the checkers see, `trace`: as lines and as a digest, [`tally`]: as counts;
//! - `checker`: what must hold.
//!
//! Called by its own command and by tests; nobody ships it. Invariant: the same seed gives the same run on every
//! machine.

#![forbid(unsafe_code)]

mod addresses;
mod checker;
mod draw;
pub mod event;
mod fault;
mod host;
mod hostile;
mod onlooker;
mod paths;
mod payload;
mod plan;
pub mod runner;
mod side;
mod side_plan;
mod swarm;
pub mod tally;
mod task;
mod trace;
pub mod watch;
