//! An endpoint that the application's calls drive: the network is served inside them and nowhere else.
//!
//! Called by the blocking endpoint, unless a thread drives it ([`super::background`]).
//!
//! Invariant: a call serves the network at least once before it gives up.

use crate::hub::Hub;
use crate::{ConnectionId, Error, Timestamp};
use segstream_base::Duration;
use segstream_base::endpoint::Endpoint as _;
use segstream_net::driver::blocking::BlockingDriver;
use std::task::Poll;

/// How long what is due waits for the application's next call: to a peer it is nothing.
const LATE: Duration = Duration::from_micros(20);

/// The driver and what it drives.
#[derive(Debug)]
pub(super) struct OnCalls {
    pub(super) driver: BlockingDriver,
    pub(super) hub: Hub,
    /// A wake that no call has reported yet.
    woken: bool,
}

impl OnCalls {
    pub(super) const fn new(driver: BlockingDriver, hub: Hub) -> Self {
        Self { driver, hub, woken: false }
    }

    /// Serves the network until `ready` gives a value, `timeout` has passed, or a waker ends the call, where it is `now`. The
    /// value, and when it was there.
    pub(super) fn wait<T>(
        &mut self,
        mut now: Timestamp,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut Hub, Timestamp) -> Poll<Result<T, Error>>,
    ) -> Result<(T, Timestamp), Error> {
        let until = timeout.map(|timeout| now + timeout);
        let mut served = false;
        loop {
            // Why before the first turn too: what an application does may end something at once, without anything arriving.
            self.hub.absorb(now, |_, _| ());
            if let Poll::Ready(value) = ready(&mut self.hub, now) {
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
        self.hub.absorb(now, |_, _| ());
        Ok(())
    }

    /// Serves the network once, after the application was given something of `id`, if the peer may wait for the room that is free
    /// now, or anything was due a while ago.
    ///
    /// Why not for what is just due: whoever is given an answer sends the next question at once, and that should not wait.
    pub(super) fn serve_if_due(&mut self, now: Timestamp, id: ConnectionId) -> Result<(), Error> {
        let late = || self.hub.poll_deadline().is_some_and(|deadline| deadline.at + LATE <= now);
        if self.hub.wants_report(now, id) || late() { self.serve() } else { Ok(()) }
    }

    /// Serves the network once, and waits for something to do until `until` at the latest. When it ended.
    fn turn(&mut self, until: Option<Timestamp>) -> Result<Timestamp, Error> {
        let turn = self.driver.turn(&mut self.hub, until)?;
        self.woken |= turn.woken;
        Ok(turn.at)
    }
}
