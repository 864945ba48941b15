//! The driver on the caller's own thread: the application calls [`BlockingDriver::turn`] until what it wants
//! has happened. Sending and receiving may have threads of their own ([`super::Threads`]).
//!
//! For programs without an executor, for bindings to other languages, and where a thread is pinned to a
//! processor.
//!
//! Invariant: a turn sleeps only when there is nothing to do, and never beyond the endpoint's deadline, the
//! caller's, a datagram or a wake.

use super::exchange::{Access, Exchange, sleep_end};
use super::functions::{Awoken, Functions};
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
/// Dropped, it still sends what its turns have taken from the endpoint, but for a GSO batch that found no room: as long as the last
/// turn was [`Turn::blocked`], there is one.
#[derive(Debug)]
pub struct BlockingDriver {
    functions: Functions,
    exchange: Exchange,
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
    /// When the system has no file descriptor left for the waker, or no thread for a function that is to have one.
    pub fn new(socket: impl Into<Arc<Socket>>, clock: Clock, config: DriverConfig) -> io::Result<Self> {
        let (waker, listener) = wake::pair()?;
        let exchange = Exchange::new(clock, config);
        let spin_budget = SpinBudget::new(config.polling);
        let functions = Functions::new(socket.into(), clock, config.threads)?;
        Ok(Self { functions, exchange, config, waker, listener, spin_budget, slack_set_for: None })
    }

    /// The socket, for its address, warnings and counters.
    pub fn socket(&self) -> &Arc<Socket> {
        self.functions.socket()
    }

    /// The clock that endpoints are told the time of. Calls of the application must use it too.
    pub fn clock(&self) -> Clock {
        self.exchange.clock()
    }

    /// What ends a sleep of [`BlockingDriver::turn`] from another thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// One turn: hands over what has arrived, handles an expired deadline, sends what is to be sent. When there
    /// was nothing of it to do, sleeps until the endpoint's deadline, `until`, a datagram or a wake, whichever
    /// is first, and then does it. It may also end with nothing done, after a signal for instance.
    ///
    /// # Errors
    ///
    /// Only what no later turn could mend; never because of the network.
    pub fn turn<E: Endpoint>(&mut self, endpoint: &mut E, until: Option<Instant>) -> io::Result<Turn> {
        self.turn_of(endpoint, until)
    }

    /// As [`BlockingDriver::turn`] of an endpoint that others change meanwhile. The lock is held neither in a system call nor
    /// asleep; whoever has changed the endpoint calls [`Waker::nudge`] afterwards.
    ///
    /// # Errors
    ///
    /// As [`BlockingDriver::turn`].
    pub fn turn_shared<E: Endpoint>(&mut self, endpoint: &Mutex<E>, until: Option<Instant>) -> io::Result<Turn> {
        self.turn_of(endpoint, until)
    }

    fn turn_of<E: Endpoint, A: Access<E>>(&mut self, mut access: A, until: Option<Instant>) -> io::Result<Turn> {
        self.set_timer_slack();
        self.exchange.time_has_passed();
        let now = self.exchange.now();
        let sleepless = until.is_some_and(|until| until <= now);
        // Why not the same for both: a driver that is about to block is woken by what arrives meanwhile, but while datagrams
        // are there to receive at once is cheaper than to ask.
        let receive = !self.exchange.has_just_polled(now, !sleepless);
        let mut turn = self.exchange.work(&mut self.functions, &mut access, receive)?;
        let nudged = self.listener.clear();
        turn.woken = nudged && self.listener.take_wake();
        if turn.is_busy() || nudged || sleepless {
            return Ok(turn);
        }
        let began = self.exchange.now();
        let due = sleep_end(&turn, access.with(|endpoint| endpoint.poll_deadline()), began);
        let end = [due, until].into_iter().flatten().min();
        // Why not when blocked: it would not see the room it waits for.
        if !turn.blocked
            && let Some(found) = self.busy_poll(&mut access, began, end)?
        {
            return Ok(found);
        }
        let asleep = self.clock().now();
        // Why not asked in any case: a deadline that has come during the spin needs no system call to tell.
        let awoken = if end.is_some_and(|end| end <= asleep) { Awoken::default() } else { self.sleep(end, turn.blocked)? };
        self.exchange.time_has_passed();
        if awoken.arrivals {
            self.spin_budget.on_woken_after(self.clock().now().since(asleep));
        }
        turn.woken = awoken.woken && self.listener.clear() && self.listener.take_wake();
        let later = self.exchange.work(&mut self.functions, &mut access, awoken.arrivals)?;
        Ok(turn.then(later))
    }

    /// Busy-polls for as long as that has paid lately, but not beyond `end`. What it has done, if anything.
    fn busy_poll<E: Endpoint>(&mut self, access: &mut impl Access<E>, began: Instant, end: Option<Instant>) -> io::Result<Option<Turn>> {
        let time = self.spin_budget.time();
        if time.is_zero() {
            return Ok(None);
        }
        let until = end.map_or(began + time, |end| end.min(began + time));
        while self.clock().now() < until {
            // Why nothing else of a turn: until something comes there is no more to send than there was, and no timer is due.
            let received = self.exchange.poll_once(&mut self.functions, access)?;
            let nudged = self.listener.clear();
            let woken = nudged && self.listener.take_wake();
            if received > 0 || nudged {
                self.spin_budget.on_found();
                // Why no more: whoever waits for it hears of it first, and the next turn does the rest.
                return Ok(Some(Turn { received, woken, at: self.exchange.now(), ..Turn::default() }));
            }
            std::hint::spin_loop();
        }
        // Why not when a deadline has ended it: the datagram may come right after.
        if until == began + time {
            self.spin_budget.on_missed();
        }
        Ok(None)
    }

    fn sleep(&self, end: Option<Instant>, blocked: bool) -> io::Result<Awoken> {
        let spin_below = std::time::Duration::from(self.config.spin_below);
        loop {
            let left = end.map(|end| self.clock().until(end));
            let pause = left.map(|left| left.saturating_sub(spin_below));
            let awoken = self.functions.wait(pause, blocked, &self.listener)?;
            let spinning = !spin_below.is_zero() && left.is_some_and(|left| !left.is_zero());
            if awoken.early || !spinning {
                return Ok(awoken);
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
        // Why ignored: sleeps are then as sharp as the system makes them.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ =
            rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::new(slack.as_nanos()).unwrap_or(std::num::NonZeroU64::MIN)));
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = slack;
    }
}
