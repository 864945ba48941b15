//! The processor of an end: which it stays on, what it has spent, how much memory it holds, and the clock both ends share.
//!
//! Called by the ends, and for the processors that can be used by whoever starts them.
//!
//! Invariant: processor time is that of the whole process, in user mode and in the system.
//!
//! Source: clock_gettime(2), sched_setaffinity(2), proc(5).

use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Processor time this process has used.
pub(super) fn time() -> Duration {
    span(ClockId::ProcessCPUTime)
}

/// The time of the machine that does not jump, the same in every process of it.
pub(super) fn monotonic() -> Duration {
    span(ClockId::Monotonic)
}

fn span(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The processors this process may run on, the lowest first; none where the system does not tell.
pub(in crate::bench) fn usable() -> Vec<usize> {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_getaffinity};
        let set = sched_getaffinity(None);
        set.map_or_else(|_| Vec::new(), |set| (0..CpuSet::MAX_CPU).filter(|&at| set.is_set(at)).collect())
    }
    #[cfg(not(target_os = "linux"))]
    Vec::new()
}

/// Keeps this process on one processor.
///
/// # Errors
/// When there is no such processor, or the system cannot do it.
pub(super) fn stay_on(processor: usize) -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_setaffinity};
        anyhow::ensure!(usable().contains(&processor), "this process may not run on processor {processor}; leave --cpu out");
        let mut set = CpuSet::new();
        set.set(processor);
        sched_setaffinity(None, &set).with_context(|| format!("the system does not keep this process on processor {processor}"))
    }
    #[cfg(not(target_os = "linux"))]
    anyhow::bail!("only Linux keeps a process on processor {processor}; leave --cpu out")
}

/// The memory of this process that is in use, in bytes.
///
/// # Errors
/// Where the system does not tell.
pub(super) fn resident_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("the system does not tell the process's memory")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the system does not tell the process's memory")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim_end().parse().context("the process's memory cannot be read")?;
    Ok(kibibytes * 1024)
}
