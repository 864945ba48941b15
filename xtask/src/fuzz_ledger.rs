//! The ledger of fuzzing: how long each target was fuzzed, by which commit, and how many inputs were tried. It is kept with the project, so
//! that hours can be put together of many runs.
//!
//! Called by `fuzz`. The file has a line of JSON for each target and commit.
//!
//! Invariant: time is counted when a slice has ended without a finding; a slice that found something is counted as a finding.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where it is.
pub(crate) const FILE: &str = "verify/runs/fuzz.jsonl";

/// What was done under one commit with one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tried {
    pub(crate) seconds: u64,
    pub(crate) inputs: u64,
    pub(crate) found: u64,
}

/// By commit and target.
type Entries = BTreeMap<(String, String), Tried>;

fn read(text: &str) -> Result<Entries> {
    let mut entries = Entries::new();
    for (at, line) in text.lines().enumerate() {
        let value: Value = serde_json::from_str(line).with_context(|| format!("{FILE} line {} is no JSON", at + 1))?;
        let word = |key: &str| value[key].as_str().map(str::to_owned).with_context(|| format!("{FILE} line {} has no {key}", at + 1));
        let number = |key: &str| value[key].as_u64().with_context(|| format!("{FILE} line {} has no {key}", at + 1));
        let tried = Tried { seconds: number("seconds")?, inputs: number("inputs")?, found: number("found")? };
        entries.insert((word("commit")?, word("target")?), tried);
    }
    Ok(entries)
}

fn written(entries: &Entries) -> String {
    let line = |((commit, target), tried): (&(String, String), &Tried)| {
        let Tried { seconds, inputs, found } = tried;
        format!("{}\n", json!({ "commit": commit, "target": target, "seconds": seconds, "inputs": inputs, "found": found }))
    };
    entries.iter().map(line).collect()
}

/// What the file holds; nothing if there is none.
fn kept(root: &Path) -> Result<Entries> {
    let file = root.join(FILE);
    if !file.exists() {
        return Ok(Entries::new());
    }
    read(&fs::read_to_string(&file).with_context(|| format!("{FILE} could not be read"))?)
}

/// The seconds that are counted of each target, of all commits.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn counted_seconds(root: &Path) -> Result<BTreeMap<String, u64>> {
    let mut seconds = BTreeMap::new();
    for ((_, target), tried) in kept(root)? {
        *seconds.entry(target).or_default() += tried.seconds;
    }
    Ok(seconds)
}

/// Adds what was tried with `target`. Returns the sum of all commits.
///
/// # Errors
/// If the file cannot be read or written.
pub(crate) fn add(root: &Path, target: &str, tried: Tried) -> Result<Tried> {
    let file = root.join(FILE);
    let mut entries = kept(root)?;
    merge(entries.entry((commit(root), target.to_owned())).or_default(), tried);
    let folder = file.parent().context("the ledger is in no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("{} could not be made", folder.display()))?;
    let new = file.with_extension("new");
    fs::write(&new, written(&entries)).and_then(|()| fs::rename(&new, &file)).with_context(|| format!("{FILE} could not be written"))?;
    let mut all = Tried::default();
    entries.iter().filter(|((_, of), _)| of == target).for_each(|(_, tried)| merge(&mut all, *tried));
    Ok(all)
}

const fn merge(into: &mut Tried, more: Tried) {
    into.seconds += more.seconds;
    into.inputs += more.inputs;
    into.found += more.found;
}

/// How many inputs libFuzzer says it has tried (`-print_final_stats=1`).
pub(crate) fn inputs_in(output: &str) -> u64 {
    let count = output.lines().filter_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    count.filter_map(|count| count.trim().parse::<u64>().ok()).sum()
}

/// What is tested; with a plus if it has changes that are in no commit.
fn commit(root: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root).output().ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no", "--", "crates"]).is_some_and(|changed| changed.is_empty());
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    if is_clean { commit } else { format!("{commit}+") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_bad_lines_are_named() {
        let mut entries = Entries::new();
        entries.insert(("a".into(), "handshake".into()), Tried { seconds: 600, inputs: 12, found: 0 });
        merge(entries.entry(("a".into(), "handshake".into())).or_default(), Tried { seconds: 1, inputs: 2, found: 3 });
        assert_eq!(read(&written(&entries)).unwrap(), entries);
        assert_eq!(entries[&("a".into(), "handshake".into())], Tried { seconds: 601, inputs: 14, found: 3 });
        assert!(read("{}\n").unwrap_err().to_string().contains("line 1 has no seconds"));
    }

    #[test]
    fn the_count_of_inputs_is_found_in_the_output() {
        assert_eq!(inputs_in("INFO: x\nstat::number_of_executed_units: 2871\nstat::average_exec_per_sec: 9\n"), 2871);
        assert_eq!(inputs_in(""), 0);
    }
}
