//! `paths`: this transport and others over the same long path with loss, with real processes, in real time.
//!
//! - [`matrix`]: the transports, the losses and the workloads;
//! - [`end`]: one side of a measurement, a process in its namespace;
//! - [`cell`]: one measurement, and what is kept of it;
//! - [`journal`]: the file of measurements, by which a run that was ended goes on;
//! - [`table`]: the measurements as people read them.
//!
//! Called by people.
//!
//! Invariant: every measurement has a link, two namespaces and two processes of its own, and nothing else sends.

mod cell;
mod end;
mod journal;
mod matrix;
mod table;

use crate::shared;
use anyhow::{Context as _, Result, ensure};
use cell::{Measured, Programs};
use clap::Args;
use journal::Journal;
use matrix::Cell;
use segstream_lab::machine::Machine;
use segstream_testbed::Testbed;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The program of the other transports.
const PEERS: &str = "segstream-peers";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Only this transport or workload: plain, encrypted, tolerant, encrypted-fixed, tolerant-fixed, exact-97, hedged-97, coded-97,
    /// coded-auto, tolerant-exact-97, tolerant-coded-97, tolerant-coded-auto, quinn-cubic, quinn-bbr, s2n-quic, tcp-cubic, tcp-bbr, udt,
    /// srt-file, srt-live-120, srt-live-240, srt-filter-120, srt-filter-240, schedule, bulk or live. Can be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only this loss: 0, 1e-4, 1e-3, 1e-2, 1e-1 or 1e-2b8; of `live`, at 60 % of the link, also 1e-2@60, 1e-1@60 and 1e-2b8@60. Can be
    /// given several times.
    #[arg(long, value_name = "X")]
    loss: Vec<String>,
    /// Seeds of the path, from 1.
    #[arg(long, value_name = "N", default_value_t = 5)]
    seeds: u64,
    /// How long each `bulk` lasts.
    #[arg(long, value_name = "N", default_value_t = 12)]
    seconds: u32,
    /// How often a measurement is made at most while its link is late; that with the least late link counts. A machine that
    /// stands still for tens of milliseconds now and then has no other way to a p99.
    #[arg(long, value_name = "N", default_value_t = 1)]
    tries: u32,
    /// Where measurements are written as they come; those that are there are not made again.
    #[arg(long, value_name = "FILE", default_value = "target/paths.jsonl")]
    out: PathBuf,
    /// The command to measure [default: built now, beside this program].
    #[arg(long, value_name = "PATH")]
    segstream: Option<PathBuf>,
    /// The program of the other transports [default: beside this program, or where `bench/peers` builds it].
    #[arg(long, value_name = "PATH")]
    peers: Option<PathBuf>,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    cells: Vec<Measured>,
}

/// Measures what is missing, and prints all that was asked for.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.seeds >= 1, "--seeds 0 measures nothing; give at least 1");
    ensure!(options.seconds >= 1, "--seconds 0 measures nothing; give at least 1");
    ensure!(options.tries >= 1, "--tries 0 measures nothing; give at least 1");
    let cells = matrix::cells(&options.only, &options.loss, options.seeds, options.seconds)?;
    let mut journal = Journal::open(&options.out)?;
    let missing: Vec<&Cell> = cells.iter().filter(|cell| journal.of(cell).is_none()).collect();
    if !missing.is_empty() {
        // Before anything is built.
        Testbed::check()?;
        let with_peers = missing.iter().any(|cell| !cell.contender.is_ours);
        let programs = Programs {
            segstream: options.segstream.clone().map_or_else(shared::build, Ok)?,
            peers: if with_peers { options.peers.clone().map_or_else(find_peers, Ok)? } else { PathBuf::new() },
        };
        for (at, cell) in missing.iter().enumerate() {
            eprintln!("{} of {}: {cell}", at + 1, missing.len());
            journal.add(least_late(&programs, cell, options.tries)?)?;
        }
    }
    let cells: Vec<Measured> = cells.iter().filter_map(|cell| journal.of(cell).cloned()).collect();
    let report = Report { machine: Machine::here(), cells };
    let text = table::text(&report.machine, &report.cells)?;
    crate::print(options.json, &report, &text)
}

/// Measures a cell until its link is not late, at most `tries` times.
fn least_late(programs: &Programs, cell: &Cell, tries: u32) -> Result<Measured> {
    let mut best: Option<Measured> = None;
    for _ in 0..tries {
        let measured = programs.measure(cell)?;
        eprintln!("    {measured}");
        if best.as_ref().is_none_or(|best| measured.link_lateness_ms < best.link_lateness_ms) {
            best = Some(measured);
        }
        if best.as_ref().is_some_and(|best| best.link_kept_up) {
            break;
        }
    }
    best.context("no measurement was made")
}

/// Where the other transports are.
fn find_peers() -> Result<PathBuf> {
    let here = std::env::current_exe().ok();
    let beside = here.as_deref().and_then(Path::parent).map(|directory| directory.join(PEERS));
    let built = Path::new("bench/peers/target/release").join(PEERS);
    beside.into_iter().chain([built]).find(|path| path.is_file()).with_context(|| {
        format!(
            "there is no {PEERS}; build it with `cargo build --release --manifest-path bench/peers/Cargo.toml`, name it with --peers, or \
             measure ours only: --only plain --only encrypted --only tolerant"
        )
    })
}
