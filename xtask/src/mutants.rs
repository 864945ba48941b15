//! `cargo xtask mutants`: every small change to the inner mechanisms is tried, and the tests must notice each.
//!
//! Called by people, not by `ci`: it takes hours. The changes are made by cargo-mutants in a copy of the project; what
//! each file is tested with is narrow, so that a change costs seconds. What was missed, and why, is in docs/PROOF.md.
//!
//! Invariant: nothing outside `target/mutants` is changed.

use crate::copy;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// A file whose changes are tried, and the tests that must notice.
struct Subject {
    package: &'static str,
    file: &'static str,
    /// What is built of the package: flags of `cargo test`.
    programs: &'static str,
    /// Which tests of them are run: parts of their names; none means all.
    tests: &'static str,
}

const fn subject(package: &'static str, file: &'static str, (programs, tests): (&'static str, &'static str)) -> Subject {
    Subject { package, file, programs, tests }
}

const RECEIVER: (&str, &str) = (
    "--lib --test protocol",
    "receiver:: report_composition:: arrival:: exact_repair:: reclass:: safety:: small_window:: timing:: confirmations:: connection:: hostile_peer:: liveness:: \
     memory:: operations:: plain_mode:: regressions:: setup:: strangers::",
);
const SENDER: (&str, &str) = ("--lib --test protocol", "sender:: exact_repair:: false_feedback:: reclass:: safety:: timing::");

/// Tolerance, loss, windows, reports and sealing.
const SUBJECTS: &[Subject] = &[
    subject("segstream-base", "crates/base/src/tolerance.rs", ("--lib", "tolerance::")),
    subject("segstream-blocks", "crates/blocks/src/accounting.rs", ("--lib", "accounting::")),
    subject("segstream-blocks", "crates/blocks/src/bitmap.rs", ("--lib", "bitmap:: accounting::")),
    subject("segstream-blocks", "crates/blocks/src/ranges.rs", ("--lib", "ranges::")),
    subject("segstream-blocks", "crates/blocks/src/loss_detector.rs", ("--lib", "loss_detector::")),
    subject("segstream-blocks", "crates/blocks/src/window.rs", ("--lib", "window::")),
    subject("segstream-wire", "crates/wire/src/report.rs", ("--lib --test report_frames", "")),
    subject("segstream-wire", "crates/wire/src/runs.rs", ("--lib --test report_frames", "")),
    subject("segstream-proto", "crates/proto/src/receiver/report/schedule.rs", ("--lib", "receiver::")),
    subject("segstream-proto", "crates/proto/src/receiver/report/composition.rs", RECEIVER),
    subject("segstream-proto", "crates/proto/src/receiver/report/unconfirmed_verdicts.rs", RECEIVER),
    subject("segstream-proto", "crates/proto/src/sender/feedback.rs", SENDER),
    subject("segstream-proto", "crates/proto/src/session.rs", ("--lib --test protocol", "connection:: plain_mode:: session::")),
];

/// Tries the changes of all files, or of `file` alone, and fails when one is missed.
pub(crate) fn run(root: &Path, file: Option<&str>) -> Result<()> {
    let chosen: Vec<&Subject> = SUBJECTS.iter().filter(|subject| file.is_none_or(|file| subject.file == file)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = SUBJECTS.iter().map(|subject| subject.file).collect();
        bail!("{} is none of the files whose changes are tried: {}", file.unwrap_or_default(), names.join(", "));
    }
    let (tree, build) = (root.join("target/mutants/tree"), root.join("target/mutants/build"));
    copy::refresh(root, &tree)?;
    let mut missed = Vec::new();
    for subject in chosen {
        let output = root.join("target/mutants/results").join(subject.file.replace('/', "_"));
        std::fs::create_dir_all(&output).context("target/mutants/results could not be made")?;
        let status = Command::new("cargo")
            .args(["mutants", "--in-place", "--no-shuffle", "--timeout", "60", "--package", subject.package])
            .args(["--file", subject.file, "--output"])
            .arg(&output)
            // Why so: what stands behind `--` is not told to the command that builds, which would build every test program.
            .args(subject.programs.split_whitespace().map(|flag| format!("--cargo-arg={flag}")))
            .args(["--", "--"])
            .args(subject.tests.split_whitespace())
            .current_dir(&tree)
            .env("CARGO_TARGET_DIR", &build)
            // Why: a change that matters shows in few cases, and building takes most of the time: without symbols and optimisation, and
            // only what has changed.
            .envs([
                ("CARGO_PROFILE_DEV_DEBUG", "0"),
                ("CARGO_PROFILE_DEV_OPT_LEVEL", "0"),
                ("CARGO_INCREMENTAL", "1"),
                ("PROPTEST_CASES", "64"),
            ])
            .status()
            .context("cargo could not be started")?;
        // What cargo-mutants ends with: 0 all caught, 2 some missed, 3 some timed out; else it could not do its work.
        match status.code() {
            Some(0 | 3) => {}
            Some(2) => missed.push(subject.file),
            _ => bail!("cargo mutants failed for {}; it is installed by `cargo install cargo-mutants --locked`", subject.file),
        }
    }
    if !missed.is_empty() {
        bail!("mutants: some were missed in {}; see target/mutants/results, and docs/PROOF.md for those known", missed.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_is_a_file_of_its_package() {
        let root = crate::tree::root().unwrap();
        for subject in SUBJECTS {
            assert!(root.join(subject.file).is_file(), "{}", subject.file);
            let folder = subject.package.replace("segstream-", "crates/");
            assert!(subject.file.starts_with(&folder), "{} is not in {folder}", subject.file);
        }
    }
}
