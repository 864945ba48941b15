//! `cargo xtask dependencies`: licences, sources and duplicates of all dependencies are what `deny.toml` allows, and no advisory
//! names one of them.
//!
//! Called by people and by `ci`. Asks cargo-deny. The database of advisories is fetched anew; where it cannot be had, the last line
//! says so.

use crate::shell;
use anyhow::{Result, bail, ensure};
use std::path::Path;
use std::process::{Command, Output};

/// Why: a build fetches what this system needs, and the check looks at every system's dependencies.
const FETCH: &str = "cargo fetch --locked";
/// What needs nothing from outside, once everything is fetched.
const CHECK: &str = "cargo deny --workspace --offline check licenses bans sources";
/// What needs the database.
const ADVISORIES: &str = "cargo deny --workspace check advisories";
/// What cargo-deny says when it could not fetch the database.
const FETCH_FAILED: &[&str] = &["failed to fetch advisory database", "failed to acquire advisory database"];

/// Runs both checks.
pub(crate) fn run(root: &Path) -> Result<()> {
    let installed = Command::new("cargo").args(["deny", "--version"]).output().is_ok_and(|output| output.status.success());
    ensure!(installed, "cargo-deny is missing; install it (`cargo install cargo-deny --locked`) and run this again");
    eprintln!("$ {FETCH}");
    // Where it fails, the check says which package it misses.
    shell::succeeds(root, FETCH, &[])?;
    eprintln!("$ {CHECK}");
    ensure!(shell::succeeds(root, CHECK, &[])?, "dependencies: failed: {CHECK}");
    eprintln!("$ {ADVISORIES}");
    let mut words = ADVISORIES.split_whitespace();
    let output = Command::new(words.next().unwrap_or_default()).args(words).current_dir(root).output()?;
    judge(&output)
}

fn judge(output: &Output) -> Result<()> {
    let told = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        eprintln!("dependencies: licences, duplicates, sources and advisories are as deny.toml allows");
        return Ok(());
    }
    if FETCH_FAILED.iter().any(|text| told.contains(text)) {
        eprintln!(
            "dependencies: licences, duplicates and sources are as deny.toml allows; the database of advisories could not be fetched, so none was looked at"
        );
        return Ok(());
    }
    bail!("dependencies: failed: {ADVISORIES}\n{told}")
}
