//! The models of kernel TCPs in the simulator beside the kernel's own runs of the same cells.
//!
//! Called by [`super::run`] with `--models`, after what is missing was run.
//!
//! The simulator's link has no delay of its own; a flow's own path has round trip, jitter, loss and policer, and is behind the link, where
//! the emulator loses and polices before it. So cells whose path has more than that are left out.
//!
//! Invariant: nothing is fitted; a cell that a model misses is said to be missed.

use super::cells::{Cell, Kernel};
use super::journal::Run;
use super::page;
use super::trial::Contender;
use super::virtual_time;
use anyhow::{Context as _, Result, anyhow, ensure};
use segstream_base::random::Seed;
use segstream_lab::shared::run;
use std::fmt::Write as _;

/// A model agrees with the kernel within this part of it.
const WITHIN: f64 = 0.1;
/// Queues that differ by less are alike.
const QUEUE_MS: f64 = 1.0;
/// Runs whose medians are compared with one run of the kernel.
const SEEDS: u64 = 3;

const HEAD: &str = "\
# The models of kernel TCPs, and the kernel

Written by `segstream-bench rates --models`; do not edit.

The simulator's cross traffic is `linux_cubic` and `bbr1`: CUBIC and BBR as Linux has them. Here each is beside what the kernel did over
`link --tun` in the same cell of the matrix of rates.

- Goodput is of the application in Mbit/s, from the first second on; the queue is the 95th percentile of waiting in ms. Of the kernel these
  are the medians of the runs that count, of a model the medians of three seeds.
- *alike*: goodput within 10 %, and the queue within 10 % or 1 ms.
- A model *flatters* where it gets more than the kernel, and is *harsh* where it gets less.
- `reno` is not compared: the matrix has no runs of it.

| cell | path | model | goodput kernel | model | ratio | queue kernel | model | |
|---|---|---|---|---|---|---|---|---|
";

/// Goodput in bit/s and the queue in milliseconds.
type Measured = (f64, f64);

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The page.
pub(super) fn text(cells: &[(&Cell, Vec<&Run>)]) -> Result<String> {
    let mut text = HEAD.to_owned();
    let mut missing = Vec::new();
    for (cell, runs) in cells.iter().filter(|(cell, _)| can_be_modelled(cell)) {
        for (kernel, name) in [(Kernel::Cubic, "linux_cubic"), (Kernel::Bbr, "bbr1")] {
            let Some(real) = of_kernel(runs, kernel) else {
                missing.push(format!("{} {}", cell.name, kernel.name()));
                continue;
            };
            let seconds = cell.seconds.map_or(30, |(seconds, _)| seconds);
            let model = of_model(cell, kernel, seconds).with_context(|| format!("{} as a model", cell.name))?;
            row(&mut text, cell, name, real, model)?;
        }
    }
    ensure!(
        text.len() > HEAD.len(),
        "there are no runs of the kernel to compare with; run `rates` first, or name its directory with --out"
    );
    if !missing.is_empty() {
        writeln!(text, "\nWithout a run of the kernel that counts: {}.", missing.join(", "))?;
    }
    Ok(text)
}

/// Whether a simulated link and the own paths of flows have all that the cell's path has. Limit: of what is faster the kernel was not
/// measured.
fn can_be_modelled(cell: &Cell) -> bool {
    let simple = cell.changes.is_empty() && cell.trace.is_none() && cell.beside.is_none() && cell.congestion.is_none();
    let jitter = cell.jitter.is_none_or(|(text, _)| !text.contains(':'));
    let flags = matches!(cell.flags, [] | ["--policer", _]);
    simple && jitter && flags && (1.0..=100.0).contains(&cell.mbit) && cell.count <= 16
}

fn of_kernel(runs: &[&Run], kernel: Kernel) -> Option<Measured> {
    let name = Contender::Kernel(kernel).name();
    let count: Vec<&&Run> = runs.iter().filter(|run| run.key.contender == name && run.void.is_none()).collect();
    median(count.iter().map(|run| run.goodput_bps).collect()).zip(median(count.iter().map(|run| run.queue_ms_p95).collect()))
}

fn of_model(cell: &Cell, kernel: Kernel, seconds: u32) -> Result<Measured> {
    let scenario = virtual_time::scenario(cell, &virtual_time::tcp(kernel, cell), seconds)?;
    let mut outcomes = Vec::new();
    for seed in 1..=SEEDS {
        let (outcome, _) = run(&scenario, Seed(seed))?;
        ensure!(outcome.trouble.is_none(), "{:?}", outcome.trouble);
        let goodput = outcome.flows.iter().map(|flow| flow.bytes_delivered as f64 * 8.0 / f64::from(seconds)).sum::<f64>();
        outcomes.push((goodput, outcome.queue.p95_ns as f64 / 1e6));
    }
    let of = |what: fn(&Measured) -> f64| median(outcomes.iter().map(what).collect()).ok_or_else(|| anyhow!("nothing was run"));
    Ok((of(|outcome| outcome.0)?, of(|outcome| outcome.1)?))
}

fn row(text: &mut String, cell: &Cell, name: &str, real: Measured, model: Measured) -> Result<()> {
    let ratio = model.0 / real.0;
    writeln!(
        text,
        "| {} | {} | `{name}` | {:.2} | {:.2} | {ratio:.2} | {:.1} | {:.1} | {} |",
        cell.name,
        page::path_of(cell),
        real.0 / 1e6,
        model.0 / 1e6,
        real.1,
        model.1,
        verdict(real, model)
    )?;
    Ok(())
}

fn verdict(real: Measured, model: Measured) -> String {
    let ratio = model.0 / real.0;
    let mut words = Vec::new();
    if (ratio - 1.0).abs() > WITHIN {
        words.push(if ratio > 1.0 { "**flatters**" } else { "**harsh**" });
    }
    let difference = model.1 - real.1;
    if difference.abs() > (WITHIN * real.1).max(QUEUE_MS) {
        words.push(if difference > 0.0 { "**queue longer**" } else { "**queue shorter**" });
    }
    if words.is_empty() { "alike".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::cells::CELLS;
    use super::*;

    #[test]
    fn every_cell_that_can_be_modelled_is_a_scenario_that_can_be_run() {
        let modelled: Vec<&Cell> = CELLS.iter().filter(|cell| can_be_modelled(cell)).collect();
        assert!(modelled.len() >= 10, "{}", modelled.len());
        for cell in modelled {
            virtual_time::scenario(cell, &virtual_time::tcp(Kernel::Cubic, cell), 30).unwrap().check().unwrap();
        }
    }

    #[test]
    fn a_model_that_differs_is_said_to() {
        assert_eq!(verdict((10.0, 20.0), (10.9, 18.1)), "alike");
        assert_eq!(verdict((10.0, 0.1), (9.1, 1.0)), "alike");
        assert_eq!(verdict((10.0, 20.0), (11.1, 17.9)), "**flatters**, **queue shorter**");
        assert_eq!(verdict((10.0, 20.0), (8.9, 22.1)), "**harsh**, **queue longer**");
    }

    #[test]
    fn without_runs_of_the_kernel_nothing_is_compared() {
        assert!(text(&[(&CELLS[0], Vec::new())]).unwrap_err().to_string().contains("--out"));
    }
}
