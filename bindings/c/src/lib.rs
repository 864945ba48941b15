//! Segstream for C and C++: the facade behind a C interface. `include/segstream.h` is written from these files.
//!
//! Called by C and C++ programs, by the fuzz target `c_calls`, and by the tests of this crate. An *endpoint* is a handle; its connections
//! are numbers, and its streams and segments are the numbers that they have in Rust.
//!
//! - `status`, `failure`: what a function returns, and the sentence to it; no panic leaves a function.
//! - `arguments`: pointers, texts and timeouts from C as values of Rust.
//! - `options`, `contract`: the settings of an endpoint and of a stream.
//! - `endpoint`, `connection`: their lives; `sending`, `receiving`, `segment`, `confirming`: segments; `events`, `event_loop`, `waker`; `statistics`.
//!
//! Invariant: whatever values a C program gives, a function returns a status. What only the program can know it promises: that
//! pointers are valid for as much as it says, and that a handle is not used after it was freed.

// Why: the names here are the names in C.
#![allow(non_camel_case_types)]

mod arguments;
pub mod confirming;
pub mod connection;
pub mod contract;
pub mod endpoint;
pub mod event_loop;
pub mod events;
mod failure;
pub mod options;
pub mod receiving;
pub mod segment;
pub mod sending;
pub mod statistics;
pub mod status;
pub mod waker;
