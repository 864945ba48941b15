//! The driver as a tokio task: the endpoint lives behind a lock that the application's handles share.
//!
//! ```no_run
//! # use segstream_base::endpoint::Endpoint;
//! # use segstream_net::{Clock, Socket, SocketConfig};
//! # use segstream_net::driver::{DriverConfig, Turn};
//! # use segstream_net::driver::tokio::{AsyncDriver, Flow, Shared};
//! # use std::sync::Arc;
//! # async fn example<E: Endpoint + Send + 'static>(endpoint: E) -> Result<(), Box<dyn std::error::Error>> {
//! let socket = Socket::bind("127.0.0.1:0".parse()?, &SocketConfig::default())?;
//! let driver = AsyncDriver::new(socket, Clock::start(), DriverConfig::default())?;
//! let shared = Arc::new(Shared::new(endpoint));
//! let clock = driver.clock();
//! let task = tokio::spawn(driver.run(Arc::clone(&shared), |_: &mut E, _: &Turn| Flow::Sleep));
//!
//! // A handle of the application:
//! let mut endpoint = shared.lock();
//! let now = clock.now(); // after the lock, so that time never goes backward
//! endpoint.handle_timeout(now);
//! drop(endpoint);
//! shared.changed();
//! # task.await??;
//! # Ok(())
//! # }
//! ```
//!
//! Invariant: the lock is never held across a system call or an await; every change announced by
//! [`Shared::changed`] is followed by a turn.
//!
//! On Linux a kernel timer in nanoseconds meets deadlines; the runtime's timer has a resolution of a millisecond.

use super::event_loop::{Access, DatagramIo, EventLoop, sleep_end};
use super::timer::Timer;
use super::{DriverConfig, Turn};
use crate::clock::Clock;
use crate::receive::ReceiveBatch;
use crate::socket::{SendOutcome, Socket};
use segstream_base::endpoint::{Endpoint, Transmit};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

/// An endpoint that a driver and the application's handles share.
#[derive(Debug)]
pub struct Shared<E> {
    endpoint: Mutex<E>,
    notify: Notify,
}

impl<E> Shared<E> {
    /// Puts `endpoint` behind the lock.
    pub fn new(endpoint: E) -> Self {
        Self { endpoint: Mutex::new(endpoint), notify: Notify::new() }
    }

    /// Locks the endpoint. Read the clock after this call and not before, because the driver passes times to the endpoint too.
    /// Hold the lock briefly: the driver waits for it. Call [`Shared::changed`] after a change.
    pub fn lock(&self) -> MutexGuard<'_, E> {
        // Why poisoning is ignored: a panic of another handle leaves the endpoint in a valid state, and ending all its connections
        // for that would be worse.
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the driver that the endpoint was changed, so that it sends and reads the deadline again. Cheap; may be called with
    /// or without the lock.
    pub fn changed(&self) {
        self.notify.notify_one();
    }
}

/// What the driver does after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Sleeps until there is something to do.
    Sleep,
    /// Takes another turn at once, because the hook has changed the endpoint.
    Again,
    /// Ends; [`AsyncDriver::run`] returns.
    Stop,
}

/// What is called after every turn, with the endpoint locked. Any `FnMut(&mut E, &Turn) -> Flow` is one.
///
/// It takes events out of the endpoint and wakes the tasks that wait for them. It must not block.
pub trait TurnHook<E> {
    /// Called with the endpoint after `turn`. The endpoint has nothing left to send unless `turn.blocked` or `turn.more` is set.
    fn on_turn(&mut self, endpoint: &mut E, turn: &Turn) -> Flow;
}

impl<E, F: FnMut(&mut E, &Turn) -> Flow> TurnHook<E> for F {
    fn on_turn(&mut self, endpoint: &mut E, turn: &Turn) -> Flow {
        self(endpoint, turn)
    }
}

/// A socket, a clock, and the loop between them and a shared endpoint.
#[derive(Debug)]
pub struct AsyncDriver {
    socket: AsyncFd<Arc<Socket>>,
    event_loop: EventLoop,
    timer: Timer,
}

