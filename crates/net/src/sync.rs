//! The atomics, threads and pipe of the wake-ups, under names that a model checker can replace.
//!
//! Used by [`crate::parker`], [`crate::wake`] and the driver's `notifier`. Why here: `verify/wakeups` compiles these files with the
//! objects of a model checker under the same names, and tries every order of their steps.

pub(crate) use std::os::unix::net::UnixStream;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};
pub(crate) use std::thread::{Thread, current, park, park_timeout};
