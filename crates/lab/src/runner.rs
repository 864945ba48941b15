//! Runs many points: replications and points in parallel, what is stored not again.
//!
//! Called by [`crate::study`] and by the command line.
//!
//! Invariant: results do not depend on the number of threads, on the order in which runs end, or on what
//! the store held; replication r of every scenario draws from the same random streams (common random
//! numbers), so that schemes meet the same losses.

use crate::experiment::Experiment;
use crate::plan::Plan;
use crate::point::PointResult;
use crate::scenario::{Scenario, ScenarioError};
use crate::shared::{SharedResult, SharedScenario, SharedScenarioError};
use crate::statistics::stopping::Decision;
use crate::store::{Store, StoreError};
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

struct Tally {
    done: AtomicU64,
    total: AtomicU64,
    packets: AtomicU64,
}

impl Runner<'_> {
    /// Runs every point by its plan; the results come in the order of the points.
    pub fn run(&self, points: &[(Scenario, Plan)]) -> Result<Vec<PointResult>, RunnerError> {
        self.run_with_shared(points, &[]).map(|(results, _)| results)
    }

    /// Runs what gives the same with every seed, or finds it in the store.
    pub fn run_once<E: Experiment>(&self, experiment: &E) -> Result<E::Outcome, RunnerError> {
        experiment.check().map_err(Into::into)?;
        let tally = Tally { done: AtomicU64::new(0), total: AtomicU64::new(1), packets: AtomicU64::new(0) };
        self.one(experiment, 0, &tally).map(|(outcome, _)| outcome)
    }

    /// Runs every point by its plan, and every shared scenario as often as is said; the results come in the order of both.
    pub fn run_with_shared(
        &self,
        points: &[(Scenario, Plan)],
        shared: &[(SharedScenario, u32)],
    ) -> Result<(Vec<PointResult>, Vec<SharedResult>), RunnerError> {
        let pool =
            rayon::ThreadPoolBuilder::new().num_threads(self.threads).build().map_err(|error| RunnerError::Threads(error.to_string()))?;
        pool.install(|| {
            let tally = Tally { done: AtomicU64::new(0), total: AtomicU64::new(0), packets: AtomicU64::new(0) };
            let (firsts, of_shared) = distinct(shared.iter().map(|(scenario, replications)| (scenario.canonical(), *replications)));
            let different: Vec<&(SharedScenario, u32)> = firsts.into_iter().map(|at| &shared[at]).collect();
            tally.total.fetch_add(different.iter().map(|(_, replications)| u64::from(*replications)).sum(), Ordering::Relaxed);
            let results = self.sweep(points, &tally)?;
            let shared_results = self.sweep_shared(&different, &tally)?;
            Ok((results, of_shared.into_iter().map(|at| shared_results[at].clone()).collect()))
        })
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

    /// Runs shared scenarios of which no two are the same.
    fn sweep_shared(&self, points: &[&(SharedScenario, u32)], tally: &Tally) -> Result<Vec<SharedResult>, RunnerError> {
        for (scenario, _) in points {
            scenario.check()?;
        }
        let wanted: Vec<(usize, u32)> =
            points.iter().enumerate().flat_map(|(at, (_, replications))| (0..*replications).map(move |r| (at, r))).collect();
        let runs = self.all(&wanted, |at| &points[at].0, tally)?;
        let empty = |(scenario, _): &&(SharedScenario, u32)| SharedResult { scenario: scenario.clone(), outcomes: Vec::new(), wall_s: 0.0 };
        let mut results: Vec<SharedResult> = points.iter().map(empty).collect();
        for ((at, _), (outcome, wall_s)) in wanted.iter().zip(runs) {
            results[*at].outcomes.push(outcome);
            results[*at].wall_s += wall_s;
        }
        Ok(results)
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
