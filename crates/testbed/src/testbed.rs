//! Two network namespaces with `segstream link --tun` between them.
//!
//! Called by tests and measurements.
//!
//! ```ignore
//! let testbed = Testbed::new(binary, &["--bandwidth", "20mbit", "--rtt", "40ms"])?;
//! let series = testbed.kernel_tcp("cubic", Duration::from_secs(5));
//! let report = testbed.end().json();
//! ```
//!
//! Invariant: one link at a time in a process, so that none takes the processors from another, unless the caller asks for links
//! [side by side](Testbed::side_by_side).

use crate::ends::{Ends, Refused};
use crate::process::{self, Ended, Running};
use rustix::process::Signal;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

static ALONE: Mutex<()> = Mutex::new(());
/// The addresses of A and B unless others are given.
const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

/// A link and its two ends.
#[derive(Debug)]
pub struct Testbed {
    link: Running,
    ends: Ends,
    opened: Instant,
    /// Nothing if others may be open meanwhile.
    _alone: Option<MutexGuard<'static, ()>>,
}

impl Testbed {
    /// Starts the link of this `segstream` with `flags` between 10.77.0.1 (A) and 10.77.0.2 (B).
    ///
    /// # Errors
    /// A missing privilege.
    pub fn new(segstream: &Path, flags: &[&str]) -> Result<Self, Refused> {
        Self::between(segstream, ADDRESSES, flags)
    }

    /// Whether this user may have a testbed, before a program for it is built.
    ///
    /// # Errors
    /// A missing privilege.
    pub fn check() -> Result<(), Refused> {
        Ends::new(ADDRESSES).map(drop)
    }

    /// Starts the link with `flags` between two addresses.
    ///
    /// # Errors
    /// A missing privilege.
    ///
    /// # Panics
    /// When the link does not start.
    pub fn between(segstream: &Path, addresses: [&str; 2], flags: &[&str]) -> Result<Self, Refused> {
        let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Self::open(segstream, addresses, flags, Some(alone))
    }

    /// Starts a link as [`Self::new`] does, without waiting for the others of this process. Whoever opens several has to see that the
    /// processors suffice: each link reports how late it was.
    ///
    /// # Errors
    /// A missing privilege.
    ///
    /// # Panics
    /// When the link does not start.
    pub fn side_by_side(segstream: &Path, flags: &[&str]) -> Result<Self, Refused> {
        Self::open(segstream, ADDRESSES, flags, None)
    }

    fn open(segstream: &Path, addresses: [&str; 2], flags: &[&str], alone: Option<MutexGuard<'static, ()>>) -> Result<Self, Refused> {
        let ends = Ends::new(addresses)?;
        let (paths, addresses) = (ends.paths(), addresses.join(","));
        let ends_flags = ["link", "--json", "--tun", &paths[0], &paths[1], "--tun-addresses", &addresses];
        let mut link = process::start(segstream, ends_flags.iter().chain(flags));
        link.wait_for("interrupt to end");
        Ok(Self { link, ends, opened: Instant::now(), _alone: alone })
    }

    /// When the link was open, a few milliseconds late: from when a trace of its bandwidth counts.
    pub const fn opened(&self) -> Instant {
        self.opened
    }

    /// The two ends, which other threads can use.
    pub const fn ends(&self) -> &Ends {
        &self.ends
    }

    /// Sends a signal to the link.
    pub fn signal(&self, signal: Signal) {
        self.link.signal(signal);
    }

    /// Ends the link; its report.
    ///
    /// # Panics
    /// When its exit status contradicts the report.
    pub fn end(self) -> Ended {
        let ended = self.link.interrupt();
        // On a busy machine the link may be late, and then says so.
        let kept_up = ended.json()["kept_up"].as_bool().unwrap();
        ended.expect(if kept_up { 0 } else { 1 })
    }
}

impl Deref for Testbed {
    type Target = Ends;

    fn deref(&self) -> &Ends {
        &self.ends
    }
}
