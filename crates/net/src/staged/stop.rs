//! How a staged run is ended: by any thread, or by a stage of it.
//!
//! Held by whoever starts a run and by the stage that knows when all is done.
//!
//! Invariant: once set, every thread of the run ends after the turn it is in, asleep or awake, held or not.

use crate::sleeper::Sleeper;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// Ends one run. Copies end the same run; a second run needs a stop of its own, else it ends at once.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    set: AtomicBool,
    sleepers: OnceLock<Arc<[Sleeper]>>,
}

impl Stop {
    /// Not set yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the run. One that has not begun will end at once.
    pub fn stop(&self) {
        self.shared.set.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        for sleeper in self.shared.sleepers.get().into_iter().flat_map(|sleepers| sleepers.iter()) {
            sleeper.wake();
        }
    }

    /// Whether the run is to end, or has.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.shared.set.load(Ordering::Relaxed)
    }

    /// Names the threads that are to be woken. A stop serves one run: a second with the same ends at once.
    pub(super) fn wakes(&self, sleepers: Arc<[Sleeper]>) {
        if self.shared.sleepers.set(sleepers).is_err() {
            self.stop();
        }
    }
}
