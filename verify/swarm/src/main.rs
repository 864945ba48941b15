//! The command of the swarm: runs seeds and says which failed and how to see why.
//!
//! Called by people and by continuous integration.
//!
//! Invariant: what is found goes to standard output, progress to standard error; the exit status is 0 when no seed
//! failed, 1 when one did and 2 for bad usage.

use anyhow::{Context as _, Result};
use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use segstream_swarm::ledger::{Ledger, SLICE};
use segstream_swarm::runner::{self, Summary};
use segstream_swarm::watch::Failure;
use serde::Serialize;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Whole endpoints over the black box in virtual time, with faults and hostile datagrams from a seed.
#[derive(Debug, Parser)]
#[command(name = "segstream-swarm", version)]
struct Arguments {
    /// How many seeds to run
    #[arg(long, default_value_t = 1000, value_name = "N")]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0, value_name = "N")]
    first: u64,
    /// Go on with the seeds behind those in this file, and count them there; it is written every 500 seeds
    #[arg(long, value_name = "FILE", conflicts_with = "first")]
    ledger: Option<PathBuf>,
    /// Run this seed alone
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "first", "ledger"])]
    seed: Option<u64>,
    /// Print a line for everything that happens in the seed
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Threads; default: as many as there are processors
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Print the result as one JSON object
    #[arg(long, conflicts_with = "trace")]
    json: bool,
}

/// A seed that failed, as it is printed.
#[derive(Debug, Serialize)]
struct Failed {
    seed: u64,
    checker: &'static str,
    at_ns: u64,
    what: String,
    replay: String,
}

impl Failed {
    fn new(seed: u64, failure: Failure) -> Self {
        let replay = format!("cargo run --release -p segstream-swarm -- --seed {seed} --trace");
        Self { seed, checker: failure.checker, at_ns: failure.at.as_nanos(), what: failure.what, replay }
    }
}

/// The result of a run, as it is printed.
#[derive(Debug, Serialize)]
struct Report {
    seeds: u64,
    failed: Vec<Failed>,
    digest: String,
    seconds: f64,
    seeds_per_minute: f64,
    counts: segstream_swarm::tally::Tally,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("segstream-swarm: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether no seed failed.
fn run(arguments: &Arguments) -> Result<bool> {
    let began = Instant::now();
    let mut summary = Summary::default();
    match arguments.seed {
        Some(seed) if arguments.trace => summary.add(runner::run_traced(seed, Box::new(line))),
        Some(seed) => summary.add(runner::run(seed)),
        None => many(arguments, &mut summary)?,
    }
    let seconds = began.elapsed().as_secs_f64();
    let good = summary.failures.is_empty();
    let report = Report {
        seeds: summary.seeds,
        failed: summary.failures.into_iter().map(|(seed, failure)| Failed::new(seed, failure)).collect(),
        digest: format!("{:016x}", summary.digest),
        seconds,
        seeds_per_minute: summary.seeds as f64 / seconds * 60.0,
        counts: summary.tally,
    };
    print(&report, arguments.json).context("standard output cannot be written")?;
    Ok(good)
}

fn many(arguments: &Arguments, summary: &mut Summary) -> Result<()> {
    let threads = arguments.threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let bar = ProgressBar::new(arguments.seeds);
    // Why: a target of standard error hides itself where there is no terminal.
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) = ProgressStyle::with_template("{pos} of {len} seeds [{wide_bar}] {per_sec}, {eta} left{msg}") {
        bar.set_style(style);
    }
    let mut ledger = arguments.ledger.as_deref().map(Ledger::load).transpose()?;
    let first = ledger.as_ref().map_or(arguments.first, Ledger::next);
    let (slice, end) = (ledger.as_ref().map_or(arguments.seeds, |_| SLICE), first.saturating_add(arguments.seeds));
    let mut from = first;
    while from < end {
        let (count, known) = (slice.min(end - from), summary.failures.len());
        runner::run_many(from, count, threads, |outcome| {
            summary.add(outcome);
            bar.inc(1);
            if !summary.failures.is_empty() {
                bar.set_message(format!(", {} failed", summary.failures.len()));
            }
        });
        if let Some(ledger) = &mut ledger {
            let failed: Vec<u64> = summary.failures.iter().skip(known).map(|(seed, _)| *seed).collect();
            ledger.add(from, from + count, &failed)?;
        }
        from += count;
    }
    if let Some(ledger) = &ledger {
        let (seeds, failed) = ledger.totals();
        eprintln!("in the ledger: {seeds} seeds, of which {failed} failed");
    }
    bar.finish_and_clear();
    Ok(())
}

/// Prints a line of a trace. A reader who has seen enough is no fault.
fn line(text: &str) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

fn print(report: &Report, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, report)?;
        return writeln!(out);
    }
    for failed in &report.failed {
        writeln!(out, "seed {} failed: {} at {} ns: {}\n  {}", failed.seed, failed.checker, failed.at_ns, failed.what, failed.replay)?;
    }
    if report.seeds > 1 {
        for (name, count) in report.counts.counts() {
            writeln!(out, "{count:>10} {name}")?;
        }
    }
    let failed = report.failed.len();
    writeln!(out, "{} seeds, {failed} failed, digest {}, {:.0} seeds a minute", report.seeds, report.digest, report.seeds_per_minute)
}
