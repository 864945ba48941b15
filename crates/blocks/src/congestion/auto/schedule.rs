//! The schedule of drains: every sender drains the queue at the same moments.
//!
//! Called by the controller, which tells its modes the slot of each exchange. Slots are three seconds long and begin at multiples of
//! that of a time that hosts share, the time of day. Why together: a drain shows the base delay only if the queue empties, and the
//! answer of the queue tells the share of all senders that drain, so senders of this kind need not take each other for others.
//!
//! Limit: clocks that are apart by more than a control time drain apart. Up to about four senders then join each other's drains;
//! more take each other for competing flows.

use segstream_base::{Duration, Instant};

/// The length of a slot of the schedule of drains, 3 s: a drain of 20 ms in each costs half a per cent. Slots begin at multiples of it of the
/// time of day.
pub const SLOT: Duration = Duration::from_secs(3);
pub(super) const SLOT_SECONDS: f64 = SLOT.as_nanos() as f64 * 1e-9;

/// When the slots begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Schedule {
    /// What the shared time shows at [`Instant::ZERO`].
    epoch: Duration,
}

impl Schedule {
    pub(super) const fn new(epoch: Duration) -> Self {
        Self { epoch }
    }

    /// The number of the slot at `now`.
    pub(super) fn slot(&self, now: Instant) -> u64 {
        self.shared(now) / SLOT.as_nanos()
    }

    /// Seconds until the next slot begins.
    pub(super) fn until_next(&self, now: Instant) -> f64 {
        (SLOT.as_nanos() - self.shared(now) % SLOT.as_nanos()) as f64 * 1e-9
    }

    fn shared(&self, now: Instant) -> u64 {
        now.as_nanos().wrapping_add(self.epoch.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_whose_clocks_began_at_other_times_have_slots_in_common() {
        let (early, late) = (Schedule::new(Duration::from_millis(500)), Schedule::new(Duration::from_millis(3_700)));
        for millis in (0..20_000).step_by(7) {
            let at_early = Instant::ZERO + Duration::from_millis(3_200 + millis);
            let at_late = Instant::ZERO + Duration::from_millis(millis);
            assert_eq!(early.slot(at_early), late.slot(at_late));
            assert_eq!(early.until_next(at_early), late.until_next(at_late));
        }
        assert_eq!(early.until_next(Instant::ZERO), 2.5);
        // A clock that was never set, or is set to the end of time, is a schedule too.
        assert!(Schedule::new(Duration::from_nanos(u64::MAX)).until_next(Instant::FAR_FUTURE) <= 3.0);
    }
}
