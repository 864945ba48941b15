//! `segstream sim sweep` and `segstream sim merge`: every scenario of a grid, in one process or in several.
//!
//! Called by the verb.
//!
//! Invariant: the files that are written depend on the grid alone: not on the number of shards or threads, nor on what was interrupted.

use super::grid::{Cell, Grid};
use super::in_words;
use super::summary::Summary;
use crate::interruption::Interruption;
use crate::{json, progress, quantity};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use segstream_base::random::Seed;
use segstream_lab::point::PointResult;
use segstream_lab::runner::{Progress, Runner};
use segstream_lab::shard::{Dealer, Shard};
use segstream_lab::store::{MODEL, Store};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a summary has that is of the machine and not of the scenario.
const OF_THE_MACHINE: [&str; 2] = ["wall_seconds", "packets_per_second"];

/// Simulates every scenario of a grid, and writes results.csv and results.jsonl: a row and a JSON object for each.
///
/// GRID.toml has the flags of `segstream sim` by their names without dashes; a list is swept. Finished runs are kept in the output
/// directory, so an interrupted sweep continues where it stopped.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  printf 'scheme = [\"sstp\", \"segstream\"]\\nloss = [1e-4, 1e-3]\\npackets = 100000\\n' > grid.toml\n  \
                  segstream sim sweep grid.toml --out whole\n  segstream sim sweep grid.toml --shard 1/2 --out a\n  \
                  segstream sim sweep grid.toml --shard 2/2 --out b\n  segstream sim merge grid.toml --from a --from b --out whole"
)]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    common: Common,
    /// Runs one of N equal parts only, such as 1/4, and keeps its results in the output directory; `segstream sim merge` writes the
    /// results of all parts. A part that was killed goes on where it stopped; to run it again does no harm.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
}

/// Puts the parts of a sweep together (`segstream sim sweep --shard`), and writes what one sweep would have written, byte for byte.
#[derive(Debug, Args)]
pub(crate) struct MergeArguments {
    #[command(flatten)]
    common: Common,
    /// The output directory of a part; once for each. Parts with the output directory of this command need not be named.
    #[arg(long, value_name = "DIR")]
    from: Vec<PathBuf>,
    /// Computes what no part has, instead of failing.
    #[arg(long)]
    complete: bool,
}

