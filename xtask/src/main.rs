//! The project's checks, each a command a person can run: `cargo xtask <step>`.
//!
//! - `ci`: every step below and the compiler's own, in order; what continuous integration runs.
//! - `layers`: dependencies run one way, and the inner crates know no clock, socket, thread or entropy.
//! - `tidy`: lengths of files and functions, names, words, extensions, module docs, links.
//! - `dependencies`: licences, duplicates, sources and advisories of what we depend on;
//! - `oldest`: the oldest compiler still builds us; `packages`: what is published can be packed and built from its package;
//! - `python`: the package for Python is installed in a fresh virtual environment, tested and checked;
//! - `fuzz`: a run of every fuzz target, which can be counted; `kills`: a transfer of 2 GB whose ends are killed;
//! - `faults`: faults that transports have had are planted, and the tests must find each;
//! - `prometheus`: Prometheus scrapes the command for a minute, and its counters must be those of the results;
//! - `mutants`: every small change to the inner mechanisms is tried, and the tests must notice;
//! - `bless`: expected tables and pictures of the studies and the table of the papers, made anew.
//!
//! Called by `.ci/run` and by people. It depends on no crate of ours, so that it runs when they do not build.
//!
//! Invariant: no step but `bless` changes a file that git tracks.

mod bless;
mod ci;
mod copy;
mod dependencies;
mod faults;
mod finding;
mod functions;
mod fuzz;
mod fuzz_ledger;
mod kills;
mod layers;
mod layers_table;
mod lengths;
mod links;
mod mutants;
mod names;
mod oldest;
mod packages;
mod prometheus;
mod purity;
mod python;
mod shell;
mod source;
mod test_run;
mod tidy;
mod tree;
mod words;

use anyhow::{Result, bail};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <step>

  ci              run every step, as continuous integration does
  layers          check the direction of dependencies, and what the inner crates may mention
  tidy            check lengths, names, words, extensions, module docs and links
  fuzz [SECONDS]  run each fuzz target for SECONDS; without, for 10 with the same seed each time
  fuzz SECONDS --counted  until verify/runs/fuzz.jsonl counts SECONDS of each, in slices of ten minutes
  kills           send 2 GB and kill either end twenty times: nothing may be lost (4 GB of disk, minutes)
  dependencies    check licences, duplicates, sources and advisories of the dependencies, by cargo-deny
  oldest          build with the oldest compiler that Cargo.toml promises
  packages        pack every crate that others may depend on, and build it from its package
  prometheus [SECONDS]  let Prometheus scrape the command for SECONDS (60) and compare its counters with the results
  python          install the package for Python in a fresh virtual environment, test and check it
  faults [NAME..] plant the faults in verify/faults/, each in a copy, and see the tests fail
  faults --list   name the faults
  mutants         change the inner mechanisms in every small way and see the tests fail (hours)
  mutants --file F  the same for one file
  bless           make the expected tables of the studies anew (a minute)
  bless pictures  make the pictures of the studies and docs/PAPERS.md anew (half an hour)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let root = tree::root()?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ci"] => ci::run(&root),
        ["layers"] => layers::run(&root),
        ["tidy"] => tidy::run(&root),
        ["fuzz"] => fuzz::run(&root, None),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run(&root, Some(seconds)),
            Err(_) => bail!("{seconds} is not a whole number of seconds\n{USAGE}"),
        },
        ["fuzz", seconds, "--counted"] => match seconds.parse() {
            Ok(seconds) => fuzz::run_counted(&root, seconds),
            Err(_) => bail!("{seconds} is not a whole number of seconds\n{USAGE}"),
        },
        ["kills"] => kills::run(&root),
        ["dependencies"] => dependencies::run(&root),
        ["oldest"] => oldest::run(&root),
        ["packages"] => packages::run(&root),
        ["prometheus"] => prometheus::run(&root, "60"),
        ["prometheus", seconds] if seconds.parse::<u64>().is_ok_and(|seconds| seconds >= 10) => prometheus::run(&root, seconds),
        ["python"] => python::run(&root),
        ["faults", "--list"] => faults::list(&root),
        ["faults", names @ ..] => faults::run(&root, names),
        ["mutants"] => mutants::run(&root, None),
        ["mutants", "--file", file] => mutants::run(&root, Some(file)),
        ["bless"] => bless::run(&root, bless::What::Tables),
        ["bless", "pictures"] => bless::run(&root, bless::What::Pictures),
        [] => bail!("{USAGE}"),
        other => bail!("there is no step '{}'\n{USAGE}", other.join(" ")),
    }
}
