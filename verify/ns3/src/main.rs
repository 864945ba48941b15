//! Our black box beside ns-3's: the same packets, at the same times, over both.
//!
//! Run by people and by `ci`: `cargo run -p segstream-ns3`. It compiles `black_box.cpp` against the ns-3 that is installed, and says that it
//! is skipped where there is none; `SEGSTREAM_REQUIRE_NS3` makes that a failure.
//!
//! - `cases`: what is sent over what; `ours`, `theirs`: the two boxes; `comparison`: what must agree, and how far.
//!
//! Invariant: what is deterministic agrees packet by packet; what is drawn agrees within the intervals of as many runs.

mod cases;
mod comparison;
mod ours;
mod theirs;

use anyhow::{Result, bail};
use cases::CASES;
use std::process::ExitCode;
use theirs::Ns3;

/// When each packet has arrived, in nanoseconds; `None` if it was lost or dropped.
type Outcome = Vec<Option<u64>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("segstream-ns3: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let Some(ns3) = Ns3::build()? else {
        if std::env::var_os("SEGSTREAM_REQUIRE_NS3").is_some() {
            bail!("ns-3 is not installed; install it (package libns3-dev)");
        }
        eprintln!("skipped: ns-3 is not installed (package libns3-dev)");
        return Ok(());
    };
    let mut differ = Vec::new();
    eprintln!("{:<28} {:<26} {:>22} {:>22}", "case", "measure", "ours", "ns-3");
    for case in CASES {
        let agrees = comparison::compare(case, &ns3)?;
        if !agrees {
            differ.push(case.name);
        }
    }
    if differ.is_empty() {
        eprintln!("{} cases agree", CASES.len());
        return Ok(());
    }
    bail!("{} of {} cases do not agree: {}", differ.len(), CASES.len(), differ.join(", "))
}
