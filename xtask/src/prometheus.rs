//! `cargo xtask prometheus`: Prometheus scrapes the command for a minute.
//!
//! Called by people; `cargo test` runs the same test where Prometheus is installed. It must be here: without `prometheus` and `promtool` this
//! step fails.

use crate::shell;
use anyhow::{Result, bail};
use std::path::Path;

const COMMAND: &str = "cargo test -p segstream-cli --test command -- prometheus:: --nocapture";

/// Runs the test for so many seconds.
pub(crate) fn run(root: &Path, seconds: &str) -> Result<()> {
    let environment = [("SEGSTREAM_REQUIRE_PROMETHEUS", "1"), ("SEGSTREAM_PROMETHEUS_SECONDS", seconds)];
    eprintln!("$ SEGSTREAM_REQUIRE_PROMETHEUS=1 SEGSTREAM_PROMETHEUS_SECONDS={seconds} {COMMAND}");
    if !shell::succeeds(root, COMMAND, &environment)? {
        bail!("Prometheus and the results do not agree; install the package prometheus if it is missing");
    }
    Ok(())
}
