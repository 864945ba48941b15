//! `segstream sim`: one scheme over a simulated black box, or XTP over a tandem of queues.
//!
//! Called from the command line; the laboratory runs it.
//!
//! Invariant: what is printed depends on the flags alone, but for `wall_seconds` and what is counted in a second of it.

mod arguments;
mod grid;
mod sender_costs;
mod settings;
mod summary;
mod sweep;
mod tandem;

pub(crate) use arguments::{Arguments, scheme};
pub(crate) use tandem::explained;

use crate::{json, progress, usage};
use anyhow::{Context as _, Result, bail};
use segstream_base::random::Seed;
use segstream_lab::plan::Plan;
use segstream_lab::run::run_observed;
use segstream_lab::runner::{Runner, RunnerError, replication_seed};
use segstream_lab::scenario::{Scenario, ScenarioError};
use segstream_sim::{EventLog, Pcap, Vantage};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use summary::Summary;
use tandem::Tandem;

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.tandem {
        Some(Tandem::Xtp(arguments)) => return report(&arguments.simulate()?, arguments.json),
        Some(Tandem::Sweep(arguments)) => return sweep::run(arguments),
        Some(Tandem::Merge(arguments)) => return sweep::merge(arguments),
        None => {}
    }
    let scenario = arguments.scenario()?;
    let first = replication_seed(Seed(arguments.seed), 0);
    if let Some(path) = &arguments.log {
        record_log(&scenario, first, path)?;
    }
    if let Some(path) = &arguments.pcap {
        record_pcap(&scenario, first, path)?;
    }
    if arguments.check {
        check(&scenario, first)?;
    }
    report(&simulate(arguments, scenario)?, arguments.json)
}

/// Prints what came of it.
fn report(summary: &Summary, as_json: bool) -> Result<ExitCode> {
    if as_json {
        json::print(summary)?;
    } else {
        eprint!("{}", summary.table());
    }
    match &summary.trouble {
        Some(trouble) => bail!("{trouble}"),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// All replications.
fn simulate(arguments: &Arguments, scenario: Scenario) -> Result<Summary> {
    let total = u64::from(arguments.replications);
    let bar = progress::bar(Some(total), "{pos} of {len} replications [{wide_bar}] {eta} left", total == 1);
    let plan = Plan {
        packets: scenario.workload.packets,
        replications_min: arguments.replications,
        replications_max: arguments.replications,
        half_width: 1.0,
        losses_min: 0,
        trial: None,
    };
    let runner = Runner {
        seed: Seed(arguments.seed),
        store: None,
        threads: arguments.threads,
        progress: &|progress| bar.set_position(progress.runs_done),
        // Why never: nothing of a simulation is kept, so a signal may end it as it ends any process.
        stop: &AtomicBool::new(false),
        only_stored: false,
    };
    let points = runner.run(&[(scenario, plan)]).map_err(in_words);
    bar.finish_and_clear();
    let point = points?.into_iter().next().context("no result came")?;
    Ok(Summary::of(&point, arguments.seed))
}

/// The first replication once more, every packet encoded and decoded.
fn check(scenario: &Scenario, seed: Seed) -> Result<()> {
    let (typed, _) = run_observed(scenario, seed, false, ()).map_err(|error| refused(&error))?;
    let (encoded, _) = run_observed(scenario, seed, true, ()).map_err(|error| refused(&error))?;
    if typed.outcome != encoded.outcome {
        let trouble = encoded.outcome.trouble.map_or_else(String::new, |trouble| format!(" ({trouble})"));
        bail!(
            "the run with every packet encoded and decoded differs from the run without: an encoding of {} loses something{trouble}",
            scenario.scheme.key()
        );
    }
    eprintln!("checked: with every packet encoded and decoded the result is the same");
    Ok(())
}

/// The first replication's events.
fn record_log(scenario: &Scenario, seed: Seed, path: &Path) -> Result<()> {
    let (_, log) = run_observed(scenario, seed, false, EventLog::new(create(path)?)).map_err(|error| refused(&error))?;
    log.finish().with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(())
}

/// The first replication's packets.
fn record_pcap(scenario: &Scenario, seed: Seed, path: &Path) -> Result<()> {
    let tap = Pcap::new(create(path)?, Vantage::Sender).with_context(|| format!("{} cannot be written", path.display()))?;
    let (_, tap) = run_observed(scenario, seed, false, tap).map_err(|error| refused(&error))?;
    tap.finish().with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(())
}

fn create(path: &Path) -> Result<BufWriter<File>> {
    // Why: a file that is there may be someone's only copy.
    let file = File::create_new(path).with_context(|| format!("{} cannot be made; name a file that does not exist", path.display()))?;
    Ok(BufWriter::new(file))
}

/// A scenario that cannot be run is bad usage.
fn refused(error: &ScenarioError) -> anyhow::Error {
    usage::bad(error.to_string())
}

/// The same for what a sweep says.
fn in_words(error: RunnerError) -> anyhow::Error {
    match error {
        RunnerError::Experiment(error) => usage::bad(error.to_string()),
        other => other.into(),
    }
}
