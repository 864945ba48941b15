//! Interruption by the user (SIGINT, SIGTERM, SIGHUP): flags, and a wake for whoever sleeps.
//!
//! Called by every verb that runs for long.
//!
//! Invariant: the first signal asks for an orderly end, the second one ends the process at once. Where a verb drains, SIGTERM lets what is
//! in progress end, within a bound, and accepts nothing new.

use crate::quantity;
use anyhow::{Context as _, Result};
use clap::Args;
use segstream_base::{Duration, Instant};
use segstream_net::Waker;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status of a process that a second signal has ended: failed.
const FAILED: i32 = 1;

/// The flag of verbs that drain.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DrainArgument {
    /// On SIGTERM nothing new is accepted, and what is in progress may go on for so long; then it is aborted. A second signal ends the
    /// program at once.
    #[arg(long, value_name = "T", value_parser = quantity::duration, default_value = "30s")]
    drain_timeout: Duration,
}

/// Whether the process drains. Clones share the answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct DrainFlag(Arc<AtomicBool>);

impl DrainFlag {
    /// Whether SIGTERM has come to a verb that drains.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether the user wants the verb to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interruption {
    asked: Arc<AtomicBool>,
    drain: DrainFlag,
}

impl Interruption {
    /// Listens for signals from now on; each also wakes `waker`. Every signal interrupts.
    pub(crate) fn listen(waker: Option<Waker>) -> Result<Self> {
        let interruption = Self::default();
        interruption.clone().start(waker, interruption.asked.clone())?;
        Ok(interruption)
    }

    /// The same for a verb that drains on SIGTERM: `drain` is set then.
    pub(crate) fn listen_and_drain(waker: Waker, drain: DrainFlag) -> Result<Self> {
        let interruption = Self { drain, ..Self::default() };
        interruption.clone().start(Some(waker), interruption.drain.0.clone())?;
        Ok(interruption)
    }

    fn start(self, waker: Option<Waker>, on_terminate: Arc<AtomicBool>) -> Result<()> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals cannot be listened for")?;
        let listen = move || {
            for (count, signal) in signals.forever().enumerate() {
                if count > 0 {
                    std::process::exit(FAILED);
                }
                let flag = if signal == SIGTERM { &on_terminate } else { &self.asked };
                flag.store(true, Ordering::Relaxed);
                if let Some(waker) = &waker {
                    waker.wake();
                }
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen).context("signals cannot be listened for")?;
        Ok(())
    }

    /// Whether a signal has come that interrupts.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The flag itself.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.asked
    }
}

/// The end of a verb that drains, from SIGTERM on.
#[derive(Debug)]
pub(crate) struct Drain {
    flag: DrainFlag,
    timeout: Duration,
    until: Option<Instant>,
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draining {
    /// Nobody has asked for it.
    No,
    /// It begins with this call.
    Begins,
    /// It goes on until the time.
    Until(Instant),
    /// Its time is over.
    Over,
}

impl Drain {
    /// What SIGTERM begins.
    pub(crate) fn of(interruption: &Interruption, argument: DrainArgument) -> Self {
        Self { flag: interruption.drain.clone(), timeout: argument.drain_timeout, until: None }
    }

    /// How far it is at `now`; [`Draining::Begins`] once.
    pub(crate) fn at(&mut self, now: Instant) -> Draining {
        match self.until {
            Some(until) if now >= until => Draining::Over,
            Some(until) => Draining::Until(until),
            None if self.flag.is_set() => {
                self.until = Some(now + self.timeout);
                Draining::Begins
            }
            None => Draining::No,
        }
    }

    /// Whether it has begun.
    pub(crate) const fn has_begun(&self) -> bool {
        self.until.is_some()
    }

    /// When its time is over.
    pub(crate) fn until(&self) -> Instant {
        self.until.unwrap_or(Instant::FAR_FUTURE)
    }

    /// What people are told when it begins.
    pub(crate) fn sentence(&self) -> String {
        format!("ending: nothing new is accepted, and what is in progress may go on for {}; a second signal ends it at once", self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_begins_once_and_is_over_when_its_time_is() {
        let flag = DrainFlag::default();
        let mut drain = Drain { flag: flag.clone(), timeout: Duration::from_secs(3), until: None };
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert_eq!((drain.at(at(1)), drain.has_begun()), (Draining::No, false));
        flag.0.store(true, Ordering::Relaxed);
        assert_eq!((drain.at(at(2)), drain.at(at(4)), drain.at(at(5))), (Draining::Begins, Draining::Until(at(5)), Draining::Over));
    }
}
