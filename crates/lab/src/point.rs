//! One point of a figure: the replications of one scenario, joined.
//!
//! Made here by [`crate::runner`], with the rule by which a point is run until it is precise; read by studies and by the
//! command line.
//!
//! Invariant: several runs give intervals over replications, one long run gives them by batch means; a
//! maximum carries the number of segments it was taken over.

use crate::experiment::Repeated;
use crate::outcome::{Batch, LARGEST_KEPT, Outcome, Quantiles};
use crate::plan::Plan;
use crate::runner::{Runner, RunnerError, Sweep};
use crate::scenario::Scenario;
use crate::statistics::batch_means::batch_means;
use crate::statistics::order::median;
use crate::statistics::ratio::ratio;
use crate::statistics::warm_up::mser5;
use crate::statistics::{Confidence, Decision, Estimate, Largest, Progress, over_replications};

/// The replications of one scenario.
#[derive(Clone, Debug)]
pub struct PointResult {
    /// What was run.
    pub scenario: Scenario,
    /// How long and how often.
    pub plan: Plan,
    /// The outcome of each run, in the order of replications.
    pub outcomes: Vec<Outcome>,
    /// Seconds of wall time that the runs made here took, each on one core; stored runs take none.
    pub wall_s: f64,
}

/// The largest delay of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayMax {
    /// In milliseconds.
    pub value: f64,
    /// From the order statistic that the quantile of this many segments exceeds with 95 % confidence to the
    /// largest itself; nothing bounds a maximum from above.
    pub interval: (f64, f64),
    /// Over how many segments.
    pub segments: u64,
}

impl Runner<'_> {
    /// Runs every point by its plan; the results come in the order of the points.
    ///
    /// # Errors
    /// Says why the sweep ended early.
    pub fn run(&self, points: &[(Scenario, Plan)]) -> Result<Vec<PointResult>, RunnerError> {
        self.sweep(|sweep| sweep.points(points))
    }
}

impl Sweep<'_> {
    /// Runs every point by its plan; the results come in the order of the points.
    ///
    /// # Errors
    /// Says why the sweep ended early.
    pub fn points(&self, points: &[(Scenario, Plan)]) -> Result<Vec<PointResult>, RunnerError> {
        let short: Vec<usize> = (0..points.len()).filter(|at| points[*at].1.trial.is_some()).collect();
        let trials: Vec<(Scenario, Plan)> = short.iter().map(|at| as_trial(&points[*at])).collect();
        let mut results: Vec<Option<PointResult>> = points.iter().map(|_| None).collect();
        for (at, trial) in short.into_iter().zip(self.as_planned(trials)?) {
            results[at] = Some(trial).filter(PointResult::is_settled);
        }
        let open: Vec<usize> = (0..points.len()).filter(|at| results[*at].is_none()).collect();
        let whole = self.as_planned(open.iter().map(|at| points[*at].clone()).collect())?;
        for (at, result) in open.into_iter().zip(whole) {
            results[at] = Some(result);
        }
        Ok(results.into_iter().flatten().collect())
    }

    /// Runs every point as long and as often as its plan says.
    fn as_planned(&self, points: Vec<(Scenario, Plan)>) -> Result<Vec<PointResult>, RunnerError> {
        let as_long = |(scenario, plan): (Scenario, Plan)| (scenario.with(|it| it.workload.packets = plan.packets), plan);
        let points: Vec<(Scenario, Plan)> = points.into_iter().map(as_long).collect();
        let repeated = self.until(&points, |plan, made| PointResult::new(made.clone(), plan).runs_wanted())?;
        Ok(repeated.into_iter().zip(points).map(|(made, (_, plan))| PointResult::new(made, plan)).collect())
    }
}

/// A point with the length of its trial, if it has one.
fn as_trial((scenario, plan): &(Scenario, Plan)) -> (Scenario, Plan) {
    (scenario.clone(), Plan { packets: plan.trial.unwrap_or(plan.packets), ..*plan })
}

impl PointResult {
    fn new(made: Repeated<Scenario>, plan: Plan) -> Self {
        Self { scenario: made.scenario, plan, outcomes: made.outcomes, wall_s: made.wall_s }
    }

    /// Whether a trial says enough: its plan's precision is reached, and its batches do not depend on each other.
    fn is_settled(&self) -> bool {
        self.decide() == Decision::Enough && self.trouble().is_none() && self.batches_are_independent()
    }

    /// How many more runs the plan wants.
    fn runs_wanted(&self) -> u32 {
        let made = self.outcomes.len() as u32;
        if self.outcomes.is_empty() {
            self.plan.replications_min
        } else if self.decide() == Decision::Continue {
            (made + self.plan.replications_min).min(self.plan.replications_max).saturating_sub(made)
        } else {
            0
        }
    }

    /// Packets of accepted segments times packet time over the span (EC 5); the packet time is
    /// [`Scenario::reference_time_s`].
    pub fn throughput_efficiency(&self) -> Estimate {
        let packet_time = self.scenario.reference_time_s();
        if let [only] = &self.outcomes[..] {
            let carried: Vec<f64> = only.batches.iter().map(|batch| batch.packets as f64 * packet_time).collect();
            let taken: Vec<f64> = only.batches.iter().map(|batch| batch.span_ns as f64 * 1e-9).collect();
            let mean = only.throughput_efficiency(packet_time);
            return ratio(&carried, &taken, Confidence::P95).map_or(Estimate::single(mean), |by_batches| Estimate { mean, ..by_batches });
        }
        self.over_replications(|outcome| outcome.throughput_efficiency(packet_time))
    }

