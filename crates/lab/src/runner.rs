//! Runs many points: replications and points in parallel, what is stored not again.
//!
//! Called by [`crate::study`] and by the command line.
//!
//! Invariant: results do not depend on the number of threads, on the order in which runs end, or on what
//! the store held; replication r of every scenario draws from the same random streams (common random
//! numbers), so that schemes meet the same losses.

use crate::experiment::Experiment;
use crate::plan::Plan;
use crate::point::{PointResult, Repeated};
use crate::scenario::{Scenario, ScenarioError};
use crate::shared::{SharedResult, SharedScenario, SharedScenarioError};
use crate::statistics::stopping::Decision;
use crate::store::{Store, StoreError};
use crate::tandem::{TandemResult, TandemScenario, TandemScenarioError};
use rayon::prelude::*;
use segstream_base::random::Seed;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Why a sweep ended early. What was finished is in the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// See the message.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// See the message.
    #[error(transparent)]
    Shared(#[from] SharedScenarioError),
    /// See the message.
    #[error(transparent)]
    Tandem(#[from] TandemScenarioError),
    /// See the message.
    #[error(transparent)]
    Stages(#[from] crate::stages::StagesError),
    /// See the message.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// See the message.
    #[error("interrupted; what was finished is kept, and the same command goes on from there")]
    Interrupted,
    /// See the message.
    #[error("no threads could be started: {0}")]
    Threads(String),
}

/// A run's outcome, and the seconds of wall time it took here.
type Timed<E> = (<E as Experiment>::Outcome, f64);

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs done, in this and in earlier sweeps.
    pub runs_done: u64,
    /// Runs known to be needed; grows when a point is not precise enough.
    pub runs: u64,
    /// New packets simulated in this sweep.
    pub packets: u64,
}

/// What is run together: each point by its plan, or as often as is said.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Schemes over a black box.
    pub points: Vec<(Scenario, Plan)>,
    /// Parties over a link.
    pub shared: Vec<(SharedScenario, u32)>,
    /// Error control over a tandem.
    pub tandem: Vec<(TandemScenario, u32)>,
}

/// What came of it, each kind in the order in which it was wanted.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Schemes over a black box.
    pub points: Vec<PointResult>,
    /// Parties over a link.
    pub shared: Vec<SharedResult>,
    /// Error control over a tandem.
    pub tandem: Vec<TandemResult>,
}

