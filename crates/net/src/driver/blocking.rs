//! The driver on the caller's own thread: the application calls [`BlockingDriver::turn`] until what it wants
//! has happened. Sending and receiving may have threads of their own ([`super::Threads`]).
//!
//! For programs without an executor, for bindings to other languages, and where a thread is pinned to a
//! processor.
//!
//! Invariant: a turn sleeps only when there is nothing to do, and never beyond the endpoint's deadline, the
//! caller's, a datagram or a wake.

use super::event_loop::{Access, EventLoop, sleep_end};
use super::io_threads::{IoThreads, WaitOutcome};
use super::polling::SpinBudget;
use super::{DriverConfig, Turn};
use crate::clock::Clock;
use crate::socket::Socket;
use crate::wake::{self, WakeListener, Waker};
use segstream_base::Instant;
use segstream_base::endpoint::Endpoint;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

/// A socket, a clock, and the loop between them and an endpoint.
///
/// When it is dropped, it still sends what its turns have taken from the endpoint. Only a GSO batch that found no room in the send
/// buffer is lost: there is one if the last turn was [`Turn::blocked`].
#[derive(Debug)]
pub struct BlockingDriver {
    io_threads: IoThreads,
    event_loop: EventLoop,
    config: DriverConfig,
    waker: Waker,
    listener: WakeListener,
    spin_budget: SpinBudget,
    slack_set_for: Option<ThreadId>,
}

impl BlockingDriver {
    /// A driver of `socket`, which tells time by `clock`.
    ///
    /// # Errors
    ///
    /// When the system has no file descriptor left for the waker, or cannot start an I/O thread.
    pub fn new(socket: impl Into<Arc<Socket>>, clock: Clock, config: DriverConfig) -> io::Result<Self> {
        let (waker, listener) = wake::pair()?;
        let event_loop = EventLoop::new(clock, config);
        let spin_budget = SpinBudget::new(config.polling);
        let io_threads = IoThreads::new(socket.into(), clock, config.threads)?;
        Ok(Self { io_threads, event_loop, config, waker, listener, spin_budget, slack_set_for: None })
    }

    /// The socket, for its address, warnings and counters.
    pub fn socket(&self) -> &Arc<Socket> {
        self.io_threads.socket()
    }

    /// The clock from which endpoints get the time. The application must use it in its own calls of the endpoint.
    pub fn clock(&self) -> Clock {
        self.event_loop.clock()
    }

    /// Ends a sleep of [`BlockingDriver::turn`] from another thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Runs the event loop once: delivers what has arrived, handles an expired deadline, sends what the endpoint has to send. If
    /// there was nothing to do, it sleeps until the endpoint's deadline, `until`, a datagram or a wake, whichever is first,
    /// and then does the same. It may also return with nothing done, for example after a signal.
    ///
    /// # Errors
    ///
    /// Only failures of the system that a retry cannot solve; never because of the network.
    pub fn turn<E: Endpoint>(&mut self, endpoint: &mut E, until: Option<Instant>) -> io::Result<Turn> {
        self.turn_of(endpoint, until)
    }

    /// As [`BlockingDriver::turn`], for an endpoint that other threads change at the same time. The driver does not hold the lock in
    /// a system call or while it sleeps. A thread that has changed the endpoint calls [`Waker::nudge`] afterwards.
    ///
    /// # Errors
    ///
    /// As [`BlockingDriver::turn`].
    pub fn turn_shared<E: Endpoint>(&mut self, endpoint: &Mutex<E>, until: Option<Instant>) -> io::Result<Turn> {
        self.turn_of(endpoint, until)
    }

    fn turn_of<E: Endpoint, A: Access<E>>(&mut self, mut access: A, until: Option<Instant>) -> io::Result<Turn> {
        self.set_timer_slack();
        self.event_loop.invalidate_now();
        let now = self.event_loop.now();
        let sleepless = until.is_some_and(|until| until <= now);
        // Why two cases: a driver that is about to block is woken by what arrives in the meantime. While datagrams keep coming,
        // receiving at once is cheaper than polling first.
        let receive = !self.event_loop.polled_recently(now, !sleepless);
        let mut turn = self.event_loop.work(&mut self.io_threads, &mut access, receive)?;
        let nudged = self.listener.clear();
        turn.woken = nudged && self.listener.take_wake();
        if turn.is_busy() || nudged || sleepless {
            return Ok(turn);
        }
        let began = self.event_loop.now();
        let due = sleep_end(&turn, access.with(|endpoint| endpoint.poll_deadline()), began);
        let end = [due, until].into_iter().flatten().min();
        // Why not when blocked: a busy-poll does not notice room in the send buffer.
        if !turn.blocked
            && let Some(found) = self.busy_poll(&mut access, began, end)?
        {
            return Ok(found);
        }
        let asleep = self.clock().now();
        // Why not always: if the deadline has passed during the busy-poll, no system call is needed.
        let outcome = if end.is_some_and(|end| end <= asleep) { WaitOutcome::default() } else { self.sleep(end, turn.blocked)? };
        self.event_loop.invalidate_now();
        if outcome.arrivals {
            self.spin_budget.on_woken_after(self.clock().now().since(asleep));
        }
        turn.woken = outcome.woken && self.listener.clear() && self.listener.take_wake();
        let later = self.event_loop.work(&mut self.io_threads, &mut access, outcome.arrivals)?;
        Ok(turn.then(later))
    }

    /// Busy-polls for the present spin budget, but not beyond `end`. Returns what it has done, if anything.
    fn busy_poll<E: Endpoint>(&mut self, access: &mut impl Access<E>, began: Instant, end: Option<Instant>) -> io::Result<Option<Turn>> {
        let time = self.spin_budget.time();
        if time.is_zero() {
            return Ok(None);
        }
        let until = end.map_or(began + time, |end| end.min(began + time));
        while self.clock().now() < until {
            // Why only the receiving part of a turn: until something arrives there is nothing to send and no timer is due.
            let received = self.event_loop.poll_once(&mut self.io_threads, access)?;
            let nudged = self.listener.clear();
            let woken = nudged && self.listener.take_wake();
            if received > 0 || nudged {
                self.spin_budget.on_found();
                // Why the turn ends here: the application sees the datagrams first, and the next turn sends.
                return Ok(Some(Turn { received, woken, at: self.event_loop.now(), ..Turn::default() }));
            }
            std::hint::spin_loop();
        }
        // Why not when a deadline has ended the spin: the datagram may come right after.
        if until == began + time {
            self.spin_budget.on_missed();
        }
        Ok(None)
    }

    fn sleep(&self, end: Option<Instant>, blocked: bool) -> io::Result<WaitOutcome> {
        let spin_below = std::time::Duration::from(self.config.spin_below);
        loop {
            let left = end.map(|end| self.clock().until(end));
            let pause = left.map(|left| left.saturating_sub(spin_below));
            let outcome = self.io_threads.wait(pause, blocked, &self.listener)?;
            let spinning = !spin_below.is_zero() && left.is_some_and(|left| !left.is_zero());
            if outcome.early || !spinning {
                return Ok(outcome);
            }
        }
    }

    fn set_timer_slack(&mut self) {
        let Some(slack) = self.config.timer_slack else { return };
        let thread = thread::current().id();
        if self.slack_set_for == Some(thread) {
            return;
        }
        self.slack_set_for = Some(thread);
        // Why the result is ignored: without it sleeps are as precise as the system makes them.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ =
            rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::new(slack.as_nanos()).unwrap_or(std::num::NonZeroU64::MIN)));
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = slack;
    }
}
