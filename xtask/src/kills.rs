//! `cargo xtask kills`: a transfer of 2 GB of mixed files, either end of which is killed twenty times at random moments.
//!
//! Called by people, not by `ci`: it takes minutes and 4 GB of disk, where the system keeps temporary files.

use crate::shell;
use anyhow::{Result, bail};
use std::path::Path;

/// The test, optimised. Why: without optimisation the processor would limit the transfer, and not the protocol.
const COMMAND: &str = "cargo test --release -p segstream-cli --test command -- --ignored --nocapture twenty_kills";

/// Runs it.
pub(crate) fn run(root: &Path) -> Result<()> {
    eprintln!("$ {COMMAND}");
    if !shell::succeeds(root, COMMAND, &[])? {
        bail!("kills: failed: {COMMAND}");
    }
    Ok(())
}
