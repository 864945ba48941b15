//! When an end sends its state: every `T_in`, independent of data.
//!
//! Called by both halves. Source: EC 5 and Table 1 ("periodic and complete state exchange").
//!
//! Invariant: states are due at multiples of the period from the start. Coming late skips intervals and
//! never makes up for them; the number of an interval tells how many have passed, not how many states were sent.

use segstream_base::{Duration, Instant};

/// The periodic timer of one end.
#[derive(Clone, Debug)]
pub(super) struct StatePeriod {
    start: Instant,
    period: Duration,
    due: Instant,
}

impl StatePeriod {
    /// States are due one `period` after `start`, two, and so on.
    pub(super) fn new(start: Instant, period: Duration) -> Self {
        Self { start, period, due: start + period }
    }

    /// When the next state is due, [`Instant::FAR_FUTURE`] after [`StatePeriod::stop`].
    #[inline]
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// The interval that has just ended, counted from 1; the next state is due when the one now running ends.
    pub(super) fn take(&mut self, now: Instant) -> u32 {
        self.resume(now);
        // Why cut off: the number wraps on the wire.
        self.passed(now) as u32
    }

    /// No state is due any more.
    pub(super) const fn stop(&mut self) {
        self.due = Instant::FAR_FUTURE;
    }

    /// A state is due at the end of the running interval.
    pub(super) fn resume(&mut self, now: Instant) {
        self.due = self.start + self.period * self.passed(now).saturating_add(1);
    }

    /// How many intervals have ended.
    fn passed(&self, now: Instant) -> u64 {
        now.since(self.start).as_nanos() / self.period.as_nanos().max(1)
    }
}
