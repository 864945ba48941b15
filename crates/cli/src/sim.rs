//! `segstream sim`: one scheme over a simulated black box.
//!
//! Called from the command line; the laboratory runs it.
//!
//! Invariant: what is printed depends on the flags alone, but for `wall_seconds` and `packets_per_second`.

mod arguments;
mod summary;

pub(crate) use arguments::{Arguments, scheme};

use crate::{json, usage};
use anyhow::{Context as _, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use segstream_base::random::Seed;
use segstream_lab::plan::Plan;
use segstream_lab::run::{Run, run_observed};
use segstream_lab::runner::{Runner, RunnerError, replication_seed};
use segstream_lab::scenario::{Scenario, ScenarioError};
use segstream_sim::{EventLog, Pcap, Vantage};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use summary::Summary;

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let scenario = arguments.scenario()?;
    if let Some(path) = &arguments.log {
        tap(arguments, &scenario, |run| record_log(run, path))?;
    }
    if let Some(path) = &arguments.pcap {
        tap(arguments, &scenario, |run| record_pcap(run, path))?;
    }
    if arguments.check {
        check(arguments, &scenario)?;
    }
    let summary = simulate(arguments, scenario)?;
    if arguments.json {
        json::print(&summary)?;
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
    let bar = ProgressBar::new(u64::from(arguments.replications));
    bar.set_draw_target(if arguments.replications > 1 { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() });
    if let Ok(style) = ProgressStyle::with_template("{pos} of {len} replications [{wide_bar}] {eta} left") {
        bar.set_style(style);
    }
    let plan = Plan {
        packets: scenario.packets,
        replications_min: arguments.replications,
        replications_max: arguments.replications,
        half_width: 1.0,
        losses_min: 0,
    };
    let runner = Runner {
        seed: Seed(arguments.seed),
        store: None,
        threads: arguments.threads,
        progress: &|progress| bar.set_position(progress.runs_done),
        // Why never: nothing of a simulation is kept, so a signal may end it as it ends any process.
        stop: &AtomicBool::new(false),
    };
    let points = runner.run(&[(scenario, plan)]).map_err(in_words);
    bar.finish_and_clear();
    let point = points?.into_iter().next().context("no result came")?;
    Summary::of(&point, arguments.seed)
}

/// The first replication once more, every packet encoded and decoded.
fn check(arguments: &Arguments, scenario: &Scenario) -> Result<()> {
    let seed = replication_seed(Seed(arguments.seed), 0);
    let (typed, _) = run_observed(scenario, seed, false, ()).map_err(|error| refused(&error))?;
    let (encoded, _) = run_observed(scenario, seed, true, ()).map_err(|error| refused(&error))?;
    if typed.outcome != encoded.outcome {
        let trouble = encoded.outcome.trouble.map_or_else(String::new, |trouble| format!(" ({trouble})"));
        bail!(
            "the run with every packet encoded and decoded differs from the run without: an encoding of {} loses something{trouble}",
            scenario.scheme
        );
    }
    eprintln!("checked: with every packet encoded and decoded the result is the same");
    Ok(())
}

/// Runs the first replication under a tap.
fn tap(arguments: &Arguments, scenario: &Scenario, record: impl FnOnce(TapRun<'_>) -> Result<()>) -> Result<()> {
    record(TapRun { scenario, seed: replication_seed(Seed(arguments.seed), 0) })
}

/// What a tap watches.
#[derive(Clone, Copy)]
struct TapRun<'a> {
    scenario: &'a Scenario,
    seed: Seed,
}

fn record_log(run: TapRun<'_>, path: &Path) -> Result<()> {
    let (_, log): (Run, _) = run_observed(run.scenario, run.seed, false, EventLog::new(create(path)?)).map_err(|error| refused(&error))?;
    log.finish().with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(())
}

fn record_pcap(run: TapRun<'_>, path: &Path) -> Result<()> {
    let tap = Pcap::new(create(path)?, Vantage::Sender).with_context(|| format!("{} cannot be written", path.display()))?;
    let (_, tap): (Run, _) = run_observed(run.scenario, run.seed, false, tap).map_err(|error| refused(&error))?;
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
        RunnerError::Scenario(error) => refused(&error),
        other => other.into(),
    }
}
