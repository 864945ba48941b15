//! How another thread interrupts a driver that sleeps: a byte in a pipe that the sleeper also waits for.
//!
//! The [`Waker`] is handed to whoever changes the endpoint from another thread or wants the driver's caller to
//! look at something; the [`WakeListener`] stays with the driver.
//!
//! Invariant: a wake is never lost. One that comes while the driver works ends its next sleep at once; many
//! that come together cost one system call and end one sleep. `verify/wakeups` tries every order of these steps.

use crate::sync::{AtomicBool, Ordering, UnixStream};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Interrupts the sleep of a driver from any thread.
#[derive(Clone, Debug)]
pub struct Waker {
    shared: Arc<Shared>,
}

/// The sleeper's end.
#[derive(Debug)]
pub struct WakeListener {
    stream: UnixStream,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    stream: UnixStream,
    /// Whether a byte is on its way that the listener has not taken yet.
    pending: AtomicBool,
    /// Whether [`Waker::wake`] was called since [`WakeListener::take_wake`].
    woken: AtomicBool,
}

/// A waker and its listener.
///
/// # Errors
///
/// When the system has no file descriptor left.
pub fn pair() -> io::Result<(Waker, WakeListener)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let shared = Arc::new(Shared { stream: theirs, pending: AtomicBool::new(false), woken: AtomicBool::new(false) });
    Ok((Waker { shared: Arc::clone(&shared) }, WakeListener { stream: ours, shared }))
}

impl Waker {
    /// Ends the present sleep of the driver, or its next one if it is awake. What was done before is visible to
    /// the driver when it wakes. The turn says that it was woken.
    pub fn wake(&self) {
        self.shared.woken.store(true, Ordering::Release);
        self.nudge();
    }

    /// As [`Waker::wake`], but the turn does not say so: for whoever has changed the endpoint, so that the driver looks at
    /// it.
    pub fn nudge(&self) {
        if !self.shared.pending.swap(true, Ordering::AcqRel) {
            // Why: it can only fail when the pipe is full or the listener is gone; then there is nobody to wake.
            let _ = (&self.shared.stream).write(&[1]);
        }
    }
}

impl WakeListener {
    /// Forgets all wakes so far. Look at everything that may have changed after this, not before. Returns
    /// whether there were any; one that is being given at this moment may be told by the next call.
    pub fn clear(&self) -> bool {
        if !self.shared.pending.load(Ordering::Acquire) {
            return false;
        }
        // Why in this order: a byte written after the mark is taken back would be read here, and its mark would then
        // keep all later wakes from writing theirs. Why only with a byte: one that is still on its way would end every
        // sleep from then on, with no mark that says it is there.
        matches!((&self.stream).read(&mut [0; 8]), Ok(1..)) && self.shared.pending.swap(false, Ordering::AcqRel)
    }
}

impl WakeListener {
    /// Whether [`Waker::wake`] was called since this was asked last; ask after [`WakeListener::clear`].
    pub fn take_wake(&self) -> bool {
        self.shared.woken.swap(false, Ordering::AcqRel)
    }
}

impl AsFd for WakeListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_wake_that_meets_a_clear_is_told_once_and_leaves_nothing_behind() {
        let (waker, listener) = pair().expect("two file descriptors");
        let (asked, given) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..5_000 {
                    while !asked.swap(false, Ordering::AcqRel) {
                        thread::yield_now();
                    }
                    waker.wake();
                    given.store(true, Ordering::Release);
                }
            });
            for round in 0..5_000 {
                asked.store(true, Ordering::Release);
                let mut told = 0;
                while !given.load(Ordering::Acquire) {
                    told += usize::from(listener.clear());
                }
                told += usize::from(listener.clear());
                given.store(false, Ordering::Relaxed);
                assert_eq!(told, 1, "round {round}");
                assert!((&listener.stream).read(&mut [0]).is_err(), "round {round}: a byte that ends every sleep");
            }
        });
    }
}
