//! `cargo xtask ci`: every step continuous integration runs.
//!
//! Called by `.ci/run`. A step is a command that is printed before it runs, so that a person can paste it. A failed step does not
//! stop the others: one run shows everything that is wrong. At the end a table says how long each step took.
//!
//! Why one after another: nearly every step is cargo, which uses all processors by itself and holds a lock on the build directory
//! that the next one would wait for; and steps that measure rates or times are spoiled by anything beside them.

mod processor_time;
mod steps;

use crate::shell;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::time::{Duration, Instant};
use steps::{BUDGET_MINUTES, STEPS, Step};

/// The result of a step.
struct Ended {
    step: &'static Step,
    passed: bool,
    took: Duration,
    /// Of all processors together, where the system tells.
    processor: Option<Duration>,
}

/// Runs all steps and fails when one did.
pub(crate) fn run(root: &Path) -> Result<()> {
    let start = Instant::now();
    let ended: Vec<Ended> = STEPS.iter().map(|step| run_step(root, step)).collect();
    let took = start.elapsed();
    eprintln!("\n{}", table(&ended));
    let budget = Duration::from_secs(BUDGET_MINUTES * 60);
    eprintln!("ci: {} of its budget of {BUDGET_MINUTES} minutes{}", minutes(took), if took > budget { ": OVER BUDGET" } else { "" });
    let failed: Vec<&str> = ended.iter().filter(|ended| !ended.passed).map(|ended| ended.step.title).collect();
    if failed.is_empty() {
        eprintln!("ci: all {} steps passed", STEPS.len());
        return Ok(());
    }
    bail!("ci: {} of {} steps failed: {}", failed.len(), STEPS.len(), failed.join(", "))
}

fn run_step(root: &Path, step: &'static Step) -> Ended {
    eprintln!("\n=== {}\n$ {}", step.title, step.printed());
    let (began, before) = (Instant::now(), processor_time::of_children());
    let passed = passes(root, step).unwrap_or_else(|error| {
        eprintln!("{error:#}");
        false
    });
    let took = began.elapsed();
    let processor = processor_time::of_children().zip(before).map(|(after, before)| after.saturating_sub(before));
    eprintln!("--- {}: {} in {:.1} s", step.title, if passed { "passed" } else { "FAILED" }, took.as_secs_f64());
    Ended { step, passed, took, processor }
}

fn passes(root: &Path, step: &Step) -> Result<bool> {
    // Why not through cargo: this program is the same one, and it is built.
    let own = std::env::current_exe().context("the path of this program is not known")?;
    match step.command.strip_prefix("cargo xtask ") {
        Some(rest) => shell::succeeds(root, &format!("{} {rest}", own.display()), step.environment),
        None => shell::succeeds(root, step.command, step.environment),
    }
}

/// How long each step took, by the clock and on processors.
fn table(ended: &[Ended]) -> String {
    let mut lines = vec![format!("{:<36} {:>9} {:>9}", "step", "clock", "processor")];
    for Ended { step, passed, took, processor } in ended {
        let seconds = |span: Duration| format!("{:.0} s", span.as_secs_f64());
        let processor = processor.map_or_else(|| "-".to_owned(), seconds);
        lines.push(format!("{:<36} {:>9} {processor:>9}{}", step.title, seconds(*took), if *passed { "" } else { "  FAILED" }));
    }
    lines.join("\n")
}

fn minutes(duration: Duration) -> String {
    format!("{}:{:02} min", duration.as_secs() / 60, duration.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_step_and_names_the_failed() {
        let ended = |passed| Ended { step: &STEPS[0], passed, took: Duration::from_secs(61), processor: Some(Duration::from_secs(100)) };
        let text = table(&[ended(true), ended(false)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with(STEPS[0].title) && lines[1].ends_with("61 s     100 s"), "{text}");
        assert!(lines[2].ends_with("FAILED"), "{text}");
    }
}