#[derive(Debug, Args)]
struct Common {
    /// The grid.
    #[arg(value_name = "GRID.toml")]
    grid: PathBuf,
    /// The output directory.
    #[arg(long, value_name = "DIR", default_value = "segstream-sweep")]
    out: PathBuf,
    /// The number of threads [default: one per processor]. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = quantity::threads, default_value = "0", hide_default_value = true)]
    threads: usize,
    /// Prints one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// Runs all of a grid, or one shard.
pub(super) fn run(arguments: &SweepArguments) -> Result<ExitCode> {
    let common = &arguments.common;
    let grid = Grid::read(&common.grid)?;
    let store = Store::open(&common.out.join("store"))?;
    match arguments.shard.filter(|shard| shard.is_part()) {
        None => write(common, &grid, &simulate(common, &grid.cells.iter().collect::<Vec<_>>(), &store, false)?),
        Some(shard) => {
            let mut dealer = Dealer::new(shard);
            let ours: Vec<&Cell> = grid.cells.iter().filter(|cell| dealer.is_ours(identity(cell))).collect();
            simulate(common, &ours, &store, false)?;
            if common.json {
                let (cells, of) = (ours.len(), grid.cells.len());
                json::print(&json!({ "shard": shard.to_string(), "cells": cells, "of": of, "model": MODEL, "out": common.out }))?;
            }
            eprintln!("shard {shard}: {} of {} scenarios are in {}", ours.len(), grid.cells.len(), common.out.display());
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Puts shards together.
pub(super) fn merge(arguments: &MergeArguments) -> Result<ExitCode> {
    let common = &arguments.common;
    let grid = Grid::read(&common.grid)?;
    let store = Store::open(&common.out.join("store"))?;
    for shard in &arguments.from {
        store.take_from(&shard.join("store"))?;
    }
    let cells: Vec<&Cell> = grid.cells.iter().collect();
    write(common, &grid, &simulate(common, &cells, &store, !arguments.complete)?)
}

/// Equal for cells that are run once.
fn identity(cell: &Cell) -> String {
    format!("{} {:?} {}", cell.scenario.canonical(), cell.plan, cell.seed)
}

/// The results of cells, in their order.
fn simulate(common: &Common, cells: &[&Cell], store: &Store, only_stored: bool) -> Result<Vec<PointResult>> {
    let interruption = Interruption::listen(None)?;
    let bar = progress::bar(Some(1), "{pos} of {len} runs [{wide_bar}] {eta} left", false);
    let show = |progress: Progress| {
        bar.set_length(progress.runs);
        bar.set_position(progress.runs_done);
    };
    let mut by_seed: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (place, cell) in cells.iter().enumerate() {
        by_seed.entry(cell.seed).or_default().push(place);
    }
    let mut results: Vec<Option<PointResult>> = cells.iter().map(|_| None).collect();
    for (seed, places) in by_seed {
        let runner = Runner {
            seed: Seed(seed),
            store: Some(store),
            threads: common.threads,
            progress: &show,
            stop: interruption.flag(),
            only_stored,
        };
        let points: Vec<_> = places.iter().map(|place| (cells[*place].scenario.clone(), cells[*place].plan)).collect();
        for (place, result) in places.iter().zip(runner.run(&points).map_err(in_words)?) {
            results[*place] = Some(result);
        }
    }
    bar.finish_and_clear();
    results.into_iter().collect::<Option<_>>().context("a scenario has no result")
}

/// Writes the results as rows and as objects.
fn write(common: &Common, grid: &Grid, results: &[PointResult]) -> Result<ExitCode> {
    let summaries: Vec<Summary> = grid.cells.iter().zip(results).map(|(cell, result)| Summary::of(result, cell.seed)).collect();
    let objects: Vec<Map<String, Value>> = grid.cells.iter().zip(&summaries).map(|(cell, summary)| object(grid, cell, summary)).collect();
    let (csv, lines) = (common.out.join("results.csv"), common.out.join("results.jsonl"));
    keep(&csv, &table(grid, &objects))?;
    keep(&lines, &objects.iter().map(|object| json!(object).to_string() + "\n").collect::<String>())?;
    let troubles = summaries.iter().filter(|summary| summary.trouble.is_some()).count();
    if common.json {
        json::print(&json!({ "cells": grid.cells.len(), "model": MODEL, "csv": csv, "jsonl": lines, "troubles": troubles }))?;
    }
    eprintln!("{} scenarios; their results are in {}", grid.cells.len(), csv.display());
    if troubles > 0 {
        bail!("{troubles} scenarios did not end well; see \"trouble\" in {}", lines.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// A scenario's lists and results.
fn object(grid: &Grid, cell: &Cell, summary: &Summary) -> Map<String, Value> {
    let mut object = match json!(summary) {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    OF_THE_MACHINE.iter().for_each(|key| drop(object.remove(*key)));
    let swept = grid.swept.iter().cloned().zip(cell.swept.iter().cloned().map(Value::String)).collect::<Map<_, _>>();
    object.insert("swept".to_owned(), Value::Object(swept));
    object
}

/// The results as a table: the lists first, then every number that any scenario has.
fn table(grid: &Grid, objects: &[Map<String, Value>]) -> String {
    let mut columns: Vec<&String> = Vec::new();
    for key in objects.iter().flat_map(Map::keys).filter(|key| *key != "swept") {
        if !columns.contains(&key) && !grid.swept.contains(key) {
            columns.push(key);
        }
    }
    let heads: Vec<String> = grid.swept.iter().chain(columns.iter().copied()).map(|head| field(head)).collect();
    let mut text = heads.join(",") + "\n";
    for (cell, object) in grid.cells.iter().zip(objects) {
        let swept = cell.swept.iter().map(|value| field(value));
        let rest = columns.iter().map(|column| match object.get(*column) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => field(text),
            Some(value) => value.to_string(),
        });
        let _ = writeln!(text, "{}", swept.chain(rest).collect::<Vec<_>>().join(","));
    }
    text
}

/// A field of a table (RFC 4180).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn keep(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}
