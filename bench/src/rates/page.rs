//! The summary as a Markdown page.
//!
//! Called by [`super::run`].
//!
//! Invariant: every cell is named: as met, as missed, or as not judged.

use super::cells::{Cell, NOT_BUILT, Rule, Turn};
use super::drawn;
use super::journal::Run;
use super::rule::{self, Measured, Medians, Verdict};
use super::section::Kind;
use super::trial::Contender;
use crate::spread::Spread;
use anyhow::{Result, ensure};
use segstream_lab::machine::Machine;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const PLAIN: &str = "
- Cells with nothing else said: 20 Mbit/s, 40 ms, a drop-tail queue of one bandwidth-delay product (BDP).";
const LEGEND: &str = "
- Three numbers are CUBIC / BBR / ours, in turn on the same path and seed; medians of the runs that count.
- Goodput is of the application, in Mbit/s. The share is the part of the link that our packets use while all flows are there.
- The queue is the 95th percentile of the time that a packet waited in it, in ms, of all flows, as the link says.
- A cell is judged by medians. *Not judged* means that a run which its rule needs is void or missing.
";

/// What is said first.
fn head(kind: Kind) -> String {
    let (by, how) = match kind {
        Kind::Emulator => (
            "segstream-bench rates",
            "- CUBIC and BBR are the kernel's. A run is void when the link's lateness at p99 (above 50 Mbit/s: at p99.9) is above 1 ms, it \
             dropped packets that it could not read or send, or the processors were busy. It counts for nothing.",
        ),
        Kind::Drawn => (
            "segstream-bench rates --virtual --drawn",
            "- **No controller was made for these paths**: rates of 1 to 200 Mbit/s, round trips of 10 to 200 ms, queues of a quarter to four \
             products (evenly by their logarithm), and what the table of cells has besides, of each kind as many. They are drawn from a seed \
             ([`drawn.rs`](../bench/src/rates/drawn.rs)).\n- The rules are those of the table. Not every path can meet them: after a drop \
             of the bandwidth to a tenth what is in flight takes longer than 300 ms, and a queue of ten datagrams overflows where fifteen flows \
             have one each.\n- The simulator's link and the models of the kernel's CUBIC and BBR are those of the matrix in virtual time.",
        ),
        Kind::VirtualTime => (
            "segstream-bench rates --virtual",
            "- **No kernel, no socket, no clock**: the simulator's link, our sender without a connection around it, and the simulator's models \
             of the kernel's CUBIC and BBR, whose errors [MODELS.md](MODELS.md) tells. A cell that is met here is not met on the emulator for \
             that.\n- What delays, holds back, polices and loses is behind the link, where the emulator polices and loses before it. Time \
             stamps are exact. Ours has packets of 1144 bytes without an IP header.\n- At 1000 Mbit/s a run lasts 10 s; the cell of 10 Gbit/s is left out.",
        ),
    };
    format!(
        "{}\n\nWritten by `{by}`; do not edit. How it measures is said in [PATHS.md](PATHS.md#the-matrix-of-rates).\n{}{LEGEND}{how}\n",
        kind.heading(),
        if kind == Kind::Drawn { "" } else { PLAIN },
    )
}

/// The page.
pub(super) fn text(kind: Kind, cells: &[(&Cell, Vec<&Run>)], seeds: u64, seconds: u32, note: Option<&str>) -> Result<String> {
    let runs: Vec<&Run> = cells.iter().flat_map(|(_, runs)| runs).copied().collect();
    let voids: Vec<&Run> = runs.iter().copied().filter(|run| run.void.is_some()).collect();
    let mut text = head(kind);
    let (machine, void, lateness) = match kind {
        Kind::Emulator => (format!("{}. ", Machine::here()), format!(", {} of them void", voids.len()), lateness(&runs)),
        _ => Default::default(),
    };
    let (loads, congestion) = (loads(&runs), congestion(&runs));
    writeln!(text, "\n{machine}Asked for: {seeds} seed(s) of {seconds} s. {} runs{void}.{lateness}{loads}{congestion}", runs.len())?;
    if let Some(note) = note {
        writeln!(text, "\n{note}")?;
    }
    let (run, left): (Vec<_>, Vec<_>) = cells.iter().partition(|(_, runs)| !runs.is_empty());
    if kind == Kind::Drawn {
        writeln!(text, "\n## By kind\n\n| kind | cells | met |\n|---|---|---|\n{}", by_kind(&run))?;
    }
    writeln!(
        text,
        "\n## What was run\n\n| cell | path | runs that count | goodput | queue p95 | share | Jain | met |\n|---|---|---|---|---|---|---|---|"
    )?;
    for (cell, runs) in &run {
        writeln!(text, "{}", row(cell, runs))?;
    }
    if !voids.is_empty() {
        writeln!(text, "\n## Void runs\n")?;
        for run in voids {
            let reason = run.void.as_deref().unwrap_or_default().replace('\n', " ");
            writeln!(text, "- {} {} seed {}: {reason}", run.key.cell, run.key.contender, run.key.seed)?;
        }
    }
    if !left.is_empty() || kind == Kind::Emulator {
        writeln!(text, "\n## What was not run\n")?;
    }
    for (cell, _) in &left {
        writeln!(text, "- {}: {}", cell.name, path_of(cell))?;
    }
    if kind == Kind::Emulator {
        for (what, why) in NOT_BUILT {
            writeln!(text, "- {what}: {why}")?;
        }
    }
    Ok(text)
}

