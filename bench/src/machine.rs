//! The machine a measurement was made on, without which a number means nothing, and its clock.

use serde::Serialize;
use std::fmt;

/// What is printed of the machine. No host name and no path.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
    architecture: &'static str,
}

impl Machine {
    /// This machine; *unknown* where the system does not tell.
    pub(crate) fn here() -> Self {
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
            architecture: std::env::consts::ARCH,
        }
    }
}

/// Nanoseconds of processor time this thread has used, so that other work on the machine is not counted; the
/// time of day where the system does not tell.
pub(crate) fn processor_time() -> f64 {
    #[cfg(target_os = "linux")]
    {
        use nix::time::{ClockId, clock_gettime};
        let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
        time.map_or(f64::NAN, |time| time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64)
    }
    #[cfg(not(target_os = "linux"))]
    {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0.0, |since| since.as_nanos() as f64)
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} cores, {}, {}", self.cpu, self.cores, self.kernel, self.architecture)
    }
}
