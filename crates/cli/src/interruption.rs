//! Interruption by the user (SIGINT, SIGTERM, SIGHUP): flags, and a wake for whoever sleeps.
//!
//! Called by every verb that runs for long.
//!
//! Invariant: the first signal asks for an orderly end, the second one ends the process at once. Where a verb shuts down gracefully, SIGTERM lets what is
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

/// The flag of verbs that shut down gracefully.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ShutdownArgument {
    /// On SIGTERM nothing new is accepted, and what is in progress may go on for so long; then it is aborted. A second signal ends the
    /// program at once.
    #[arg(long, value_name = "T", value_parser = quantity::duration, default_value = "30s")]
    shutdown_timeout: Duration,
}

/// Whether the process shuts down. Clones share the answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShutdownFlag(Arc<AtomicBool>);

impl ShutdownFlag {
    /// Whether SIGTERM has come to a verb that shuts down gracefully.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether the user wants the verb to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interruption {
    asked: Arc<AtomicBool>,
    shutdown: ShutdownFlag,
}

impl Interruption {
    /// Listens for signals from now on; each also wakes `waker`. Every signal interrupts.
    pub(crate) fn listen(waker: Option<Waker>) -> Result<Self> {
        let interruption = Self::default();
        interruption.clone().start(waker, interruption.asked.clone())?;
        Ok(interruption)
    }

    /// The same for a verb that shuts down gracefully on SIGTERM: `shutdown` is set then.
    pub(crate) fn listen_for_shutdown(waker: Waker, shutdown: ShutdownFlag) -> Result<Self> {
        let interruption = Self { shutdown, ..Self::default() };
        interruption.clone().start(Some(waker), interruption.shutdown.0.clone())?;
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

/// The graceful shutdown of a verb, from SIGTERM on.
#[derive(Debug)]
pub(crate) struct Shutdown {
    flag: ShutdownFlag,
    timeout: Duration,
    until: Option<Instant>,
}

/// How far a shutdown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownStage {
    /// Nobody has asked for it.
    No,
    /// It begins with this call.
    Begins,
    /// It goes on until the time.
    Until(Instant),
    /// Its time is over.
    Over,
}

impl Shutdown {
    /// What SIGTERM begins.
    pub(crate) fn of(interruption: &Interruption, argument: ShutdownArgument) -> Self {
        Self { flag: interruption.shutdown.clone(), timeout: argument.shutdown_timeout, until: None }
    }

    /// How far it is at `now`; [`ShutdownStage::Begins`] once.
    pub(crate) fn at(&mut self, now: Instant) -> ShutdownStage {
        match self.until {
            Some(until) if now >= until => ShutdownStage::Over,
            Some(until) => ShutdownStage::Until(until),
            None if self.flag.is_set() => {
                self.until = Some(now + self.timeout);
                ShutdownStage::Begins
            }
            None => ShutdownStage::No,
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
    fn a_shutdown_begins_once_and_is_over_when_its_time_is() {
        let flag = ShutdownFlag::default();
        let mut shutdown = Shutdown { flag: flag.clone(), timeout: Duration::from_secs(3), until: None };
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert_eq!((shutdown.at(at(1)), shutdown.has_begun()), (ShutdownStage::No, false));
        flag.0.store(true, Ordering::Relaxed);
        assert_eq!(
            (shutdown.at(at(2)), shutdown.at(at(4)), shutdown.at(at(5))),
            (ShutdownStage::Begins, ShutdownStage::Until(at(5)), ShutdownStage::Over)
        );
    }
}
