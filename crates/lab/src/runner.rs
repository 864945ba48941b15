//! Runs many points: replications and points in parallel; stored results are not computed again.
//!
//! Called by [`crate::study`] and by the command line. It knows no kind of experiment; those that are run until they are
//! precise ([`crate::point`]) bring their rule.
//!
//! Invariant: results do not depend on the number of threads, on the order in which runs end, or on what
//! the store held; replication r of every scenario draws from the same random streams (common random
//! numbers), so that schemes meet the same losses.

use crate::experiment::{Experiment, Repeated};
use crate::store::{Store, StoreError};
use rayon::prelude::*;
use segstream_base::random::Seed;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Why a sweep ended early. What was finished is in the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// An experiment cannot be run: an error in its definition. See the message.
    #[error(transparent)]
    Experiment(Box<dyn Error + Send + Sync>),
    /// See the message.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// See the message.
    #[error("interrupted; what was finished is kept, and the same command goes on from there")]
    Interrupted,
    /// See the message.
    #[error(
        "a result is missing: a shard was not run to its end; run it again (it goes on where it stopped), or compute what is missing here with --complete"
    )]
    Missing,
    /// See the message.
    #[error("no threads could be started: {0}")]
    Threads(String),
}

impl RunnerError {
    fn experiment(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Experiment(Box::new(error))
    }
}

/// A run's outcome, and the seconds of wall time it took here.
type Timed<E> = (<E as Experiment>::Outcome, f64);

/// The progress of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs done, in this and in earlier sweeps.
    pub runs_done: u64,
    /// Runs known to be needed; grows when a point is not precise enough.
    pub runs: u64,
    /// New packets simulated in this sweep.
    pub packets: u64,
}

/// How sweeps are run: where results are kept, on how many threads, and who is told.
pub struct Runner<'a> {
    /// The root of all random streams.
    pub seed: Seed,
    /// Where results are kept; `None` keeps none.
    pub store: Option<&'a Store>,
    /// How many threads; 0 for one a processor.
    pub threads: usize,
    /// Told after each run, from any thread.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Set when the sweep shall stop.
    pub stop: &'a AtomicBool,
    /// Whether a result that is not stored ends the sweep with [`RunnerError::Missing`] instead of being computed.
    pub only_stored: bool,
}

/// The seed of a replication.
pub fn replication_seed(root: Seed, replication: u32) -> Seed {
    root.child(&format!("replication-{replication}"))
}

#[derive(Default)]
struct Tally {
    done: AtomicU64,
    total: AtomicU64,
    packets: AtomicU64,
}

impl Runner<'_> {
    /// Runs every experiment as often as is said; the results come in their order.
    ///
    /// # Errors
    /// Says why it ended early.
    pub fn run_repeated<E: Experiment>(&self, experiments: &[(E, u32)]) -> Result<Vec<Repeated<E>>, RunnerError> {
        self.sweep(|sweep| sweep.repeated(experiments))
    }

    /// Runs what gives the same with every seed, or finds it in the store.
    ///
    /// # Errors
    /// Says why it ended early.
    pub fn run_once<E: Experiment>(&self, experiment: &E) -> Result<E::Outcome, RunnerError> {
        experiment.check().map_err(RunnerError::experiment)?;
        let sweep = Sweep { runner: self, tally: Tally { total: AtomicU64::new(1), ..Tally::default() } };
        sweep.one(experiment, 0).map(|(outcome, _)| outcome)
    }

    /// One sweep on the runner's threads: whatever `work` runs counts as one for who watches progress.
    ///
    /// # Errors
    /// Those of `work`; says when no threads can be started.
    pub fn sweep<R: Send>(&self, work: impl FnOnce(&Sweep<'_>) -> Result<R, RunnerError> + Send) -> Result<R, RunnerError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build();
        let pool = pool.map_err(|error| RunnerError::Threads(error.to_string()))?;
        pool.install(|| work(&Sweep { runner: self, tally: Tally::default() }))
    }
}

/// One sweep: experiments of any kinds that are run together.
pub struct Sweep<'a> {
    runner: &'a Runner<'a>,
    tally: Tally,
}