impl AsyncDriver {
    /// A driver of `socket` with the time of `clock`. It ignores the parts of `config` that are for the blocking driver.
    ///
    /// # Errors
    ///
    /// When the system has no file descriptor left, or the socket has a driver already.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, or in one without I/O (`enable_io`); other systems than Linux also need its
    /// timers (`enable_time`).
    pub fn new(socket: impl Into<Arc<Socket>>, clock: Clock, config: DriverConfig) -> io::Result<Self> {
        Ok(Self {
            socket: watch(socket.into(), Interest::READABLE | Interest::WRITABLE)?,
            event_loop: EventLoop::new(clock, config),
            timer: Timer::new()?,
        })
    }

    /// The socket, for its address, warnings and counters.
    pub fn socket(&self) -> &Arc<Socket> {
        self.socket.get_ref()
    }

    /// The clock from which the endpoint gets the time. The application's handles must use it too.
    pub fn clock(&self) -> Clock {
        self.event_loop.clock()
    }

    /// Drives the endpoint until `hook` returns [`Flow::Stop`]. Dropping the future ends it as well, at an await, with the endpoint
    /// unlocked.
    ///
    /// # Errors
    ///
    /// Only failures of the system that a retry cannot solve; never because of the network.
    pub async fn run<E: Endpoint, H: TurnHook<E>>(mut self, shared: Arc<Shared<E>>, mut hook: H) -> io::Result<()> {
        loop {
            let turn = self.event_loop.work(&mut self.socket, &mut &*shared, true)?;
            let (flow, deadline) = {
                let mut endpoint = shared.lock();
                (hook.on_turn(&mut endpoint, &turn), endpoint.poll_deadline())
            };
            let now = self.clock().now();
            let deadline = sleep_end(&turn, deadline, now);
            let due = deadline.is_some_and(|deadline| deadline <= now);
            match flow {
                Flow::Stop => return Ok(()),
                // Why: other tasks of this thread must run too.
                Flow::Again => tokio::task::yield_now().await,
                Flow::Sleep if turn.more || due => tokio::task::yield_now().await,
                Flow::Sleep => {
                    if let Some(deadline) = deadline {
                        self.timer.arm(deadline, deadline.since(now).into())?;
                    }
                    self.sleep(&shared.notify, turn.blocked).await?;
                }
            }
        }
    }

    async fn sleep(&mut self, notify: &Notify, blocked: bool) -> io::Result<()> {
        tokio::select! {
            () = notify.notified() => Ok(()),
            ready = self.socket.readable() => ready.map(|_| ()),
            ready = self.socket.writable(), if blocked => ready.map(|_| ()),
            expired = self.timer.expired() => expired,
        }
    }
}

/// Registers a descriptor with the runtime.
#[allow(deprecated)]
pub(super) fn watch<T: AsFd + AsRawFd>(descriptor: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // Why the deprecated call: its successor is unsafe. It requires a descriptor that stays open and the same, which `AsFd`
    // guarantees here.
    AsyncFd::with_interest(descriptor, interest)
}

impl<E> Access<E> for &Shared<E> {
    const SHARED: bool = true;

    fn with<R>(&mut self, call: impl FnOnce(&mut E) -> R) -> R {
        call(&mut self.lock())
    }
}

impl DatagramIo for AsyncFd<Arc<Socket>> {
    // Why: the runtime's readiness is edge-triggered; only a call that would block arms it again.
    const LEVEL_TRIGGERED: bool = false;

    fn receive(&mut self, batch: &mut Box<ReceiveBatch>) -> io::Result<usize> {
        let received = self.try_io(Interest::READABLE, |socket| match socket.receive(batch)? {
            0 if batch.is_drained() => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        });
        match received {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                batch.set_drained();
                Ok(0)
            }
            received => received,
        }
    }

    fn send(&mut self, transmit: &Transmit, datagrams: &mut Vec<u8>, from: usize) -> SendOutcome {
        let datagrams = datagrams.get(from..).unwrap_or_default();
        let mut blocked = SendOutcome::WouldBlock { taken_bytes: 0 };
        let sent = self.try_io(Interest::WRITABLE, |socket| match socket.send(transmit, datagrams) {
            outcome @ SendOutcome::WouldBlock { .. } => {
                blocked = outcome;
                Err(io::ErrorKind::WouldBlock.into())
            }
            outcome => Ok(outcome),
        });
        sent.unwrap_or(blocked)
    }

    fn datagrams_per_send(&self) -> usize {
        self.get_ref().datagrams_per_send()
    }
}
