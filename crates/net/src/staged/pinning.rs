//! Processor affinity: pins a thread of a staged run to one processor.
//!
//! Called by the workers when [`super::StagedOptions::pin`] asks for it. Limit: Linux.
//!
//! Invariant: a refusal is no error; the thread is then not pinned, and the report says so.

/// Pins the calling thread to processor `thread`, modulo their number, of those it may use. Returns whether it succeeded.
#[cfg(target_os = "linux")]
pub(super) fn pin(thread: usize) -> bool {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else {
        return false;
    };
    let usable: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let Some(cpu) = usable.get(thread % usable.len().max(1)) else {
        return false;
    };
    let mut one = CpuSet::new();
    one.set(*cpu);
    sched_setaffinity(None, &one).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn pin(_thread: usize) -> bool {
    false
}
