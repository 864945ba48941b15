//! The resources that a process has used: memory and processor time.
//!
//! Read in the victim's own process. Source: proc(5), `VmRSS` of /proc/self/status; clock_gettime(2),
//! `CLOCK_PROCESS_CPUTIME_ID`.
//!
//! Invariant: what the process holds of the kernel's (socket buffers) is not counted; it is bounded by the kernel.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// The resources that a process has used.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// Memory that is resident, now.
    pub resident_bytes: u64,
    /// Time on processors, total.
    pub cpu_seconds: f64,
}

impl ResourceUsage {
    /// Of this process.
    pub fn read() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Self { resident_bytes: kilobytes.unwrap_or(0) * 1024, cpu_seconds: time.tv_sec as f64 + time.tv_nsec as f64 / 1e9 }
    }

    /// How much more is resident than was at `before`.
    pub const fn growth_bytes(&self, before: &Self) -> u64 {
        self.resident_bytes.saturating_sub(before.resident_bytes)
    }
}
