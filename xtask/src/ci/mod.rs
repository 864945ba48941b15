//! `cargo xtask ci`: every step continuous integration runs.
//!
//! Called by `.ci/run`. A step is a command that is printed before it runs, so that a person can paste it.
//! What a step prints goes to a file and is shown when it has ended. A failed step does not stop the others: one run shows
//! everything that is wrong.
//!
//! Why one at a time: the attack suite and the demonstration measure rates, which a step beside them spoils.

mod steps;

use crate::shell;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use steps::{BUDGET_MINUTES, STEPS, Step};

/// How many steps run at a time.
const AT_A_TIME: usize = 1;
/// Where the output of steps goes.
const LOGS: &str = "target/ci-logs";

/// How far a step is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    Running,
    Ended { passed: bool },
}

impl Progress {
    const fn is_ended(self) -> bool {
        matches!(self, Self::Ended { .. })
    }
}

/// The step at `at` has ended.
struct Ended {
    at: usize,
    passed: bool,
    took: Duration,
}

/// Runs all steps and fails when one did.
pub(crate) fn run(root: &Path) -> Result<()> {
    let start = Instant::now();
    fs::create_dir_all(root.join(LOGS)).with_context(|| format!("{LOGS} could not be made"))?;
    let mut progress = vec![Progress::Waiting; STEPS.len()];
    let (sender, ended) = channel();
    while !progress.iter().all(|progress| progress.is_ended()) {
        while let Some(at) = next(&progress) {
            progress[at] = Progress::Running;
            begin(root, at, start, sender.clone());
        }
        let Ended { at, passed, took } = ended.recv().context("a step ended without a word")?;
        progress[at] = Progress::Ended { passed };
        show(root, at, passed, took);
    }
    let failed: Vec<&str> = STEPS
        .iter()
        .zip(&progress)
        .filter(|(_, progress)| **progress == Progress::Ended { passed: false })
        .map(|(step, _)| step.title)
        .collect();
    let took = start.elapsed();
    let budget = Duration::from_secs(BUDGET_MINUTES * 60);
    eprintln!();
    eprintln!("ci: {} of its budget of {BUDGET_MINUTES} minutes{}", minutes(took), if took > budget { ": OVER BUDGET" } else { "" });
    if failed.is_empty() {
        eprintln!("ci: all {} steps passed", STEPS.len());
        return Ok(());
    }
    bail!("ci: {} of {} steps failed: {}; their output is in {LOGS}", failed.len(), STEPS.len(), failed.join(", "))
}

/// The step to start now, if one may.
fn next(progress: &[Progress]) -> Option<usize> {
    let running = progress.iter().filter(|progress| **progress == Progress::Running).count();
    let has_ended = |title: &&str| STEPS.iter().zip(progress).any(|(step, progress)| step.title == *title && progress.is_ended());
    let may_start = |at: &usize| progress[*at] == Progress::Waiting && STEPS[*at].after.iter().all(has_ended);
    (running < AT_A_TIME).then(|| (0..STEPS.len()).find(may_start)).flatten()
}

/// Starts the step at `at`; its end is told to `sender`.
fn begin(root: &Path, at: usize, start: Instant, sender: Sender<Ended>) {
    eprintln!("=== {} at {}: {}", STEPS[at].title, minutes(start.elapsed()), STEPS[at].printed());
    let (root, began) = (root.to_owned(), Instant::now());
    thread::spawn(move || {
        let passed = passes(&root, &STEPS[at]).unwrap_or_else(|error| {
            eprintln!("{error:#}");
            false
        });
        // The receiver is gone only when the whole run is.
        let _ = sender.send(Ended { at, passed, took: began.elapsed() });
    });
}

fn passes(root: &Path, step: &Step) -> Result<bool> {
    let log = log_of(root, step);
    let file = File::create(&log).with_context(|| format!("{} could not be written", log.display()))?;
    // Why: through cargo, a check of ours would wait until no other step builds. This program is the same one.
    let own = std::env::current_exe().context("the path of this program is not known")?;
    match step.command.strip_prefix("cargo xtask ") {
        Some(rest) => shell::succeeds_into(root, &format!("{} {rest}", own.display()), step.environment, file),
        None => shell::succeeds_into(root, step.command, step.environment, file),
    }
}

/// Prints what the step has printed.
fn show(root: &Path, at: usize, passed: bool, took: Duration) {
    let step = &STEPS[at];
    eprintln!("\n$ {}", step.printed());
    let text = fs::read(log_of(root, step)).unwrap_or_default();
    // Nothing can be done when nobody reads.
    let _ = std::io::stderr().write_all(&text);
    eprintln!("--- {}: {} in {:.1} s", step.title, if passed { "passed" } else { "FAILED" }, took.as_secs_f64());
}

fn log_of(root: &Path, step: &Step) -> PathBuf {
    root.join(LOGS).join(format!("{}.txt", step.title.replace(' ', "_")))
}

fn minutes(duration: Duration) -> String {
    format!("{}:{:02} min", duration.as_secs() / 60, duration.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_steps_run_than_may_and_none_before_what_it_waits_for() {
        let mut progress = vec![Progress::Waiting; STEPS.len()];
        let mut order = Vec::new();
        while order.len() < STEPS.len() {
            while let Some(at) = next(&progress) {
                progress[at] = Progress::Running;
                assert!(STEPS[at].after.iter().all(|title| order.contains(title)), "{}", STEPS[at].title);
            }
            let running: Vec<usize> = (0..STEPS.len()).filter(|at| progress[*at] == Progress::Running).collect();
            assert!((1..=AT_A_TIME).contains(&running.len()));
            let ends = running[running.len() - 1];
            progress[ends] = Progress::Ended { passed: true };
            order.push(STEPS[ends].title);
        }
    }
}
