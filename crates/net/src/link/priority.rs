//! A better place on the processor for the thread that relays.
//!
//! Called by the relay for as long as it runs; the report says what came of it.
//!
//! The relay asks for the lowest real-time priority: any real-time thread is preferred to every other thread of
//! the machine as soon as it wakes. Where that is not allowed it asks for the highest niceness, which helps
//! less: where sessions are grouped it only weighs within the session.
//!
//! Sources: sched(7) `SCHED_FIFO` and autogroups, setpriority(2) (on Linux the niceness of one thread), prctl(2)
//! `PR_SET_TIMERSLACK`.
//!
//! Invariant: failing is no error, and what was changed is changed back. A thread that is real-time already is
//! left as it is.
//!
//! Limit: Linux; elsewhere nothing is changed, because the niceness would be that of the whole process.

/// What the relay's thread is preferred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Everything that is not real-time.
    Realtime,
    /// Other threads of its session, by the highest niceness.
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
    /// What the system has allowed.
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

    /// What to change back.
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
        // Why after the policy: going back to it sets a niceness too.
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
