//! The machine that a measurement was made on.
//!
//! Called by the command line and the benchmarks, with their results.
//!
//! Invariant: no host name and no path.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What is told of a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
    architecture: String,
}

impl Machine {
    /// This machine; *unknown* where the system does not tell.
    pub fn here() -> Self {
        let unknown = || "unknown".to_owned();
        let file = |path: &str| std::fs::read_to_string(path).ok();
        let cpu = file("/proc/cpuinfo").and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
        let kernel = file("/proc/sys/kernel/osrelease").map(|release| format!("{} {}", std::env::consts::OS, release.trim()));
        Self {
            cpu: cpu.unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: kernel.unwrap_or_else(|| std::env::consts::OS.to_owned()),
            architecture: std::env::consts::ARCH.to_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} cores, {}, {}", self.cpu, self.cores, self.kernel, self.architecture)
    }
}
