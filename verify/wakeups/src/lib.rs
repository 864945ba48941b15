//! The wake-ups of `segstream-net` under a model checker: no order of the steps of its threads, and nothing that one of them may
//! still see of another's past, loses a wake-up.
//!
//! `parker`, `wake` and the driver's `notifier` are compiled from the sources of `net` themselves; [`sync`] gives them the objects of
//! loom in place of those of the standard library. Each function of [`scenario`] is one model: threads that wait for something and
//! threads that bring it. When a wake-up is lost a thread sleeps forever, which loom reports as a deadlock.
//!
//! Limit: the rings between the threads (rtrb, crossbeam) are trusted; a counter stands for each. At most three threads and three
//! wake-ups are tried, with at most three preemptions where a pipe takes part.
//!
//! Called by its tests. Source: Norris and Demsky, CDSChecker, OOPSLA 2013, which loom implements.

#![forbid(unsafe_code)]

#[path = "../../../crates/net/src/driver/notifier.rs"]
mod notifier;
#[path = "../../../crates/net/src/parker.rs"]
mod parker;
pub mod scenario;
pub mod sync;
#[path = "../../../crates/net/src/wake.rs"]
pub mod wake;
