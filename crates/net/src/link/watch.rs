//! The report of a link while it runs, for whoever watches it: metrics.
//!
//! Called by both relays in each turn of their loops. Unwatched, a turn costs one comparison.
//!
//! Invariant: the relay waits for no watcher beyond the copying of one report.

use super::report::LinkReport;
use segstream_base::{Duration, Instant};
use std::sync::{Arc, Mutex, PoisonError};

/// The time between two reports.
const PERIOD: Duration = Duration::from_secs(1);

/// The latest report of a link that runs. Clones watch the same link.
#[derive(Clone, Debug, Default)]
pub struct LinkWatch(Arc<Mutex<Option<LinkReport>>>);

impl LinkWatch {
    /// What the link has done so far, at most a second ago; `None` before it runs. [`super::RelayCounters::unsent`] is what is on its way.
    pub fn report(&self) -> Option<LinkReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// When the next report is due, and for whom.
#[derive(Debug)]
pub(super) struct Watched {
    watch: Option<LinkWatch>,
    due: Instant,
}

impl Watched {
    /// Nobody watches.
    pub(super) const fn by_nobody() -> Self {
        Self { watch: None, due: Instant::FAR_FUTURE }
    }

    /// Somebody watches from now on.
    pub(super) fn watch(&mut self) -> LinkWatch {
        self.due = Instant::ZERO;
        self.watch.get_or_insert_default().clone()
    }

    /// Whether a report is due.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// The report of `now`.
    pub(super) fn tell(&mut self, now: Instant, report: LinkReport) {
        self.due = now + PERIOD;
        if let Some(LinkWatch(shared)) = &self.watch {
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        }
    }
}
