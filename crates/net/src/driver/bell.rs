//! What wakes a driver that sleeps when its threads have something for it.
//!
//! Owned by [`super::functions`], and rung by the threads that send and receive.
//!
//! Invariant: no wake-up is lost. Whoever sleeps says what it wants, then looks once more; whoever brings it does so, then looks
//! whether it is wanted. Between the two steps of each lies a full fence, so that one of them sees the other. `verify/wakeups`
//! tries every order of these steps.

use crate::sync::{AtomicBool, Ordering, fence};
use crate::wake::Waker;

/// What wakes a driver that sleeps.
#[derive(Debug)]
pub(super) struct Bell {
    arrivals_wanted: AtomicBool,
    room_wanted: AtomicBool,
    waker: Waker,
}

/// What a driver sleeps for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Datagrams from the thread that receives.
    pub(super) arrivals: bool,
    /// Room in the queue of the thread that sends.
    pub(super) room: bool,
}

impl Bell {
    /// A bell that wakes whoever listens to `waker`.
    pub(super) fn new(waker: Waker) -> Self {
        Self { arrivals_wanted: AtomicBool::new(false), room_wanted: AtomicBool::new(false), waker }
    }

    /// Sleeps by `wait`, which is told whether there is something already, so that it must not block, and else ends when the bell's
    /// listener is woken. `has_news`: whether something that is wanted is there.
    pub(super) fn sleep<T>(&self, wanted: Wanted, has_news: impl FnOnce() -> bool, wait: impl FnOnce(bool) -> T) -> T {
        self.arrivals_wanted.store(wanted.arrivals, Ordering::Relaxed);
        self.room_wanted.store(wanted.room, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let ended = wait(has_news());
        self.arrivals_wanted.store(false, Ordering::Relaxed);
        self.room_wanted.store(false, Ordering::Relaxed);
        ended
    }

    /// Datagrams have been handed to the driver.
    pub(super) fn ring_for_arrivals(&self) {
        Self::ring(&self.arrivals_wanted, &self.waker);
    }

    /// There is room for datagrams of the driver.
    pub(super) fn ring_for_room(&self) {
        Self::ring(&self.room_wanted, &self.waker);
    }

    fn ring(wanted: &AtomicBool, waker: &Waker) {
        fence(Ordering::SeqCst);
        if wanted.load(Ordering::Relaxed) && wanted.swap(false, Ordering::Relaxed) {
            waker.wake();
        }
    }
}
