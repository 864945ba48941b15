//! Real-time scheduling, or a better niceness, for the thread that relays.
//!
//! Called by the relay for as long as it runs; the report says which it got.
//!
//! The relay requests the lowest real-time priority: any real-time thread preempts every normal thread as soon as it wakes. If that
//! is not permitted it requests the best niceness, which helps less: with autogroups it counts within the session only.
//!
//! Sources: sched(7) `SCHED_FIFO` and autogroups, setpriority(2) (on Linux the niceness of one thread), prctl(2)
//! `PR_SET_TIMERSLACK`.
//!
//! Invariant: a refusal is no error, and what was changed is restored. A thread that is real-time already is left as it is.
//!
//! Limit: Linux; elsewhere nothing is changed, because niceness would be that of the whole process.

/// How the relay's thread is scheduled: which threads it is preferred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Everything that is not real-time.
    Realtime,
    /// Other threads of its session, by the best niceness.
    Nice,
    /// Nothing: the system allowed neither.
    Unchanged,
}

/// The raised priority of this thread, until it is dropped.
#[derive(Debug)]
pub(super) struct RaisedPriority {
    raised: Priority,
    #[cfg(target_os = "linux")]
    before: linux::Before,
}

impl RaisedPriority {
    /// What the system has permitted.
    pub(super) fn raised(&self) -> Priority {
        self.raised
    }

    #[cfg(target_os = "linux")]
    pub(super) fn of_this_thread() -> Self {
        let (raised, before) = linux::raise();
        Self { raised, before }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn of_this_thread() -> Self {
        Self { raised: Priority::Unchanged }
    }
}

#[cfg(target_os = "linux")]
impl Drop for RaisedPriority {
    fn drop(&mut self) {
        linux::restore(&self.before);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::Priority;
    use rustix::process::{getpriority_process, setpriority_process};
    use rustix::thread::{current_timer_slack, set_current_timer_slack};
    use std::num::NonZeroU64;
    use thread_priority::{
        NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id, thread_schedule_policy,
    };

    const FIFO: ThreadSchedulePolicy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    const OTHER: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);

    /// The state to restore.
    #[derive(Debug, Default)]
    pub(super) struct Before {
        realtime: bool,
        nice: Option<i32>,
        timer_slack: Option<u64>,
    }

    pub(super) fn raise() -> (Priority, Before) {
        let mut before = Before { timer_slack: current_timer_slack().ok(), ..Before::default() };
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let nice = getpriority_process(None).ok();
        let raised = match thread_schedule_policy() {
            Ok(ThreadSchedulePolicy::Realtime(_)) => Priority::Realtime,
            Ok(OTHER) if set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, FIFO).is_ok() => {
                before = Before { realtime: true, nice, ..before };
                Priority::Realtime
            }
            _ if nice.is_some() && setpriority_process(None, -20).is_ok() => {
                before.nice = nice;
                Priority::Nice
            }
            _ => Priority::Unchanged,
        };
        (raised, before)
    }

    pub(super) fn restore(before: &Before) {
        if before.realtime {
            let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, OTHER);
        }
        // Why after the policy: restoring the policy sets a niceness too.
        if let Some(nice) = before.nice {
            let _ = setpriority_process(None, nice);
        }
        if let Some(slack) = before.timer_slack {
            let _ = set_current_timer_slack(NonZeroU64::new(slack));
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;
    use rustix::thread::current_timer_slack;
    use thread_priority::thread_schedule_policy;

    #[test]
    fn what_was_changed_is_changed_back() {
        let now = || (thread_schedule_policy().ok(), getpriority_process(None).ok(), current_timer_slack().ok());
        let before = now();
        let priority = RaisedPriority::of_this_thread();
        if priority.raised() == Priority::Realtime {
            assert_ne!(now(), before);
        }
        drop(priority);
        assert_eq!(now(), before);
    }
}
