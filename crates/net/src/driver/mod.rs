//! The event loop around an endpoint: receive, handle timeouts, send, sleep.
//!
//! - [`blocking`]: on the caller's thread, one turn (iteration) a call.
//! - `tokio`: as a task, the endpoint behind a lock (feature `tokio`).
//! - `event_loop` (private): one turn, which both share;
//! - `io_threads`: which threads send and receive; `sending_thread` and `receiving_thread` (private) are what they run, and
//!   `notifier` is how they wake the driver;
//! - `polling` (private): how long to busy-poll before blocking.
//!
//! Called by the facade, the command, the benchmarks and every user with an [`Endpoint`] of their own.
//!
//! Invariant: an endpoint's lock is never held across a system call, and time never goes backward between
//! two calls of an endpoint.
//!
//! [`Endpoint`]: segstream_base::endpoint::Endpoint

pub mod blocking;
mod event_loop;
mod io_threads;
mod notifier;
mod polling;
mod receiving_thread;
mod sending_thread;
#[cfg(feature = "tokio")]
mod timer;
#[cfg(feature = "tokio")]
pub mod tokio;

pub use io_threads::Threads;
pub use polling::Polling;
use segstream_base::{Duration, Instant};

/// The limits of one turn, and how a driver waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// The maximum number of datagrams in one sending call; 64 by default, or less if the system takes fewer. Small numbers are
    /// gentler to policers and shallow queues on the path.
    pub datagrams_per_send: usize,
    /// The maximum number of receiving system calls in a turn; 4 by default, about 1,700 datagrams of 1,200 bytes.
    pub receives_per_turn: usize,
    /// The maximum number of sending system calls in a turn; 32 by default.
    pub sends_per_turn: usize,
    /// Blocking driver only: for how long it busy-polls before it blocks. [`Polling::Brief`] by default.
    pub polling: Polling,
    /// Blocking driver only: which functions have an I/O thread. None by default.
    pub threads: Threads,
    /// Blocking driver only: how long the last part of a sleep spins. Spinning occupies a whole processor and ends the sleep more
    /// precisely. Zero by default.
    pub spin_below: Duration,
    /// Blocking driver only, Linux only: the timer slack of the driving thread, by which the kernel may delay the end of a sleep to
    /// coalesce wake-ups. 1 us by default; `None` keeps the thread's own setting (usually 50 us). It stays set after the driver
    /// is dropped.
    pub timer_slack: Option<Duration>,
}

impl Default for DriverConfig {
    fn default() -> Self {
        Self {
            datagrams_per_send: 64,
            receives_per_turn: 4,
            sends_per_turn: 32,
            polling: Polling::Brief,
            threads: Threads::One,
            spin_below: Duration::ZERO,
            timer_slack: Some(Duration::from_micros(1)),
        }
    }
}

/// What a turn has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Datagrams handed to the endpoint.
    pub received: usize,
    /// Datagrams of the endpoint that the kernel has taken, or that the socket has dropped and counted.
    pub sent: usize,
    /// The name of the timer that has expired, if one has.
    pub timer: Option<&'static str>,
    /// The send buffer is full. What could not be sent is kept and leaves first in the next turn.
    pub blocked: bool,
    /// The turn ended at a limit of [`DriverConfig`]; there is more work at once.
    pub more: bool,
    /// A [`crate::wake::Waker`] has ended the sleep (blocking driver).
    pub woken: bool,
    /// When it ended: after its system calls, and no earlier than any time that was passed to the endpoint.
    pub at: Instant,
}

impl Turn {
    /// Whether anything was done. A timer that expires while nothing can be sent does not count: it may be the timer for sending,
    /// which then expires again at once.
    pub fn is_busy(&self) -> bool {
        self.received > 0 || self.sent > 0 || self.more || (self.timer.is_some() && !self.blocked)
    }

    /// This turn and `later` as one.
    fn then(self, later: Self) -> Self {
        Self {
            received: self.received + later.received,
            sent: self.sent + later.sent,
            timer: later.timer.or(self.timer),
            blocked: later.blocked,
            more: later.more,
            woken: self.woken || later.woken,
            at: self.at.max(later.at),
        }
    }
}
