//! Runs a scenario of stages on the simulator's processors.
//!
//! Called by studies, for every point of HT Fig 8, and through [`Experiment`] by the runner and its store.
//!
//! Invariant: the outcome depends on the scenario alone.

use super::StagesError;
use super::costs::Charge;
use super::process::{Assembly, told};
use super::scenario::{StageOutcome, StageScenario};
use crate::experiment::Experiment;
use segstream_base::random::Seed;
use segstream_base::stage::StageId;
use segstream_base::{Duration, Instant};
use segstream_net::staged::Stop;
use segstream_path::PathConfig;
use segstream_schemes::htpnet::Message;
use segstream_sim::stages::{Place, StageModel, Work};

/// The longest run, in times of what one processor would need.
const TIMEOUT: u64 = 20;

/// Runs `scenario`.
///
/// # Errors
///
/// When the scenario cannot be run; a run that delivers less than it should says so in [`StageOutcome::trouble`].
pub fn run(scenario: &StageScenario) -> Result<StageOutcome, StagesError> {
    scenario.check()?;
    let path = PathConfig { delay: scenario.delay, ..PathConfig::default() };
    let config = scenario.config();
    let stop = Stop::new();
    let assembly =
        Assembly { config: &config, packets: scenario.packets, warm: scenario.warm(), forward: path.clone(), back: path, seed: Seed(1) };
    let placement = scenario.placement();
    let mut charge = Charge::default();
    let cost = |stage: StageId, work: Work<'_, Message>| {
        scenario.costs.0.get(stage.0).map_or(Duration::ZERO, |cost| *cost * charge.packets(stage, work))
    };
    let mut model = StageModel::new(assembly.stages(&stop)?, placement.map(Place::Processor).to_vec(), cost)?;
    let round_trips = (scenario.delay + scenario.sync_period) * 2 * u64::from(scenario.packets / scenario.window + 1);
    let until = Instant::ZERO + (scenario.costs.sum() * u64::from(scenario.packets) + round_trips) * TIMEOUT;
    model.run(until, |_| !stop.is_set())?;
    let told = told(model.stages());
    let complete = told.delivered == scenario.packets && told.wrong == 0;
    Ok(StageOutcome {
        trouble: (!complete).then(|| format!("{} of {} packets were delivered, {} wrong", told.delivered, scenario.packets, told.wrong)),
        placement,
        packets: scenario.packets - scenario.warm(),
        span_ns: told.span_ns,
        simulated_ns: model.now().since(Instant::ZERO).as_nanos(),
        busy_ns: model.processors_busy().into_iter().map(Duration::as_nanos).collect(),
        spurious: told.data_sent.saturating_sub(u64::from(told.delivered) + told.data_lost),
    })
}

impl Experiment for StageScenario {
    type Outcome = StageOutcome;
    type Error = StagesError;

    fn canonical(&self) -> String {
        Self::canonical(self)
    }

    fn check(&self) -> Result<(), StagesError> {
        Self::check(self)
    }

    /// Nothing in it is random, so every seed gives the same.
    fn run(&self, _seed: Seed) -> Result<(StageOutcome, f64), StagesError> {
        let began = std::time::Instant::now();
        let outcome = run(self)?;
        Ok((outcome, began.elapsed().as_secs_f64()))
    }

    fn packets(&self, _outcome: &StageOutcome) -> u64 {
        u64::from(self.packets)
    }
}
