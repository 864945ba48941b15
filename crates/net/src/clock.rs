//! The clock: converts the standard clock and the kernel's receive timestamps to an [`Instant`].
//!
//! Called by the drivers, the receive batches and the link emulator. State machines never see it.
//!
//! Invariant: [`Clock::now`] never goes backward, and a receive time is never later than the `now` that it is returned with.
//!
//! Source: the kernel stamps datagrams with the real-time clock (`SO_TIMESTAMPNS`, socket(7)), which may
//! be stepped or slewed; only its difference to the present is used.

use segstream_base::{Duration, Instant};
use std::time::{Instant as SystemInstant, SystemTime};

/// A monotonic clock with its own origin. Copies of one clock agree; two clocks do not.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: SystemInstant,
    /// By how much the time of day is taken to be later than the system says.
    ahead: std::time::Duration,
}

/// A reading of the kernel's real-time clock and of ours at the same moment, taken once for each batch of datagrams.
#[derive(Clone, Copy, Debug)]
pub struct KernelTime {
    now: Instant,
    since_epoch: Duration,
    trusted: bool,
}

impl Clock {
    /// A clock that shows [`Instant::ZERO`] now.
    pub fn start() -> Self {
        Self { start: SystemInstant::now(), ahead: std::time::Duration::ZERO }
    }

    /// The same clock on a host whose time of day is `ahead` of this one's: for measurements of hosts whose clocks differ.
    #[must_use]
    pub const fn ahead_by(self, ahead: std::time::Duration) -> Self {
        Self { ahead, ..self }
    }

    /// What the time of day shows, since 1970, when this clock shows [`Instant::ZERO`].
    ///
    /// Limit: it is read now. When the time of day is set later, those that were told before do not learn of it.
    pub fn epoch(&self) -> std::time::Duration {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        (since_epoch + self.ahead).saturating_sub(self.start.elapsed())
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        self.at(SystemInstant::now())
    }

    /// The standard instant `instant` on this clock; [`Instant::ZERO`] if it is before the start.
    pub fn at(&self, instant: SystemInstant) -> Instant {
        Instant::ZERO + Duration::from(instant.saturating_duration_since(self.start))
    }

    /// How long it is until `deadline`; zero if it has passed.
    pub fn until(&self, deadline: Instant) -> std::time::Duration {
        deadline.since(self.now()).into()
    }

    /// Reads the real-time clock and this one. `previous` is the reading of the batch before: if the two clocks have diverged
    /// since, the real-time clock was stepped, and the receive timestamps of this batch are ignored.
    pub fn kernel_time(&self, previous: Option<KernelTime>) -> KernelTime {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        KernelTime::read(self.now(), since_epoch.into(), previous)
    }
}

impl KernelTime {
    fn read(now: Instant, since_epoch: Duration, previous: Option<Self>) -> Self {
        let trusted = previous.is_none_or(|previous| {
            let ours = now.since(previous.now);
            let theirs = i128::from(since_epoch.as_nanos()) - i128::from(previous.since_epoch.as_nanos());
            let apart = theirs.abs_diff(i128::from(ours.as_nanos()));
            // Why: slewing changes the clock by at most 500 ppm (adjtimex(2)), and a pause between the two readings by little. A
            // larger difference is a step.
            apart <= u128::from((Duration::from_millis(1) + ours / 1_000).as_nanos())
        });
        Self { now, since_epoch, trusted }
    }

    /// The time on our clock.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The kernel's receive timestamp `stamp` (since the Unix epoch) on our clock. `now` if there is none, if it is in the future,
    /// or if the real-time clock was stepped.
    pub fn received(&self, stamp: Option<std::time::Duration>) -> Instant {
        match stamp {
            Some(stamp) if self.trusted => self.now - self.since_epoch.saturating_sub(stamp.into()),
            _ => self.now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: Duration = Duration::from_secs(1_700_000_000);

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn a_receive_time_keeps_its_distance_to_the_present() {
        let reading = KernelTime::read(at(5_000), EPOCH, None);
        let stamp = std::time::Duration::from(EPOCH) - std::time::Duration::from_nanos(700);
        assert_eq!(reading.received(Some(stamp)), at(4_300));
    }

    #[test]
    fn a_receive_time_is_never_later_than_now() {
        let reading = KernelTime::read(at(5_000), EPOCH, None);
        let stamp = std::time::Duration::from(EPOCH) + std::time::Duration::from_secs(3);
        assert_eq!(reading.received(Some(stamp)), at(5_000));
        assert_eq!(reading.received(None), at(5_000));
    }

    #[test]
    fn a_stepped_real_time_clock_is_not_believed_for_one_batch() {
        let second = 1_000_000_000;
        let before = KernelTime::read(at(second), EPOCH, None);
        let stepped = KernelTime::read(at(2 * second), EPOCH + Duration::from_secs(11), Some(before));
        let old_stamp = std::time::Duration::from(EPOCH) + std::time::Duration::from_millis(999);
        assert_eq!(stepped.received(Some(old_stamp)), at(2 * second));

        let after = KernelTime::read(at(3 * second), EPOCH + Duration::from_secs(12), Some(stepped));
        let stamp = std::time::Duration::from(EPOCH) + std::time::Duration::from_millis(11_900);
        assert_eq!(after.received(Some(stamp)), at(2_900_000_000));
    }

    #[test]
    fn a_slewed_real_time_clock_is_believed() {
        let before = KernelTime::read(at(0), EPOCH, None);
        let slewed = EPOCH + Duration::from_secs(100) + Duration::from_millis(50);
        let after = KernelTime::read(at(100_000_000_000), slewed, Some(before));
        assert_eq!(after.received(Some(slewed.into())), at(100_000_000_000));
        assert!(after.trusted);
    }

    #[test]
    fn the_clock_starts_at_zero_and_the_past_needs_no_sleep() {
        let clock = Clock::start();
        assert_eq!(clock.at(clock.start), Instant::ZERO);
        assert_eq!(clock.until(Instant::ZERO), std::time::Duration::ZERO);
        assert!(clock.until(Instant::FAR_FUTURE) > std::time::Duration::from_secs(1));
    }
}
