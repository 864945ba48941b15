//! `cargo xtask fuzz`: a short run of every fuzz target.
//!
//! Called by people and by `ci`. With a nightly toolchain and cargo-fuzz the targets run guided by
//! coverage. Without, the same targets run on their seeds and on random bytes as stable tests, and the last
//! line says that this is all that was done.

use crate::fuzz_ledger::{self, Tried};
use crate::shell;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// How long a smoke run takes with each target.
const SMOKE_SECONDS: u32 = 10;

/// What the stable stand-in is called.
const STAND_IN: &str = "cargo test --manifest-path verify/fuzz/Cargo.toml --no-default-features --lib";

/// Runs every target for `seconds` with a seed of its own; without, a smoke run with the same seed each time.
///
/// Why: what a smoke run finds must not depend on the day, or a change is refused for what it did not do. The search for what
/// nobody has seen yet is the longer run.
pub(crate) fn run(root: &Path, seconds: Option<u32>) -> Result<()> {
    let targets = targets(root)?;
    if !has_nightly(root) {
        run_step(root, STAND_IN)?;
        eprintln!(
            "fuzz: no nightly toolchain with cargo-fuzz here, so these ran on seeds and random bytes only: {}; \
             for a run guided by coverage: rustup toolchain install nightly && cargo install cargo-fuzz --locked",
            targets.join(", ")
        );
        return Ok(());
    }
    for target in &targets {
        make_corpus(root, target)?;
        run_step(root, &command(target, seconds))?;
    }
    eprintln!("fuzz: {} s each, nothing found: {}", seconds.unwrap_or(SMOKE_SECONDS), targets.join(", "));
    Ok(())
}

/// A slice of a run that is counted: what an interruption loses at most.
const SLICE_SECONDS: u32 = 600;

/// Runs targets in slices, always the one that the ledger counts least time of, until it counts `seconds` of each.
///
/// Why from the ledger: an hour of each target is put together of many runs, and each goes on where the last one ended.
pub(crate) fn run_counted(root: &Path, seconds: u32) -> Result<()> {
    if !has_nightly(root) {
        bail!("fuzz: only runs guided by coverage are counted; rustup toolchain install nightly && cargo install cargo-fuzz --locked");
    }
    let targets = targets(root)?;
    while let Some((target, slice)) = next_slice(&targets, seconds, &fuzz_ledger::counted_seconds(root)?) {
        make_corpus(root, target)?;
        let command = format!("{} -print_final_stats=1", command(target, Some(slice)));
        eprintln!("$ {command}");
        let (succeeded, output) = shell::captured(root, &command)?;
        let tried = Tried { seconds: slice.into(), inputs: fuzz_ledger::inputs_in(&output), found: u64::from(!succeeded) };
        let Tried { seconds, inputs, found } = fuzz_ledger::add(root, target, tried)?;
        eprintln!("fuzz: {target}: {seconds} s and {inputs} inputs in all, {found} found");
        if !succeeded {
            bail!("fuzz: failed: {command}\n{output}");
        }
    }
    eprintln!("fuzz: {seconds} s of each are counted in {}: {}", fuzz_ledger::FILE, targets.join(", "));
    Ok(())
}

/// The target with the least time counted and how long it is run now; `None` when each has `seconds`.
fn next_slice<'a>(targets: &'a [String], seconds: u32, counted: &BTreeMap<String, u64>) -> Option<(&'a str, u32)> {
    let done = |target: &String| counted.get(target).copied().unwrap_or(0);
    let target = targets.iter().min_by_key(|target| done(target))?;
    let left = u64::from(seconds).saturating_sub(done(target)).min(SLICE_SECONDS.into());
    (left > 0).then_some((target.as_str(), left as u32))
}

/// Makes the folder for what is found by the way, which git ignores; the seeds stay as they were written.
fn make_corpus(root: &Path, target: &str) -> Result<()> {
    let folder = root.join("verify/fuzz/target/corpus").join(target);
    std::fs::create_dir_all(folder).context("verify/fuzz/target/corpus could not be created")
}

/// The command for one target, as a person would paste it.
///
/// An input fails that takes longer than ten seconds or asks for more than 256 MiB at once: input from a
/// peer must do neither.
fn command(target: &str, seconds: Option<u32>) -> String {
    // Why another profile (`-D`): building takes most of a smoke run, and inputs a second count in the others.
    let (profile, seed) = if seconds.is_none() { (" -D", " -seed=1") } else { ("", "") };
    let seconds = seconds.unwrap_or(SMOKE_SECONDS);
    format!(
        "cargo +nightly fuzz run{profile} --fuzz-dir verify/fuzz {target} verify/fuzz/target/corpus/{target} verify/fuzz/corpus/{target} \
         -- -max_total_time={seconds}{seed} -timeout=10 -malloc_limit_mb=256 -verbosity=0"
    )
}

/// The names of the targets: the files in `verify/fuzz/fuzz_targets`.
fn targets(root: &Path) -> Result<Vec<String>> {
    let folder = std::fs::read_dir(root.join("verify/fuzz/fuzz_targets")).context("verify/fuzz/fuzz_targets could not be read")?;
    let mut targets = Vec::new();
    for entry in folder {
        let name = entry?.file_name();
        targets.extend(name.to_str().and_then(|name| name.strip_suffix(".rs")).map(str::to_owned));
    }
    targets.sort_unstable();
    Ok(targets)
}

fn has_nightly(root: &Path) -> bool {
    let probe = Command::new("cargo")
        .args(["+nightly", "fuzz", "--version"])
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    probe.is_ok_and(|status| status.success())
}

fn run_step(root: &Path, command: &str) -> Result<()> {
    eprintln!("$ {command}");
    if !shell::succeeds(root, command, &[])? {
        bail!("fuzz: failed: {command}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_run_goes_on_with_the_target_that_has_least_and_ends_when_each_has_enough() {
        let targets = ["a".to_owned(), "b".to_owned()];
        let counted = |a, b| BTreeMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
        assert_eq!(next_slice(&targets, 700, &BTreeMap::new()), Some(("a", 600)));
        assert_eq!(next_slice(&targets, 700, &counted(600, 0)), Some(("b", 600)));
        assert_eq!(next_slice(&targets, 700, &counted(700, 600)), Some(("b", 100)));
        assert_eq!(next_slice(&targets, 700, &counted(700, 900)), None);
    }

    #[test]
    fn every_target_has_a_folder_of_seeds_that_its_command_names() {
        let root = crate::tree::root().unwrap();
        let targets = targets(&root).unwrap();
        assert!(!targets.is_empty());
        for target in targets {
            assert!(command(&target, Some(1)).contains(&format!("verify/fuzz/corpus/{target} ")));
            assert!(command(&target, None).contains("-seed=1 ") && !command(&target, Some(60)).contains("-seed"));
            assert!(command(&target, None).contains(" run -D ") && command(&target, Some(60)).contains(" run --fuzz-dir "));
            assert!(root.join("verify/fuzz/corpus").join(&target).is_dir(), "verify/fuzz/corpus/{target} is missing");
        }
    }
}
