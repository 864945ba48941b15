//! `cargo xtask ci`: every step continuous integration runs, in order.
//!
//! Called by `.ci/run`. A step is a command that is printed before it runs, so that a person can paste it.
//! A failed step does not stop the ones after it: one run shows everything that is wrong.

use crate::shell;
use anyhow::{Result, bail};
use std::path::Path;
use std::time::{Duration, Instant};

/// One step.
struct Step {
    /// What it proves.
    title: &'static str,
    /// Variables of its environment.
    environment: &'static [(&'static str, &'static str)],
    /// The command; its words are parted by spaces and need no quotes.
    command: &'static str,
}

const fn step(title: &'static str, command: &'static str) -> Step {
    Step { title, environment: &[], command }
}

/// All steps, in order.
///
/// Why programs as the tests have built them: `cargo run` builds a package with fewer features of its dependencies, hence most of
/// them once more, and in release everything. That takes longer than what runs slower without.
const STEPS: &[Step] = &[
    step("tests", "cargo test --workspace"),
    step("format", "cargo fmt --all --check"),
    step("format of fuzz", "cargo fmt --manifest-path verify/fuzz/Cargo.toml --check"),
    step("format of the peers", "cargo fmt --manifest-path bench/peers/Cargo.toml --check"),
    step("lints", "cargo clippy --workspace --all-targets -- -D warnings"),
    step("lints of the facade without features", "cargo clippy -p segstream --no-default-features -- -D warnings"),
    Step { title: "documentation", environment: &[("RUSTDOCFLAGS", "-D warnings")], command: "cargo doc --workspace --no-deps" },
    step("layers", "cargo xtask layers"),
    step("tidy", "cargo xtask tidy"),
    step("fuzz smoke", "cargo xtask fuzz"),
    step("planted faults", "cargo xtask faults"),
    step("swarm", "target/debug/segstream-swarm --first 1000 --seeds 1000"),
    step("attack suite", "target/debug/segstream-siege --only load --seconds 20"),
    step("demonstration", "target/debug/segstream demo --out target/ci-demo --json"),
    step("old figures", "rm -rf target/ci-study"),
    step("figures", "target/debug/segstream study run --all --quick --out target/ci-study"),
    step("benchmark smoke", "cargo run --package segstream-bench -- halves"),
    step("simulator smoke", "cargo run --package segstream-bench -- sim --packets 1000000 --repetitions 1"),
];

/// Runs all steps and fails when one did.
pub(crate) fn run(root: &Path) -> Result<()> {
    let start = Instant::now();
    let mut failed = Vec::new();
    for (at, step) in STEPS.iter().enumerate() {
        eprintln!("\n=== {} of {}: {}", at + 1, STEPS.len(), step.title);
        eprintln!("$ {}", printed(step));
        let began = Instant::now();
        let passed = passes(root, step);
        eprintln!("--- {}: {} in {}", step.title, if passed { "passed" } else { "FAILED" }, seconds(began.elapsed()));
        if !passed {
            failed.push(step.title);
        }
    }
    eprintln!();
    if failed.is_empty() {
        eprintln!("ci: all {} steps passed in {}", STEPS.len(), seconds(start.elapsed()));
        return Ok(());
    }
    bail!("ci: {} of {} steps failed in {}: {}", failed.len(), STEPS.len(), seconds(start.elapsed()), failed.join(", "))
}

/// The command as a person would type it.
fn printed(step: &Step) -> String {
    let variables = step.environment.iter().map(|(name, value)| format!("{name}='{value}' "));
    variables.chain([step.command.to_owned()]).collect()
}

fn passes(root: &Path, step: &Step) -> bool {
    shell::succeeds(root, step.command, step.environment).unwrap_or_else(|error| {
        eprintln!("{error:#}");
        false
    })
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_the_test_command_of_the_readme() {
        let readme = std::fs::read_to_string(crate::tree::root().unwrap().join("README.md")).unwrap();
        assert!(readme.lines().any(|line| line.starts_with(STEPS[0].command)), "README.md does not name `{}`", STEPS[0].command);
    }

    #[test]
    fn a_step_is_printed_so_that_it_can_be_pasted() {
        let step = Step { title: "", environment: &[("RUSTDOCFLAGS", "-D warnings")], command: "cargo doc" };
        assert_eq!(printed(&step), "RUSTDOCFLAGS='-D warnings' cargo doc");
    }
}
