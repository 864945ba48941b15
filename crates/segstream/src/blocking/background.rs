//! An endpoint that a background thread drives, so that the application can do other work between two calls without limit.
//!
//! Called by the blocking endpoint if its builder requested it. The thread and the application share the endpoint behind a lock, which
//! neither holds while it sleeps or is in a system call for the network.
//!
//! Invariant: a waiting application is notified of every event and every timer of the endpoint; when the thread ends, for any reason,
//! no call waits again.

use crate::endpoint_state::EndpointState;
use crate::{ConnectionId, Error, Timestamp};
use segstream_base::Duration;
use segstream_net::clock::Clock;
use segstream_net::driver::blocking::BlockingDriver;
use segstream_net::wake::Waker;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::thread::{self, JoinHandle};

/// The state that the thread and the application share.
#[derive(Debug)]
struct Shared {
    endpoint_state: Mutex<EndpointState>,
    /// Notified after a turn in which something happened.
    changed: Condvar,
    /// Whether the application waits; changed under the lock.
    waiting: AtomicBool,
    /// Whether a waker was used and no call has reported it yet; changed under the lock.
    woken: AtomicBool,
    stop: AtomicBool,
    /// Why the thread has ended.
    failure: OnceLock<(io::ErrorKind, String)>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, EndpointState> {
        // Why poisoning is ignored: a panic elsewhere leaves the endpoint in a valid state.
        self.endpoint_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread, and the application's access to what it drives.
#[derive(Debug)]
pub(super) struct Background {
    shared: Arc<Shared>,
    /// `None` once it has been stopped.
    thread: Option<JoinHandle<BlockingDriver>>,
    clock: Clock,
    waker: Waker,
}

impl Background {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the system cannot start a thread.
    pub(super) fn start(driver: BlockingDriver, endpoint_state: EndpointState) -> io::Result<Self> {
        let (clock, waker) = (driver.clock(), driver.waker());
        let shared = Arc::new(Shared {
            endpoint_state: Mutex::new(endpoint_state),
            changed: Condvar::new(),
            waiting: AtomicBool::new(false),
            woken: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            failure: OnceLock::new(),
        });
        let driven = DriverGuard(Arc::clone(&shared));
        let thread = thread::Builder::new().name("segstream-driver".to_owned()).spawn(move || drive(driver, &driven))?;
        Ok(Self { shared, thread: Some(thread), clock, waker })
    }

    /// Reads from the state.
    pub(super) fn read<R>(&self, call: impl FnOnce(&EndpointState) -> R) -> R {
        call(&self.shared.lock())
    }

    /// Changes something that need not be sent at once.
    pub(super) fn take<R>(&self, call: impl FnOnce(&mut EndpointState, Timestamp) -> R) -> R {
        let mut endpoint_state = self.shared.lock();
        // Why after the lock: the thread passes times to the endpoint too, and time must not go backward.
        let now = self.clock.now();
        call(&mut endpoint_state, now)
    }

    /// Wakes the thread, so that it sends what is pending.
    pub(super) fn serve(&self) {
        self.waker.nudge();
    }

    /// The same, if the peer may wait for a window update.
    pub(super) fn serve_if_due(&self, id: ConnectionId) {
        if self.take(|endpoint_state, now| endpoint_state.wants_report(now, id)) {
            self.serve();
        }
    }

    /// Waits until `ready` returns a value, `timeout` has passed, or a waker ends the call. Returns the value and the time.
    pub(super) fn wait<T>(
        &self,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut EndpointState, Timestamp) -> Poll<Result<T, Error>>,
    ) -> Result<(T, Timestamp), Error> {
        let shared = &*self.shared;
        let until = timeout.map(|timeout| self.clock.now() + timeout);
        let mut endpoint_state = shared.lock();
        let mut served = false;
        loop {
            let now = self.clock.now();
            if endpoint_state.process_events(now, |_, _| ()) {
                self.serve();
            }
            if let Poll::Ready(value) = ready(&mut endpoint_state, now) {
                return value.map(|value| (value, now));
            }
            if let Some((kind, text)) = shared.failure.get() {
                return Err(Error::System(io::Error::new(*kind, text.clone())));
            }
            if shared.woken.swap(false, Ordering::Relaxed) {
                return Err(Error::Woken);
            }
            if served && until.is_some_and(|until| now >= until) {
                return Err(Error::TimedOut);
            }
            if !served {
                self.serve();
            }
            served = true;
            shared.waiting.store(true, Ordering::Relaxed);
            endpoint_state = match until {
                None => shared.changed.wait(endpoint_state).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = self.clock.until(until);
                    shared.changed.wait_timeout(endpoint_state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            shared.waiting.store(false, Ordering::Relaxed);
        }
    }

    /// Ends the thread, and calls `finish` with its endpoint and driver. Does nothing if it has ended already.
    pub(super) fn stop(&mut self, finish: impl FnOnce(&mut EndpointState, &mut BlockingDriver)) {
        self.shared.stop.store(true, Ordering::Release);
        self.waker.nudge();
        let Some(Ok(mut driver)) = self.thread.take().map(JoinHandle::join) else { return };
        finish(&mut self.shared.lock(), &mut driver);
    }
}

/// Its destructor ends every wait when the thread ends, even by a panic.
struct DriverGuard(Arc<Shared>);

impl Drop for DriverGuard {
    fn drop(&mut self) {
        let _lock = self.0.lock();
        // Why the result is ignored: there may be a cause already.
        let _ = self.0.failure.set((io::ErrorKind::Other, "the thread that drove the endpoint has ended".to_owned()));
        self.0.changed.notify_all();
    }
}

/// Drives the endpoint until it is stopped or the system fails.
fn drive(mut driver: BlockingDriver, driven: &DriverGuard) -> BlockingDriver {
    let (shared, clock) = (&*driven.0, driver.clock());
    let mut until = None;
    while !shared.stop.load(Ordering::Acquire) {
        let turn = match driver.turn_shared(&shared.endpoint_state, until) {
            Ok(turn) => turn,
            Err(error) => {
                // Why the result is ignored: it is set once, here or when this thread ends.
                let _ = shared.failure.set((error.kind(), error.to_string()));
                break;
            }
        };
        let mut endpoint_state = shared.lock();
        let mut happened = turn.woken || turn.timer.is_some();
        let changed = endpoint_state.process_events(clock.now(), |_, _| happened = true);
        if turn.woken {
            shared.woken.store(true, Ordering::Relaxed);
        }
        if happened && shared.waiting.load(Ordering::Relaxed) {
            shared.changed.notify_all();
        }
        until = changed.then_some(Timestamp::ZERO);
    }
    driver
}
