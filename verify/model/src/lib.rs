//! Model checking of the protocol itself: what the endpoints of `segstream_proto` do in every order of events, on instances
//! so small that all of it can be visited.
//!
//! - [`exploration`]: states, steps and properties, for the checker;
//! - [`world`]: two endpoints and the datagrams in flight between them; says what is abstracted;
//! - [`heard`]: what an application knows; [`digest`]: when two states are one;
//! - [`tap`]: what an observer reads on the wire; [`anti_amplification`]: what an end has sent to addresses that are not validated;
//! - [`keyed`]: a protection with keys, for the models that need one;
//! - [`safety`]: what must be so in every state of every instance;
//! - [`setup`], [`close`], [`window`], [`lifetime`], [`class_change`], [`migration`], [`coded`]: an instance for each claim.
//!
//! Run `cargo test -p segstream-model -- --nocapture` to see how many states each has. The crate is for tests only.
//!
//! Invariant: what is explored is the protocol's own code, never a description of it.

#![forbid(unsafe_code)]

pub mod anti_amplification;
pub mod class_change;
pub mod close;
pub mod coded;
pub mod cost;
pub mod digest;
pub mod exploration;
pub mod heard;
pub mod keyed;
pub mod lifetime;
pub mod migration;
pub mod safety;
pub mod setup;
pub mod tap;
pub mod window;
pub mod world;
