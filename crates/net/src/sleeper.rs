//! How an idle thread sleeps, and how another wakes it.
//!
//! Called by the workers of a staged run and by the threads of a driver.
//!
//! Invariant: a wake is never lost. Who sleeps says so, then looks once more, then parks; who changes something
//! changes it, then looks whether the other sleeps. Between the two steps of each lies a full fence, so at least one
//! of them sees the other. `verify/wakeups` tries every order of these steps.

use crate::sync::{AtomicU8, Ordering, Thread, current, fence, park, park_timeout};
use std::sync::OnceLock;
use std::time::Duration;

const AWAKE: u8 = 0;
/// Asleep; room in a queue is of no interest.
const IDLE: u8 = 1;
/// Asleep with messages that wait for room.
const HELD: u8 = 2;

/// One thread's place to sleep.
#[derive(Debug, Default)]
pub(crate) struct Sleeper {
    state: AtomicU8,
    thread: OnceLock<Thread>,
}

impl Sleeper {
    /// Says which thread this is; called once by it, before it sleeps.
    pub(crate) fn enter(&self) {
        // Why: a thread is entered once, so there is nothing to refuse.
        let _ = self.thread.set(current());
    }

    /// Sleeps until woken, for at most `at_most`, unless `look_again` finds something to do.
    pub(crate) fn sleep(&self, held: bool, at_most: Option<Duration>, look_again: impl FnOnce() -> bool) {
        self.state.store(if held { HELD } else { IDLE }, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !look_again() {
            match at_most {
                Some(span) => park_timeout(span),
                None => park(),
            }
        }
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Wakes it if it sleeps. What was changed before a full fence before this call is seen by it.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.state.load(Ordering::Relaxed) != AWAKE {
            self.unpark();
        }
    }

    /// Wakes it if it sleeps and waits for room.
    #[inline]
    #[cfg(feature = "staged")]
    pub(crate) fn wake_for_room(&self) {
        if self.state.load(Ordering::Relaxed) == HELD {
            self.unpark();
        }
    }

    #[cold]
    fn unpark(&self) {
        if self.state.swap(AWAKE, Ordering::Relaxed) != AWAKE
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}
