//! Ends a staged run, from any thread or from a stage.
//!
//! Held by the caller of [`super::run`] and by the stage that knows when the run is complete.
//!
//! Invariant: once it is set, every thread of the run ends after its present turn, even if it sleeps or its stages are blocked.

use crate::parker::Parker;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// Ends one run. Copies end the same run. A second run needs its own stop; with this one it would end at once.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    set: AtomicBool,
    parkers: OnceLock<Arc<[Parker]>>,
}

impl Stop {
    /// Not set yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the run. A run that has not begun ends at once.
    pub fn stop(&self) {
        self.shared.set.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        for parker in self.shared.parkers.get().into_iter().flat_map(|parkers| parkers.iter()) {
            parker.wake();
        }
    }

    /// Whether it is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.shared.set.load(Ordering::Relaxed)
    }

    /// Registers the threads to wake. A stop serves one run; a second run with the same stop ends at once.
    pub(super) fn wakes(&self, parkers: Arc<[Parker]>) {
        if self.shared.parkers.set(parkers).is_err() {
            self.stop();
        }
    }
}
