//! `segstream study`: the figures and tables of the papers, run again.
//!
//! Called from the command line; the studies are values, the laboratory runs them.
//!
//! Invariant: the exit status is 1 only if a run fails or differs from its expected table; a claim that does
//! not agree is a result.

mod expected;
mod files;
mod numbers;
mod papers;

use crate::interruption::Interruption;
use crate::{json, progress, quantity, usage};
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use segstream_base::random::Seed;
use segstream_lab::plan::{Plan, Preset};
use segstream_lab::report::Report;
use segstream_lab::runner::{Progress, Runner};
use segstream_lab::shard::Shard;
use segstream_lab::store::{MODEL, Store};
use segstream_lab::study::{self, Finished, Study};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// The seed that the expected tables were made with.
const USUAL_SEED: u64 = 1;

/// Reproduces the figures and tables of the papers, each claim with a verdict.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  segstream study list\n  segstream study run ec/fig11 --quick\n  segstream study run --all --paper --out papers\n  \
                  segstream study run --all --paper --shard 1/8 --out part1"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists the studies.
    List {
        /// Prints one JSON object on standard output.
        #[arg(long)]
        json: bool,
    },
    Run(RunArguments),
    Merge(MergeArguments),
}

/// Runs studies and writes report.html, and the points, figures, tables and numbers.md of each study. With --all it also writes
/// papers.md, which lists every figure and table of the papers with its verdicts.
///
/// Finished results are kept in the output directory, so an interrupted run continues where it stopped.
#[derive(Debug, Args)]
#[command(override_usage = "segstream study run [OPTIONS] <ID>...\n       segstream study run [OPTIONS] --all")]
struct RunArguments {
    /// Runs one of N equal parts only, such as 1/4, and keeps its results in the output directory; `segstream study merge` makes the
    /// report of all parts. A part that was killed goes on where it stopped; to run it again does no harm.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    #[command(flatten)]
    selection: Selection,
}

/// Puts the parts of a run together (`segstream study run --shard`), and writes what one run of all of them would have written,
/// byte for byte. Give the same studies, length and seed as for the parts.
#[derive(Debug, Args)]
#[command(
    override_usage = "segstream study merge [OPTIONS] <ID>... [--from DIR]...\n       segstream study merge [OPTIONS] --all [--from DIR]...",
    after_help = "Example:\n  segstream study run --all --quick --shard 1/2 --out a\n  segstream study run --all --quick --shard 2/2 --out b\n  \
                  segstream study merge --all --quick --from a --from b --out whole"
)]
struct MergeArguments {
    /// The output directory of a part; once for each. Parts with the output directory of this command need not be named.
    #[arg(long, value_name = "DIR")]
    from: Vec<PathBuf>,
    /// Computes what no part has, instead of failing.
    #[arg(long)]
    complete: bool,
    #[command(flatten)]
    selection: Selection,
}

/// Which studies, how long, and where to.
#[derive(Debug, Args)]
struct Selection {
    /// The studies to run, such as ec/fig11.
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,
    /// All studies.
    #[arg(long)]
    all: bool,
    /// Short runs: all figures in about a minute. With the default seed the points are compared with the expected tables.
    #[arg(long, conflicts_with = "paper")]
    quick: bool,
    /// Runs of the papers' precision: ten million packets per point, or one where a tenth settles its means.
    #[arg(long)]
    paper: bool,
    /// The output directory.
    #[arg(long, value_name = "DIR", default_value = "segstream-study")]
    out: PathBuf,
    /// The seed of all random numbers.
    #[arg(long, value_name = "N", default_value_t = USUAL_SEED)]
    seed: u64,
    /// The number of threads [default: one per processor]. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = quantity::threads, default_value = "0", hide_default_value = true)]
    threads: usize,
    /// Prints one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.action {
        Action::List { json } => list(*json),
        Action::Run(RunArguments { shard: Some(shard), selection }) if shard.is_part() => run_shard(selection, *shard),
        Action::Run(arguments) => reproduce(&arguments.selection, &[], false),
        Action::Merge(arguments) => reproduce(&arguments.selection, &arguments.from, !arguments.complete),
    }
}

