//! Interruption by the user (SIGINT, SIGTERM, SIGHUP): a flag, and a wake for whoever sleeps.
//!
//! Called by `send`, `recv`, `link` and `study`.
//!
//! Invariant: the first signal asks for an orderly end, the second one ends the process at once.

use anyhow::{Context as _, Result};
use segstream_net::Waker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status of a process that a second signal has ended: failed.
const FAILED: i32 = 1;

/// Whether the user wants the verb to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interruption {
    asked: Arc<AtomicBool>,
}

impl Interruption {
    /// Listens for signals from now on; each also wakes `waker`.
    pub(crate) fn listen(waker: Option<Waker>) -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&asked);
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(FAILED);
            }
            if let Some(waker) = &waker {
                waker.wake();
            }
        })
        .context("signals cannot be listened for")?;
        Ok(Self { asked })
    }

    /// Whether a signal has come.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The flag itself.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.asked
    }
}