/// How many of the drawn cells that were run are met, of each kind.
fn by_kind(cells: &[&(&Cell, Vec<&Run>)]) -> String {
    let mut kinds: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for (cell, runs) in cells {
        let (count, met) = kinds.entry(drawn::kind(cell.name)).or_default();
        *count += 1;
        *met += u32::from(rule::judge(cell, &measured(runs)) == Verdict::Met);
    }
    let all = kinds.values().fold((0, 0), |all, of| (all.0 + of.0, all.1 + of.1));
    let rows = kinds.into_iter().chain([("all", all)]);
    rows.map(|(kind, (count, met))| format!("| {kind} | {count} | {met} |")).collect::<Vec<_>>().join("\n")
}

/// Fails if a cell that was run is not met.
pub(super) fn all_met(cells: &[(&Cell, Vec<&Run>)]) -> Result<()> {
    let mut failed = Vec::new();
    for (cell, runs) in cells.iter().filter(|(_, runs)| !runs.is_empty()) {
        let verdict = rule::judge(cell, &measured(runs));
        if verdict != Verdict::Met {
            failed.push(format!("{}: {}", cell.name, self::verdict(&verdict)));
        }
    }
    ensure!(failed.is_empty(), "cells that were met are missed: {}", failed.join("; "));
    Ok(())
}

fn of<'a>(runs: &[&'a Run], contender: Contender) -> Vec<&'a Run> {
    runs.iter().copied().filter(|run| run.key.contender == contender.name()).collect()
}

fn measured(runs: &[&Run]) -> Measured {
    let [cubic, bbr, ours] = Contender::ALL.map(|contender| Medians::of(&of(runs, contender)));
    Measured { cubic, bbr, ours }
}

/// The congestion control of ours, which can be chosen.
fn congestion(runs: &[&Run]) -> String {
    let mut names: Vec<&str> = runs.iter().map(|run| run.key.congestion.as_str()).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { String::new() } else { format!(" Ours is `--congestion {}`.", names.join("`, `")) }
}

fn loads(runs: &[&Run]) -> String {
    let loads: Vec<f64> = runs.iter().filter_map(|run| run.load).collect();
    if loads.is_empty() {
        return String::new();
    }
    let Spread { min, max, .. } = Spread::of(loads);
    format!(" Load of the machine, own processes included: {min:.1} to {max:.1}.")
}

/// How late the links were in the runs that count.
fn lateness(runs: &[&Run]) -> String {
    let counted: Vec<f64> = runs.iter().filter(|run| run.void.is_none()).map(|run| run.lateness_ms_p999).collect();
    if counted.is_empty() {
        return String::new();
    }
    let Spread { median, max, .. } = Spread::of(counted);
    format!(" Lateness of their links at p99.9: {median:.1} ms in the median, {max:.1} ms at most.")
}

/// A cell's path and company, for people.
pub(super) fn path_of(cell: &Cell) -> String {
    let mut words = match cell.changes {
        [] => format!("{} Mbit/s", cell.mbit),
        changes => {
            let rates = changes.iter().map(|(at, mbit)| format!("{mbit} Mbit/s from {at} s")).collect::<Vec<_>>();
            rates.join(", ")
        }
    };
    if let Some(trace) = cell.trace {
        words = format!("trace {trace}");
    }
    let mut add = |text: String| words.extend([", ".to_owned(), text]);
    add(format!("{} ms", cell.rtt_ms));
    add(format!("{} BDP", cell.queue_bdp));
    if let Some((jitter, _)) = cell.jitter {
        add(format!("jitter {jitter}"));
    }
    if cell.loss != "none" {
        add(format!("loss {}", cell.loss));
    }
    if cell.aqm != "droptail" {
        add(format!("{}{}", cell.aqm, if cell.ecn { ", ECN" } else { "" }));
    }
    if !cell.flags.is_empty() {
        add(cell.flags.join(" ").replace("--", ""));
    }
    if let Some(congestion) = cell.congestion {
        add(format!("ours is {congestion}"));
    }
    if let Some((other, turn)) = cell.beside {
        let turn = match turn {
            Turn::First => "2 s later",
            Turn::Second => "2 s before",
            Turn::Same => "at the same moment",
        };
        add(format!("beside {} that begins {turn}", other.name()));
    }
    if cell.count > 1 {
        add(format!("{} flows", cell.count));
    }
    if cell.unsynchronised {
        add("clocks up to a second apart".to_owned());
    }
    if let Rule::InTime { mbit, deadline_ms, on_off_s, .. } = cell.met {
        add(format!("live {mbit} Mbit/s, on and off every {on_off_s} s, deadline {deadline_ms} ms"));
    }
    words
}

