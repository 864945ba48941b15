//! The steps of continuous integration, in the order in which they run.
//!
//! Called by `ci`. To add one: a line here, and one in the table of CONTRIBUTING.md, which says how long it takes. A step that runs
//! what another has built, or writes where another reads, stands behind it.

use crate::shell;

/// One step.
pub(super) struct Step {
    /// What it proves.
    pub(super) title: &'static str,
    /// Variables of its environment.
    pub(super) environment: &'static [(&'static str, &'static str)],
    /// The command; its words are parted by spaces and need no quotes.
    pub(super) command: &'static str,
}

const fn step(title: &'static str, command: &'static str) -> Step {
    Step { title, environment: &[], command }
}

impl Step {
    const fn with(mut self, environment: &'static [(&'static str, &'static str)]) -> Self {
        self.environment = environment;
        self
    }

    /// The command as a person would type it.
    pub(super) fn printed(&self) -> String {
        shell::variables(self.environment) + self.command
    }
}

/// How long all of them may take together on two processors, from a clean clone with empty caches, in minutes.
pub(super) const BUDGET_MINUTES: u64 = 40;

/// All steps.
///
/// Why programs as the tests have built them: `cargo run` builds a package with fewer features of its dependencies, hence most of
/// them once more, and in release everything. That takes longer than what runs slower without.
pub(super) const STEPS: &[Step] = &[
    step("tests", "cargo test --workspace"),
    step("format", "cargo fmt --all --check"),
    step("format of fuzz", "cargo fmt --manifest-path verify/fuzz/Cargo.toml --check"),
    step("format of the peers", "cargo fmt --manifest-path bench/peers/Cargo.toml --check"),
    step("format of the package for Python", "cargo fmt --manifest-path bindings/python/Cargo.toml --check"),
    step("planted faults", "cargo xtask faults"),
    step("fuzz smoke", "cargo xtask fuzz"),
    step("lints", "cargo clippy --workspace --all-targets -- -D warnings"),
    step("lints of the facade without features", "cargo clippy -p segstream --no-default-features -- -D warnings"),
    step("documentation", "cargo doc --workspace --no-deps").with(&[("RUSTDOCFLAGS", "-D warnings")]),
    step("layers", "cargo xtask layers"),
    step("tidy", "cargo xtask tidy"),
    step("dependencies", "cargo xtask dependencies"),
    step("oldest compiler", "cargo xtask oldest"),
    step("packages", "cargo xtask packages"),
    step("swarm", "target/debug/segstream-swarm --first 1000 --seeds 1000"),
    // Why: results that are stored would not be made anew.
    step("old figures", "rm -rf target/ci-study"),
    step("figures", "target/debug/segstream study run --all --quick --out target/ci-study"),
    step("attack suite", "target/debug/segstream-siege --only load --seconds 20"),
    step("demonstration", "target/debug/segstream demo --out target/ci-demo --json"),
    step("package for Python", "cargo xtask python"),
    step("programs without tests", "cargo build --workspace --all-targets"),
    step("rates", "target/debug/segstream-bench rates --virtual --small --seeds 1"),
    step("the black box beside that of ns-3", "target/debug/segstream-ns3"),
    step("benchmark smoke", "target/debug/segstream-bench halves"),
    step("simulator smoke", "target/debug/segstream-bench sim --packets 200000 --repetitions 1"),
];

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
        let step = step("", "cargo doc").with(&[("RUSTDOCFLAGS", "-D warnings")]);
        assert_eq!(step.printed(), "RUSTDOCFLAGS='-D warnings' cargo doc");
    }

    #[test]
    fn every_step_is_in_the_table_of_contributing() {
        let text = std::fs::read_to_string(crate::tree::root().unwrap().join("CONTRIBUTING.md")).unwrap();
        for step in STEPS {
            assert!(text.contains(&format!("| {} | `{}` |", step.title, step.printed())), "CONTRIBUTING.md has no row for {}", step.title);
        }
    }
}
