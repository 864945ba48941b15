//! `cargo xtask python`: the package for Python as a user installs it, in a fresh virtual environment, with its tests and checks.
//!
//! Called by people and by `ci`. The lossy-path tests run the command `segstream` as the tests of the workspace have built it.
//!
//! Invariant: nothing outside `target/ci-python` and the package's own `target` is written.

use crate::shell;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::time::Instant;

/// The virtual environment.
const PLACE: &str = "target/ci-python";

/// The oldest Python that the package promises.
const ASK_VERSION: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

/// One command.
struct Command {
    line: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

const fn command(line: &'static str) -> Command {
    Command { line, environment: &[] }
}

/// Why the profile `dev`: release takes twice as long to build, and these tests measure nothing.
const COMMANDS: &[Command] = &[
    Command {
        line: "target/ci-python/bin/pip install --quiet --disable-pip-version-check ./bindings/python[test]",
        environment: &[("MATURIN_PEP517_ARGS", "--profile dev")],
    },
    command("target/ci-python/bin/pytest bindings/python"),
    command("target/ci-python/bin/mypy --config-file bindings/python/pyproject.toml bindings/python/python/segstream"),
    command("target/ci-python/bin/pyright --pythonpath target/ci-python/bin/python --project bindings/python"),
    command("target/ci-python/bin/mkdocs build --strict --quiet --config-file bindings/python/mkdocs.yml"),
];

/// Makes the environment and runs every command, until one fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    let python = interpreter(root)?;
    let place = root.join(PLACE);
    if place.exists() {
        std::fs::remove_dir_all(&place).with_context(|| format!("{PLACE} could not be removed"))?;
    }
    step(root, &format!("{python} -m venv {PLACE}"), &[])?;
    COMMANDS.iter().try_for_each(|command| step(root, command.line, command.environment))
}

/// A Python that the package supports.
fn interpreter(root: &Path) -> Result<&'static str> {
    let ask = |python: &str| std::process::Command::new(python).args(["-c", ASK_VERSION]).current_dir(root).status();
    let found =
        ["python3", "python3.13", "python3.12", "python3.11"].into_iter().find(|python| ask(python).is_ok_and(|status| status.success()));
    found.context("no Python 3.11 or later was found; install one with its module venv (Debian: apt-get install python3-venv)")
}

fn step(root: &Path, line: &str, environment: &[(&str, &str)]) -> Result<()> {
    let variables = shell::variables(environment);
    eprintln!("python: {variables}{line}");
    let began = Instant::now();
    if !shell::succeeds(root, line, environment)? {
        bail!("python: failed: {variables}{line}");
    }
    eprintln!("python: {:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}