fn list(as_json: bool) -> Result<ExitCode> {
    let studies = segstream_studies::all();
    if as_json {
        let studies: Vec<_> = studies.iter().map(|study| json!({"id": study.id, "title": study.title, "source": study.source})).collect();
        json::print(&json!({ "studies": studies }))?;
    } else {
        for study in studies {
            eprintln!("{:<16} {} ({})", study.id, study.title, study.source);
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Selection {
    const fn preset(&self) -> Preset {
        match (self.quick, self.paper) {
            (true, _) => Preset::Quick,
            (_, true) => Preset::Paper,
            _ => Preset::Standard,
        }
    }

    fn store(&self) -> Result<Store> {
        Ok(Store::open(&self.out.join("store"))?)
    }
}

/// Runs one part of the studies; its results are in the store when this returns.
fn run_shard(arguments: &Selection, shard: Shard) -> Result<ExitCode> {
    let studies = chosen(arguments)?;
    let store = arguments.store()?;
    let interruption = Interruption::listen(None)?;
    let bar = progress::bar(Some(1), "{pos} of {len} runs [{wide_bar}] {msg}, {eta} left", false);
    let runner = Runner {
        seed: Seed(arguments.seed),
        store: Some(&store),
        threads: arguments.threads,
        progress: &|progress| show(&bar, progress),
        stop: interruption.flag(),
        only_stored: false,
    };
    let done = study::run_shard(&studies, arguments.preset(), &runner, shard);
    bar.finish_and_clear();
    let (experiments, of) = done?;
    if arguments.json {
        json::print(&json!({
            "shard": shard.to_string(), "experiments": experiments, "of": of, "model": MODEL, "seed": arguments.seed, "out": arguments.out,
        }))?;
    }
    eprintln!("shard {shard}: {experiments} of {of} experiments are in {}", arguments.out.display());
    Ok(ExitCode::SUCCESS)
}

/// Runs the studies, or makes them from what shards have stored, and writes the report.
fn reproduce(arguments: &Selection, from: &[PathBuf], only_stored: bool) -> Result<ExitCode> {
    let studies = chosen(arguments)?;
    let preset = arguments.preset();
    let store = arguments.store()?;
    for shard in from {
        store.take_from(&shard.join("store"))?;
    }
    let interruption = Interruption::listen(None)?;
    let bar = progress::bar(Some(1), "{pos} of {len} runs [{wide_bar}] {msg}, {eta} left", false);
    let runner = Runner {
        seed: Seed(arguments.seed),
        store: Some(&store),
        threads: arguments.threads,
        progress: &|progress| show(&bar, progress),
        stop: interruption.flag(),
        only_stored,
    };
    let began = std::time::Instant::now();
    let finished = study::run(&studies, preset, &runner);
    bar.finish_and_clear();
    let finished = finished?;
    let seconds = began.elapsed().as_secs_f64();
    let report = report(&finished, preset, arguments.seed);
    let page = files::write(&arguments.out, &report, &finished)?;
    if arguments.all {
        files::write_papers(&arguments.out, &papers::papers(&report, preset, arguments.seed))?;
    }
    for section in &report.sections {
        files::write_numbers(&arguments.out, &section.id, &numbers::numbers(section, preset, arguments.seed))?;
    }
    let differences = if preset == Preset::Quick && arguments.seed == USUAL_SEED { expected::differences(&finished) } else { Vec::new() };
    let troubles = troubles(&finished);
    if arguments.json {
        let claims: Vec<_> = report.sections.iter().flat_map(|section| &section.claims).collect();
        json::print(&json!({
            "preset": preset.name(), "seed": arguments.seed, "model": MODEL, "seconds": seconds, "report": page,
            "studies": finished.iter().map(|finished| finished.study.id).collect::<Vec<_>>(),
            "processor_seconds": finished.iter().map(|it| (it.study.id, it.processor_s)).collect::<BTreeMap<_, _>>(),
            "claims": claims, "differences": differences, "troubles": troubles,
        }))?;
    }
    tell(&report, seconds, &page.display().to_string());
    for line in troubles.iter().chain(&differences) {
        eprintln!("segstream: {line}");
    }
    if !troubles.is_empty() || !differences.is_empty() {
        bail!("{} points failed, {} studies differ from their expected tables", troubles.len(), differences.len());
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(arguments: &Selection) -> Result<Vec<&'static Study>> {
    if arguments.all {
        return Ok(segstream_studies::all());
    }
    let mut studies: Vec<&'static Study> = Vec::new();
    for id in &arguments.ids {
        match segstream_studies::find(id) {
            // Why: two sections of one study would have the same pictures under the same names.
            Some(study) if studies.iter().any(|chosen| chosen.id == study.id) => {}
            Some(study) => studies.push(study),
            None => return Err(usage::bad(format!("there is no study \"{id}\"; `segstream study list` shows them"))),
        }
    }
    Ok(studies)
}

fn show(bar: &ProgressBar, progress: Progress) {
    bar.set_length(progress.runs);
    bar.set_position(progress.runs_done);
    bar.set_message(format!("{:.0} million packets", progress.packets as f64 * 1e-6));
}

fn troubles(finished: &[Finished]) -> Vec<String> {
    let of_study = |finished: &Finished| {
        let troubles = finished.measured.troubles();
        troubles.into_iter().map(|(curve, x, trouble)| format!("{}: {curve} at {x}: {trouble}", finished.study.id)).collect::<Vec<_>>()
    };
    finished.iter().flat_map(of_study).collect()
}

fn report(finished: &[Finished], preset: Preset, seed: u64) -> Report {
    let plan = preset.plan();
    Report {
        title: "Segstream: the papers' figures and tables, run again".to_owned(),
        provenance: vec![
            ("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("model".to_owned(), format!("{MODEL} (a hash over the sources of protocols, path and simulator)")),
            ("preset".to_owned(), preset.name().to_owned()),
            ("runs a point".to_owned(), format!("{} to {}", plan.replications_min, plan.replications_max)),
            ("runs of a shared link".to_owned(), preset.shared_replications().to_string()),
            ("new packets a run".to_owned(), run_length(plan)),
            ("seed".to_owned(), seed.to_string()),
            (
                "intervals".to_owned(),
                if plan.replications_max > 1 { "95 %, over independent runs" } else { "95 %, by batch means" }.to_owned(),
            ),
        ],
        sections: finished.iter().map(|finished| finished.section.clone()).collect(),
    }
}

/// The new packets of a run, in words.
fn run_length(plan: Plan) -> String {
    plan.trial.map_or_else(|| plan.packets.to_string(), |trial| format!("{trial}, and {} where those do not settle a point", plan.packets))
}

/// The verdicts in a line each.
fn tell(report: &Report, seconds: f64, page: &str) {
    for section in &report.sections {
        eprintln!("{}  {}", section.id, section.title);
        for claim in &section.claims {
            eprintln!("  {:<7} {:<22} {}", claim.id, claim.verdict, claim.measured);
        }
    }
    eprintln!("{} studies in {seconds:.1} s; open {page}", report.sections.len());
}
