//! `shared`: the flagship at automatic rate on a link that others share, with real processes, in real time.
//!
//! - [`trial`]: one link, the flows over it, and what was observed of them;
//! - [`feeder`]: an application that limits its stream, and pauses;
//! - [`scenarios`]: the scenarios with their targets.
//!
//! Called by people. The scenarios and the targets are those of `studies/flagship`, there in virtual time.
//!
//! Invariant: it ends by itself, about a second after the time that was asked for each scenario.

pub(crate) mod feeder;
mod scenarios;
mod trial;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use scenarios::{Number, SCENARIOS, Scenario};
use segstream_lab::machine::Machine;
use segstream_testbed::Testbed;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use trial::TrialSetup;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Only this scenario: alone, four, cubic, bbr, loss, step, policer or pause.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// How long each scenario lasts, at least 6.
    #[arg(long, value_name = "N", default_value_t = 15)]
    seconds: u32,
    /// The command to measure [default: built now, beside this program].
    #[arg(long, value_name = "PATH")]
    segstream: Option<PathBuf>,
    /// Writes what both ends said, their statistics included, to files in this directory.
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
}

/// One number of a scenario.
#[derive(Debug, Serialize)]
struct Row {
    scenario: &'static str,
    #[serde(flatten)]
    number: Number,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    /// The mean number of waiting and running threads of the last minute, before and after.
    load_before: Option<f64>,
    load_after: Option<f64>,
    seconds: u32,
    rows: Vec<Row>,
    /// What was not measured, and what makes numbers doubtful.
    notes: Vec<String>,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.seconds >= 6, "--seconds {} is too short for a rate to settle; give at least 6", options.seconds);
    let chosen: Vec<&Scenario> =
        SCENARIOS.iter().filter(|scenario| options.only.as_deref().is_none_or(|name| name == scenario.name)).collect();
    if let (Some(name), true) = (&options.only, chosen.is_empty()) {
        let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        bail!("there is no scenario {name}; choose one of {}", names.join(", "));
    }
    // Before anything is built.
    Testbed::check()?;
    let segstream = options.segstream.clone().map_or_else(build, Ok)?;
    let setup = TrialSetup { segstream, seconds: f64::from(options.seconds), trace: options.trace.clone() };
    let mut report = Report {
        machine: Machine::here(),
        load_before: load(),
        load_after: None,
        seconds: options.seconds,
        rows: Vec::new(),
        notes: Vec::new(),
    };
    for scenario in chosen {
        eprintln!("{}: {}", scenario.name, scenario.text);
        let measured = (scenario.measure)(&setup)?;
        let row = |number| Row { scenario: scenario.name, number };
        report.rows.extend(measured.numbers.into_iter().map(row));
        report.notes.extend(measured.notes.into_iter().map(|note| format!("{}: {note}", scenario.name)));
    }
    report.load_after = load();
    let text = text(&report)?;
    crate::print(options.json, &report, &text)
}

/// Builds the command with the profile of this program, by the cargo that runs it; where it is.
pub(crate) fn build() -> Result<PathBuf> {
    let here = std::env::current_exe().context("this program does not know where it is; name the command with --segstream")?;
    let directory = here.parent().context("this program has no directory; name the command with --segstream")?;
    if let Some(cargo) = std::env::var_os("CARGO") {
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "-p", "segstream-cli"]);
        // A profile's programs lie in a folder of its name; that of `dev` is called debug.
        if let Some(profile) = directory.file_name().filter(|folder| *folder != "debug") {
            build.arg("--profile").arg(profile);
        }
        let status = build.status().context("cargo cannot be started; name the command with --segstream")?;
        ensure!(status.success(), "segstream cannot be built");
    }
    let segstream = directory.join("segstream");
    ensure!(segstream.is_file(), "there is no segstream beside this program; build it, or name it with --segstream");
    Ok(segstream)
}

/// The mean number of waiting and running threads of the last minute.
pub(crate) fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

fn text(report: &Report) -> Result<String> {
    let mut text = String::new();
    let load = |load: Option<f64>| load.map_or("unknown".to_owned(), |load| format!("{load:.2}"));
    let (before, after) = (load(report.load_before), load(report.load_after));
    writeln!(text, "{}; load {before} before, {after} after; {} s each\n", report.machine, report.seconds)?;
    writeln!(text, "| scenario | what | measured | target | met |\n|---|---|---:|---|---|")?;
    for Row { scenario, number: Number { what, measured, target, met } } in &report.rows {
        let met = met.map_or("", |met| if met { "yes" } else { "NO" });
        writeln!(text, "| {scenario} | {what} | {measured:.3} | {} | {met} |", target.unwrap_or_default())?;
    }
    for note in &report.notes {
        writeln!(text, "\n{note}")?;
    }
    Ok(text)
}
