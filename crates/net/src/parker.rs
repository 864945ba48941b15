//! How an idle thread sleeps, and how another wakes it.
//!
//! Called by the workers of a staged run and by the threads of a driver.
//!
//! Invariant: no wake-up is lost. The sleeping thread stores its state, checks once more for work, then parks. The waking
//! thread changes something, then loads that state. A full fence separates the two steps of each, so at least one thread sees
//! what the other has stored. `verify/wakeups` tries every order of these steps.

use crate::sync::{AtomicU8, Ordering, Thread, current, fence, park, park_timeout};
use std::sync::OnceLock;
use std::time::Duration;

const AWAKE: u8 = 0;
/// Asleep, and not waiting for room in a queue.
const PARKED: u8 = 1;
/// Asleep, with messages that wait for room in a queue.
const PARKED_FOR_ROOM: u8 = 2;

/// Where one thread sleeps.
#[derive(Debug, Default)]
pub(crate) struct Parker {
    state: AtomicU8,
    thread: OnceLock<Thread>,
}

impl Parker {
    /// Registers the calling thread as the one that sleeps here. It calls this once, before its first sleep.
    pub(crate) fn register(&self) {
        // Why the result is ignored: a thread registers once.
        let _ = self.thread.set(current());
    }

    /// Sleeps until woken, for at most `at_most`, unless `look_again` finds something to do.
    pub(crate) fn sleep(&self, held: bool, at_most: Option<Duration>, look_again: impl FnOnce() -> bool) {
        self.state.store(if held { PARKED_FOR_ROOM } else { PARKED }, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !look_again() {
            match at_most {
                Some(span) => park_timeout(span),
                None => park(),
            }
        }
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Wakes the thread if it sleeps. The caller needs a full fence between its change and this call; the thread then sees the change.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.state.load(Ordering::Relaxed) != AWAKE {
            self.unpark();
        }
    }

    /// Wakes the thread if it sleeps and waits for room.
    #[inline]
    #[cfg(feature = "staged")]
    pub(crate) fn wake_for_room(&self) {
        if self.state.load(Ordering::Relaxed) == PARKED_FOR_ROOM {
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
