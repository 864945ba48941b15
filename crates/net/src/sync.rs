//! The atomics, threads and pipe that wake-ups are made of.
//!
//! Used by [`crate::sleeper`], [`crate::wake`] and the driver's `bell`. Why here: `verify/wakeups` compiles these files with the
//! objects of a model checker under the same names, and tries every order of their steps.

pub(crate) use std::os::unix::net::UnixStream;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};
pub(crate) use std::thread::{Thread, current, park, park_timeout};
