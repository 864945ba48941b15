//! Processor affinity: which processors this process may use, and pinning a thread to one of them.
//!
//! Called by the workers of a staged run and by the link's threads of idle priority. Limit: Linux.
//!
//! Invariant: a refusal is no error; the thread is then not pinned, and the caller says so.

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that the calling thread may use, in ascending order; none where the system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn permitted() -> Vec<usize> {
    let Ok(permitted) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|processor| permitted.is_set(*processor)).collect()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn permitted() -> Vec<usize> {
    Vec::new()
}

/// Pins the calling thread to `processor`. Returns whether it succeeded.
#[cfg(target_os = "linux")]
pub(crate) fn pin_to(processor: usize) -> bool {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_to(_processor: usize) -> bool {
    false
}
