//! How another thread wakes a driver that sleeps: a self-pipe, whose read end the driver also waits for.
//!
//! Threads that change the endpoint, or that need the attention of the driver's caller, hold the [`Waker`]; the driver holds the
//! [`WakeListener`].
//!
//! Invariant: no wake-up is lost. A wake-up while the driver works ends its next sleep at once. Many wake-ups together cost one
//! system call and end one sleep. `verify/wakeups` tries every order of these steps.

use crate::sync::{AtomicBool, Ordering, UnixStream};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Interrupts the sleep of a driver from any thread.
#[derive(Clone, Debug)]
pub struct Waker {
    shared: Arc<Shared>,
}

/// The driver's end.
#[derive(Debug)]
pub struct WakeListener {
    stream: UnixStream,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    stream: UnixStream,
    /// Whether a byte is in the pipe that the listener has not read yet.
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
    /// Ends the driver's sleep, or its next one if it is awake. Everything the caller did before is visible to the driver when it
    /// wakes. `Turn::woken` is set.
    pub fn wake(&self) {
        self.shared.woken.store(true, Ordering::Release);
        self.nudge();
    }

    /// As [`Waker::wake`], but `Turn::woken` is not set: for a thread that has changed the endpoint.
    pub fn nudge(&self) {
        if !self.shared.pending.swap(true, Ordering::AcqRel) {
            // Why the result is ignored: the write fails only if the pipe is full or the listener was dropped; then nobody needs waking.
            let _ = (&self.shared.stream).write(&[1]);
        }
    }
}

impl WakeListener {
    /// Clears all wake-ups so far. Check for changes after this call, not before. Returns whether there were any; a wake-up that
    /// happens during this call may be returned by the next one.
    pub fn clear(&self) -> bool {
        if !self.shared.pending.load(Ordering::Acquire) {
            return false;
        }
        // Why the byte is read before `pending` is cleared: a byte written after the clearing would be read here while `pending`
        // stays set, and no later wake-up would write one. Why `pending` is cleared only if a byte was read: a byte that
        // arrives later would end every sleep from then on, without `pending` saying that it is there.
        matches!((&self.stream).read(&mut [0; 8]), Ok(1..)) && self.shared.pending.swap(false, Ordering::AcqRel)
    }
}

impl WakeListener {
    /// Whether [`Waker::wake`] was called since the last call of this; call it after [`WakeListener::clear`].
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
