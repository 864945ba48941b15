//! The ledger: which seeds have been run, by which commit, and which of them failed. It is kept with the project, so that a long run can be
//! interrupted and goes on where it was, on any machine.
//!
//! Called by the command. The file has a line of JSON for each run of seeds without a gap under one commit.
//!
//! Invariant: a seed is in the ledger only when its outcome is; the file is replaced as a whole, so that an interruption leaves the old one.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seeds after which the ledger is written.
pub const SLICE: u64 = 500;

/// A run of seeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What was tested; with a plus if it had changes that are in no commit.
    pub commit: String,
    /// The first seed.
    pub first: u64,
    /// One more than the last.
    pub end: u64,
    /// Those that failed.
    pub failed: Vec<u64>,
}

/// All runs.
#[derive(Debug)]
pub struct Ledger {
    file: PathBuf,
    commit: String,
    entries: Vec<Entry>,
}

impl Ledger {
    /// The ledger in `file`, which may not exist yet, for runs of the present commit.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(file: &Path) -> Result<Self> {
        let text = if file.exists() {
            fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?
        } else {
            String::new()
        };
        let read = |(at, line): (usize, &str)| {
            serde_json::from_str(line).with_context(|| format!("{} line {} is no run of seeds", file.display(), at + 1))
        };
        let entries = text.lines().enumerate().map(read).collect::<Result<_>>()?;
        Ok(Self { file: file.to_owned(), commit: commit(), entries })
    }

    /// The first seed that nobody has run.
    pub fn next(&self) -> u64 {
        self.entries.iter().map(|entry| entry.end).max().unwrap_or(0)
    }

    /// How many seeds were run, and how many of them failed.
    pub fn totals(&self) -> (u64, usize) {
        self.entries.iter().fold((0, 0), |(seeds, failed), entry| (seeds + entry.end - entry.first, failed + entry.failed.len()))
    }

    /// Seeds from `first` to before `end` have been run.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&mut self, first: u64, end: u64, failed: &[u64]) -> Result<()> {
        match self.entries.last_mut().filter(|last| last.commit == self.commit && last.end == first) {
            Some(last) => {
                last.end = end;
                last.failed.extend_from_slice(failed);
            }
            None => self.entries.push(Entry { commit: self.commit.clone(), first, end, failed: failed.to_vec() }),
        }
        let mut text = String::new();
        for entry in &self.entries {
            text.push_str(&serde_json::to_string(entry)?);
            text.push('\n');
        }
        let written = self.file.with_extension("new");
        let failure = || format!("{} cannot be written", self.file.display());
        fs::write(&written, text).with_context(failure)?;
        fs::rename(&written, &self.file).with_context(failure)
    }
}

/// What is tested.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success());
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
    fn a_run_goes_on_where_the_last_one_ended() {
        let file = std::env::temp_dir().join(format!("segstream-swarm-ledger-{}", std::process::id()));
        let _ = fs::remove_file(&file);
        let mut ledger = Ledger::load(&file).unwrap();
        assert_eq!((ledger.next(), ledger.totals()), (0, (0, 0)));
        ledger.add(0, 500, &[]).unwrap();
        ledger.add(500, 700, &[640]).unwrap();
        let mut again = Ledger::load(&file).unwrap();
        assert_eq!((again.next(), again.totals(), again.entries.len()), (700, (700, 1), 1));
        "another".clone_into(&mut again.commit);
        again.add(700, 800, &[]).unwrap();
        assert_eq!(Ledger::load(&file).unwrap().entries[1], Entry { commit: "another".into(), first: 700, end: 800, failed: vec![] });
        fs::write(&file, "no seeds\n").unwrap();
        assert!(format!("{:#}", Ledger::load(&file).unwrap_err()).contains("line 1 is no run of seeds"));
        fs::remove_file(&file).unwrap();
    }
}
