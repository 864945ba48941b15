//! `cargo xtask faults`: fault injection. Faults that real transports have had are put into the code one by one, and a test must
//! fail for each.
//!
//! Called by people and by `ci`. A fault is a patch in `verify/faults/`, with a head that says what it breaks, where such a
//! fault was seen before, and which command must fail. What a test does not notice here, it would not notice in a
//! change either.
//!
//! Invariant: nothing outside `target/faults` is changed. A command counts only if it passes without its fault, and a
//! fault as caught only if a test fails: not when it does not build, and not when a test does not end.

use crate::copy;
use crate::test_run::{Outcome, TestRun};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Where the faults lie.
const FOLDER: &str = "verify/faults";
/// What stands in front of the command in the head of a fault.
const CAUGHT_BY: &str = "# Caught by: ";
/// How long a test may take with its fault.
const TIME_MAX: Duration = Duration::from_secs(120);

/// One fault.
struct Fault {
    name: String,
    /// What is broken: the first paragraph of its head.
    what: String,
    command: String,
    patch: PathBuf,
}

/// Prints every fault and what it breaks.
pub(crate) fn list(root: &Path) -> Result<()> {
    for fault in faults(root)? {
        eprintln!("{}\n    {}\n    {}", fault.name, fault.what, fault.command);
    }
    Ok(())
}

/// Plants the faults of these names, all without any, and fails when one is not found.
pub(crate) fn run(root: &Path, names: &[&str]) -> Result<()> {
    let mut faults = faults(root)?;
    if let Some(unknown) = names.iter().find(|name| faults.iter().all(|fault| fault.name != **name)) {
        bail!("there is no fault '{unknown}' in {FOLDER}/; `cargo xtask faults --list` names all");
    }
    let stale: Vec<&str> = faults.iter().filter(|fault| !applies(root, fault)).map(|fault| fault.name.as_str()).collect();
    if !stale.is_empty() {
        bail!("these faults no longer apply to the code; make their patches anew: {}", stale.join(", "));
    }
    faults.retain(|fault| names.is_empty() || names.contains(&fault.name.as_str()));
    // Why: faults with one command lie beside each other, so that little is built twice.
    faults.sort_by(|a, b| a.command.cmp(&b.command));
    let (tree, build) = (root.join("target/faults/tree"), root.join("target/faults/build"));
    copy::refresh(root, &tree)?;
    check_commands(&tree, &build, &faults)?;
    let mut survivors = Vec::new();
    for fault in &faults {
        let began = Instant::now();
        let outcome = plant(&tree, &build, fault)?;
        eprintln!("{:<40} {:<38} {:>5.1} s", fault.name, outcome.told(), began.elapsed().as_secs_f64());
        if outcome != Outcome::Failed {
            survivors.push(fault.name.as_str());
        }
    }
    if !survivors.is_empty() {
        bail!("faults: {} of {} were not found: {}", survivors.len(), faults.len(), survivors.join(", "));
    }
    eprintln!("faults: all {} were found", faults.len());
    Ok(())
}

/// Every command must pass while nothing is broken.
fn check_commands(tree: &Path, build: &Path, faults: &[Fault]) -> Result<()> {
    let commands: BTreeSet<&str> = faults.iter().map(|fault| fault.command.as_str()).collect();
    for command in &commands {
        let outcome = TestRun::parse(command)?.run(tree, build, TIME_MAX)?;
        if outcome != Outcome::Passed {
            bail!("without any fault, `{command}` must pass, but: {}", outcome.told());
        }
    }
    eprintln!("faults: {} commands pass without any fault", commands.len());
    Ok(())
}

/// Runs the command of `fault` with it in place, and takes it out again.
fn plant(tree: &Path, build: &Path, fault: &Fault) -> Result<Outcome> {
    let run = TestRun::parse(&fault.command)?;
    apply(tree, fault, &[])?;
    let outcome = run.run(tree, build, TIME_MAX);
    apply(tree, fault, &["--reverse"])?;
    outcome
}

fn apply(tree: &Path, fault: &Fault, options: &[&str]) -> Result<()> {
    // Why: below the project's own repository git would take the paths in a patch for those of the project.
    let ceiling = tree.parent().context("the copy lies in a folder")?;
    let applied = Command::new("git")
        .arg("apply")
        .args(options)
        .arg(&fault.patch)
        .current_dir(tree)
        .env("GIT_CEILING_DIRECTORIES", ceiling)
        .status()
        .context("git could not be started; install it, it applies the patches")?;
    if !applied.success() {
        bail!("git apply failed for {}", fault.name);
    }
    Ok(())
}

fn applies(root: &Path, fault: &Fault) -> bool {
    let check = Command::new("git").args(["apply", "--check"]).arg(&fault.patch).current_dir(root).status();
    check.is_ok_and(|status| status.success())
}

/// All faults, by name.
fn faults(root: &Path) -> Result<Vec<Fault>> {
    let mut faults = Vec::new();
    for entry in std::fs::read_dir(root.join(FOLDER)).with_context(|| format!("{FOLDER}/ could not be read"))? {
        let patch = entry?.path();
        if patch.extension().is_some_and(|extension| extension == "patch") {
            faults.push(read(patch)?);
        }
    }
    faults.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(faults)
}

fn read(patch: PathBuf) -> Result<Fault> {
    let text = std::fs::read_to_string(&patch).with_context(|| format!("{} could not be read", patch.display()))?;
    let name = patch.file_stem().and_then(|stem| stem.to_str()).context("the name of a fault is not UTF-8")?.to_owned();
    let what: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("# ")).collect();
    let command = text.lines().find_map(|line| line.strip_prefix(CAUGHT_BY));
    let command = command.with_context(|| format!("{name} does not say which command fails; add a line `{CAUGHT_BY}cargo test ...`"))?;
    if what.is_empty() {
        bail!("{name} does not say what it breaks; begin it with `# ` and a sentence");
    }
    Ok(Fault { what: what.join(" "), command: command.to_owned(), name, patch })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_says_what_it_breaks_and_what_finds_it_and_applies() {
        let root = crate::tree::root().unwrap();
        let faults = faults(&root).unwrap();
        let page = std::fs::read_to_string(root.join("docs/PROOF.md")).unwrap();
        assert!(faults.len() >= 20);
        for fault in faults {
            assert!(TestRun::parse(&fault.command).is_ok(), "{}", fault.name);
            assert!(applies(&root, &fault), "{} does not apply", fault.name);
            assert!(page.contains(&format!("| {} | {} |", fault.name, fault.what)), "{} is not in docs/PROOF.md as it is", fault.name);
        }
    }
}
