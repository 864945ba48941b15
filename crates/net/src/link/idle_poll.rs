//! Threads that keep the processors of a virtual machine from halting while datagrams are on their way: idle polling.
//!
//! Called by `cpu_latency`, for as long as there is traffic.
//!
//! A processor with nothing to do halts. A halted virtual processor gives its real one back, and runs again only when the host has
//! scheduled it, which on a busy host takes milliseconds: `/proc/stat` counts them as stolen. The kernel polls instead when it is
//! asked for zero wake-up latency, but only with an idle driver, and a virtual machine often has none. So one thread for each
//! processor spins at the lowest priority there is, `SCHED_IDLE`: any other thread preempts it as soon as it wakes. Its nice value says
//! so to those who look at the processors: `/proc/stat` and `top` count it apart from what is busy.
//!
//! Sources: sched(7) `SCHED_IDLE`, the kernel's parameter `idle=poll`, `/sys/devices/system/cpu/cpuidle/current_driver`.
//!
//! Invariant: a refusal is no error, and the threads end soon after the value.
//!
//! Limit: Linux, and at most [`PROCESSORS`] processors; elsewhere nothing spins.

#[cfg(target_os = "linux")]
use crate::pinning;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// So many processors are kept from halting at most. Why: a link and its two ends keep no more than three busy, and the kernel wakes a
/// thread where it ran before.
#[cfg(target_os = "linux")]
const PROCESSORS: usize = 8;

/// The threads that spin, until this is dropped.
#[derive(Debug)]
pub(super) struct IdlePoll {
    ended: Arc<AtomicBool>,
}

impl IdlePoll {
    /// Begins to spin where processors halt whatever wake-up latency is requested; `None` where they do not, or where the system permits
    /// no thread of idle priority.
    #[cfg(target_os = "linux")]
    pub(super) fn begin() -> Option<Self> {
        let has_driver =
            std::fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_driver").is_ok_and(|driver| driver.trim() != "none");
        if has_driver {
            return None;
        }
        let ended = Arc::new(AtomicBool::new(false));
        let processors = pinning::permitted().into_iter().take(PROCESSORS);
        let spinning = processors.filter(|processor| linux::spin_on(*processor, &ended)).count();
        (spinning > 0).then_some(Self { ended })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn begin() -> Option<Self> {
        None
    }
}

impl Drop for IdlePoll {
    fn drop(&mut self) {
        // Why not joined: on a busy processor a thread of idle priority waits long for its turn, and the relay must not.
        self.ended.store(true, Ordering::Relaxed);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{Arc, AtomicBool, Ordering, pinning};
    use std::hint::black_box;
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
    };

    const IDLE: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);

    /// The highest nice value. The thread's only, as all of Linux are.
    const NICE: i32 = 19;

    /// How many additions a thread makes before it looks again whether it is to end: a few microseconds.
    const ADDITIONS: u32 = 10_000;

    /// Starts a thread that spins on `processor` until `ended`, at idle priority or not at all. Returns whether it could be started.
    pub(super) fn spin_on(processor: usize, ended: &Arc<AtomicBool>) -> bool {
        let ended = ended.clone();
        let spin = move || {
            let is_idle = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, IDLE).is_ok();
            if !is_idle || !pinning::pin_to(processor) {
                return;
            }
            let _ = rustix::process::nice(NICE);
            while !ended.load(Ordering::Relaxed) {
                // Why no spin-loop hint: a host takes a virtual processor that pauses for one that waits in vain, and deschedules it.
                let mut sum = 0u32;
                for addition in 0..ADDITIONS {
                    sum = black_box(sum.wrapping_add(addition));
                }
            }
        };
        std::thread::Builder::new().name(format!("idle-poll-{processor}")).spawn(spin).is_ok()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::path::Path;

    fn is_idle_poll(task: &Path) -> bool {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("idle-poll"))
    }

    /// The scheduling policy of a task: field 41 of proc_pid_stat(5).
    fn policy(task: &Path) -> Option<u32> {
        let stat = std::fs::read_to_string(task.join("stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(38)?.parse().ok()
    }

    #[test]
    fn the_threads_spin_at_idle_priority_and_end_soon_after_the_value() {
        const SCHED_IDLE: u32 = 5;
        let Some(poll) = IdlePoll::begin() else { return };
        let begun = std::time::Instant::now();
        let all_idle = || {
            let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return false };
            let mut tasks = tasks.flatten().map(|task| task.path()).filter(|task| is_idle_poll(task)).peekable();
            tasks.peek().is_some() && tasks.all(|task| policy(&task) == Some(SCHED_IDLE))
        };
        let wait_for = |what: &str, is_so: &dyn Fn() -> bool| {
            while !is_so() {
                assert!(begun.elapsed().as_secs() < 60, "{what}");
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        };
        wait_for("a thread does not have idle priority", &all_idle);
        let ended = poll.ended.clone();
        drop(poll);
        wait_for("a thread goes on", &|| Arc::strong_count(&ended) == 1);
    }
}
