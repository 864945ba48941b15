//! Model checking of the protocol itself: what the endpoints of `segstream_proto` do in every order of events, on instances
//! so small that all of it can be visited.
//!
//! - [`exploration`]: states, steps and properties, for the checker;
//! - [`world`]: two endpoints and what is in the air between them; says what is abstracted;
//! - [`digest`]: when two states are one;
//! - [`tap`]: what an observer reads on the wire; [`ledger`]: what an end has sent to addresses that are not proved;
//! - [`keyed`]: a protection with keys, for the models that need one;
//! - [`safety`]: what must be so in every state of every instance;
//! - [`setup`], [`close`], [`window`], [`lifetime`], [`reclass`], [`moved`]: an instance for each claim.
//!
//! Run `cargo test -p segstream-model -- --nocapture` to see how many states each has. Nobody ships this crate.
//!
//! Invariant: what is explored is the protocol's own code, never a description of it.

#![forbid(unsafe_code)]

pub mod close;
pub mod digest;
pub mod exploration;
pub mod keyed;
pub mod ledger;
pub mod lifetime;
pub mod moved;
pub mod reclass;
pub mod safety;
pub mod setup;
pub mod tap;
pub mod window;
pub mod world;
