//! An endpoint that a thread in the background drives, so that the application can work between two calls for as long as it
//! likes.
//!
//! Called by the blocking endpoint when its builder asked for it. The thread and the application share the endpoint behind
//! a lock, which neither holds while it sleeps or is in a system call for the network.
//!
//! Invariant: an application that waits is notified of every event and every timer of the endpoint; when the thread ends, for
//! whatever reason, nobody waits again.

use crate::hub::Hub;
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

/// What the thread and the application share.
#[derive(Debug)]
struct Shared {
    hub: Mutex<Hub>,
    /// Notified after a turn in which something happened.
    changed: Condvar,
    /// The application waits; changed under the lock.
    waiting: AtomicBool,
    /// A waker has been used, and no call has reported it yet; changed under the lock.
    woken: AtomicBool,
    stop: AtomicBool,
    /// Why nothing is driven any more.
    failure: OnceLock<(io::ErrorKind, String)>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Hub> {
        // Why: a panic elsewhere leaves an endpoint that is still an endpoint.
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// When the system has no thread left.
    pub(super) fn start(driver: BlockingDriver, hub: Hub) -> io::Result<Self> {
        let (clock, waker) = (driver.clock(), driver.waker());
        let shared = Arc::new(Shared {
            hub: Mutex::new(hub),
            changed: Condvar::new(),
            waiting: AtomicBool::new(false),
            woken: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            failure: OnceLock::new(),
        });
        let driven = Driven(Arc::clone(&shared));
        let thread = thread::Builder::new().name("segstream-driver".to_owned()).spawn(move || drive(driver, &driven))?;
        Ok(Self { shared, thread: Some(thread), clock, waker })
    }

    /// Looks something up.
    pub(super) fn look<R>(&self, call: impl FnOnce(&Hub) -> R) -> R {
        call(&self.shared.lock())
    }

    /// Takes something, or changes what need not be sent at once.
    pub(super) fn take<R>(&self, call: impl FnOnce(&mut Hub, Timestamp) -> R) -> R {
        let mut hub = self.shared.lock();
        // Why after the lock: the thread tells the endpoint the time too, and it must not go backward.
        let now = self.clock.now();
        call(&mut hub, now)
    }

    /// The thread looks at the endpoint, and sends what is to be sent.
    pub(super) fn serve(&self) {
        self.waker.nudge();
    }

    /// The same if the peer may wait for room that the application has made.
    pub(super) fn serve_if_due(&self, id: ConnectionId) {
        if self.take(|hub, now| hub.wants_report(now, id)) {
            self.serve();
        }
    }

    /// Waits until `ready` gives a value, `timeout` has passed, or a waker ends the call. The value, and when it was there.
    pub(super) fn wait<T>(
        &self,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut Hub, Timestamp) -> Poll<Result<T, Error>>,
    ) -> Result<(T, Timestamp), Error> {
        let shared = &*self.shared;
        let until = timeout.map(|timeout| self.clock.now() + timeout);
        let mut hub = shared.lock();
        let mut served = false;
        loop {
            let now = self.clock.now();
            if hub.absorb(now, |_, _| ()) {
                self.serve();
            }
            if let Poll::Ready(value) = ready(&mut hub, now) {
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
            hub = match until {
                None => shared.changed.wait(hub).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = self.clock.until(until);
                    shared.changed.wait_timeout(hub, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            shared.waiting.store(false, Ordering::Relaxed);
        }
    }

    /// Ends the thread, and gives `finish` what it has driven. Nothing when it has ended already.
    pub(super) fn stop(&mut self, finish: impl FnOnce(&mut Hub, &mut BlockingDriver)) {
        self.shared.stop.store(true, Ordering::Release);
        self.waker.nudge();
        let Some(Ok(mut driver)) = self.thread.take().map(JoinHandle::join) else { return };
        finish(&mut self.shared.lock(), &mut driver);
    }
}

/// Ends every wait when the thread ends, even by a panic.
struct Driven(Arc<Shared>);

impl Drop for Driven {
    fn drop(&mut self) {
        let _lock = self.0.lock();
        // Why ignored: there is a cause already.
        let _ = self.0.failure.set((io::ErrorKind::Other, "the thread that drove the endpoint has ended".to_owned()));
        self.0.changed.notify_all();
    }
}

/// Drives until told to stop, or until the system fails.
fn drive(mut driver: BlockingDriver, driven: &Driven) -> BlockingDriver {
    let (shared, clock) = (&*driven.0, driver.clock());
    let mut until = None;
    while !shared.stop.load(Ordering::Acquire) {
        let turn = match driver.turn_shared(&shared.hub, until) {
            Ok(turn) => turn,
            Err(error) => {
                // Why ignored: it is set once, here or when this thread ends.
                let _ = shared.failure.set((error.kind(), error.to_string()));
                break;
            }
        };
        let mut hub = shared.lock();
        let mut happened = turn.woken || turn.timer.is_some();
        let changed = hub.absorb(clock.now(), |_, _| happened = true);
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
