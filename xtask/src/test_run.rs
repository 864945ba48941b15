//! One `cargo test` command in a copy of the project, and its result.
//!
//! Called by `faults`. Building and running are two steps, so that a fault that does not build is not taken for one that
//! was found, and so that a test that does not end can be ended.
//!
//! Limit: the words of a command are parted by spaces; there are no quotes.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How it is built. Each fault changes a line, and then some tests run for milliseconds, so what counts is how quickly a crate is built again.
const BUILD: &[(&str, &str)] = &[("CARGO_PROFILE_DEV_OPT_LEVEL", "0"), ("CARGO_INCREMENTAL", "1")];
/// How often a running test is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every test passed.
    Passed,
    /// A test failed.
    Failed,
    /// The command names no test.
    NoTest,
    /// It does not build.
    DoesNotBuild,
    /// A test did not end in time.
    TimedOut,
    /// It ended, but not with the result of a test.
    Broken,
}

impl Outcome {
    /// What a table of faults says.
    pub(crate) const fn told(self) -> &'static str {
        match self {
            Self::Passed => "NOT FOUND: every test passes",
            Self::Failed => "found",
            Self::NoTest => "NO TEST has the name in the command",
            Self::DoesNotBuild => "DOES NOT BUILD",
            Self::TimedOut => "TIMED OUT",
            Self::Broken => "BROKEN: it ended without a result",
        }
    }
}

/// A command, in two parts.
pub(crate) struct TestRun<'a> {
    /// What cargo is told.
    cargo: Vec<&'a str>,
    /// What the test program is told.
    tests: Vec<&'a str>,
}

impl<'a> TestRun<'a> {
    /// Reads `cargo test OPTIONS -- NAMES`.
    pub(crate) fn parse(command: &'a str) -> Result<Self> {
        let (cargo, tests) = command.split_once(" -- ").with_context(|| format!("`{command}` names no test behind ` -- `"))?;
        let cargo = cargo.strip_prefix("cargo test ").with_context(|| format!("`{command}` is no `cargo test`"))?;
        Ok(Self { cargo: cargo.split_whitespace().collect(), tests: tests.split_whitespace().collect() })
    }

    /// Builds in `build` what lies in `tree`, and runs it for at most `time_max`.
    pub(crate) fn run(&self, tree: &Path, build: &Path, time_max: Duration) -> Result<Outcome> {
        let Some(programs) = self.build(tree, build)? else { return Ok(Outcome::DoesNotBuild) };
        let mut tests = 0;
        for (program, folder) in programs {
            let log = build.join("test.log");
            let output = File::create(&log).with_context(|| format!("{} could not be written", log.display()))?;
            let mut child = Command::new(&program)
                .args(&self.tests)
                .current_dir(folder)
                .env("RUST_BACKTRACE", "0")
                .stdout(output)
                .stderr(Stdio::null())
                .spawn()
                .with_context(|| format!("{} could not be started", program.display()))?;
            let until = Instant::now() + time_max;
            let status = loop {
                if let Some(status) = child.try_wait().context("a test could not be waited for")? {
                    break status;
                }
                if Instant::now() >= until {
                    child.kill().context("a test could not be ended")?;
                    child.wait().context("a test could not be waited for")?;
                    return Ok(Outcome::TimedOut);
                }
                std::thread::sleep(LOOK);
            };
            let told = std::fs::read_to_string(&log).unwrap_or_default();
            match (status.success(), told.contains("test result: FAILED")) {
                (false, true) => return Ok(Outcome::Failed),
                (true, false) => tests += told.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ... ok")).count(),
                _ => return Ok(Outcome::Broken),
            }
        }
        Ok(if tests == 0 { Outcome::NoTest } else { Outcome::Passed })
    }

    /// The test programs, each with the folder it runs in; `None` when something does not build.
    fn build(&self, tree: &Path, build: &Path) -> Result<Option<Vec<(PathBuf, PathBuf)>>> {
        let output = Command::new("cargo")
            .arg("test")
            .args(&self.cargo)
            .args(["--no-run", "--quiet", "--message-format=json"])
            .current_dir(tree)
            .env("CARGO_TARGET_DIR", build)
            .envs(BUILD.iter().copied())
            .stderr(Stdio::null())
            .output()
            .context("cargo could not be started")?;
        if !output.status.success() {
            return Ok(None);
        }
        let mut programs = Vec::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let message: Value = serde_json::from_str(line).context("cargo has told something that is no JSON")?;
            // Why: the tests of a program's folder have the program built too, which runs no test.
            let is_test = message["profile"]["test"] == true;
            if let (true, Some(program), Some(manifest)) = (is_test, message["executable"].as_str(), message["manifest_path"].as_str()) {
                let folder = Path::new(manifest).parent().context("a manifest lies in a folder")?;
                programs.push((PathBuf::from(program), folder.to_owned()));
            }
        }
        if programs.is_empty() {
            bail!("`cargo test {}` makes no test program", self.cargo.join(" "));
        }
        Ok(Some(programs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_the_name_of_a_test_is_refused() {
        assert!(TestRun::parse("cargo test -p a").is_err() && TestRun::parse("cargo build -- a").is_err());
        let run = TestRun::parse("cargo test -p a --lib -- b c").unwrap();
        assert_eq!((run.cargo, run.tests), (vec!["-p", "a", "--lib"], vec!["b", "c"]));
    }
}
