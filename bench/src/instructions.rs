//! Instructions: from the processor's counter where the system lends it, else from callgrind on request.

use anyhow::{Context, Result, bail};
use std::process::Command;

/// Counts the instructions of this thread in user mode, where the system allows it.
pub(crate) struct Counter {
    #[cfg(target_os = "linux")]
    counter: Option<perf_event::Counter>,
}

impl Counter {
    /// A counter; one that counts nothing where there is none.
    pub(crate) fn new() -> Self {
        #[cfg(target_os = "linux")]
        {
            use perf_event::{Builder, events::Hardware};
            Self { counter: Builder::new(Hardware::INSTRUCTIONS).build().ok() }
        }
        #[cfg(not(target_os = "linux"))]
        Self {}
    }

    /// Runs `work`; its instructions, if they can be counted.
    pub(crate) fn count(&mut self, work: impl FnOnce()) -> Option<u64> {
        #[cfg(target_os = "linux")]
        if let Some(counter) = &mut self.counter
            && counter.reset().is_ok()
            && counter.enable().is_ok()
        {
            work();
            counter.disable().ok()?;
            // A counter that never ran reads zero.
            return counter.read().ok().filter(|&count| count > 0);
        }
        work();
        None
    }
}

/// Runs this program again under callgrind, as `arguments` say, and counts the instructions inside of
/// functions whose name ends with `function`.
pub(crate) fn with_callgrind(function: &str, arguments: &[&str]) -> Result<u64> {
    let program = std::env::current_exe().context("the program does not know where it lies")?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", &format!("--toggle-collect=*{function}*")])
        .arg(program)
        .args(arguments)
        .output()
        .context("valgrind could not be started; install it, or leave --callgrind out")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    match collected {
        Some(count) if output.status.success() => Ok(count),
        _ => bail!("callgrind did not say how many instructions it collected:\n{text}"),
    }
}
