//! `rates`: the matrix of rates. The kernel's CUBIC and BBR and ours in turn on the same path and seed, in real time.
//!
//! - [`cells`]: the table, as data;
//! - [`drawn`]: cells drawn at random instead;
//! - [`path`]: a cell's path as flags of `segstream link`;
//! - [`trial`]: one run; [`iperf`]: the kernel's TCP in it; [`side_by_side`]: several at once; [`processors`]: how busy those were;
//! - [`virtual_time`]: the same cells in the simulator, with models of the kernel's TCP;
//! - [`journal`](mod@journal): what was run, so that a matrix that was interrupted goes on;
//! - [`models`]: the simulator's TCPs beside the kernel's;
//! - [`rule`]: when a cell is met; [`page`]: the summary; [`section`]: its place in a file of both matrices.
//!
//! Called by people.
//!
//! Invariant: a run over a link that was late is void; it is kept with the reason and counts for nothing.

mod cells;
mod drawn;
mod iperf;
mod journal;
mod models;
mod page;
mod path;
mod processors;
mod rule;
mod section;
mod side_by_side;
mod trial;
mod virtual_time;

use crate::shared;
use anyhow::{Context as _, Result, bail, ensure};
use cells::{CELLS, Cell, Kernel, Rule};
use clap::Args;
use journal::{Journal, Key, Run};
use rayon::prelude::*;
use section::Kind;
use segstream_base::random::Seed;
use segstream_testbed::{Testbed, kernel_tcp};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trial::{Contender, Setup};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only these cells, such as clean jitter20; --list says which there are.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    cell: Vec<String>,
    /// Only these contenders: cubic, bbr, ours.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    contender: Vec<String>,
    /// Prints the cells with their paths, and runs nothing.
    #[arg(long)]
    list: bool,
    /// How many seeds of the path each contender has.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// How long each run lasts, from when all its flows are there; cells with 40 and more flows last 90.
    #[arg(long, value_name = "T", default_value_t = 30, value_parser = clap::value_parser!(u32).range(14..=3600))]
    seconds: u32,
    /// So many places for runs at once: a link takes one for each 20 Mbit/s, or for each four flows if that is more; one that takes more
    /// than there are runs alone. A run counts only if its link was on time and the processors were not busy.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "virtual", value_parser = clap::value_parser!(u32).range(1..=64))]
    at_once: u32,
    /// The directory of the results [default: target/rates; with --virtual nothing is kept]. What is there is not run again, so take
    /// another one for another build.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs the cells in virtual time instead: the simulator's link, our sender, and models of the kernel's TCP. Needs no
    /// administrator and no quiet machine.
    #[arg(long, conflicts_with_all = ["models", "retry_void", "segstream"])]
    r#virtual: bool,
    /// With --virtual: only a few cells that are met, and failure if one is missed. For CI.
    #[arg(long, requires = "virtual", conflicts_with = "cell")]
    small: bool,
    /// With --virtual: instead of the cells of the table so many that are drawn at random: rates of 1 to 200 Mbit/s, round trips of 10 to
    /// 200 ms, queues of a quarter to four products, and what the table has besides. No controller was made for these.
    #[arg(long, value_name = "N", requires = "virtual", conflicts_with = "small", value_parser = clap::value_parser!(u16).range(1..))]
    drawn: Option<u16>,
    /// The seed that draws the cells of --drawn.
    #[arg(long, value_name = "SEED", default_value_t = 1, requires = "drawn")]
    draw: u64,
    /// Runs again what is there but void.
    #[arg(long)]
    retry_void: bool,
    /// Writes the summary to this file too, in the place of the one of the same kind (on the emulator, or in virtual time) in it.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// What the summary says besides, such as the build that was measured and what else the machine did.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Only summarises what is there.
    #[arg(long)]
    no_run: bool,
    /// Summarises instead how far the simulator's models of kernel TCPs agree with the runs of the kernel.
    #[arg(long)]
    models: bool,
    /// The congestion control of ours, where the cell has none of its own.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    congestion: String,
    /// The directory of the recorded links, in Mahimahi's format. Cells with a trace are left out without it.
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// The command to measure [default: built now, beside this program].
    #[arg(long, value_name = "PATH")]
    segstream: Option<PathBuf>,
}

/// The cells of `--small`: met, of each kind one or two, and cheap.
const SMALL: [&str; 8] =
    ["clean", "100-60-shallow", "jitter20", "50-30-jitter15-loss", "codel-ecn", "cubic-1-second", "ours4-20", "outage3"];

