//! The base delay: the smallest one-way delay of the last ten seconds, on whatever offset the two clocks have.
//!
//! Called by the readings for every exchange. Buckets of one second forget what is old, so that a path that has become
//! longer and clocks that drift do no harm for long. While others keep the queue full nothing shows the base; it is then
//! held, with an allowance for drift.
//!
//! Invariant: the base is never above a delay measured in the last second.

use segstream_base::Instant;

/// How many buckets of a second are believed: two drains of the queue fall into that time.
const BUCKETS: u64 = 10;
/// What a held base may rise by in a second, in nanoseconds: 100 parts in a million, twice what a poor crystal drifts.
const DRIFT: i64 = 100_000;

/// The base delay in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct BaseDelay {
    /// The second a bucket stands for, and the smallest delay in it.
    buckets: [(u64, i64); BUCKETS as usize],
    /// The base held, and the second it was last looked at.
    held: i64,
    held_at: u64,
}

/// A bucket of no second.
const EMPTY: (u64, i64) = (u64::MAX, i64::MAX);

impl Default for BaseDelay {
    fn default() -> Self {
        Self { buckets: [EMPTY; BUCKETS as usize], held: 0, held_at: 0 }
    }
}

impl BaseDelay {
    /// `delay` was measured; returns the base. With `hold` the base before stays believed.
    pub(super) fn on_delay(&mut self, now: Instant, delay: i64, hold: bool) -> i64 {
        let second = now.as_nanos() / 1_000_000_000;
        let mut least = delay;
        if hold {
            let drift = if second > self.held_at { DRIFT } else { 0 };
            self.held = self.held.saturating_add(drift).min(delay);
            self.held_at = second;
            least = self.held;
        }
        let bucket = &mut self.buckets[(second % BUCKETS) as usize];
        *bucket = match *bucket {
            (of, known) if of == second => (of, known.min(least)),
            _ => (second, least),
        };
        let fresh = self.buckets.iter().filter(|(of, _)| second.abs_diff(*of) < BUCKETS);
        let base = fresh.map(|(_, least)| *least).min().unwrap_or(delay);
        if !hold {
            (self.held, self.held_at) = (base, second);
        }
        base
    }

    /// The base was found too low, by `rise`.
    pub(super) fn raise(&mut self, now: Instant, rise: i64) {
        let second = now.as_nanos() / 1_000_000_000;
        let fresh = self.buckets.iter().filter(|(of, _)| second.abs_diff(*of) < BUCKETS);
        if let Some(base) = fresh.map(|(_, least)| least.saturating_add(rise)).min() {
            self.clear();
            self.buckets[(second % BUCKETS) as usize] = (second, base);
            (self.held, self.held_at) = (base, second);
        }
    }

    /// Forgets everything: the path has changed.
    pub(super) fn clear(&mut self) {
        self.buckets = [EMPTY; BUCKETS as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::Duration;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_longer_path_is_believed_after_ten_seconds() {
        let mut base = BaseDelay::default();
        assert_eq!(base.on_delay(at(1), -500, false), -500);
        assert_eq!(base.on_delay(at(10), 300, false), -500);
        assert_eq!(base.on_delay(at(11), 400, false), 300);
        assert_eq!(base.on_delay(at(11), 250, false), 250);
    }

    #[test]
    fn a_base_that_was_too_low_rises_and_falls_again_with_the_delay() {
        let mut base = BaseDelay::default();
        base.on_delay(at(1), 1_000, false);
        base.on_delay(at(2), 9_000, false);
        base.raise(at(3), 5_000);
        assert_eq!(base.on_delay(at(3), 8_000, false), 6_000);
        assert_eq!(base.on_delay(at(4), 4_000, false), 4_000);
        // Of an empty one nothing is known to rise.
        let mut base = BaseDelay::default();
        base.raise(at(3), 5_000);
        assert_eq!(base.on_delay(at(4), 7_000, false), 7_000);
    }

    #[test]
    fn a_held_base_outlives_the_window_and_rises_by_drift_alone() {
        let mut base = BaseDelay::default();
        base.on_delay(at(1), 0, false);
        for second in 2..=61 {
            base.on_delay(at(second), 50_000_000, true);
        }
        assert_eq!(base.on_delay(at(61), 50_000_000, true), 51 * DRIFT, "the oldest of ten buckets");
        assert_eq!(base.on_delay(at(62), 1_000, true), 1_000);
    }
}
