//! Runs a command that is written as a person would type it.
//!
//! Called by `ci` and `fuzz`. No shell takes part, so that a step is the same on every system.
//!
//! Limit: the words of a command are parted by spaces; there are no quotes.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// Runs `command` in `root` with `environment` added, its output going where ours goes; whether it succeeded.
pub(crate) fn succeeds(root: &Path, command: &str, environment: &[(&str, &str)]) -> Result<bool> {
    let mut command = parsed(root, command, environment)?;
    let status = command.status().with_context(|| format!("{} could not be started", command.get_program().display()))?;
    Ok(status.success())
}

/// Variables as a person would type them in front of a command.
pub(crate) fn variables(environment: &[(&str, &str)]) -> String {
    environment.iter().map(|(name, value)| format!("{name}='{value}' ")).collect()
}

/// Runs `command` in `root`; whether it succeeded, and what it has written to standard error.
pub(crate) fn captured(root: &Path, command: &str) -> Result<(bool, String)> {
    let mut command = parsed(root, command, &[])?;
    let output = command.output().with_context(|| format!("{} could not be started", command.get_program().display()))?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn parsed(root: &Path, command: &str, environment: &[(&str, &str)]) -> Result<Command> {
    let mut words = command.split_whitespace();
    let program = words.next().context("a command has no program")?;
    // A program of the tree's own is named by its place in it.
    let place = if program.contains('/') { root.join(program) } else { program.into() };
    let mut command = Command::new(place);
    command.args(words).envs(environment.iter().copied()).current_dir(root);
    Ok(command)
}
