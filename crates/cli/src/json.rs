//! Objects of JSON: the one of a verb, and those that come while it runs.
//!
//! Called by the verbs when `--json`, `--stats` or `--segments-json` is given.
//!
//! Invariant: an object takes one line.

use anyhow::{Context as _, Result};
use serde::Serialize;
use std::io::{self, Write as _};
use std::time::SystemTime;

/// Prints `value` as one line on standard output.
pub(crate) fn print(value: &impl Serialize) -> Result<()> {
    let line = line(value)?;
    let mut out = io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).context("standard output cannot be written")
}

/// Prints `value` as one line on standard error, for when standard output carries data.
pub(crate) fn print_to_standard_error(value: &impl Serialize) -> Result<()> {
    io::stderr().lock().write_all(&line(value)?).context("standard error cannot be written")
}

/// The time of day, in milliseconds since 1970, as lines of JSON tell it.
pub(crate) fn unix_ms() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (since.as_secs_f64() * 1e6).round() / 1e3
}

/// `value` as one line.
pub(crate) fn line(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value).context("the result cannot be written as JSON")?;
    line.push(b'\n');
    Ok(line)
}
