//! Runs seeds: one, or many on threads.
//!
//! Called by the command and by tests. A panic of what is tested is a failure like any other, with its time and seed.
//!
//! Invariant: what a seed gives does not depend on the other seeds, nor on how many threads there are.

use crate::swarm::Swarm;
use crate::tally::Tally;
use crate::watch::{Failure, Tap, Trace, Watch};
use segstream_base::Instant;
use segstream_base::random::Seed;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

/// What a seed gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What the first checker that objected has found.
    pub failure: Option<Failure>,
    /// Of everything that happened. The same seed gives the same.
    pub digest: u64,
    /// How often what happened.
    pub tally: Tally,
    /// The virtual time at the end.
    pub end: Instant,
}

/// Runs a seed.
pub fn run(seed: u64) -> Outcome {
    run_with(seed, None, None)
}

/// Runs a seed with a line for everything that happens.
pub fn run_traced(seed: u64, trace: Trace) -> Outcome {
    run_with(seed, None, Some(trace))
}

/// Runs a seed, and lets `tap` change, drop or repeat the events of the checkers: for tests of the checkers.
pub fn run_tapped(seed: u64, tap: Tap) -> Outcome {
    run_with(seed, Some(tap), None)
}

fn run_with(seed: u64, tap: Option<Tap>, trace: Option<Trace>) -> Outcome {
    let failed =
        |checker, at, what| Outcome { seed, failure: Some(Failure { checker, at, what }), digest: 0, tally: Tally::default(), end: at };
    let mut swarm = match Swarm::new(Seed(seed).child("swarm"), |peaceful| Watch::new(peaceful, tap, trace)) {
        Ok(swarm) => swarm,
        Err(error) => return failed("plan", Instant::ZERO, format!("{error:#}")),
    };
    // Why asserted: after a panic nothing is looked at but the time.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| swarm.run())) {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        return failed("panic", swarm.now(), text.unwrap_or("of another kind").to_owned());
    }
    let end = swarm.now();
    let (failure, digest, tally) = swarm.into_watch().finish();
    Outcome { seed, failure, digest, tally, end }
}

/// Runs `count` seeds from `first` on, on this many threads, and hands every outcome to `done` in the order of the seeds.
pub fn run_many(first: u64, count: u64, threads: usize, mut done: impl FnMut(Outcome)) {
    let (next, (sender, outcomes)) = (AtomicU64::new(0), mpsc::channel());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let (next, sender) = (&next, sender.clone());
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    // The receiver exists as long as results are pending.
                    if number >= count || sender.send(run(first.wrapping_add(number))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let (mut due, mut early) = (first, std::collections::BTreeMap::new());
        for outcome in outcomes {
            early.insert(outcome.seed, outcome);
            while let Some(outcome) = early.remove(&due) {
                due = due.wrapping_add(1);
                done(outcome);
            }
        }
    });
}

/// What many seeds gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Seeds run.
    pub seeds: u64,
    /// Those that failed, with what was found.
    pub failures: Vec<(u64, Failure)>,
    /// Of all digests, in the order of the seeds.
    pub digest: u64,
    /// How often what happened.
    pub tally: Tally,
}

impl Summary {
    /// Adds an outcome, in the order of the seeds.
    pub fn add(&mut self, outcome: Outcome) {
        self.seeds += 1;
        self.digest = Seed(self.digest ^ outcome.digest).child("digest").0;
        self.tally.merge(&outcome.tally);
        self.failures.extend(outcome.failure.map(|failure| (outcome.seed, failure)));
    }
}
