//! The loop around an endpoint: receive, tell the time, send, sleep.
//!
//! - [`blocking`]: on the caller's own thread, a turn at a time.
//! - `tokio`: as a task, the endpoint behind a lock (feature `tokio`).
//! - `exchange` (private): the turn itself, which both share;
//! - `functions`: which threads send and receive; `sending_thread` and `receiving_thread` (private) are theirs, `bell` wakes the
//!   driver for them;
//! - `polling` (private): how long to busy-poll before blocking.
//!
//! Called by the facade, the command, the benchmarks and anybody with an [`Endpoint`] of their own.
//!
//! Invariant: an endpoint's lock is never held across a system call, and time never goes backward between
//! two calls of an endpoint.
//!
//! [`Endpoint`]: segstream_base::endpoint::Endpoint

mod bell;
pub mod blocking;
mod exchange;
mod functions;
mod polling;
mod receiving_thread;
mod sending_thread;
#[cfg(feature = "tokio")]
mod timer;
#[cfg(feature = "tokio")]
pub mod tokio;

pub use functions::Threads;
pub use polling::Polling;
use segstream_base::{Duration, Instant};

/// What a driver may do at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// The most datagrams handed to the kernel in one call; 64 by default. Fewer are handed over where the
    /// system takes fewer. Small numbers are gentler to policers and shallow queues on the path.
    pub datagrams_per_send: usize,
    /// The most receiving system calls of a turn; 4 by default, some 1,700 datagrams of 1,200 bytes.
    pub receives_per_turn: usize,
    /// The most sending system calls of a turn; 32 by default.
    pub sends_per_turn: usize,
    /// Blocking driver only: for how long it busy-polls before it blocks. [`Polling::Brief`] by default.
    pub polling: Polling,
    /// Blocking driver only: which functions have a thread of their own. By default none has.
    pub threads: Threads,
    /// Blocking driver only: a sleep spins for its last part, which takes a whole processor but ends sharper.
    /// Zero by default: no spinning.
    pub spin_below: Duration,
    /// Blocking driver only, Linux only: how much later than asked for the kernel may end a sleep of the thread
    /// that drives, so that it can join wake-ups. 1 us by default; `None` leaves the thread's setting (as a rule
    /// 50 us) alone. It stays set when the driver is gone.
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
    /// Datagrams of the endpoint dealt with: taken by the kernel, or dropped and counted there.
    pub sent: usize,
    /// The name of the timer that has expired, if one has.
    pub timer: Option<&'static str>,
    /// The send buffer is full; what could not be sent is kept and goes first next time.
    pub blocked: bool,
    /// The turn ended at a limit of [`DriverConfig`]; there is more to do at once.
    pub more: bool,
    /// A [`crate::wake::Waker`] has ended the sleep (blocking driver).
    pub woken: bool,
    /// When it ended: after its system calls, and no earlier than any time the endpoint was told.
    pub at: Instant,
}

impl Turn {
    /// Whether anything was done. A timer that expires while nothing can be sent does not count: it may be the one
    /// for sending, and expire again at once.
    pub fn is_busy(&self) -> bool {
        self.received > 0 || self.sent > 0 || self.more || (self.timer.is_some() && !self.blocked)
    }

    /// Both turns as one, `later` being the later.
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
