//! How the I/O threads wake a driver that sleeps.
//!
//! Owned by [`super::io_threads`]; called by the threads that send and receive.
//!
//! Invariant: no wake-up is lost. The driver stores what it waits for, then checks once more whether that is there. An I/O thread
//! makes it available, then loads what the driver waits for. A full fence separates the two steps of each, so at least one of
//! them sees what the other has stored. `verify/wakeups` tries every order of these steps.

use crate::sync::{AtomicBool, Ordering, fence};
use crate::wake::Waker;

/// Wakes a driver that sleeps.
#[derive(Debug)]
pub(super) struct Notifier {
    arrivals_wanted: AtomicBool,
    room_wanted: AtomicBool,
    waker: Waker,
}

/// What a sleeping driver waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Datagrams from the thread that receives.
    pub(super) arrivals: bool,
    /// Room in the queue of the thread that sends.
    pub(super) room: bool,
}

impl Notifier {
    /// A notifier that wakes the listener of `waker`.
    pub(super) fn new(waker: Waker) -> Self {
        Self { arrivals_wanted: AtomicBool::new(false), room_wanted: AtomicBool::new(false), waker }
    }

    /// Sleeps by calling `wait`. Its argument says whether something is available already; then it must not block. Otherwise it
    /// must end when the listener is woken. `is_ready` says whether something in `wanted` is available.
    pub(super) fn sleep<T>(&self, wanted: Wanted, is_ready: impl FnOnce() -> bool, wait: impl FnOnce(bool) -> T) -> T {
        self.arrivals_wanted.store(wanted.arrivals, Ordering::Relaxed);
        self.room_wanted.store(wanted.room, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let ended = wait(is_ready());
        self.arrivals_wanted.store(false, Ordering::Relaxed);
        self.room_wanted.store(false, Ordering::Relaxed);
        ended
    }

    /// Datagrams have been handed to the driver.
    pub(super) fn notify_arrivals(&self) {
        Self::notify(&self.arrivals_wanted, &self.waker);
    }

    /// There is room for datagrams of the driver.
    pub(super) fn notify_room(&self) {
        Self::notify(&self.room_wanted, &self.waker);
    }

    fn notify(wanted: &AtomicBool, waker: &Waker) {
        fence(Ordering::SeqCst);
        if wanted.load(Ordering::Relaxed) && wanted.swap(false, Ordering::Relaxed) {
            waker.wake();
        }
    }
}