fn row(cell: &Cell, runs: &[&Run]) -> String {
    let measured = measured(runs);
    let medians = [measured.cubic, measured.bbr, measured.ours];
    let counts = Contender::ALL.map(|contender| match of(runs, contender) {
        all if all.is_empty() => "-".to_owned(),
        all => format!("{} of {}", all.iter().filter(|run| run.void.is_none()).count(), all.len()),
    });
    let three = |number: &dyn Fn(&Medians) -> f64, digits: usize| {
        let one = |medians: Option<Medians>| {
            medians
                .map(|medians| number(&medians))
                .filter(|number| number.is_finite())
                .map_or("-".to_owned(), |number| format!("{number:.digits$}"))
        };
        medians.map(one).join(" / ")
    };
    let only = |is_shown: bool, number: &dyn Fn(&Medians) -> f64| if is_shown { three(number, 2) } else { String::new() };
    let digits = if cell.mbit < 1.0 { 3 } else { 1 };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {}{} |",
        cell.name,
        path_of(cell),
        counts.join(" / "),
        three(&|medians| medians.goodput_mbit, digits),
        three(&|medians| medians.queue_ms_p95, 1),
        only(cell.beside.is_some(), &|medians| medians.filled),
        only(cell.count > 1, &|medians| medians.jain),
        verdict(&rule::judge(cell, &measured)),
        beside(cell, measured.ours.as_ref()),
    )
}

fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Met => "met".to_owned(),
        Verdict::Missed(failures) => format!("**missed**: {}", failures.join("; ")),
        Verdict::Unknown => "not judged".to_owned(),
    }
}

/// What else is said of ours where the rule asks for it.
fn beside(cell: &Cell, ours: Option<&Medians>) -> String {
    let Some(ours) = ours else { return String::new() };
    match cell.met {
        Rule::Recovers => format!(" (wait {:.0} ms, again after {:.1} s)", ours.wait_ms_max, ours.again_after_s),
        Rule::LeavesCubic => format!(" (CUBIC keeps {:.1} Mbit/s)", ours.other_mbit),
        Rule::Fair { .. } | Rule::AtLeast { .. } => format!(" (dropped {:.2} %)", ours.dropped * 100.0),
        Rule::InTime { .. } => format!(" ({:.2} % in time)", ours.in_time * 100.0),
        Rule::Share { steady: true, .. } => format!(" ({:.0} starved seconds)", ours.starved_seconds),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::CELLS;
    use super::super::journal::Key;
    use super::*;
    use segstream_base::random::Seed;

    fn run(contender: &str, goodput_bps: f64, void: Option<&str>) -> Run {
        let key = Key { cell: "clean".to_owned(), contender: contender.to_owned(), seed: 1, ..Key::default() };
        Run { key, goodput_bps, filled: 0.5, queue_ms_p95: 4.0, void: void.map(str::to_owned), ..Run::default() }
    }

    #[test]
    fn what_is_missed_void_or_not_run_is_said() {
        let (cubic, bbr, ours) = (run("cubic", 19e6, None), run("bbr", 18e6, None), run("ours", 9e6, None));
        let page = |runs: Vec<&Run>| {
            let cells: Vec<(&Cell, Vec<&Run>)> =
                CELLS.iter().map(|cell| (cell, if cell.name == "clean" { runs.clone() } else { Vec::new() })).collect();
            text(Kind::Emulator, &cells, 1, 15, Some("others build")).unwrap()
        };
        let missed = page(vec![&cubic, &bbr, &ours]);
        assert!(missed.contains("19.0 / 18.0 / 9.0"), "{missed}");
        assert!(missed.contains("**missed**: goodput 9.000 < 17.100; part of the link 0.500 < 0.950"), "{missed}");
        assert!(CELLS.iter().all(|cell| missed.contains(cell.name)));
        let late = run("bbr", 1e6, Some("the link was 3.00 ms late at p99.9"));
        let void = page(vec![&cubic, &late, &ours]);
        assert!(void.contains("not judged") && void.contains("clean bbr seed 1: the link was 3.00 ms late"), "{void}");
    }

    #[test]
    fn drawn_cells_are_counted_by_kind() {
        let drawn = drawn::cells(26, Seed(1));
        let runs = ["cubic", "bbr", "ours"].map(|contender| run(contender, 19e6, None));
        let all: Vec<&Run> = runs.iter().collect();
        let cells: Vec<(&Cell, Vec<&Run>)> = drawn.iter().map(|cell| (cell, all.clone())).collect();
        let page = text(Kind::Drawn, &cells, 1, 30, None).unwrap();
        // Alike without company are good, and nobody has a share, company or Jain's index.
        assert!(page.contains("| alone | 2 | 2 |\n") && page.contains("| ours | 2 | 0 |\n") && page.contains("| all | 26 | "), "{page}");
        assert!(!page.contains("## What was not run"), "{page}");
        let first = drawn.iter().enumerate().map(|(at, cell)| (cell, if at == 0 { all.clone() } else { Vec::new() }));
        let page = text(Kind::Drawn, &first.collect::<Vec<_>>(), 1, 30, None).unwrap();
        assert!(page.contains("| all | 1 | 1 |") && page.contains("## What was not run"), "{page}");
    }
}