    /// The mean delay of a segment, from first transmission to acceptance.
    pub fn delay_ms_mean(&self) -> Estimate {
        if let [only] = &self.outcomes[..] {
            let means: Vec<f64> =
                only.batches.iter().map(|batch| batch.delay_sum_ns as f64 * 1e-6 / batch.segments.max(1) as f64).collect();
            let mean = only.delay_ms_mean();
            let steady = mser5(&means, 0).map_or(&means[..], |warm_up| warm_up.kept(&means));
            return batch_means(steady, Confidence::P95).map_or(Estimate::single(mean), |found| Estimate { mean, ..found.estimate });
        }
        self.over_replications(Outcome::delay_ms_mean)
    }

    /// The 99th percentile of the delay: the median over the runs that every point has, with the interval that
    /// the ranks allow (none below six runs).
    pub fn delay_ms_p99(&self) -> Estimate {
        median_over_runs(self.equal_runs().map(|outcome| outcome.delays.p99_ns))
    }

    /// A quantile of the delay from when a segment was due, as [`PointResult::delay_ms_p99`]; not a number unless the source has
    /// even intervals and ran for longer than the two seconds that are left out.
    pub fn delay_ms_from_due(&self, quantile: impl Fn(&Quantiles) -> u64) -> Estimate {
        median_over_runs(self.equal_runs().filter_map(|outcome| outcome.from_due.as_ref().map(&quantile)))
    }

    /// The largest delay over the runs that every point has, with what is certain of it from below (order
    /// statistics); not a number without any segment.
    pub fn delay_ms_max(&self) -> DelayMax {
        let mut largest = Largest::<LARGEST_KEPT>::new();
        for outcome in self.equal_runs() {
            largest.merge(&outcome.delays.largest);
        }
        let ms = |nanos: f64| nanos * 1e-6;
        match largest.maximum(Confidence::P95) {
            Some(max) => DelayMax { value: ms(max.value), interval: (max.lower.map_or(0.0, ms), ms(max.value)), segments: max.samples },
            None => DelayMax { value: f64::NAN, interval: (f64::NAN, f64::NAN), segments: 0 },
        }
    }

    /// What went wrong in the first run in which something did.
    pub fn trouble(&self) -> Option<&str> {
        self.outcomes.iter().find_map(|outcome| outcome.trouble.as_deref())
    }

    /// Whether the wanted precision was reached, and, of one long run, whether its batches are long enough not to
    /// depend on each other: else an interval says too little.
    pub fn is_precise(&self) -> bool {
        let narrow = |estimate: Estimate| estimate.half_width.is_none_or(|half| half <= self.plan.half_width * estimate.mean.abs());
        self.trouble().is_none() && narrow(self.throughput_efficiency()) && narrow(self.delay_ms_mean()) && self.batches_are_independent()
    }

    fn batches_are_independent(&self) -> bool {
        let [only] = &self.outcomes[..] else { return true };
        let passes = |value: fn(&Batch) -> f64| {
            // Why not the first and the last: the start and the end of the run lie in them.
            let inner = only.batches.get(1..only.batches.len().saturating_sub(1)).unwrap_or_default();
            let values: Vec<f64> = inner.iter().map(value).collect();
            batch_means(&values, Confidence::P95).map_or(true, |found| found.passed)
        };
        passes(|batch| batch.packets as f64 / batch.span_ns.max(1) as f64)
            && passes(|batch| batch.delay_sum_ns as f64 / batch.segments.max(1) as f64)
    }

    /// Whether more runs are wanted.
    pub fn decide(&self) -> Decision {
        let losses = self.total(|outcome| outcome.packets_lost);
        let worst = [self.throughput_efficiency(), self.delay_ms_mean()]
            .into_iter()
            .max_by(|a, b| relative(a).total_cmp(&relative(b)))
            .unwrap_or(Estimate::single(0.0));
        // Why: a path that loses nothing shows no losses however long it runs.
        let rare_events = if self.scenario.black_box.loss.mean() > 0.0 { losses } else { u64::MAX };
        self.plan.rule().decide(&Progress { estimate: worst, rare_events, spent: self.outcomes.len() as u64 })
    }

    /// A count summed over all runs.
    pub fn total(&self, count: impl Fn(&Outcome) -> u64) -> u64 {
        self.outcomes.iter().map(count).sum()
    }

    /// A value of each run as mean and interval over replications.
    pub fn over_replications(&self, value: impl Fn(&Outcome) -> f64) -> Estimate {
        over_replications(&self.outcomes.iter().map(value).collect::<Vec<_>>())
    }

    /// The runs that every point of its preset has.
    fn equal_runs(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().take(self.plan.replications_min as usize)
    }
}

/// The median over runs of nanoseconds, in milliseconds, with the interval that the ranks allow.
fn median_over_runs(nanos: impl Iterator<Item = u64>) -> Estimate {
    let values: Vec<f64> = nanos.map(|nanos| nanos as f64 * 1e-6).collect();
    match median(&values, Confidence::P95) {
        Ok(found) => Estimate {
            mean: found.value,
            half_width: found.lower.zip(found.upper).map(|(low, high)| (high - low) / 2.0),
            samples: found.samples,
        },
        Err(_) => Estimate::single(f64::NAN),
    }
}

fn relative(estimate: &Estimate) -> f64 {
    estimate.relative_half_width().unwrap_or(0.0)
}