/// A sweep: where results are kept, on how many threads, and who is told.
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
    /// Runs every point by its plan; the results come in the order of the points.
    pub fn run(&self, points: &[(Scenario, Plan)]) -> Result<Vec<PointResult>, RunnerError> {
        self.on_threads(|| self.sweep(points, &Tally::default()))
    }

    /// Runs every experiment as often as is said; the results come in their order.
    pub fn run_repeated<E: Experiment>(&self, experiments: &[(E, u32)]) -> Result<Vec<Repeated<E>>, RunnerError> {
        self.on_threads(|| self.repeat(experiments, &Tally::default()))
    }

    /// Runs experiments of all kinds in one sweep.
    pub fn run_together(&self, wanted: &Wanted) -> Result<Results, RunnerError> {
        self.on_threads(|| {
            let tally = Tally::default();
            Ok(Results {
                points: self.sweep(&wanted.points, &tally)?,
                shared: self.repeat(&wanted.shared, &tally)?,
                tandem: self.repeat(&wanted.tandem, &tally)?,
            })
        })
    }

    /// Runs what gives the same with every seed, or finds it in the store.
    pub fn run_once<E: Experiment>(&self, experiment: &E) -> Result<E::Outcome, RunnerError> {
        experiment.check().map_err(Into::into)?;
        let tally = Tally { total: AtomicU64::new(1), ..Tally::default() };
        self.one(experiment, 0, &tally).map(|(outcome, _)| outcome)
    }

    fn on_threads<R: Send>(&self, work: impl FnOnce() -> Result<R, RunnerError> + Send) -> Result<R, RunnerError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build();
        pool.map_err(|error| RunnerError::Threads(error.to_string()))?.install(work)
    }

    fn sweep(&self, points: &[(Scenario, Plan)], tally: &Tally) -> Result<Vec<PointResult>, RunnerError> {
        let points: Vec<(Scenario, Plan)> =
            points.iter().map(|(scenario, plan)| (Scenario { packets: plan.packets, ..scenario.clone() }, *plan)).collect();
        let (firsts, of_point) = distinct(points.iter().map(|(scenario, plan)| format!("{} {plan:?}", scenario.canonical())));
        let empty = |(scenario, plan): &(Scenario, Plan)| PointResult {
            scenario: scenario.clone(),
            plan: *plan,
            outcomes: Vec::new(),
            wall_s: 0.0,
        };
        let mut results: Vec<PointResult> = firsts.into_iter().map(|at| empty(&points[at])).collect();
        for point in &results {
            point.scenario.check()?;
        }
        let mut wanted: Vec<(usize, u32)> =
            results.iter().enumerate().flat_map(|(at, point)| (0..point.plan.replications_min).map(move |r| (at, r))).collect();
        while !wanted.is_empty() {
            tally.total.fetch_add(wanted.len() as u64, Ordering::Relaxed);
            let runs = self.all(&wanted, |at| &results[at].scenario, tally)?;
            for ((at, _), (outcome, wall_s)) in wanted.iter().zip(runs) {
                results[*at].outcomes.push(outcome);
                results[*at].wall_s += wall_s;
            }
            wanted = self.more(&results, &wanted);
        }
        Ok(of_point.into_iter().map(|at| results[at].clone()).collect())
    }

    /// Runs each experiment as often as is said, and no two that are the same.
    fn repeat<E: Experiment>(&self, experiments: &[(E, u32)], tally: &Tally) -> Result<Vec<Repeated<E>>, RunnerError> {
        let (firsts, of_experiment) = distinct(experiments.iter().map(|(experiment, times)| (experiment.canonical(), *times)));
        let different: Vec<&(E, u32)> = firsts.into_iter().map(|at| &experiments[at]).collect();
        for (experiment, _) in &different {
            experiment.check().map_err(Into::into)?;
        }
        let wanted: Vec<(usize, u32)> =
            different.iter().enumerate().flat_map(|(at, (_, times))| (0..*times).map(move |r| (at, r))).collect();
        tally.total.fetch_add(wanted.len() as u64, Ordering::Relaxed);
        let runs = self.all(&wanted, |at| &different[at].0, tally)?;
        let empty = |(experiment, _): &&(E, u32)| Repeated { scenario: experiment.clone(), outcomes: Vec::new(), wall_s: 0.0 };
        let mut results: Vec<Repeated<E>> = different.iter().map(empty).collect();
        for ((at, _), (outcome, wall_s)) in wanted.iter().zip(runs) {
            results[*at].outcomes.push(outcome);
            results[*at].wall_s += wall_s;
        }
        Ok(of_experiment.into_iter().map(|at| results[at].clone()).collect())
    }

    /// Runs the wanted replications of the experiments that `which` finds, in parallel; outcomes come in their order.
    fn all<'e, E: Experiment + 'e>(
        &self,
        wanted: &[(usize, u32)],
        which: impl Fn(usize) -> &'e E + Sync,
        tally: &Tally,
    ) -> Result<Vec<Timed<E>>, RunnerError> {
        wanted.par_iter().with_max_len(1).map(|(at, replication)| self.one(which(*at), *replication, tally)).collect()
    }

    /// The further runs of the points among the last ones that are not settled.
    fn more(&self, results: &[PointResult], last: &[(usize, u32)]) -> Vec<(usize, u32)> {
        let mut touched: Vec<usize> = last.iter().map(|(at, _)| *at).collect();
        touched.dedup();
        let mut wanted = Vec::new();
        for at in touched {
            let point = &results[at];
            if point.decide() == Decision::Continue {
                let made = point.outcomes.len() as u32;
                let until = (made + point.plan.replications_min).min(point.plan.replications_max);
                wanted.extend((made..until).map(|replication| (at, replication)));
            }
        }
        wanted
    }

    fn one<E: Experiment>(&self, experiment: &E, replication: u32, tally: &Tally) -> Result<Timed<E>, RunnerError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(RunnerError::Interrupted);
        }
        let seed = replication_seed(self.seed, replication);
        let run = match self.store.and_then(|store| store.get(experiment, seed)) {
            Some(outcome) => (outcome, 0.0),
            None => {
                let (outcome, wall_s) = experiment.run(seed).map_err(Into::into)?;
                tally.packets.fetch_add(experiment.packets(&outcome), Ordering::Relaxed);
                if let Some(store) = self.store {
                    store.put(experiment, seed, &outcome)?;
                }
                (outcome, wall_s)
            }
        };
        let runs_done = tally.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.progress)(Progress { runs_done, runs: tally.total.load(Ordering::Relaxed), packets: tally.packets.load(Ordering::Relaxed) });
        Ok(run)
    }
}

/// Where each different key is found first, and which of these each key is.
fn distinct<K: Ord>(keys: impl Iterator<Item = K>) -> (Vec<usize>, Vec<usize>) {
    let mut found = std::collections::BTreeMap::new();
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
