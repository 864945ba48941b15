//! An endpoint that the application's calls drive: only they serve the network.
//!
//! Called by the blocking endpoint, unless a thread drives it ([`super::background`]).
//!
//! Invariant: a call serves the network at least once before it times out.

use crate::endpoint_state::EndpointState;
use crate::{ConnectionId, Error, Timestamp};
use segstream_base::Duration;
use segstream_base::endpoint::Endpoint as _;
use segstream_net::driver::blocking::BlockingDriver;
use std::task::Poll;

/// How long a due transmission waits for the application's next call; negligible to a peer.
const OVERDUE_AFTER: Duration = Duration::from_micros(20);

/// How long a program with an event loop of its own waits for room in the send buffer, as it watches for datagrams only.
const BLOCKED_PAUSE: Duration = Duration::from_millis(1);

/// The driver and its endpoint.
#[derive(Debug)]
pub(super) struct CallDriven {
    pub(super) driver: BlockingDriver,
    pub(super) endpoint_state: EndpointState,
    /// Whether a waker was used and no call has reported it yet.
    woken: bool,
    /// Whether there may be work at once: the application has changed something since the last turn, or that turn has left some.
    pending: bool,
    /// Whether the last turn found the send buffer full.
    blocked: bool,
}

impl CallDriven {
    pub(super) const fn new(driver: BlockingDriver, endpoint_state: EndpointState) -> Self {
        Self { driver, endpoint_state, woken: false, pending: true, blocked: false }
    }

    /// Serves the network from `now` until `ready` returns a value, `timeout` has passed, or a waker ends the call. Returns the value
    /// and the time.
    pub(super) fn wait<T>(
        &mut self,
        mut now: Timestamp,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut EndpointState, Timestamp) -> Poll<Result<T, Error>>,
    ) -> Result<(T, Timestamp), Error> {
        let until = timeout.map(|timeout| now + timeout);
        let mut served = false;
        loop {
            // Why before the first turn too: an action of the application may complete something at once, without an arrival.
            self.pending |= self.endpoint_state.process_events(now, |_, _| ());
            if let Poll::Ready(value) = ready(&mut self.endpoint_state, now) {
                self.pending = true;
                return value.map(|value| (value, now));
            }
            if core::mem::take(&mut self.woken) {
                return Err(Error::Woken);
            }
            if served && until.is_some_and(|until| now >= until) {
                return Err(Error::TimedOut);
            }
            now = self.turn(until)?;
            served = true;
        }
    }

    /// Serves the network once, without sleeping.
    pub(super) fn serve(&mut self) -> Result<(), Error> {
        let now = self.turn(Some(Timestamp::ZERO))?;
        self.pending |= self.endpoint_state.process_events(now, |_, _| ());
        Ok(())
    }

    /// Serves the network once after the application has taken a segment of `id`, if the peer may wait for a window update, or a
    /// transmission is overdue.
    ///
    /// Why not if it is only just due: an application that gets an answer often sends its next request at once, which should not wait.
    pub(super) fn serve_if_due(&mut self, now: Timestamp, id: ConnectionId) -> Result<(), Error> {
        let late = || self.endpoint_state.poll_deadline().is_some_and(|deadline| deadline.at + OVERDUE_AFTER <= now);
        if self.endpoint_state.wants_report(now, id) || late() { self.serve() } else { Ok(()) }
    }

    /// Runs one turn, which waits for something to do until `until` at most. Returns when it ended.
    fn turn(&mut self, until: Option<Timestamp>) -> Result<Timestamp, Error> {
        let turn = self.driver.turn(&mut self.endpoint_state, until)?;
        self.woken |= turn.woken;
        self.pending = turn.is_busy();
        self.blocked = turn.blocked;
        Ok(turn.at)
    }

    /// The application has changed the endpoint.
    pub(super) fn on_changed(&mut self) {
        self.pending = true;
    }

    /// The time from `now` until the network must be served again; `None` if only a datagram or the application makes work.
    pub(super) fn serve_after(&self, now: Timestamp) -> Option<Duration> {
        if self.pending {
            return Some(Duration::ZERO);
        }
        let due = self.endpoint_state.poll_deadline()?.at;
        // Why: a deadline for sending stays expired while nothing can be sent.
        let at = if self.blocked { due.max(now + BLOCKED_PAUSE) } else { due };
        Some(if at <= now { Duration::ZERO } else { at.since(now) })
    }
}