/// A run that is asked for.
struct Asked {
    cell: &'static Cell,
    contender: Contender,
    key: Key,
}

/// Runs what is missing, and prints the summary.
pub(crate) fn run(options: &Options) -> Result<()> {
    let table = options.drawn.map_or(CELLS, |count| drawn::cells(usize::from(count), Seed(options.draw)));
    let cells = if options.small { chosen(table, &SMALL.map(str::to_owned))? } else { chosen(table, &options.cell)? };
    if options.list {
        let text: String = cells.iter().map(|cell| format!("{}: {}\n", cell.name, page::path_of(cell))).collect();
        return crate::print(false, &(), &text);
    }
    let asked = asked(options, &cells)?;
    let mut journal = journal(options)?;
    if !options.no_run && !options.models {
        let is_missing = |asked: &&Asked| journal.of(&asked.key).is_none_or(|run| options.retry_void && run.void.is_some());
        let missing: Vec<&Asked> = asked.iter().filter(is_missing).collect();
        if options.r#virtual {
            simulate(options, &missing, &mut journal)?;
        } else if !missing.is_empty() {
            measure(options, &missing, &mut journal)?;
        }
    }
    let of = |cell: &Cell| -> Vec<&Run> {
        asked.iter().filter(|asked| asked.cell.name == cell.name).filter_map(|asked| journal.of(&asked.key)).collect()
    };
    let summaries: Vec<(&Cell, Vec<&Run>)> = table.iter().map(|cell| (cell, of(cell))).collect();
    let kind = match options.drawn {
        Some(_) => Kind::Drawn,
        None if options.r#virtual => Kind::VirtualTime,
        None => Kind::Emulator,
    };
    let text = if options.models {
        models::text(&summaries)?
    } else {
        page::text(kind, &summaries, options.seeds, options.seconds, options.note.as_deref())?
    };
    if let Some(path) = &options.markdown {
        let whole = if options.models { text.clone() } else { section::place(path, kind, &text)? };
        std::fs::write(path, whole).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    crate::print(false, &(), &text)?;
    if options.small { page::all_met(&summaries) } else { Ok(()) }
}

/// What was run before. Of virtual time nothing is kept unless a directory is named: the next build gives other runs.
fn journal(options: &Options) -> Result<Journal> {
    match &options.out {
        Some(directory) => Journal::open(directory),
        None if options.r#virtual => Ok(Journal::unkept()),
        None => Journal::open(Path::new("target/rates")),
    }
}

/// Makes the runs that are missing in virtual time, on all processors.
fn simulate(options: &Options, missing: &[&Asked], journal: &mut Journal) -> Result<()> {
    let traces = options.traces.as_deref();
    let (runs, left): (Vec<&Asked>, Vec<&Asked>) =
        missing.iter().copied().partition(|asked: &&Asked| virtual_time::can_be_run(asked.cell) && path::trace(asked.cell, traces).is_ok());
    if !left.is_empty() {
        let mut names: Vec<&str> = left.iter().map(|asked| asked.cell.name).collect();
        names.dedup();
        eprintln!("left out, too fast or without --traces: {}", names.join(", "));
    }
    let made: Vec<Result<Run>> =
        runs.par_iter().map(|asked| virtual_time::trial(asked.cell, asked.contender, &asked.key, traces)).collect();
    made.into_iter().try_for_each(|run| journal.add(run?))
}

