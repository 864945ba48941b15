//! Several runs at once: as many as their links' bandwidths allow.
//!
//! Called by [`super::measure`].
//!
//! Why: a run takes half a minute of waiting and little of the processors where its link is slow. Whether several disturb each other is not
//! assumed: each link says how late it was, and a run over a late one is void.
//!
//! Invariant: runs begin in the order in which they are given, so that the contenders of a cell and seed run close to each other.

use super::Asked;
use super::journal::{Journal, Run};
use super::trial::Setup;
use anyhow::Result;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// The bandwidth of one place.
const PLACE_MBIT: f64 = 20.0;
/// So many flows take the place of one.
const PLACE_FLOWS: usize = 4;

/// What the runs share.
struct Shared<'a> {
    journal: &'a mut Journal,
    /// Places that are taken.
    taken: u32,
    /// The first thing that went wrong; then nothing more begins.
    failed: Result<()>,
}

/// Makes these runs, each with the trace of its cell, on `places` places.
pub(super) fn run(setup: &Setup, runs: &[(&Asked, Option<String>)], places: u32, journal: &mut Journal) -> Result<()> {
    let shared = Mutex::new(Shared { journal, taken: 0, failed: Ok(()) });
    let ended = Condvar::new();
    thread::scope(|scope| {
        for (at, (asked, trace)) in runs.iter().enumerate() {
            let own = places_of(asked).min(places);
            let lock = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let is_full = |shared: &mut Shared<'_>| shared.failed.is_ok() && shared.taken + own > places;
            let mut lock = ended.wait_while(lock, is_full).unwrap_or_else(PoisonError::into_inner);
            if lock.failed.is_err() {
                break;
            }
            lock.taken += own;
            drop(lock);
            let (shared, ended) = (&shared, &ended);
            scope.spawn(move || {
                let run = setup.run(asked.cell, trace.as_deref(), &asked.key, asked.contender);
                let mut lock = shared.lock().unwrap_or_else(PoisonError::into_inner);
                lock.taken -= own;
                let kept = run.and_then(|run| {
                    eprintln!("{} of {}: {}", at + 1, runs.len(), line(&run));
                    lock.journal.add(run)
                });
                if lock.failed.is_ok() {
                    lock.failed = kept;
                }
                drop(lock);
                ended.notify_all();
            });
        }
    });
    shared.into_inner().unwrap_or_else(PoisonError::into_inner).failed
}

/// What a person is told of a run that has ended.
fn line(Run { key, goodput_bps, filled, queue_ms_p95, void, .. }: &Run) -> String {
    let void = void.as_ref().map_or(String::new(), |void| format!("; VOID: {void}"));
    format!(
        "{} {} seed {}: {:.2} Mbit/s, {filled:.2} of the link, queue {queue_ms_p95:.1} ms{void}",
        key.cell,
        key.contender,
        key.seed,
        goodput_bps / 1e6
    )
}

/// How many places a run takes.
fn places_of(asked: &Asked) -> u32 {
    let of_bandwidth = (asked.cell.mbit / PLACE_MBIT).ceil() as u32;
    let of_flows = asked.cell.count.div_ceil(PLACE_FLOWS) as u32;
    of_bandwidth.max(of_flows).max(1)
}