impl Sweep<'_> {
    /// Runs each experiment as often as is said, and no two that are the same; the results come in their order.
    ///
    /// # Errors
    /// Says why it ended early.
    pub fn repeated<E: Experiment>(&self, experiments: &[(E, u32)]) -> Result<Vec<Repeated<E>>, RunnerError> {
        self.until(experiments, |times, made| times.saturating_sub(made.outcomes.len() as u32))
    }

    /// Runs each experiment as many times more as `more` says, by its plan and by what has come of it, until that is none. No two
    /// with the same plan that are the same are run; the results come in their order.
    pub(crate) fn until<E: Experiment, P: Copy + Debug>(
        &self,
        experiments: &[(E, P)],
        more: impl Fn(P, &Repeated<E>) -> u32,
    ) -> Result<Vec<Repeated<E>>, RunnerError> {
        let (firsts, of_experiment) = distinct(experiments.iter().map(|(experiment, plan)| format!("{} {plan:?}", experiment.canonical())));
        let empty = |at: usize| Repeated { scenario: experiments[at].0.clone(), outcomes: Vec::new(), wall_s: 0.0 };
        let mut results: Vec<Repeated<E>> = firsts.iter().map(|at| empty(*at)).collect();
        for result in &results {
            result.scenario.check().map_err(RunnerError::experiment)?;
        }
        let mut open: Vec<usize> = (0..results.len()).collect();
        while !open.is_empty() {
            let further = |at: &usize| {
                let made = results[*at].outcomes.len() as u32;
                let times = more(experiments[firsts[*at]].1, &results[*at]);
                (made..made.saturating_add(times)).map(|replication| (*at, replication)).collect::<Vec<_>>()
            };
            let wanted: Vec<(usize, u32)> = open.iter().flat_map(further).collect();
            self.tally.total.fetch_add(wanted.len() as u64, Ordering::Relaxed);
            let runs = self.all(&wanted, |at| &results[at].scenario)?;
            open = wanted.iter().map(|(at, _)| *at).collect();
            open.dedup();
            for ((at, _), (outcome, wall_s)) in wanted.iter().zip(runs) {
                results[*at].outcomes.push(outcome);
                results[*at].wall_s += wall_s;
            }
        }
        Ok(of_experiment.into_iter().map(|at| results[at].clone()).collect())
    }

    /// Runs the wanted replications of the experiments that `which` finds, in parallel; outcomes come in their order.
    fn all<'e, E: Experiment + 'e>(
        &self,
        wanted: &[(usize, u32)],
        which: impl Fn(usize) -> &'e E + Sync,
    ) -> Result<Vec<Timed<E>>, RunnerError> {
        wanted.par_iter().with_max_len(1).map(|(at, replication)| self.one(which(*at), *replication)).collect()
    }

    fn one<E: Experiment>(&self, experiment: &E, replication: u32) -> Result<Timed<E>, RunnerError> {
        let Sweep { runner, tally } = self;
        if runner.stop.load(Ordering::Relaxed) {
            return Err(RunnerError::Interrupted);
        }
        let seed = replication_seed(runner.seed, replication);
        let run = match runner.store.and_then(|store| store.get(experiment, seed)) {
            Some(outcome) => (outcome, 0.0),
            None if runner.only_stored => return Err(RunnerError::Missing),
            None => {
                let (outcome, wall_s) = experiment.run(seed).map_err(RunnerError::experiment)?;
                tally.packets.fetch_add(experiment.packets(&outcome), Ordering::Relaxed);
                if let Some(store) = runner.store {
                    store.put(experiment, seed, &outcome)?;
                }
                (outcome, wall_s)
            }
        };
        let runs_done = tally.done.fetch_add(1, Ordering::Relaxed) + 1;
        (runner.progress)(Progress {
            runs_done,
            runs: tally.total.load(Ordering::Relaxed),
            packets: tally.packets.load(Ordering::Relaxed),
        });
        Ok(run)
    }
}

/// Where each different key is found first, and which of these each key is.
fn distinct<K: Ord>(keys: impl Iterator<Item = K>) -> (Vec<usize>, Vec<usize>) {
    let mut found = BTreeMap::new();
    let mut firsts = Vec::new();
    let number = |(place, key)| {
        *found.entry(key).or_insert_with(|| {
            firsts.push(place);
            firsts.len() - 1
        })
    };
    let numbers = keys.enumerate().map(number).collect();
    (firsts, numbers)
}