/// The cells of a table with these names; all without any.
fn chosen(table: &'static [Cell], names: &[String]) -> Result<Vec<&'static Cell>> {
    let find = |name: &String| {
        table.iter().find(|cell| cell.name == name).with_context(|| format!("there is no cell {name}; `rates --list` says which there are"))
    };
    if names.is_empty() { Ok(table.iter().collect()) } else { names.iter().map(find).collect() }
}

/// All runs, cell by cell and seed by seed, so that the contenders take turns.
fn asked(options: &Options, cells: &[&'static Cell]) -> Result<Vec<Asked>> {
    for name in &options.contender {
        ensure!(Contender::ALL.iter().any(|known| known.name() == name), "there is no contender {name}; choose of cubic, bbr and ours");
    }
    let mut all = Vec::new();
    for cell in cells {
        for seed in 1..=options.seeds {
            for contender in contenders(cell) {
                if options.contender.is_empty() || options.contender.iter().any(|name| name == contender.name()) {
                    all.push(Asked { cell, contender, key: key(options, cell, contender, seed) });
                }
            }
        }
    }
    Ok(all)
}

fn key(options: &Options, cell: &Cell, contender: Contender, seed: u64) -> Key {
    let ours = |text: &str| if contender == Contender::Ours { text.to_owned() } else { String::new() };
    let seconds = cell.seconds.map_or(options.seconds, |(seconds, _)| seconds);
    Key {
        cell: cell.name.to_owned(),
        contender: contender.name().to_owned(),
        seed,
        seconds: if options.r#virtual { virtual_time::seconds(cell, seconds) } else { seconds },
        link: path::flags(cell, seed, cell.trace, contender).join(" "),
        congestion: ours(cell.congestion.unwrap_or(&options.congestion)),
        segment: ours(&segment(cell)),
    }
}

/// What is counted as goodput are whole segments, so they are small where the link is slow.
const fn segment_bytes(cell: &Cell) -> u64 {
    if let Rule::InTime { .. } = cell.met {
        return 8 << 10;
    }
    match cell.mbit / cell.count as f64 {
        ..5.0 => 8 << 10,
        ..50.0 => 64 << 10,
        _ => 256 << 10,
    }
}

/// The same as a flag.
fn segment(cell: &Cell) -> String {
    format!("{}KiB", segment_bytes(cell) >> 10)
}

/// Who is measured in a cell: whom its rule compares.
fn contenders(cell: &Cell) -> Vec<Contender> {
    let [cubic, bbr, ours] = Contender::ALL;
    match (cell.met, cell.beside) {
        (Rule::QueueBelow { .. } | Rule::InTime { .. }, _) => vec![ours],
        // The kernel has no clock to be set; its runs are those of the cell without.
        (Rule::Fair { .. }, None) if cell.unsynchronised => vec![ours],
        (Rule::LeavesCubic, _) | (_, Some((Kernel::Bbr, _))) => vec![bbr, ours],
        (_, Some((Kernel::Cubic, _))) => vec![cubic, ours],
        _ => vec![cubic, bbr, ours],
    }
}

/// Makes the runs that are missing.
fn measure(options: &Options, missing: &[&Asked], journal: &mut Journal) -> Result<()> {
    // Before anything is built.
    Testbed::check()?;
    iperf::ensure_installed()?;
    for kernel in [Kernel::Cubic, Kernel::Bbr].map(Kernel::name) {
        ensure!(kernel_tcp::is_available(kernel), "this kernel has no {kernel}; load it with `modprobe tcp_{kernel}`");
    }
    let segstream = options.segstream.clone().map_or_else(shared::build, Ok)?;
    if !segstream.is_file() {
        bail!("there is no {}; build it with `cargo build --release -p segstream-cli`", segstream.display());
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).context("signals cannot be listened for")?;
    let setup = Setup { segstream, interrupted };
    let mut runs = Vec::new();
    for asked in missing {
        match path::trace(asked.cell, options.traces.as_deref()) {
            Ok(trace) => runs.push((*asked, trace)),
            Err(error) => eprintln!("{}: left out: {error}", asked.cell.name),
        }
    }
    side_by_side::run(&setup, &runs, options.at_once, journal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn runs(words: &[&str]) -> Vec<String> {
        let options = Line::parse_from([&["rates"], words].concat()).options;
        let asked = asked(&options, &chosen(CELLS, &options.cell).unwrap()).unwrap();
        asked.iter().map(|Asked { key, .. }| format!("{} {} {}", key.cell, key.contender, key.seed)).collect()
    }

    #[test]
    fn contenders_take_turns_on_each_seed() {
        let expected = ["clean cubic 1", "clean bbr 1", "clean ours 1", "clean cubic 2", "clean bbr 2", "clean ours 2"];
        assert_eq!(runs(&["--cell", "clean", "--seeds", "2"]), expected);
        assert_eq!(runs(&["--cell", "bbr-1", "--seeds", "1"]), ["bbr-1 bbr 1", "bbr-1 ours 1"]);
        assert_eq!(runs(&["--cell", "clean", "jitter20", "--seeds", "1", "--contender", "ours"]), ["clean ours 1", "jitter20 ours 1"]);
    }

    #[test]
    fn a_name_that_is_none_says_where_they_are() {
        assert!(chosen(CELLS, &["cleen".to_owned()]).unwrap_err().to_string().contains("--list"));
    }
}
