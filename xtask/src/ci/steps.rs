//! The steps of continuous integration, in the order in which they are started.
//!
//! Called by `ci`. To add one: a line here. A step that runs what another has built, or writes where another reads, names it
//! in `after`.

/// One step.
pub(super) struct Step {
    /// What it proves.
    pub(super) title: &'static str,
    /// Variables of its environment.
    pub(super) environment: &'static [(&'static str, &'static str)],
    /// The command; its words are parted by spaces and need no quotes.
    pub(super) command: &'static str,
    /// The titles of the steps that must have ended before, whether they passed or not.
    pub(super) after: &'static [&'static str],
}

const fn step(title: &'static str, command: &'static str) -> Step {
    Step { title, environment: &[], command, after: &[] }
}

impl Step {
    const fn after(mut self, after: &'static [&'static str]) -> Self {
        self.after = after;
        self
    }

    const fn with(mut self, environment: &'static [(&'static str, &'static str)]) -> Self {
        self.environment = environment;
        self
    }

    /// The command as a person would type it.
    pub(super) fn printed(&self) -> String {
        let variables = self.environment.iter().map(|(name, value)| format!("{name}='{value}' "));
        variables.chain([self.command.to_owned()]).collect()
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
    step("planted faults", "cargo xtask faults"),
    step("fuzz smoke", "cargo xtask fuzz"),
    step("lints", "cargo clippy --workspace --all-targets -- -D warnings"),
    step("lints of the facade without features", "cargo clippy -p segstream --no-default-features -- -D warnings"),
    step("documentation", "cargo doc --workspace --no-deps").with(&[("RUSTDOCFLAGS", "-D warnings")]),
    step("layers", "cargo xtask layers"),
    step("tidy", "cargo xtask tidy"),
    step("dependencies", "cargo xtask dependencies"),
    step("packages", "cargo xtask packages"),
    step("swarm", "target/debug/segstream-swarm --first 1000 --seeds 1000").after(&["tests"]),
    step("figures", "target/debug/segstream study run --all --quick --out target/ci-study").after(&["tests", "old figures"]),
    step("old figures", "rm -rf target/ci-study"),
    step("attack suite", "target/debug/segstream-siege --only load --seconds 20").after(&["tests"]),
    step("demonstration", "target/debug/segstream demo --out target/ci-demo --json").after(&["tests"]),
    step("benchmark smoke", "cargo run --package segstream-bench -- halves").after(&["tests"]),
    step("simulator smoke", "cargo run --package segstream-bench -- sim --packets 1000000 --repetitions 1").after(&["tests"]),
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
    fn every_step_waits_only_for_steps_that_are_there_and_wait_for_nothing() {
        for step in STEPS {
            for title in step.after {
                let awaited = STEPS.iter().find(|other| other.title == *title);
                assert!(awaited.is_some_and(|awaited| awaited.after.is_empty()), "{} waits for {title}", step.title);
            }
        }
    }

    #[test]
    fn titles_differ_so_that_each_step_has_a_log_of_its_own() {
        for (at, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..at].iter().all(|other| other.title != step.title), "{}", step.title);
        }
    }
}
