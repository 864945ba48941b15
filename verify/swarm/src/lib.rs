//! A swarm: whole endpoints, several connections and hosts, over the black box in virtual time.
//!
//! Everything is drawn from a seed: hosts and what they are told, paths and what they do to datagrams, contracts,
//! segments, classes and rates, and what goes wrong: hosts that crash and restart, hang, or do not read; routes that
//! are blocked; applications that close or abort at any time; an attacker who injects datagrams. Checkers
//! watch what the protocol promises. A failing seed is a test that can be run again, with a trace.
//!
//! - [`runner`]: runs seeds, on any number of threads; [`watch`]: passes all events to the checkers;
//! - `plan`, `paths`, `fault`, `side_plan`: what is drawn from a seed;
//! - `swarm`: the loop around a [`segstream_network::Network`]; `task`: what is due besides datagrams and timers; `host`, `side`,
//!   `hostile`: hosts, connection ends and the attacker; `addresses`: their addresses; `observer`: the middlebox;
//! - [`event`]: what the checkers see, `trace`: as lines and as a digest, [`tally`]: as counts;
//! - `checker`: what must hold; [`ledger`]: which seeds have been run.
//!
//! Called by its own command and by tests only. Invariant: the same seed gives the same run on every
//! machine.

#![forbid(unsafe_code)]

mod addresses;
mod checker;
mod draw;
pub mod event;
mod fault;
mod host;
mod hostile;
pub mod ledger;
mod observer;
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
mod turncoat;
pub mod watch;
